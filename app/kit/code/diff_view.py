"""Difference viewer: two columns or one, folds of equal lines, search, next and previous change."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from PySide6.QtCore import QPoint, QRectF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QMouseEvent,
    QPainter,
    QPaintEvent,
)
from PySide6.QtWidgets import QMenu, QScrollBar, QWidget

from lowerscope.app.kit import theme
from lowerscope.app.kit.code.code_lines import Rows
from lowerscope.app.kit.code.code_view import Viewer
from lowerscope.app.kit.code.diff_editor import (
    CHANGES,
    MOVED,
    DiffEditor,
    DiffFolding,
    DiffPart,
    DiffRows,
    DiffRun,
    Words,
)
from lowerscope.app.kit.code.marks import Match
from lowerscope.app.kit.layouts import column_of, row_of
from lowerscope.app.kit.typefaces import TextMetrics, code_font, code_line
from lowerscope.core.model.texts import _

__all__ = ["DiffPart", "DiffRun", "DiffView"]

_LEAST = 2.0


class DiffView(Viewer):
    """A read-only difference: two code views side by side, or one.

    Args:
        words: Returns the changed words of a line: takes an old and a new line, and returns the
            columns of either that are not in the other.
    """

    moved = Signal()  # Another change became current, or the changes are others.
    key_pressed = Signal(str)  # A key of `KEYS` that the view has no command for; its command.

    def __init__(self, name: str, words: Words) -> None:
        super().__init__(name, _BothSides(self))
        self._rows = DiffRows()
        self._folding = DiffFolding(self._rows)
        self._language = "text"
        self._unified = False
        # The columns; ``new`` shows both sides in a unified view.
        self.old = DiffEditor(words, "old")
        self.new = DiffEditor(words, "new")
        self._active = self.new
        self._told = (0, 0)
        self.strip = DiffStrip(self)
        self.old.setAccessibleName(_("{name}: old side", name=name))
        self.new.setAccessibleName(_("{name}: new side", name=name))
        self._lay_out()
        self._connect()

    def set_parts(self, parts: Sequence[DiffPart], language: str = "text") -> None:
        """Show a difference from its top; without parts, show the empty state."""
        self._language = language
        rows = DiffRows(parts, self._unified)
        self._show(rows, DiffFolding(rows))
        self._stack.setCurrentWidget(self._page if parts else self.empty)
        self._follow_caret()

    def current_part(self) -> str:
        """Return the title of the part of the current row, or ``""``."""
        row = self._rows.row(self.row())
        return self._rows.parts[row.part].title if self._rows.parts else ""

    @property
    def active(self) -> DiffEditor:
        return self._active

    def set_unified(self, unified: bool) -> None:
        """Show one column or two; the top row stays."""
        if unified == self._unified:
            return
        self._unified = unified
        before, rows = self._rows, DiffRows(self._rows.parts, unified)
        top, current = (before.row(row) if before.runs else None for row in self._place())
        self._show(rows, DiffFolding(rows, self._folding))
        if top is not None and current is not None:
            self._active.go_to(rows.like(current))
            self._active.set_top_line(rows.like(top))

    def row(self) -> int:
        """Return the current row, an index into `rows`."""
        return self._active.row()

    def rows(self) -> DiffRows:
        """Return all rows, including folded ones."""
        return self._rows

    def texts(self) -> tuple[str | None, str | None]:
        """Return the lines of both sides in the current row."""
        return self._rows.texts(self._rows.row(self.row()))

    def show_part(self, title: str) -> None:
        """Scroll the part with this title to the top."""
        row = self._rows.title(title)
        if row >= 0:
            self._active.go_to(row)
            self._active.set_top_line(row)

    def next_change(self) -> bool:
        """Go to the next change; return False after the last one."""
        changes = self._rows.changes
        later = bisect_right(changes, self.row())
        if later < len(changes):
            self._go_to_change(changes[later])
        return later < len(changes)

    def previous_change(self) -> bool:
        """Go to the previous change; return False before the first one."""
        changes = self._rows.changes
        earlier = bisect_left(changes, self.row()) - 1
        if earlier >= 0:
            self._go_to_change(changes[earlier])
        return earlier >= 0

    def change(self) -> tuple[int, int]:
        """Return the number, from 1, of the change at or above the current row, and the count."""
        changes = self._rows.changes
        return bisect_right(changes, self.row()), len(changes)

    def open_find(self) -> None:
        if self._rows.runs:
            super().open_find()

    def press(self, key: str) -> None:
        if key in self._commands:
            super().press(key)
        else:
            self.key_pressed.emit(key)

    def editors(self) -> tuple[DiffEditor, ...]:
        """Return the visible columns."""
        return (self.new,) if self._unified else (self.old, self.new)

    def activate(self, editor: DiffEditor) -> None:
        """Move the current row, the selection and the focus to this column."""
        before, self._active = self._active, editor
        if editor is before:
            return
        if before.textCursor().hasSelection():
            cursor = before.textCursor()
            cursor.clearSelection()
            before.setTextCursor(cursor)
        if before.hasFocus():
            editor.setFocus()

    # Content

    def _place(self) -> tuple[int, int]:
        return self._active.top_line(), self._active.row()

    def _show(self, rows: DiffRows, folding: DiffFolding) -> None:
        self._rows, self._folding = rows, folding
        if self._unified:
            self._active = self.new
        self.old.setVisible(not self._unified)
        if not self._unified:
            self.old.set_rows(rows, folding, "old", self._language)
        self.new.set_rows(rows, folding, "both" if self._unified else "new", self._language)
        self._show_strip()
        if self.find_bar.isVisibleTo(self):
            self.finding.search()

    def _go_to_change(self, number: int) -> None:
        """Go to a change, and scroll both sides to its first changed words; to the left if in view.

        A line without changed words has changed as a whole, from its indentation.
        """
        editor, row = self._active, self._rows.row(number)
        found = [words[0] for words in editor.words_of(row) if words]
        for text in () if found else self._rows.texts(row):
            if text is not None:
                indent = len(text) - len(text.lstrip())
                found.append((indent, indent + 1))
        editor.go_to(number)
        column = TextMetrics(code_font()).horizontalAdvance("0")
        start = min((start for start, _end in found), default=0) * column
        end = max((end for _start, end in found), default=0) * column
        bar, room = editor.horizontalScrollBar(), editor.viewport().width()
        # A long word is visible if its start is.
        is_in_view = min(end, start + room / 4) <= room
        bar.setValue(0 if is_in_view else round(start - room / 4))

    # Slots

    def _enter(self, reason: Qt.FocusReason) -> None:
        """Make the side with the focus active; by keyboard, go to the row that was current."""
        row = self.row()
        self.activate(next(filter(DiffEditor.hasFocus, self.editors()), self._active))
        if reason in (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason):
            self._active.go_to(row)

    def _follow_caret(self) -> None:
        # Rows are also inserted above the caret, whose position is known only afterwards.
        if self._told != (told := self.change()):
            self._told = told
            self.moved.emit()

    def _show_strip(self) -> None:
        self.strip.set_rows(self._rows, self.new.rows())
        self._show_place()

    def _show_place(self) -> None:
        self.strip.set_view(self.new.verticalScrollBar().value(), self.new.viewport().height())

    def _scroll_to_share(self, share: float) -> None:
        bar = self.new.verticalScrollBar()
        bar.setValue(round(share * self.new.rows().count - bar.pageStep() / 2))

    def _toggle(self) -> None:
        self._active.toggle_fold(self.row())

    def _fill_menu(self, menu: QMenu, position: QPoint) -> None:
        for text, command, keys in (
            (_("Copy"), "copy", "Ctrl+C"),
            (_("Select all"), "select-all", "Ctrl+A"),
            (_("Find…"), "find", "Ctrl+F"),
            (_("Next Change"), "next-change", "N"),
            (_("Previous Change"), "previous-change", "P"),
            (_("Show all lines"), "unfold-all", ""),
            (_("Fold Unchanged Lines"), "fold-all", ""),
        ):
            self._add(menu, text, command, keys)

    def _copy(self) -> None:
        if self._active.textCursor().hasSelection():
            self._active.copy()
        else:
            self._active.copy_line()

    # Construction

    def _lay_out(self) -> None:
        sides = QWidget()
        row_of(
            sides, (self.old, 1), (self.new, 1), self.strip, _bar_for(self.new.verticalScrollBar())
        )
        column_of(self._page, self.find_bar, (sides, 1), _bar_for(self.new.horizontalScrollBar()))

    def _connect(self) -> None:
        self._commands |= {
            "next-change": self.next_change,
            "previous-change": self.previous_change,
            "toggle": self._toggle,
            "copy": self._copy,
        }
        self.old.follow(self.new)
        self.new.follow(self.old)
        for editor in (self.old, self.new):
            editor.entered.connect(self._enter)
            self._listen_to(editor)
            editor.cursorPositionChanged.connect(self._follow_caret)
            editor.rows_changed.connect(self._follow_caret)
            editor.folds_changed.connect(self._show_strip)
        self.new.rows_changed.connect(self._show_place)
        self.strip.chosen.connect(self._scroll_to_share)
        theme.notifier().changed.connect(self._show_strip)


class _BothSides:
    """The lines of both sides as searchable text: the old and the new line of each row, in turn.

    Lines that are equal on both sides count once.

    Args:
        view: The view that shows them.
    """

    def __init__(self, view: DiffView) -> None:
        self._view = view
        self._searched: tuple[DiffRows, list[str]] = DiffRows(), []

    def lines(self) -> Sequence[str]:
        rows = self._view.rows()
        if self._searched[0] is not rows:
            lines = [line for pair in zip(*self._sides(rows), strict=True) for line in pair]
            self._searched = rows, lines
        return self._searched[1]

    def _sides(self, rows: DiffRows) -> tuple[list[str], list[str]]:
        old, new = rows.lines("old"), rows.lines("both" if rows.unified else "new")
        for start, run in zip(rows.starts, rows.runs, strict=False):
            if run.is_heading:
                old[start] = new[start] = ""
            elif run.kind == "same" or rows.unified:
                old[start : start + run.length] = [""] * run.length
        return old, new

    def caret(self) -> tuple[int, int]:
        # From the start of the row, so that typing more of a pattern finds the same match again.
        return 2 * self._view.row(), 0

    def go_to(self, line: int, start: int = 0, end: int = 0) -> None:
        editor = self._editor(line)
        self._view.activate(editor)
        editor.go_to(line // 2, start, end)

    def show_matches(self, matches: Sequence[Match], current: Match | None) -> None:
        for editor in self._view.editors():
            own = [_in_row(each) for each in matches if self._editor(each.line) is editor]
            here = current is not None and self._editor(current.line) is editor
            editor.show_matches(own, _in_row(current) if current is not None and here else None)

    def _editor(self, line: int) -> DiffEditor:
        return self._view.editors()[-1] if line % 2 else self._view.editors()[0]


def _in_row(match: Match) -> Match:
    return Match(match.line // 2, match.start, match.end)


def _bar_for(bar: QScrollBar) -> QScrollBar:
    """Return a visible scroll bar that controls a hidden one."""
    shown = QScrollBar(bar.orientation())

    def fit() -> None:
        shown.setRange(bar.minimum(), bar.maximum())
        shown.setPageStep(bar.pageStep())
        shown.setSingleStep(bar.singleStep())
        shown.setVisible(bar.maximum() > bar.minimum())

    bar.rangeChanged.connect(fit)
    bar.valueChanged.connect(shown.setValue)
    shown.valueChanged.connect(bar.setValue)
    shown.hide()
    return shown


class DiffStrip(QWidget):
    """Strip of marks at the heights of changes: removed left, added right, changed across both."""

    WIDTH = 14

    chosen = Signal(float)  # A height was clicked; the argument is its share of the whole.

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._blocks: list[tuple[str, float, float]] = []
        self._height = 1
        self._view = (0, 0)
        self.setFixedWidth(self.WIDTH)
        self.setCursor(Qt.CursorShape.ArrowCursor)
        self.setToolTip(_("All changes: click to go there"))

    def set_rows(self, diff: DiffRows, shown: Rows) -> None:
        """Set the rows, and which of them are not folded away."""
        line = code_line()
        self._height = max(1, shown.count * line)
        self._blocks = []
        for start, run in zip(diff.starts, diff.runs, strict=False):
            if run.kind in CHANGES and shown.shows(start):
                top = shown.row_of(start)
                self._blocks.append((run.kind, top * line, (top + run.length) * line))
        self.update()

    def set_view(self, top: int, height: int) -> None:
        """Set the row at the top of the view, and the number of visible rows."""
        self._view = (top * code_line(), height)
        self.update()

    def _scale(self) -> float:
        return min(1.0, self.height() / self._height)

    # Qt

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = theme.current()
        painter = QPainter(self)
        painter.fillRect(event.rect(), QColor(colours.ground))
        scale = self._scale()
        if scale < 1:
            top, height = self._view
            view = QRectF(0, top * scale, self.width(), max(8.0, height * scale))
            painter.fillRect(view, QColor(colours.line))
        last: dict[str, float] = {}
        for kind, start, end in self._blocks:
            at = start * scale
            if at < last.get(kind, -1.0):
                continue
            length = max(_LEAST, (end - start) * scale)
            last[kind] = at + length
            if kind != "added":
                shade = colours.edge if kind in MOVED else colours.wrong
                painter.fillRect(QRectF(3, at, 4, length), QColor(shade))
            if kind not in ("removed", "moved-out"):
                shade = colours.unsure if kind in MOVED else colours.right
                painter.fillRect(QRectF(8, at, 4, length), QColor(shade))
        painter.fillRect(QRectF(0, 0, 1, self.height()), QColor(colours.line))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.chosen.emit(event.position().y() / self._scale() / self._height)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self.chosen.emit(event.position().y() / self._scale() / self._height)
