"""Searching a graph: the bar that a pattern is typed in, and the nodes that it is found in."""

import re

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from lowerscope.app.widgets.canvas.graph import CanvasGraph, CanvasNode
from lowerscope.app.widgets.canvas.index import GraphIndex
from lowerscope.app.widgets.code.find_bar import FindBar
from lowerscope.app.widgets.code.lines import compile_pattern


class GraphSearch(QObject):
    """What was searched for, in the order in which it is read: from the top, from the left.

    Parameters
    ----------
    parent : QWidget
        The widget that the bar stands in.

    Attributes
    ----------
    bar : FindBar
        The bar.
    found : list of str
        The nodes.

    Signals
    -------
    changed(str)
        Other nodes are found: the one that is looked at, or ``""``.
    stepped(str)
        Another one of them is looked at.
    closed()
        The user is done with it.
    """

    changed = Signal(str)
    stepped = Signal(str)
    closed = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.found: list[str] = []
        self._place = -1
        self._index = GraphIndex(CanvasGraph())
        self.bar = FindBar(parent)
        self.bar.search_changed.connect(self.search)
        self.bar.next_wanted.connect(self.go_on)
        self.bar.previous_wanted.connect(self.go_back)
        self.bar.closed.connect(self.close)

    def show_graph(self, index: GraphIndex) -> None:
        """Search another graph."""
        self._index = index
        if self.is_open():
            self.search()

    def is_open(self) -> bool:
        """Whether the bar is shown."""
        return not self.bar.isHidden()

    def open(self) -> None:
        """Show the bar, with what was searched for before."""
        self.bar.open_field(None)
        self.search()

    def close(self) -> None:
        """Hide the bar, and have nothing found any more."""
        self.bar.hide()
        self.found, self._place = [], -1
        self.closed.emit()

    def current(self) -> str:
        """The node that is looked at, or ``""``."""
        return self.found[self._place] if 0 <= self._place < len(self.found) else ""

    def go_on(self) -> None:
        """Look at the next one, round the end."""
        self._step(1)

    def go_back(self) -> None:
        """Look at the one before, round the start."""
        self._step(-1)

    def search(self) -> None:
        """Search titles, second lines, and the members of groups for what was typed."""
        typed, here = self.bar.field.text(), self.current()
        self.found = []
        if typed:
            try:
                pattern = compile_pattern(
                    typed, self.bar.case.isChecked(), self.bar.regex.isChecked()
                )
            except re.error as error:
                self.bar.show_wrong_pattern(str(error))
                self.changed.emit("")
                return
            rects = self._index.rects
            nodes = self._index.nodes.items()
            self.found = [name for name, node in nodes if _is_found(node, pattern)]
            self.found.sort(key=lambda name: (rects[name].y(), rects[name].x()))
        self._place = self.found.index(here) if here in self.found else min(0, len(self.found) - 1)
        self._show_count()
        self.changed.emit(self.current())

    def _step(self, by: int) -> None:
        if self.found:
            self._place = (self._place + by) % len(self.found)
            self._show_count()
            self.stepped.emit(self.current())

    def _show_count(self) -> None:
        self.bar.show_count(self._place + 1, len(self.found), False)


def _is_found(node: CanvasNode, pattern: re.Pattern[str]) -> bool:
    return any(pattern.search(text) for text in (node.title, node.subtitle, *node.members))
