"""A viewer of differences: two columns or one, folds of equal lines, find, next and previous."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from PySide6.QtCore import QPoint, Signal
from PySide6.QtGui import QAction, QFocusEvent, QKeySequence
from PySide6.QtWidgets import QMenu, QStackedLayout, QVBoxLayout, QWidget

from lowerscope.app.widgets.code.find_bar import FindBar
from lowerscope.app.widgets.code.lines import compile_pattern
from lowerscope.app.widgets.diff.area import DiffArea, Words
from lowerscope.app.widgets.diff.paint import SIGNS, fold_text, title_text
from lowerscope.app.widgets.diff.rows import DiffPart, DiffRun, Row, rows_of
from lowerscope.app.widgets.empty_state import EmptyState

__all__ = ["DiffPart", "DiffRun", "DiffView"]

#: So many places are found and counted; beyond it the count says "+".
MOST_MATCHES = 10_000


class _Found(NamedTuple):
    part: int
    side: str
    line: int
    start: int
    end: int


class DiffView(QWidget):
    """A difference to read.

    Parameters
    ----------
    name : str
        What it is called by a screen reader.
    words : callable
        Says what changed inside of a line: takes an old and a new one, and returns the columns of
        either that are not in the other.
    parent : QWidget, optional
        The widget that it stands in.

    Signals
    -------
    moved()
        Another row is the current one: it may be at another change.
    """

    moved = Signal()

    def __init__(self, name: str, words: Words, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._found: list[_Found] = []
        self._current = -1
        self.area = DiffArea(words)
        self.find_bar = FindBar()
        self.empty = EmptyState()
        self._name = name
        self.setAccessibleName(name)
        self.area.setAccessibleName(name)
        self._page = QWidget()
        page = QVBoxLayout(self._page)
        page.setContentsMargins(0, 0, 0, 0)
        page.setSpacing(0)
        page.addWidget(self.find_bar)
        page.addWidget(self.area, 1)
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self.empty)
        self._stack.addWidget(self._page)
        self.area.find_wanted.connect(self.open_find)
        self.area.next_wanted.connect(self.find_next)
        self.area.previous_wanted.connect(self.find_previous)
        self.area.escape_pressed.connect(self._close_find)
        self.area.menu_wanted.connect(self._open_menu)
        self.area.moved.connect(self._describe)
        self.find_bar.search_changed.connect(self._search)
        self.find_bar.next_wanted.connect(self.find_next)
        self.find_bar.previous_wanted.connect(self.find_previous)
        self.find_bar.closed.connect(self._close_find)

    def set_parts(self, parts: Sequence[DiffPart], language: str = "text") -> None:
        """Show a difference, from its top; none shows the empty state."""
        self.area.set_parts(parts, language)
        self._stack.setCurrentWidget(self._page if parts else self.empty)
        if self.find_bar.isVisibleTo(self):
            self._search()
        self._describe()

    def set_empty(self, title: str, hint: str = "") -> None:
        """What is said while there is nothing to show."""
        self.empty.set_text(title, hint)

    def set_unified(self, unified: bool) -> None:
        """Show one column, or two."""
        self.area.set_unified(unified)

    def show_part(self, title: str) -> None:
        """Bring the part with this title to the top."""
        self.area.show_part(title)

    def next_change(self) -> bool:
        """Go to the next change; False behind the last one."""
        return self.area.next_change()

    def previous_change(self) -> bool:
        """Go to the change before; False before the first one."""
        return self.area.previous_change()

    def change(self) -> tuple[int, int]:
        """Which change the current row is at or below, from 1, and how many there are."""
        starts = self.area.document.changes
        return sum(place <= self.area.current() for place in starts), len(starts)

    # Finding

    def open_find(self) -> None:
        """Open the find bar."""
        if not self.area.document.parts:
            return
        chosen = self.area.selected_text()
        self.find_bar.open_field(chosen if chosen and "\n" not in chosen else None)
        self._search()

    def find_next(self) -> None:
        """Go to the next place, round the end."""
        self._step(1)

    def find_previous(self) -> None:
        """Go to the previous place, round the start."""
        self._step(-1)

    def _search(self) -> None:
        typed = self.find_bar.field.text()
        self._found, self._current = [], -1
        if typed:
            try:
                pattern = compile_pattern(
                    typed, self.find_bar.case.isChecked(), self.find_bar.regex.isChecked()
                )
            except re.error as error:
                self.area.set_matches({})
                self.find_bar.show_wrong_pattern(str(error))
                return
            self._found = self._find_all(pattern)
        marks: dict[tuple[int, str, int], list[tuple[int, int]]] = {}
        for found in self._found:
            marks.setdefault(found[:3], []).append((found.start, found.end))
        self.area.set_matches(marks)
        self._go_to_found(0 if self._found else -1)

    def _find_all(self, pattern: re.Pattern[str]) -> list[_Found]:
        """Every place, in the order of the rows; what is the same on both sides counts once."""
        parts = self.area.document.parts
        found: list[_Found] = []
        for row in rows_of(parts, True, None):
            if row.kind == "title":
                continue
            part = parts[row.part]
            side = "new" if row.new else "old"
            line = row.new or row.old
            text = part.new[line - 1] if side == "new" else part.old[line - 1]
            for match in pattern.finditer(text):
                if match.end() > match.start():
                    found.append(_Found(row.part, side, line, *match.span()))
                    if len(found) == MOST_MATCHES:
                        return found
        return found

    def _step(self, by: int) -> None:
        if not self._found:
            self._search()
        else:
            self._go_to_found((self._current + by) % len(self._found))

    def _go_to_found(self, index: int) -> None:
        self._current = index
        if index >= 0:
            self.area.show_line(*self._found[index][:3])
        count = len(self._found)
        self.find_bar.show_count(index + 1, count, count == MOST_MATCHES)

    def _close_find(self) -> None:
        self.find_bar.hide()
        self._found, self._current = [], -1
        self.area.set_matches({})
        self.area.setFocus()

    # Besides

    def _describe(self) -> None:
        """Let a screen reader say the current row."""
        rows = self.area.document.rows
        text = self._row_text(rows[self.area.current()]) if rows else ""
        self.area.setAccessibleDescription(text)
        self.moved.emit()

    def _row_text(self, row: Row) -> str:
        if row.kind == "title":
            return title_text(self.area.document.parts[row.part])
        if row.kind == "fold":
            return fold_text(row)
        old, new = self.area.document.texts_of(row)
        sign = SIGNS.get(row.kind, "")
        number = row.new or row.old
        text = f"{old} → {new}" if row.kind == "changed" else new if new is not None else old
        return f"{number} {sign} {text}"

    def _open_menu(self, position: QPoint) -> None:
        menu = QMenu(self)
        standard = QKeySequence.StandardKey
        for text, slot, key in (
            (self.tr("Copy"), self.area.copy, QKeySequence(standard.Copy)),
            (self.tr("Select all"), self.area.select_all, QKeySequence(standard.SelectAll)),
            (self.tr("Find…"), self.open_find, QKeySequence(standard.Find)),
            (self.tr("Next Change"), self.area.next_change, QKeySequence("N")),
            (self.tr("Previous Change"), self.area.previous_change, QKeySequence("P")),
            (self.tr("Show all lines"), self.area.unfold_all, QKeySequence()),
            (self.tr("Fold Equal Lines"), self.area.fold_all, QKeySequence()),
        ):
            action = QAction(text, menu)
            action.setShortcut(key)
            action.triggered.connect(slot)
            menu.addAction(action)
        menu.exec(position)
        menu.deleteLater()

    # Qt

    def focusInEvent(self, event: QFocusEvent) -> None:
        # Not a focus proxy: Tab would pass over what stands before it.
        self.area.setFocus(event.reason())
