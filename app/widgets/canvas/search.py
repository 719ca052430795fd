"""Search in a graph: the search bar, and the matching nodes."""

import re

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from lowerscope.app.widgets.canvas.index import GraphIndex
from lowerscope.app.widgets.code.find import FindBar, compile_pattern
from lowerscope.core.model.graph import Box, GraphRecord


class GraphSearch(QObject):
    """The matches of a search, in reading order: from the top, from the left.

    Parameters
    ----------
    parent : QWidget
        The widget that the bar stands in.

    Attributes
    ----------
    bar : FindBar
        The bar.
    found : list of str
        The matching nodes.

    Signals
    -------
    changed(str)
        The matches changed; the argument is the current one, or ``""``.
    stepped(str)
        Another match became current.
    closed()
        The user closed the search.
    """

    changed = Signal(str)
    stepped = Signal(str)
    closed = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.found: list[str] = []
        self._place = -1
        self._index = GraphIndex(GraphRecord())
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
        """Return whether the bar is shown."""
        return not self.bar.isHidden()

    def open(self) -> None:
        """Show the bar with the previous pattern."""
        self.bar.open_field(None)
        self.search()

    def close(self) -> None:
        """Hide the bar and clear the matches."""
        self.bar.hide()
        self.found, self._place = [], -1
        self.closed.emit()

    def current(self) -> str:
        """Return the current match, or ``""``."""
        return self.found[self._place] if 0 <= self._place < len(self.found) else ""

    def go_on(self) -> None:
        """Go to the next match, wrapping around."""
        self._step(1)

    def go_back(self) -> None:
        """Go to the previous match, wrapping around."""
        self._step(-1)

    def search(self) -> None:
        """Search titles, second lines, and the members of groups for the pattern."""
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


def _is_found(node: Box, pattern: re.Pattern[str]) -> bool:
    return any(pattern.search(text) for text in node.words)
