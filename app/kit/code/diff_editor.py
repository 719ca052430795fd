"""A column of a difference: its rows, with fillers opposite the other side's lines."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import Literal, NamedTuple

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QFont,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QTextBlock,
)
from PySide6.QtWidgets import QWidget

from lowerscope.app.kit import theme
from lowerscope.app.kit.code.code_editor import CodeEditor, Gutter, columns_area, paint_chevron
from lowerscope.app.kit.code.code_lines import Folding, Range
from lowerscope.app.kit.code.marks import units
from lowerscope.app.kit.code.shown_lines import LINE_CHARACTERS, MOST_LINES
from lowerscope.app.kit.typefaces import TextMetrics, code_font, ui_font
from lowerscope.core.model.compact_script import Edits, compact_script, edited, printed_column
from lowerscope.core.model.texts import _

LineStatus = Literal["same", "changed", "added", "removed", "moved-in", "moved-out"]
RowKind = Literal["title", "fold", "same", "changed", "added", "removed", "moved-in", "moved-out"]
Side = Literal["old", "new", "both"]
"""A column of the two-column view; or the only one, which shows lines of both sides."""

CHANGES = ("changed", "added", "removed", "moved-in", "moved-out")
MOVED = ("moved-in", "moved-out")
"""Lines that came from another part, which the old side shows beside them, or went into one."""

#: Equal lines that are shown before and after a change.
CONTEXT = 3

#: Fewest lines that a fold stands for.
_SMALLEST_FOLD = 2


class DiffRun(NamedTuple):
    """Consecutive lines of one status: the first on either side, from 1, and their number.

    ``group`` is a number from 0 that lines which moved together share.
    """

    status: LineStatus
    old: int
    new: int
    length: int
    group: int = -1


class Printed(NamedTuple):
    """A line as printed, which is copied, and the edits of the form that it is shown in."""

    text: str
    edits: Edits = ()


class SideText(NamedTuple):
    """The lines of a side as shown, with notes for their right edges, from 0, and as printed."""

    lines: list[str]
    notes: dict[int, str]
    printed: list[Printed]

    def printed_by_number(self) -> dict[int, Printed]:
        """Return the lines that are shown in another form, by number from 1."""
        return {at: line for at, line in enumerate(self.printed, 1) if line.edits}


@lru_cache(maxsize=512)
def compact_side(
    text: str, names: tuple[tuple[str, str], ...] = (), types: bool = False
) -> SideText:
    """Return a script in its compact form, line by line: see `compact_script`."""
    form = compact_script(text, dict(names), types=types)
    lines = text.split("\n")
    printed = list(map(Printed, lines))
    for at, edits in form.edits.items():
        printed[at] = Printed(lines[at], edits)
        lines[at] = edited(lines[at], edits)
    return SideText(lines, dict(form.notes), printed)


def told_apart(
    old: SideText, new: SideText, changed: Iterable[tuple[int, int, int]]
) -> tuple[SideText, SideText]:
    """Return both sides with lines that differ only in what is not shown as printed.

    Args:
        changed: Ranges of changed lines: the first on either side, from 1, and their number.
    """
    sides = tuple(SideText([*s.lines], {**s.notes}, [*s.printed]) for s in (old, new))
    for first, other, length in changed:
        for i in range(length):
            places = first - 1 + i, other - 1 + i
            if sides[0].lines[places[0]] == sides[1].lines[places[1]]:
                for side, at in zip(sides, places, strict=True):
                    text = side.printed[at].text
                    side.lines[at], side.printed[at] = text, Printed(text)
                    side.notes.pop(at, None)
    return sides[0], sides[1]


def _replaces(kind: RowKind, group: int) -> bool:
    """Return whether a line stands in the place of one that went into another part."""
    return kind == "changed" and group >= 0


@dataclass(frozen=True)
class DiffPart:
    """A part of a difference with a title, such as a function."""

    title: str  # Its name.
    status: LineStatus  # Status of the whole part.
    old: Sequence[str]  # The lines of either side.
    new: Sequence[str]
    runs: Sequence[DiffRun]  # All of these lines in order.
    # The last lines of ``old`` stand in other parts: their numbers there.
    foreign: Sequence[int] = ()
    note: str = ""  # Text behind the title.
    # Notes at the right edge of the lines of either side, by number from 1.
    old_notes: Mapping[int, str] = field(default_factory=dict)
    new_notes: Mapping[int, str] = field(default_factory=dict)
    # The lines of either side that are shown in another form, by number from 1.
    old_printed: Mapping[int, Printed] = field(default_factory=dict)
    new_printed: Mapping[int, Printed] = field(default_factory=dict)
    group: int = -1  # Group of the lines that moved into it.

    def old_number(self, line: int) -> int:
        """Return the number of an old line in its own part."""
        own = len(self.old) - len(self.foreign)
        return line if line <= own else self.foreign[line - own - 1]

    def count(self, status: LineStatus) -> int:
        """Return the number of lines of a status.

        A line in the place of one that went into another part is an added one.
        """
        statuses = (
            ("added" if _replaces(run.status, run.group) else run.status, run.length)
            for run in self.runs
        )
        return sum(length for each, length in statuses if each == status)


class Row(NamedTuple):
    """A row, or several consecutive ones of one kind.

    ``old`` and ``new`` are lines from 1, 0 where a side has none. A fold is one row above the equal
    lines that it stands for; its length is their number. ``partner`` is the counterpart of a
    removed or an added line.
    """

    kind: RowKind
    part: int
    old: int = 0
    new: int = 0
    length: int = 1
    partner: int = 0
    group: int = -1

    @property
    def is_heading(self) -> bool:
        """Return whether it is a title, or stands for folded lines."""
        return self.kind in ("title", "fold")

    def line(self, side: Side) -> int:
        """Return the line of a side in this row, or 0."""
        if self.is_heading:
            return 0
        return self.old if side == "old" else self.new or (self.old if side == "both" else 0)


class DiffRows:
    """All rows of a difference, including folded ones; rows count from 0.

    They are the regions of a side's text: a title begins the rows of its part, and a fold those of
    its lines.

    Args:
        parts: The parts; each has a title, unless there is one part without a name.
        unified: Whether a changed line is shown as a removed line above an added one.
    """

    def __init__(self, parts: Sequence[DiffPart] = (), unified: bool = False) -> None:
        self.parts = parts
        self.unified = unified
        # The rows, grouped by kind.
        self.runs = [row for number in range(len(parts)) for row in self._of_part(number)]
        self._found: dict[int, Row] = {}  # Rows that were requested.
        lengths = (1 if run.is_heading else run.length for run in self.runs)
        # The first row of each run, and the total number of rows.
        self.starts = list(accumulate(lengths, initial=0))
        sides = (side for part in parts for side in (part.old, part.new) if side)
        # Characters of the longest line of either side.
        self.longest = max((max(map(len, side)) for side in sides), default=0)
        kinds = [run.kind in CHANGES for run in self.runs]
        before = [False, *kinds]
        # The rows at which changes begin.
        self.changes = [
            start
            for start, change, follows in zip(self.starts, kinds, before, strict=False)
            if change and not follows and start < MOST_LINES
        ]

    def row(self, number: int) -> Row:
        """Return a row; the last one for rows beyond it, and an empty one if there are none."""
        found = self._found.get(number)
        if found is None:
            found = self._found[number] = self._row(number)
        return found

    def _row(self, number: int) -> Row:
        if not self.runs:
            return Row("same", 0)
        number = min(number, self.starts[-1] - 1)
        index = self._index(number)
        run, offset = self.runs[index], number - self.starts[index]
        if run.is_heading:
            return run
        old, new, partner = (at + offset if at else 0 for at in (run.old, run.new, run.partner))
        return Row(run.kind, run.part, old, new, 1, partner, run.group)

    def texts(self, row: Row) -> tuple[str | None, str | None]:
        """Return the lines of a row on either side."""
        if row.is_heading or not self.parts:
            return None, None
        part = self.parts[row.part]
        old = part.old[row.old - 1] if row.old else None
        return old, part.new[row.new - 1] if row.new else None

    def pair(self, row: Row) -> tuple[str, str] | None:
        """Return both texts of a changed line, for a row that shows it or one side of it."""
        if row.kind not in ("changed", "moved-in") and not row.partner:
            return None
        part = self.parts[row.part]
        return part.old[(row.old or row.partner) - 1], part.new[(row.new or row.partner) - 1]

    def edge_note(self, row: Row, side: Side) -> str:
        """Return the note at the right edge of a row on a side, or ``""``."""
        line = row.line(side)
        if not line:
            return ""
        part = self.parts[row.part]
        return (part.new_notes if side != "old" and row.new else part.old_notes).get(line, "")

    def printed(self, row: Row, side: Side) -> Printed | None:
        """Return the line of a row on a side; ``None`` for none."""
        line = row.line(side)
        if not line:
            return None
        part = self.parts[row.part]
        if side != "old" and row.new:
            return part.new_printed.get(line) or Printed(part.new[line - 1])
        return part.old_printed.get(line) or Printed(part.old[line - 1])

    def lines(self, side: Side) -> list[str]:
        """Return the text of a side, one line for each row."""
        lines: list[str] = []
        for run in self.runs:
            first = run.line(side)
            if first:
                part = self.parts[run.part]
                text = part.old if side == "old" or not run.new else part.new
                lines += text[first - 1 : first - 1 + run.length]
            else:
                # A title has a character, whose font determines the row's height.
                filler = " " if run.kind == "title" else ""
                lines += [filler] * (1 if run.is_heading else run.length)
        return lines

    def like(self, row: Row) -> int:
        """Return the first row with the same line, title or fold as a row of another `DiffRows`."""
        for start, run in zip(self.starts, self.runs, strict=False):
            if run[:4] == row[:4]:
                return start
            if run.part != row.part or run.is_heading or row.is_heading:
                continue
            for first, line in ((run.old, row.old), (run.new, row.new)):
                if first and 0 <= line - first < run.length:
                    return start + line - first
        return 0

    def is_title(self, number: int) -> bool:
        """Return whether a row is the title of a part."""
        return self.row(number).kind == "title"

    def title(self, title: str) -> int:
        """Return the row of a part's title, or -1."""
        for start, run in zip(self.starts, self.runs, strict=False):
            if run.kind == "title" and self.parts[run.part].title == title:
                return start
        return -1

    # Regions

    def begins(self, line: int) -> bool:
        return self.row(line).is_heading

    def end(self, line: int) -> int:
        index = self._index(line)
        part, kind = self.runs[index].part, self.runs[index].kind
        following = index + 2
        while kind == "title" and following < len(self.runs) and self.runs[following].part == part:
            following += 1
        return self.starts[min(following, len(self.runs))] - 1

    def around(self, line: int) -> int:
        for index in range(self._index(line), -1, -1):
            if self.begins(self.starts[index]) and self.end(self.starts[index]) >= line:
                return self.starts[index]
        return -1

    def functions(self) -> Iterator[int]:
        return (
            start for start, run in zip(self.starts, self.runs, strict=False) if run.kind == "fold"
        )

    def _index(self, number: int) -> int:
        return max(0, min(bisect_right(self.starts, number), len(self.runs)) - 1)

    def _of_part(self, number: int) -> Iterator[Row]:
        part = self.parts[number]
        if part.title:
            yield Row("title", number)
        for place, (status, old, new, length, group) in enumerate(part.runs):
            if status == "same":
                before = CONTEXT if place else 0
                after = CONTEXT if place + 1 < len(part.runs) else 0
                yield from _same(number, (old, new, length), before, after)
            elif status == "changed" and self.unified:
                yield Row("removed", number, old, 0, length, new, group)
                yield Row("added", number, 0, new, length, old)
            elif status == "changed":
                yield Row("changed", number, old, new, length, group=group)
            elif status in ("removed", "moved-out"):
                yield Row(status, number, old, 0, length, group=group)
            elif status == "moved-in" and self.unified:
                yield Row(status, number, 0, new, length, old, group)
            elif status == "moved-in":
                yield Row(status, number, old, new, length, group=group)
            else:
                yield Row("added", number, 0, new, length)


