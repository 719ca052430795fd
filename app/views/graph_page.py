"""A graph of the document on a canvas, tied to the selection. The FX and Relax panes have one."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QVBoxLayout, QWidget

from lowerscope.app.views.canvas_records import canvas_graph
from lowerscope.app.views.descriptions import name_of
from lowerscope.app.views.formats import STRATEGY_NAMES
from lowerscope.app.widgets.graph_canvas import GraphCanvas
from lowerscope.app.workspace import Workspace
from lowerscope.core.graph_records import GraphRecord
from lowerscope.core.recipe import STRATEGIES, Strategy

EXTENDING = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier


class GraphPage(QWidget):
    """A canvas that shows one graph of the snapshot.

    Parameters
    ----------
    name
        Accessible name of the canvas.
    tooltip
        Text for the id of a box.
    choices
        Whether the strategy of a box can be chosen in its menu, and a rule be written for it.

    Signals
    -------
    rule_wanted
        The user wants to write a rule for a node: its id.
    """

    rule_wanted = Signal(str)

    def __init__(
        self,
        workspace: Workspace,
        name: str,
        tooltip: Callable[[str], str],
        parent: QWidget | None = None,
        *,
        choices: bool = False,
    ) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._record: GraphRecord | None = None
        self._title = ""
        self._choices = choices
        self.canvas = GraphCanvas(name)
        self.canvas.tooltip = tooltip
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.canvas)
        self.canvas.node_clicked.connect(self._select)
        self.canvas.background_clicked.connect(self._clear)
        self.canvas.menu_requested.connect(self._open_menu)
        workspace.selection_changed.connect(self.show_selection)

    def show_graph(self, record: GraphRecord | None, title: str) -> None:
        """Show a graph; the view stays where it is while `title` does."""
        if record is not None and record != self._record:
            self.canvas.set_graph(canvas_graph(record), keep_view=title == self._title)
        elif record is None:
            self.canvas.set_graph(canvas_graph(GraphRecord(boxes=(), edges=(), width=0, height=0)))
        self._record, self._title = record, title
        self.show_selection()

    def show_selection(self) -> None:
        """Mark what is selected, and bring the first of it into view."""
        selection = self._workspace.selection
        boxes = () if self._record is None else self._record.boxes
        inside = {box.id: {box.id, *box.members} for box in boxes}
        marked = [box.id for box in boxes if not inside[box.id].isdisjoint(selection.linked)]
        self.canvas.set_selection(marked)
        chosen = [box for box in marked if not inside[box].isdisjoint(selection.chosen)]
        if marked and self.isVisible():
            self.canvas.reveal((chosen or marked)[0])

    def _select(self, entity: str, modifiers: Qt.KeyboardModifier) -> None:
        self._workspace.select((entity,), extend=bool(modifiers & EXTENDING))

    def _open_menu(self, entity: str, position: QPoint) -> None:
        menu = QMenu(self)
        select = menu.addAction(self.tr("Select"))
        extend = menu.addAction(self.tr("Add to selection"))
        select.setEnabled(bool(entity))
        extend.setEnabled(bool(entity))
        strategies = self._add_strategies(menu, entity) if self._choices else {}
        write = menu.addAction(self.tr("Write a rule for {0}…").format(name_of(entity)))
        write.setVisible(self._choices and bool(entity))
        menu.addSeparator()
        fit = menu.addAction(self.tr("Fit"))
        full = menu.addAction(self.tr("Actual size"))
        chosen = menu.exec(position)
        if chosen in (select, extend):
            self._workspace.select((entity,), extend=chosen is extend)
        elif chosen in strategies:
            self._workspace.lower_nodes(self._meant(entity), strategies[chosen])
        elif chosen is write:
            self.rule_wanted.emit(entity)
        elif chosen is fit:
            self.canvas.fit()
        elif chosen is full:
            self.canvas.set_zoom(1.0)
        menu.deleteLater()

    def _add_strategies(self, menu: QMenu, entity: str) -> dict[QAction, Strategy | None]:
        below = menu.addMenu(self.tr("Lower as"))
        below.setEnabled(bool(entity))
        actions: dict[QAction, Strategy | None] = {
            below.addAction(STRATEGY_NAMES[strategy]): strategy for strategy in STRATEGIES
        }
        below.addSeparator()
        actions[below.addAction(self.tr("Reset to default"))] = None
        return actions

    def _meant(self, entity: str) -> tuple[str, ...]:
        """Return what a menu on a box is about: all that is selected, if the box is among it."""
        chosen = self._workspace.selection.chosen
        return chosen if entity in chosen else (entity,)

    def _clear(self) -> None:
        self._workspace.select(())
