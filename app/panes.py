"""The panes of an open document, as docks that can be moved, closed, put back and remembered."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, Qt, QTimer
from PySide6.QtWidgets import QDockWidget, QMainWindow, QWidget

from lowerscope.app.views.details_view import DetailsView
from lowerscope.app.views.fx_view import FxView
from lowerscope.app.views.log_view import LogView
from lowerscope.app.views.model_view import ModelView
from lowerscope.app.views.problems_view import ProblemsView
from lowerscope.app.views.relax_view import RelaxView
from lowerscope.app.views.result_view import ResultView
from lowerscope.app.views.tensorir_view import TensorIRView
from lowerscope.app.widgets.pane import Pane
from lowerscope.app.workspace import Workspace

TOP = (("model", 200), ("fx", 340), ("relax", 400), ("tensorir", 500))
BOTTOM = (("outcome", 1080), ("details", 360))
TOP_HEIGHT, BOTTOM_HEIGHT = 560, 250


class Panes(QMainWindow):
    """The area below the tool bar: a window of docks without anything in the middle."""

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        # A main window inside another has to be told that it is a plain widget.
        self.setWindowFlags(Qt.WindowType.Widget)
        self.setDockNestingEnabled(True)
        self.model = ModelView(workspace)
        self.fx = FxView(workspace)
        self.relax = RelaxView(workspace)
        self.tensorir = TensorIRView(workspace)
        self.result = ResultView(workspace)
        self.problems = ProblemsView(workspace)
        self.log = LogView(workspace)
        self.details = DetailsView(workspace)
        self.outcome = Pane(self.tr("Outcome"))
        self.outcome.add_page("result", self.tr("Result"), self.result)
        self.outcome.add_page("problems", self.tr("Problems"), self.problems)
        self.outcome.add_page("log", self.tr("Log"), self.log)
        self._workspace = workspace
        self.docks: dict[str, QDockWidget] = {
            name: pane.make_dock(name, self)
            for name, pane in (
                ("model", self.model),
                ("fx", self.fx),
                ("relax", self.relax),
                ("tensorir", self.tensorir),
                ("outcome", self.outcome),
                ("details", self.details),
            )
        }
        self.arrange()
        workspace.problems_changed.connect(self._show_problems)
        workspace.run_changed.connect(self._show_result)

    def arrange(self) -> None:
        """Put every dock where it stands by default."""
        top, bottom = Qt.DockWidgetArea.TopDockWidgetArea, Qt.DockWidgetArea.BottomDockWidgetArea
        for area, row in ((top, TOP), (bottom, BOTTOM)):
            previous: QDockWidget | None = None
            for name, _ in row:
                dock = self.docks[name]
                dock.setFloating(False)
                dock.show()
                if previous is None:
                    self.addDockWidget(area, dock)
                else:
                    self.splitDockWidget(previous, dock, Qt.Orientation.Horizontal)
                previous = dock
        self._sized_by_default = True
        # Sizes count only once the docks have been laid out.
        QTimer.singleShot(0, self, self._size_docks)

    def restore(self, state: QByteArray) -> None:
        """Put the docks where they were when `state` was saved."""
        self._sized_by_default = False
        self.restoreState(state)

    def _size_docks(self) -> None:
        if not self._sized_by_default:
            return
        for row in (TOP, BOTTOM):
            docks = [self.docks[name] for name, _ in row]
            self.resizeDocks(docks, [width for _, width in row], Qt.Orientation.Horizontal)
        heads = [self.docks[TOP[0][0]], self.docks[BOTTOM[0][0]]]
        self.resizeDocks(heads, [TOP_HEIGHT, BOTTOM_HEIGHT], Qt.Orientation.Vertical)

    def _show_problems(self) -> None:
        problems = self._workspace.problems
        if problems:
            self.docks["outcome"].show()
            self.outcome.set_current("problems")
        elif self.outcome.current() == "problems":
            self.outcome.set_current("result")

    def _show_result(self) -> None:
        if self._workspace.run_record is not None:
            self.outcome.set_current("result")