def _same(number: int, lines: tuple[int, int, int], before: int, after: int) -> Iterator[Row]:
    """Yield the rows of equal lines: context beside changes, and a fold above the others."""
    old, new, length = lines
    hidden = length - before - after
    if hidden < _SMALLEST_FOLD:
        before, hidden, after = length, 0, 0
    if before:
        yield Row("same", number, old, new, before)
    if hidden:
        yield Row("fold", number, old + before, new + before, hidden)
        yield Row("same", number, old + before, new + before, hidden)
    if after:
        yield Row("same", number, old + length - after, new + length - after, after)


class DiffFolding(Folding):
    """The folds of a difference; a fold has a row only while it is folded.

    Args:
        before: The folds of the same parts with other rows; by default, equal lines are folded, and
            parts without a change are folded to their titles.
    """

    def __init__(self, rows: DiffRows, before: "DiffFolding | None" = None) -> None:
        super().__init__(regions=rows)
        self.rows = rows
        known = set() if before is None else before._folded_runs()
        for start, run in zip(rows.starts, rows.runs, strict=False):
            if before is not None:
                folded = run in known
            else:
                folded = run.kind == "fold" or (
                    run.kind == "title" and rows.parts[run.part].status == "same"
                )
            if folded:
                self.fold(start)

    def _folded_runs(self) -> set[Row]:
        return {self.rows.row(header) for header in self._folded}

    def ranges(self) -> list[Range]:
        # The first row of a text is never omitted.
        opened = (each for each in self.rows.functions() if each and each not in self._folded)
        ranges = [*self._folded.values(), *((header, header + 1) for header in opened)]
        # The last line that is shown contains all lines below it.
        last = MOST_LINES - 1
        return [(first, min(end, last)) for first, end in ranges if first < last]


