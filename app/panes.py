"""The panes of an open document, as docks that can be moved, closed, put back and remembered."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QChildEvent, QEvent, Qt, QTimer
from PySide6.QtGui import QAction, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QDockWidget, QMainWindow, QWidget

from lowerscope.app.docking import Docking, name_tabs
from lowerscope.app.pane_rows import ABOVE, BELOW, PaneRows
from lowerscope.app.views.compare_page import ComparePage
from lowerscope.app.views.details_view import DetailsView
from lowerscope.app.views.difference_view import DifferenceView
from lowerscope.app.views.fx_view import FxView
from lowerscope.app.views.help_key import set_page
from lowerscope.app.views.inputs_page import InputsPage
from lowerscope.app.views.log_view import LogView
from lowerscope.app.views.model_view import ModelView
from lowerscope.app.views.node_map import NodeMap
from lowerscope.app.views.pipeline_view import PipelineView
from lowerscope.app.views.problems_view import ProblemsView
from lowerscope.app.views.relax_view import RelaxView
from lowerscope.app.views.result_view import ResultView
from lowerscope.app.views.schedule_view import ScheduleView
from lowerscope.app.views.tensorir_view import TensorIRView
from lowerscope.app.views.time_page import TimePage
from lowerscope.app.views.timeline_view import TimelineView
from lowerscope.app.views.translation_page import TranslationPage
from lowerscope.app.views.tune_page import TunePage
from lowerscope.app.views.variants_page import VariantsPage
from lowerscope.app.widgets.pane import Pane
from lowerscope.app.workspace import Workspace
from lowerscope.core.recipe import Recipe
from lowerscope.core.records.comparison import TensorPlace
from lowerscope.core.records.run import RunRecord

OUTCOME_WIDTH = 320
"""So narrow the outcome can be, beside the workbench."""

DIFFERENCE_SHARE = 0.45
"""Of the height of the panes that a difference has at least, when it is asked for; and the
workbench."""

TENSOR_SHARE = 0.5
"""The same, of the values of a node."""


class Panes(QMainWindow):
    """The area below the tool bar: a window of docks around the timeline."""

    # On the class, since Qt sends the first events before there is anything on the instance.
    _settled = False

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        # A main window inside another has to be told that it is a plain widget.
        self.setWindowFlags(Qt.WindowType.Widget)
        self.setDockNestingEnabled(True)
        # One key after the other finds every pane where it will be.
        self.setAnimated(False)
        self.model = ModelView(workspace)
        self.fx = FxView(workspace)
        self.relax = RelaxView(workspace)
        self.tensorir = TensorIRView(workspace)
        self.result = ResultView(workspace)
        self.problems = ProblemsView(workspace)
        self.log = LogView(workspace)
        self.details = DetailsView(workspace)
        self.pipeline = PipelineView(workspace)
        self.schedule = ScheduleView(workspace)
        self.timeline = TimelineView(workspace)
        # Between the docks at the top and those at the bottom, as high as it is.
        self.setCentralWidget(self.timeline)
        self.timeline_action = QAction(self.tr("Timeline"), self, checkable=True, checked=True)
        self.timeline_action.toggled.connect(self._show_timeline)
        self.outcome = Pane(self.tr("Outcome"))
        # The page with the difference would ask for more; it can be given that.
        self.outcome.setMinimumWidth(OUTCOME_WIDTH)
        self._fill_outcome(workspace)
        self._workspace = workspace
        self._saved, self._same_size = QByteArray(), True
        self._shown_run: RunRecord | None = None
        self.docks: dict[str, QDockWidget] = {
            name: pane.make_dock(name, self)
            for name, pane in (
                ("model", self.model),
                ("fx", self.fx),
                ("relax", self.relax),
                ("tensorir", self.tensorir),
                ("schedule", self.schedule),
                ("pipeline", self.pipeline),
                ("outcome", self.outcome),
                ("details", self.details),
            )
        }
        self.docking = Docking(self, self.docks, (ABOVE, BELOW))
        self.docking.set_corners()
        self._rows = PaneRows(self, self.docks, self.docking, self.timeline)
        for name, dock in self.docks.items():
            dock.dockLocationChanged.connect(self.note_moved)
            # Each page of the outcome has its own.
            set_page(dock, "result" if name == "outcome" else name)
        set_page(self.timeline, "timeline")
        set_page(self.schedule.numbers, "numbers")
        self._busy = False
        self._scheduling = False
        self.arrange()
        workspace.stepping.list_changed.connect(self._follow_clock)
        self.docks["schedule"].toggleViewAction().triggered.connect(self._choose_workbench)
        workspace.problems_changed.connect(self._show_problems)
        workspace.snapshot_changed.connect(self._show_problems)
        workspace.run_changed.connect(self._show_result)
        workspace.pins.wanted.connect(self.show_difference)
        workspace.recipe_wanted.connect(self._show_busy)
        # What was wrong before there was anything to show is said as well.
        self._show_problems()

    def _fill_outcome(self, workspace: Workspace) -> None:
        """Give the pane at the bottom its pages; where there is no room, the last are in a menu."""
        self.compare = ComparePage(workspace, self.outcome.set_busy)
        self.time = TimePage(workspace)
        self.tune = TunePage(workspace)
        self.variants = VariantsPage(workspace, self.outcome.set_busy)
        self.inputs = InputsPage(workspace)
        self.translation = TranslationPage(workspace, self.outcome.set_busy)
        self.node_map = NodeMap(workspace)
        self.difference = DifferenceView(workspace, self.outcome.set_busy)
        for key, title, page in (
            ("result", self.tr("Result"), self.result),
            ("compare", self.tr("Compare"), self.compare),
            ("time", self.tr("Time"), self.time),
            ("variants", self.tr("Variants"), self.variants),
            ("tune", self.tr("Tune"), self.tune),
            ("inputs", self.tr("Input"), self.inputs),
            ("problems", self.tr("Problems"), self.problems),
            ("translation", self.tr("Translation"), self.translation),
            ("node-map", self.tr("Node map"), self.node_map),
            ("difference", self.tr("Difference"), self.difference),
            ("log", self.tr("Log"), self.log),
        ):
            self.outcome.add_page(key, title, page)
            set_page(page, key)
        self.compare.translation_wanted.connect(self._show_translation)
        self.compare.rule_wanted.connect(self.details.rule_wanted)
        self.compare.tensor_wanted.connect(self.show_tensor)
        self.details.call.tensor_wanted.connect(self._show_tensor_of_call)
        self.variants.text_wanted.connect(self._show_difference_of)
        workspace.runs.variants.ended.connect(self._show_variants)
        self.node_map.node_wanted.connect(self._show_translation)

    def show_page(self, key: str) -> None:
        """Show a page of the pane at the bottom, even if that was closed."""
        self.bring("outcome")
        self.outcome.set_current(key)

    def bring(self, name: str) -> None:
        """Have a pane in view, wherever it is: closed, behind a tab, or behind one maximised."""
        if not self.docking.is_in_front(name):
            self.take_back()
            self.docks[name].show()
            self.docks[name].raise_()

    def arrange(self) -> None:
        """Put every dock where it stands by default."""
        self.docking.forget()
        self._rows.reset()
        self._saved = QByteArray()
        self._details_before = True
        top, bottom = Qt.DockWidgetArea.TopDockWidgetArea, Qt.DockWidgetArea.BottomDockWidgetArea
        for area, row in ((top, ABOVE), (bottom, BELOW)):
            previous: QDockWidget | None = None
            for name in row:
                dock = self.docks[name]
                dock.setFloating(False)
                dock.show()
                if previous is None:
                    self.addDockWidget(area, dock)
                else:
                    self.splitDockWidget(previous, dock, Qt.Orientation.Horizontal)
                previous = dock
        self._show_workbench(self._scheduling)
        self.timeline_action.setChecked(True)
        self.timeline.show()
        self._settle_soon()

    def restore(self, state: QByteArray, *, same_size: bool = True) -> None:
        """Put the docks where they were when `state` was saved.

        Parameters
        ----------
        same_size
            Whether the window has the size that it had then; else those in their rows get their
            usual room. Qt would give all that there is more to the first of a row.
        """
        self.take_back()
        self._saved, self._same_size = state, same_size
        self._settle_soon()

    def state(self) -> QByteArray:
        """Return where the docks are, for `restore`; with all of them if one is maximised."""
        return self.docking.state()

    def maximise(self, name: str) -> None:
        """Give a pane the room of all that are docked, until `take_back`."""
        self.docking.maximise(name)
        self.timeline.hide()

    def take_back(self) -> None:
        """Show again what had to make room for the pane that is maximised, if one is."""
        if self.docking.is_maximised:
            self.timeline.setVisible(self.timeline_action.isChecked())
            self.docking.take_back()

    def note_moved(self) -> None:
        """Take the panes as the user has arranged them; once they are laid out."""
        QTimer.singleShot(0, self, self._note_height)

    def _settle_soon(self) -> None:
        # Sizes count only once the docks are shown and have been laid out.
        self._settled = False
        if self.isVisible():
            QTimer.singleShot(0, self, self._settle)

    def _settle(self) -> None:
        if self._settled or not self.isVisible():
            return
        self._rows.reset()
        if not self._saved.isEmpty():
            self.restoreState(self._saved)
            self.docking.set_corners()
            self._settled = True
            self._note_height()
            if not self._scheduling and not self.docks["schedule"].isHidden():
                # It was closed at the workbench, and begins with the steps of the passes.
                self._show_workbench(False)
                self._rows.lay_out(False)
            if not self._same_size and self._rows.are_usual:
                self._rows.reset()
                self._rows.lay_out(self._scheduling)
                self._rows.keep_height()
        else:
            self._rows.lay_out(self._scheduling)
            self._rows.keep_height()
        self._settled = True
        QTimer.singleShot(0, self, self._note_height)

    def _note_height(self) -> None:
        if self._settled:
            self._rows.note_height()

    def _follow_clock(self) -> None:
        """Show the workbench in place of the pipeline while its steps are gone through."""
        scheduling = self._workspace.stepping.clock == "schedule"
        if scheduling == self._scheduling:
            return
        self._scheduling = scheduling
        self.take_back()
        if scheduling:
            self._rows.leave_usual(DIFFERENCE_SHARE)
            self._details_before = not self.docks["details"].isHidden()
        else:
            self._rows.return_to_usual()
        self._show_workbench(scheduling)
        if self._settled:
            self._rows.lay_out(scheduling)
            self._rows.keep_height()

    def _show_workbench(self, shown: bool) -> None:
        self.docks["schedule"].setVisible(shown)
        self.docks["pipeline"].setVisible(not shown)
        self.docks["details"].setVisible(not shown and self._details_before)

    def _choose_workbench(self, shown: bool) -> None:
        self._workspace.stepping.set_clock("schedule" if shown else "passes")

    def _show_timeline(self, shown: bool) -> None:
        self.timeline.setVisible(shown)
        self._rows.keep_height()

    def _show_translation(self) -> None:
        self.show_page("translation")

    def _show_problems(self) -> None:
        workspace = self._workspace
        if self.outcome.current() == "inputs" and workspace.inputs.problem is not None:
            # It is said where the input is chosen.
            return
        if workspace.problems or any(note.code for note in workspace.notes):
            self.show_page("problems")
        elif self.outcome.current() == "problems":
            self.outcome.set_current("result")

    def show_difference(self) -> None:
        """Show the difference, and let the keyboard go through it."""
        self._show_high("difference", DIFFERENCE_SHARE)
        self.difference.page.diff.setFocus()

    def show_tuning(self) -> None:
        """Show how far the tuning is, high enough for its curve."""
        self._show_high("tune", DIFFERENCE_SHARE)

    def _show_difference_of(self, old: Recipe, new: Recipe, function: str) -> None:
        self.difference.filter.setText(function)
        self._workspace.pins.compare_recipes(old, new)

    def _show_variants(self) -> None:
        self.show_page("variants")

    def show_tensor(self) -> None:
        """Show the values of the node that is selected."""
        self.compare.tensor.look_at_selection()
        self._show_values()

    def _show_tensor_of_call(self, place: TensorPlace, name: str) -> None:
        self.compare.tensor.look_at(place, name)
        self._show_values()

    def _show_values(self) -> None:
        self.compare.show_part("tensor")
        self._show_high("compare", TENSOR_SHARE)

    def _show_high(self, key: str, share: float) -> None:
        """Show a page that is of little use in few lines, at such a share of the height."""
        dock = self.docks["outcome"]
        self.show_page(key)
        if not dock.isFloating() and dock.height() < self.height() * share:
            self._rows.raise_to(share)
            self._rows.keep_height()

    def _show_result(self) -> None:
        record, shown = self._workspace.run_record, self._shown_run
        self._shown_run = record
        if record is not None and record is not shown and self.outcome.current() != "inputs":
            self.outcome.set_current("result")

    def _show_busy(self) -> None:
        workspace = self._workspace
        busy = workspace.recipe is not None and workspace.wanted != workspace.recipe
        if busy == self._busy:
            # What is raised is painted anew, with all that is below it.
            return
        self._busy = busy
        for pane in (self.fx, self.relax, self.tensorir):
            pane.set_busy(busy)

    # Qt's own

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self._settled:
            QTimer.singleShot(0, self, self._settle)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._settled:
            # Room that is gained or lost is that of the graphs and scripts; once it is laid out.
            QTimer.singleShot(0, self, self._rows.keep_height)

    def event(self, event: QEvent) -> bool:
        handled = super().event(event)
        if self._settled and event.type() == QEvent.Type.MouseButtonRelease:
            # The user may have dragged the line between the rows.
            self._note_height()
        if event.type() == QEvent.Type.ChildPolished and isinstance(event, QChildEvent):
            name_tabs(event.child())
        return handled