WordRange = tuple[int, int]
Words = Callable[[str, str], tuple[Sequence[WordRange], Sequence[WordRange]]]
"""Function that returns the columns of the changed words in an old and a new line."""

KEYS = {
    Qt.Key.Key_N: "next-change",
    Qt.Key.Key_P: "previous-change",
    Qt.Key.Key_Return: "toggle",
    Qt.Key.Key_Enter: "toggle",
    Qt.Key.Key_T: "unified",
    Qt.Key.Key_Space: "play",
    Qt.Key.Key_Slash: "filter",
}
"""Commands of keys, besides those of the code view."""

TITLE_HEIGHT = 28
SIGNS = {"added": "+", "removed": "−", "changed": "~", "moved-in": "↪", "moved-out": "↪"}

_PAD = 8
_SIGN = 20


class DiffEditor(CodeEditor):
    """The old side of a difference, the new one, or both in one column.

    Args:
        words: Returns the changed words of a line.
        side: The side that it shows.
    """

    entered = Signal(object)  # The editor got the focus.

    def __init__(self, words: Words, side: Side) -> None:
        self.diff = DiffRows()  # The rows, one for each line of the text.
        self.side = side
        self._words = words
        self._changed: dict[tuple[str, str], tuple[Sequence[WordRange], Sequence[WordRange]]] = {}
        self._partner: DiffEditor | None = None
        self._following = False
        super().__init__()
        self.document().setDocumentMargin(0)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.horizontalScrollBar().rangeChanged.connect(self._fit_width)

    def follow(self, other: "DiffEditor") -> None:
        """Synchronise scrolling and folds with the other side."""
        self._partner = other
        other.rows_changed.connect(self._follow_scrolling)
        other.folds_changed.connect(self._follow_folds)
        other.horizontalScrollBar().valueChanged.connect(self.horizontalScrollBar().setValue)

    def set_rows(self, rows: DiffRows, folding: DiffFolding, side: Side, language: str) -> None:
        """Show one side of other rows, from the top."""
        self.diff, self.side = rows, side
        self._changed.clear()
        lines = rows.lines(side)
        self.set_high_lines(rows.is_title, TITLE_HEIGHT)
        self.set_text("\n".join(lines), language, folding=folding)
        self._fit_width()

    def row(self) -> int:
        """Return the row of the caret."""
        return self.place(self.textCursor().position())[0]

    def text_between(self, start: tuple[int, int], end: tuple[int, int]) -> str:
        """Return this side's lines between two positions as printed, without rows that have none.

        What is shown for other text stands for all of that.
        """
        last = end[0]
        to_end = end[1] >= len(self.lines()[last])
        if to_end and last == MOST_LINES - 1:
            # The last line that is shown contains all lines below it.
            last = self.diff.starts[-1] - 1
        texts = []
        for number in range(start[0], last + 1):
            line = self.diff.printed(self.diff.row(number), self.side)
            if line is not None:
                stop = len(line.text)
                if number == end[0] and not to_end:
                    stop = printed_column(line.edits, end[1], end=True)
                begin = printed_column(line.edits, start[1]) if number == start[0] else 0
                texts.append(line.text[begin:stop])
        return "\n".join(texts)

    def selected_text(self) -> str:
        """Return the selected text, line by line."""
        selects = self.textCursor().hasSelection()
        return self.createMimeDataFromSelection().text() if selects else ""

    def copy_line(self) -> None:
        """Copy the line of the caret to the clipboard."""
        line = self.diff.printed(self.diff.row(self.row()), "both")
        if line is not None and line.text:
            QGuiApplication.clipboard().setText(line.text)

    def words_of(self, row: Row) -> tuple[Sequence[WordRange], Sequence[WordRange]]:
        """Return the columns of the changed words in the old and the new line of a row."""
        pair = self.diff.pair(row)
        if pair is None:
            return (), ()
        if pair not in self._changed:
            old, new = pair
            self._changed[pair] = self._words(old[:LINE_CHARACTERS], new[:LINE_CHARACTERS])
        return self._changed[pair]

    def toggle_fold(self, line: int) -> bool:
        toggled = super().toggle_fold(line)
        if toggled and self.diff.row(line).kind == "fold" and not self.is_folded(line):
            # The fold no longer has a row.
            self.go_to(line + 1)
        return toggled

    def heading_at(self, y: float) -> int:
        """Return the row of a title or a fold at a height, or -1."""
        line = self.line_at(y)
        return line if line >= 0 and self.diff.begins(line) else -1

    def line_state(self, line: int) -> str:
        return row_text(self.diff, line)

    # Painting

    def make_gutter(self) -> Gutter:
        return _DiffGutter(self)

    def fold_text(self, line: int) -> str:
        # A title or a fold is described by its own text.
        return ""

    def is_selected(self, number: int) -> bool:
        return number == self.caret_line()

    def paint_ground(self, painter: QPainter, number: int, row: QRectF, caret: int) -> None:
        colours = theme.current()
        found = self.diff.row(number)
        if found.is_heading:
            return
        ground = {
            "added": colours.right_ground,
            "removed": colours.wrong_ground,
            "changed": colours.changed,
        }.get(self.kind(found))
        if found.kind in MOVED:
            moved = self.side != "old" and found.kind == "moved-in" and self._differs(found)
            ground = colours.changed if moved else colours.hover
        if not found.line(self.side):
            ground = colours.ground
        if ground is not None:
            painter.fillRect(row, QColor(ground))

    def kind(self, row: Row) -> RowKind:
        """Return the kind of this side of a row: see `DiffPart.count`."""
        if _replaces(row.kind, row.group):
            return "removed" if self.side == "old" else "added"
        return row.kind

    def _differs(self, row: Row) -> bool:
        """Return whether a line that moved is another one now, but for its indentation."""
        pair = self.diff.pair(row)
        return pair is not None and pair[0].strip() != pair[1].strip()

    def paint_behind(
        self, painter: QPainter, number: int, block: QTextBlock, row: QRectF, caret: int
    ) -> None:
        super().paint_behind(painter, number, block, row, caret)
        found = self.diff.row(number)
        if found.kind not in CHANGES or not found.line(self.side) or not block.layout().lineCount():
            return
        colours = theme.current()
        old = self.side == "old" or found.kind == "removed"
        tint = QColor(colours.wrong if old else colours.right)
        if found.kind in MOVED:
            tint = QColor(colours.unsure)
        tint.setAlphaF(0.32 if colours.dark else 0.22)
        text = block.text()
        for start, end in self.words_of(found)[0 if old else 1]:
            columns = units(text[:start]), units(text[:end])
            painter.fillRect(columns_area(*columns, block, row), tint)

    def paint_over(self, painter: QPainter, number: int, block: QTextBlock, row: QRectF) -> None:
        self.paint_heading(painter, self.viewport(), number, row)
        if note := self.diff.edge_note(self.diff.row(number), self.side):
            self.paint_note(painter, note, block, row)

    def paint_heading(self, painter: QPainter, widget: QWidget, number: int, row: QRectF) -> None:
        """Paint the part of a title or a fold over one widget: it spans both sides."""
        if not self.diff.begins(number):
            return
        shift = self.x() + widget.x()
        painter.save()
        painter.translate(-shift, 0)
        whole = QRectF(0, row.top(), shift + widget.width(), row.height())
        paint_heading(painter, self.diff, number, whole, self.is_folded(number))
        painter.restore()

    def _other_side(self) -> "DiffEditor | None":
        """Return the other column; ``None`` in a unified view."""
        other = self._partner
        return None if other is None or "both" in (self.side, other.side) else other

    # Slots

    def _follow_scrolling(self) -> None:
        other = self._other_side()
        if other is not None and not other._following and self.top_line() != other.top_line():
            self._following = True
            self.set_top_line(other.top_line())
            self._following = False

    def _follow_folds(self) -> None:
        if self._other_side() is not None:
            self.show_folds()
            self._step()

    def _fit_width(self) -> None:
        """Set the scroll range of both sides to the longest line of either."""
        text = min(self.diff.longest, LINE_CHARACTERS) * TextMetrics(code_font()).horizontalAdvance(
            "0"
        )
        most = max(0, round(text + 24 - self.viewport().width()))
        bar = self.horizontalScrollBar()
        if bar.maximum() != most:
            # Before Qt scrolls the viewport, which it does after this signal.
            bar.setRange(0, most)

    # Qt

    def is_own_key(self, event: QKeyEvent) -> bool:
        # Go to line does not apply here.
        return super().is_own_key(event) and event.key() != Qt.Key.Key_G

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = KEYS.get(Qt.Key(event.key()), "")
        modified = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        if event.matches(QKeySequence.StandardKey.Copy) and not self.textCursor().hasSelection():
            self.copy_line()
        elif key and modified == Qt.KeyboardModifier.NoModifier:
            self.key_pressed.emit(key)
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.entered.emit(event.reason())

    def mousePressEvent(self, event: QMouseEvent) -> None:
        heading = self.heading_at(event.position().y())
        if heading >= 0 and event.button() == Qt.MouseButton.LeftButton:
            self.toggle_fold(heading)
        else:
            super().mousePressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        if not event.buttons():
            heading = self.heading_at(event.position().y()) >= 0
            shape = Qt.CursorShape.PointingHandCursor if heading else Qt.CursorShape.IBeamCursor
            self.viewport().setCursor(shape)


class _DiffGutter(Gutter):
    """Line numbers and signs beside a side."""

    _editor: DiffEditor

    def set_count(self, count: int) -> int:
        parts = self._editor.diff.parts
        longest = max((max(len(part.old), len(part.new)) for part in parts), default=0)
        # Of one width for most differences: a text that moves sideways is laid out anew.
        digits = max(3, len(str(longest)))
        self._number = round(_PAD + self._digit * digits)
        columns = 2 if self._editor.side == "both" else 1
        self._width = columns * self._number + _SIGN
        return self._width

    # Qt

    def paintEvent(self, event: QPaintEvent) -> None:
        colours, editor = theme.current(), self._editor
        painter = QPainter(self)
        painter.fillRect(event.rect(), QColor(colours.code_ground))
        painter.setFont(self.font_of_numbers)
        parts = editor.diff.parts
        lines, caret = editor.visible_lines(event.rect()), editor.caret_line()
        for number, place in lines:
            area = QRectF(0, place.top(), self.width(), place.height())
            editor.paint_ground(painter, number, area, caret)
            row = editor.diff.row(number)
            painter.setPen(QColor(colours.quiet if row.kind == "same" else colours.text))
            right = 0.0
            for side in ("old", "new") if editor.side == "both" else (editor.side,):
                right += self._number
                if line := row.line(side):
                    line = parts[row.part].old_number(line) if side == "old" else line
                    self.draw_number(painter, line, right, place)
            # Of a changed line, it is the old one that went elsewhere as well.
            is_new = row.kind == "changed" and editor.side == "new"
            if row.group >= 0 and row.line(editor.side) and not is_new:
                bar = QRectF(right + 2, place.top(), 3, place.height())
                painter.fillRect(bar, QColor(group_colour(row.group)))
            kind = editor.kind(row)
            if kind in SIGNS and row.line(editor.side):
                signs = {"added": colours.right, "removed": colours.wrong}
                painter.setFont(code_font())
                painter.setPen(QColor(signs.get(kind, colours.text)))
                painter.drawText(QPointF(right + 7, round(place.center().y() + 4)), SIGNS[kind])
                painter.setFont(self.font_of_numbers)
        if editor.side == "new":
            painter.fillRect(QRectF(0, 0, 1, self.height()), QColor(colours.line))
        for number, place in lines:
            editor.paint_heading(painter, self, number, place)
            if number == caret:
                bar = QRectF(0, place.top(), 3, place.height())
                painter.fillRect(bar, QColor(colours.accent))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._editor.toggle_fold_at(event.position().y())


def paint_heading(
    painter: QPainter, rows: DiffRows, number: int, rect: QRectF, folded: bool
) -> None:
    """Paint a title with its status and line counts, or a fold with its line count."""
    colours = theme.current()
    row = rows.row(number)
    title = row.kind == "title"
    painter.fillRect(rect, QColor(colours.panel if title else colours.hover))
    paint_chevron(painter, QPointF(12, rect.center().y()), folded)
    at = QPointF(24, rect.center().y())
    if not title:
        _say(painter, fold_text(row), colours.quiet, at, 11.5)
        return
    edges = QColor(colours.line)
    painter.fillRect(QRectF(rect.left(), rect.bottom() - 1, rect.width(), 1), edges)
    if number:
        painter.fillRect(QRectF(rect.left(), rect.top(), rect.width(), 1), edges)
    part = rows.parts[row.part]
    at = _say(painter, part.title, colours.text, at, weight=QFont.Weight.DemiBold)
    if part.group >= 0:
        at += QPointF(10, 0)
        area = QRectF(at.x(), round(at.y()) - 7, 14, 14)
        paint_group(painter, area, part.group)
        at = QPointF(area.right(), at.y())
    for words, colour in _facts(part):
        at = _say(painter, words, colour, at + QPointF(12, 0))


def group_colour(group: int) -> str:
    """Return the colour of the lines that moved together."""
    colours = theme.current()
    shades = (colours.accent, colours.te, colours.keyword, colours.library, colours.heat)
    return shades[group % len(shades)]


def group_letter(group: int) -> str:
    """Return ``A`` for the first group; ``AA`` follows ``Z``."""
    letters = ""
    group += 1
    while group:
        group, place = divmod(group - 1, 26)
        letters = chr(ord("A") + place) + letters
    return letters


def paint_group(painter: QPainter, area: QRectF, group: int) -> None:
    """Paint the letter of a group in its colour."""
    colour = QColor(group_colour(group))
    ground = QColor(colour)
    ground.setAlphaF(0.16)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(ground)
    painter.drawRoundedRect(area, 3, 3)
    painter.setPen(colour)
    painter.setFont(ui_font(10.5, QFont.Weight.DemiBold))
    painter.drawText(area, Qt.AlignmentFlag.AlignCenter, group_letter(group))
    painter.restore()


def fold_text(row: Row) -> str:
    """Return the text of a fold."""
    return _("{length:,} unchanged lines", length=row.length)


def row_text(rows: DiffRows, number: int) -> str:
    """Return a description of a row, for a screen reader."""
    row = rows.row(number)
    if row.kind == "title":
        part = rows.parts[row.part]
        return _(", ").join([part.title, *(words for words, _ in _facts(part))])
    if row.kind == "fold":
        return fold_text(row)
    old, new = rows.texts(row)
    if old is None and new is None:
        return ""
    text = f"{old} → {new}" if row.kind == "changed" else new if new is not None else old
    return f"{row.new or row.old} {SIGNS.get(row.kind, '')} {text}"


def _say(
    painter: QPainter,
    words: str,
    colour: str,
    at: QPointF,
    pixels: float = 13,
    weight: QFont.Weight = QFont.Weight.Normal,
) -> QPointF:
    """Draw text, vertically centred at a height; return its right end."""
    font = ui_font(pixels, weight, tabular=True)
    painter.setFont(font)
    painter.setPen(QColor(colour))
    # Capitals are 0.73 em high.
    painter.drawText(QPointF(at.x(), round(at.y() + pixels * 0.364)), words)
    return at + QPointF(TextMetrics(font).horizontalAdvance(words), 0)


def _facts(part: DiffPart) -> list[tuple[str, str]]:
    """Return the facts behind a title, with their colours."""
    colours = theme.current()
    roles = {"added": colours.right, "removed": colours.wrong}
    names = {
        "same": _("same"),
        "changed": _("changed"),
        "added": _("added"),
        "removed": _("removed"),
    }
    facts = [(names[part.status], roles.get(part.status, colours.quiet))]
    if part.status == "changed":
        for status in ("added", "removed", "changed"):
            count = part.count(status)
            if count:
                facts.append((f"{SIGNS[status]}{count:,}", roles.get(status, colours.quiet)))
    if part.note:
        facts.append((part.note, colours.quiet))
    return facts
