"""The text of the code view: keys, cards of names, marks and line numbers."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from PySide6.QtCore import (
    QEvent,
    QMimeData,
    QPoint,
    QPointF,
    QRect,
    QRectF,
    QSize,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QColor,
    QEnterEvent,
    QFont,
    QHelpEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygonF,
    QResizeEvent,
    QTextBlock,
    QTextCursor,
    QTextLine,
)
from PySide6.QtWidgets import QFrame, QToolTip, QWidget

from lowerscope.app.kit import theme
from lowerscope.app.kit.background import single_shot
from lowerscope.app.kit.code.code_lines import CodeDocument, Folding, Rows
from lowerscope.app.kit.code.highlighter import Highlighter
from lowerscope.app.kit.code.marks import CodeMarks, Match
from lowerscope.app.kit.code.shown_lines import MOST_LINES, ShownLines
from lowerscope.app.kit.hover_card import CardText, HoverCard
from lowerscope.app.kit.plain_text import LONGEST, PlainTextEdit
from lowerscope.app.kit.theme import Theme
from lowerscope.app.kit.typefaces import TextMetrics, code_font, code_line, ui_font
from lowerscope.core.model.compact_script import CompactScript
from lowerscope.core.model.texts import _

_GAP = 8
_PADDING = 6


def paint_matches(
    painter: QPainter, marks: CodeMarks, line: int, block: QTextBlock, row: QRectF, colours: Theme
) -> None:
    """Paint the background of the matches in a line; its text begins at ``row``."""
    found = marks.matches(line)
    if not found or block.layout().lineCount() == 0:
        return
    ground, outline = QColor(colours.found), QColor(colours.found)
    for match in found:
        ground.setAlphaF(0.5 if match == marks.current_match else 0.22)
        area = columns_area(match.start, match.end, block, row)
        painter.fillRect(area, ground)
        if match == marks.current_match:
            painter.setPen(outline)
            painter.drawRect(area.adjusted(0, 0, -1, -1))


def end_of_line(block: QTextBlock, row: QRectF) -> float:
    """Return where the text of a line ends; it begins at ``row``."""
    layout = block.layout()
    width = layout.lineAt(0).naturalTextWidth() if layout.lineCount() else 0.0
    return row.left() + width


def fold_mark(block: QTextBlock, row: QRectF, text: str) -> QRectF:
    """Return the area of the mark behind a line that a region is folded into."""
    width = TextMetrics(ui_font(11)).horizontalAdvance(text) + 2 * _PADDING
    return QRectF(end_of_line(block, row) + _GAP, row.top() + 2, width, row.height() - 4)


def paint_fold(painter: QPainter, area: QRectF, text: str, colours: Theme) -> None:
    """Paint the mark behind a line that a region is folded into."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QColor(colours.line))
    painter.setBrush(QColor(colours.panel))
    painter.drawRoundedRect(area.adjusted(0.5, 0.5, -0.5, -0.5), 4, 4)
    painter.setFont(ui_font(11))
    painter.setPen(QColor(colours.quiet))
    painter.drawText(QPointF(area.left() + _PADDING, area.center().y() + 4), text)
    painter.restore()


def paint_chevron(painter: QPainter, middle: QPointF, folded: bool) -> None:
    """Paint the chevron of a folded or an unfolded region."""
    side, point = (_SIZE, _SIZE / 2) if folded else (_SIZE / 2, _SIZE)
    corners = [(-point, -side), (point, 0.0), (-point, side)]
    if not folded:
        corners = [(-point, -side), (0.0, side), (point, -side)]
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(QColor(theme.current().quiet), 1.4))
    painter.drawPolyline(QPolygonF([middle + QPointF(x, y) for x, y in corners]))
    painter.restore()


def columns_area(start: int, end: int, block: QTextBlock, row: QRectF) -> QRectF:
    """Return the area of some columns of a line; its text begins at ``row``."""
    text, text_line = block.text(), block.layout().lineAt(0)
    if text.isascii() and "\t" not in text:
        # All characters have one width; Qt would find the shapes of all in the line.
        width = TextMetrics(code_font()).horizontalAdvance("0")
        left, right = start * width, end * width
    else:
        left, right = (x_of(text_line.cursorToX(at)) - text_line.x() for at in (start, end))
    return QRectF(row.left() + left, row.top() + 1, right - left, row.height() - 2)


def x_of(position: object) -> float:
    """Return a position in a line as a number."""
    # PySide returns the position alone, or with the cursor that was passed.
    return float(position[0] if isinstance(position, tuple) else position)  # type: ignore[arg-type]


CONTINUES = "↳"
"""Mark in place of the number of a line that continues the one above it."""


@dataclass(frozen=True)
class Heading:
    """A line above a part of a text, such as a function; it is no part of the text itself."""

    key: str
    title: str
    note: str = ""  # Beside the title, or at the right edge while the part is closed.
    action: str = ""  # A link at the right edge.
    is_open: bool = True  # Whether the part is shown below.
    is_selected: bool = False


HEADING_HEIGHT = 28

NO_HEADINGS: Mapping[int, Heading] = MappingProxyType({})

_BAR = 3
_NUMBER_PIXELS = 10
_DIGIT = 6.02
_LEFT = 21
_RIGHT = 6
_CHEVRON = 12.0
_SIZE = 3.2


class Gutter(QWidget):
    """The strip of line numbers beside the text."""

    def __init__(self, editor: CodeEditor) -> None:
        super().__init__(editor)
        self._editor = editor
        self._width = 0
        self._hovered = False
        self.font_of_numbers = code_font(_NUMBER_PIXELS)
        self.metrics = TextMetrics(self.font_of_numbers)
        self._digit = self.metrics.horizontalAdvance("0")
        self._continues = self.metrics.horizontalAdvance(CONTINUES)
        self.setCursor(Qt.CursorShape.ArrowCursor)
        self.set_count(1)

    def set_count(self, count: int) -> int:
        """Reserve room for the line numbers up to `count`; return the width in pixels."""
        digits = max(2, len(str(count)))
        self._width = round(_LEFT + _DIGIT * digits + _RIGHT)
        return self._width

    def _paint_chevron(self, painter: QPainter, number: int, middle: float) -> None:
        folded = self._editor.is_folded(number)
        if not folded and not (self._hovered and self._editor.can_fold(number)):
            return
        paint_chevron(painter, QPointF(_CHEVRON, middle), folded)

    def _paint_arrow(self, painter: QPainter, middle: float) -> None:
        corners = [(-4.0, -4.5), (4.0, 0.0), (-4.0, 4.5)]
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme.current().accent))
        painter.drawPolygon(QPolygonF([QPointF(_CHEVRON + x, middle + y) for x, y in corners]))
        painter.restore()

    # Qt

    def sizeHint(self) -> QSize:
        return QSize(self._width, 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours, editor, width = theme.current(), self._editor, self.width()
        painter = QPainter(self)
        painter.fillRect(event.rect(), QColor(colours.code_ground))
        painter.setFont(self.font_of_numbers)
        accent, text, quiet = (
            QColor(each) for each in (colours.accent, colours.text, colours.quiet)
        )
        caret = editor.caret_line()
        for number, place in editor.visible_lines(event.rect()):
            row = QRectF(0, place.top(), width, place.height())
            if heading := editor.heading(number):
                row.setTop(editor.top_of_heading(number, row))
                paint_heading(painter, heading, row, width + editor.viewport().width())
                continue
            editor.paint_ground(painter, number, row, caret)
            if editor.is_selected(number):
                painter.fillRect(QRectF(0, place.top(), _BAR, place.height()), accent)
            if editor.is_here(number):
                self._paint_arrow(painter, round(place.center().y()))
            self._paint_chevron(painter, number, round(place.center().y()))
            painter.setPen(text if number == caret else quiet)
            self.draw_number(
                painter, editor.content.number(number) or CONTINUES, width - _RIGHT, place
            )

    def draw_number(self, painter: QPainter, number: int | str, right: float, row: QRectF) -> None:
        """Draw a number right-aligned at ``right``."""
        text = str(number)
        # Digits are 0.73 em high: vertically centred in the row.
        base = row.center().y() + _NUMBER_PIXELS * 0.365
        width = self._continues if text == CONTINUES else self._digit * len(text)
        painter.drawText(QPointF(right - width, round(base)), text)

    def enterEvent(self, event: QEnterEvent) -> None:
        self._hovered = True
        self.update()

    def leaveEvent(self, event: QEvent) -> None:
        self._hovered = False
        self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        at = event.position()
        if self._editor.press_heading(at + QPointF(-self.width(), 0)):
            return
        if at.x() < _LEFT and self._editor.toggle_fold_at(at.y()):
            return
        self._editor.click_line(at.y(), event.modifiers())


def paint_heading(painter: QPainter, heading: Heading, row: QRectF, width: float) -> None:
    """Paint a heading from the left of the line numbers over some width."""
    colours = theme.current()
    whole = QRectF(row.left(), row.top(), width, row.height())
    painter.save()
    painter.fillRect(whole, QColor(colours.accent_ground if heading.is_selected else colours.panel))
    painter.fillRect(QRectF(whole.left(), whole.bottom() - 1, width, 1), QColor(colours.line))
    if heading.is_open:
        painter.fillRect(QRectF(whole.left(), whole.top(), width, 1), QColor(colours.line))
    if heading.is_selected:
        painter.fillRect(
            QRectF(whole.left(), whole.top(), _BAR, row.height()), QColor(colours.accent)
        )
    middle = row.center().y()
    paint_chevron(painter, QPointF(whole.left() + _CHEVRON, round(middle)), not heading.is_open)
    weight = QFont.Weight.DemiBold if heading.is_open else QFont.Weight.Normal
    end = _paint_words(painter, heading.title, whole.left() + _LEFT, middle, colours.text, weight)
    if end > painter.device().width():
        # Beside the line numbers, there is only the start of the title.
        painter.restore()
        return
    right = whole.right() - _GAP
    if heading.action:
        begin = right - TextMetrics(ui_font(12)).horizontalAdvance(heading.action)
        _paint_words(painter, heading.action, begin, middle, colours.accent)
        right = begin - _GAP
    metrics = TextMetrics(ui_font(12))
    note = metrics.elidedText(heading.note, Qt.TextElideMode.ElideRight, right - end - _GAP)
    left = end + _GAP if heading.is_open else right - metrics.horizontalAdvance(note)
    _paint_words(painter, note, left, middle, colours.quiet)
    painter.restore()


def _paint_words(
    painter: QPainter,
    words: str,
    left: float,
    middle: float,
    colour: str,
    weight: QFont.Weight = QFont.Weight.Normal,
) -> float:
    """Paint text vertically centred at a height; return its right end."""
    font = ui_font(12, weight)
    painter.setFont(font)
    painter.setPen(QColor(colour))
    # Capitals are 0.73 em high.
    painter.drawText(QPointF(left, round(middle + 12 * 0.364)), words)
    return left + TextMetrics(font).horizontalAdvance(words)


_MARGIN = 6
#: Time for a slice of filling, in ms, without Qt's work afterwards.
_STEP_MS = 10.0


class CodeText(PlainTextEdit):
    """A read-only text in colours, whose regions can be folded.

    Lines count from 0. A line that is folded away, or not inserted yet, has no row in the document;
    Qt's block numbers are rows.
    """

    rows_changed = Signal()  # Lines were inserted, removed or scrolled.
    arranged = Signal()  # The same text is shown in other lines, for another width.
    folds_changed = Signal()  # The folded regions changed.

    def __init__(self) -> None:
        super().__init__()
        self.content = ShownLines()  # The lines that are shown, with their places in the text.
        self._language = ""
        self._wraps = False
        self._headings: Mapping[int, Heading] = NO_HEADINGS
        self._folding = Folding()
        self._folding_all: Iterator[int] | None = None
        self._high_lines: tuple[Callable[[int], bool], float] | None = None
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setLineWrapMode(PlainTextEdit.LineWrapMode.NoWrap)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setFont(code_font())
        self.document().setDocumentMargin(_MARGIN)
        self.setCenterOnScroll(False)
        self.setCursorWidth(1)
        self._shown = CodeDocument(self.document(), self._to_start)
        self._highlighter = Highlighter(self.document())
        self._filling = QTimer(self)
        self._filling.setInterval(0)
        self._filling.timeout.connect(self._step)
        self._colouring = single_shot(self, 0, self._colour_visible)
        self._arranging = single_shot(self, 0, self._arrange)
        self.verticalScrollBar().valueChanged.connect(self._after_scroll)
        theme.notifier().changed.connect(self._use_theme)
        self._use_theme()

    # Content

    def set_text(
        self,
        text: str,
        language: str,
        form: CompactScript | None = None,
        *,
        wraps: bool = False,
        headings: Mapping[int, Heading] = NO_HEADINGS,
        keep_folds: bool = False,
        folding: Folding | None = None,
    ) -> None:
        """Show another text, from its top; the same text keeps its position and folds.

        Args:
            form: Edits of lines, and lines that are hidden. The printed text is copied.
            wraps: Whether long lines are wrapped.
            headings: Lines that are headings, by number from 0.
            keep_folds: Fold the regions that were folded in the previous text, if they still exist.
            folding: The regions and which are folded; by default, those of the language.
        """
        before = self.content
        same = text == before.text and folding is None
        top = before.line_of(self.top_line()) if same else 0
        caret = before.line_of(self.place(self.textCursor().position())[0]) if same else 0
        folded = [before.line_of(each) for each in self._folding.headers()] if same else []
        self._folding_all = None
        self._language, self._wraps = language, wraps
        self._headings = headings
        self.content = ShownLines(text, form, self.columns() if wraps else 0, headings)
        if headings:
            self.set_high_lines(self._is_heading, HEADING_HEIGHT)
        previous = self._folding
        self._folding = folding or Folding(self.content.lines[: MOST_LINES - 1], language)
        if same:
            self._folding.fold_those([self.content.first_of(line) for line in folded])
        elif keep_folds and folding is None:
            self._folding.fold_like(previous)
        lines = self.content.lines
        self._highlighter.set_text("\n".join(lines) if form or wraps else text, language)
        self._shown.set_lines(lines, self._folding.ranges())
        if same:
            caret, top = self.content.first_of(caret), self.content.first_of(top)
            self._shown.put_in_near(caret)
            block = self.document().findBlockByNumber(self._shown.rows.row_of(caret))
            self.setTextCursor(QTextCursor(block))
            self._shown.put_in_near(top)
            self.verticalScrollBar().setValue(self._shown.rows.row_of(top))
        self._fill()
        self._colour_visible()

    def columns(self) -> int:
        """Return the number of characters that fit beside one another."""
        width = TextMetrics(code_font()).horizontalAdvance("0")
        return int((self.viewport().width() - 2 * _MARGIN - self.cursorWidth()) / width)

    def _arrange(self) -> None:
        """Wrap the lines for another width."""
        content = self.content
        if self._wraps and self.columns() != content.columns:
            headings = self._headings
            self.set_text(content.text, self._language, content.form, wraps=True, headings=headings)
            self.arranged.emit()

    def set_high_lines(self, is_high: Callable[[int], bool], height: float) -> None:
        """Set which lines of the next text are higher; only those with characters."""
        self._high_lines = is_high, height
        font = code_font()
        font.setPointSizeF(font.pointSizeF() * height / code_line())
        self._highlighter.set_high_lines(is_high, font)

    def text(self) -> str:
        """Return the complete text as printed, with lines that are not inserted yet."""
        return self.content.text

    def lines(self) -> Sequence[str]:
        """Return all lines as they are shown, including folded ones."""
        return self.content.lines

    def heading(self, line: int) -> Heading | None:
        """Return the heading on a line, or ``None``."""
        return self._headings.get(self.content.line_of(line)) if self._headings else None

    def _is_heading(self, line: int) -> bool:
        return self.heading(line) is not None

    @property
    def settled(self) -> bool:
        """Return whether everything is inserted, folded, and coloured where visible."""
        return self._is_filled and not self._colouring.isActive()

    @property
    def _is_filled(self) -> bool:
        return self._folding_all is None and self._shown.settled

    # Folding

    def can_fold(self, number: int) -> bool:
        """Return whether a region begins on a line."""
        return self._folding.begins(number)

    def is_folded(self, number: int) -> bool:
        """Return whether the region that begins on a line is folded."""
        return self._folding.folded(number) > 0

    def fold(self) -> None:
        """Fold the smallest region around the caret."""
        header = self._folding.around(self.caret()[0])
        if self._folding.fold(header):
            self._refold(header)

    def unfold(self) -> None:
        """Unfold the region that begins on the caret's line."""
        line = self.caret()[0]
        if self._folding.unfold(line):
            self._refold(line)

    def fold_all(self) -> None:
        """Fold all functions."""
        self._folding_all = self._folding.fold_all()
        self._step()

    def unfold_all(self) -> None:
        """Unfold everything."""
        if self._folding.unfold_all():
            self._refold(-1)

    def toggle_fold(self, line: int) -> bool:
        """Fold or unfold the region that begins on a line; return False if there is none."""
        if self._folding.unfold(line) or self._folding.fold(line):
            self._refold(line)
            return True
        return False

    def _refold(self, header: int) -> None:
        self._apply_folds(header)
        self._step()

    def _apply_folds(self, header: int) -> None:
        self.show_folds()
        self.folds_changed.emit()
        self.announce(self.fold_text(header) or _("unfolded"))

    def show_folds(self) -> None:
        """Update the document to the folds, keeping the top line."""
        top, caret = self.top_line(), self.place(self.textCursor().position())
        begun_anew = self._shown.set_folded(self._folding.ranges())
        for line in (caret[0], top):
            self._shown.put_in_near(line)
        if begun_anew:
            row = self._shown.rows.row_of(caret[0])
            self.setTextCursor(QTextCursor(self.document().findBlockByNumber(row)))
        self._keep_top(top)
        self._fill()

    def folds_text(self) -> str:
        """Return the number of folded regions as text, or ``""``."""
        count = self._folding.count()
        return _("{count} folded", count=count) if count else ""

    def fold_text(self, line: int) -> str:
        """Return the text behind a line that a region is folded into, or ``""``."""
        count = self._folding.folded(line)
        return _("{count:,} more", count=count) if count else ""

    def announce(self, text: str) -> None:
        """Announce a text to a screen reader."""
        if QAccessible.isActive():
            QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self, text))

    # View

    def rows(self) -> Rows:
        """Return the final rows of lines, once everything is inserted."""
        return self._shown.rows.unfolded

    def top_line(self) -> int:
        """Return the first visible line."""
        return self._shown.rows.line_of(self.verticalScrollBar().value())

    def text_between(self, start: tuple[int, int], end: tuple[int, int]) -> str:
        """Return the printed text between two positions, for copying."""
        return self.content.whole(start, end)

    def set_top_line(self, line: int) -> None:
        """Scroll a line to the top, as far as the text continues below it."""
        line = max(0, min(line, len(self.lines()) - 1))
        self._shown.put_in_near(line)
        self._keep_top(line)

    def show_lines(self, first: int, last: int) -> None:
        """Scroll the least distance to make lines visible, or centre them if they are far."""
        self._bring(first)
        if not self._folding.covers(last):
            self._put_in_near(last)
        first, last = self._shown.rows.row_of(first), self._shown.rows.row_of(last)
        bar = self.verticalScrollBar()
        shown = max(1, self.viewport().height() // code_line() - 1)
        top = bar.value()
        if first >= top and last < top + shown:
            return
        length = last - first + 1
        context = min(3, max(0, shown - length) // 2)
        if length >= shown:
            value = first - 1
        elif first < top and top - first <= shown:
            value = first - context
        elif last >= top + shown and last - top - shown < shown:
            value = last - shown + 1 + context
        else:
            value = first - (shown - length) // 2
        bar.setValue(max(0, value))

    def go_to(self, line: int, start: int = 0, end: int = 0) -> None:
        """Put the caret on a line and select some of it."""
        line = max(0, min(line, len(self.lines()) - 1))
        self.show_lines(line, line)
        block = self.document().findBlockByNumber(self._shown.rows.row_of(line))
        cursor = QTextCursor(block)
        cursor.setPosition(block.position() + start)
        cursor.setPosition(block.position() + end, QTextCursor.MoveMode.KeepAnchor)
        self.setTextCursor(cursor)

    def caret(self) -> tuple[int, int]:
        """Return line and column of the start of the selection."""
        return self.place(self.textCursor().selectionStart())

    def visible(self, area: QRect) -> Iterator[tuple[int, QTextBlock, QRectF]]:
        """Yield number, block and area of the lines that overlap an area of the viewport."""
        block = self.firstVisibleBlock()
        place = self.blockBoundingGeometry(block).topLeft() + self.contentOffset()
        left, top, begin, end = place.x(), place.y(), area.top(), area.bottom()
        number, line_of = block.blockNumber(), self._shown.rows.line_of
        bounds, measured = self.blockBoundingRect, -1.0
        x = y = height = 0.0
        while block.isValid():
            # Its geometry would be found by adding up the heights of all above it.
            rect = bounds(block)
            if (whole := rect.height()) != measured:
                # Blocks of one height have their line at one place in them; the first and the
                # last one have the document's margin as well.
                layout, measured = block.layout(), whole
                x, y, height = 0.0, 0.0, whole
                if layout.lineCount():
                    line = layout.lineAt(0)
                    x, y, height = line.x(), line.y(), line.height()
            if top + y > end:
                break
            if top + y + height >= begin:
                row = QRectF(left + x, top + y, rect.width() - x, height)
                yield line_of(number), block, row
            top += whole
            number, block = number + 1, block.next()

    def line_at(self, y: float) -> int:
        """Return the line at a height in the viewport, or -1."""
        for number, _block, rect in self.visible(self.viewport().rect()):
            if rect.top() <= y < rect.bottom():
                return number
        return -1

    # Filling

    def _fill(self) -> None:
        if self._is_filled:
            self._filling.stop()
        elif not self._filling.isActive():
            self._filling.start()

    def _step(self) -> None:
        start = time.perf_counter()
        end = start + _STEP_MS / 1000
        top = self.top_line()
        all_folded = False
        while not self._is_filled and time.perf_counter() < end:
            if self._folding_all is None:
                self._shown.step()
            elif next(self._folding_all, None) is None:
                # If computing the folds took long, apply them in another turn of the event loop.
                all_folded = time.perf_counter() - start < _STEP_MS / 2000
                break
        self._keep_top(top)
        if all_folded:
            self._folding_all = None
            self._apply_folds(-1)
        self._fill()

    def _bring(self, line: int) -> None:
        """Insert a line into the document, unfolding its regions."""
        if self._folding.uncover(line):
            self._apply_folds(line)
        self._put_in_near(line)

    def _put_in_near(self, line: int) -> None:
        if not self._shown.rows.shows(line):
            top = self.top_line()
            self._shown.put_in_near(line)
            self._keep_top(top)

    def _keep_top(self, line: int) -> None:
        self.verticalScrollBar().setValue(self._shown.rows.row_of(line))
        self._colour_visible()
        self.rows_changed.emit()

    def _colour_visible(self) -> None:
        row = self.firstVisibleBlock().blockNumber()
        blocks = []
        block = self.firstVisibleBlock()
        for _line in range(self.viewport().height() // code_line() + 2):
            if not block.isValid():
                break
            blocks.append((self._shown.rows.line_of(row), block))
            row, block = row + 1, block.next()
        done = self._highlighter.colour(blocks)
        if self._high_lines is not None:
            # Their rows are higher from now on.
            self.rows_changed.emit()
        if not done:
            # Shown in the colour of plain text until the next turn of the event loop.
            self._colouring.start()

    def place(self, position: int) -> tuple[int, int]:
        """Return line and column of a position in the document."""
        block = self.document().findBlock(position)
        return self._shown.rows.line_of(block.blockNumber()), position - block.position()

    def _to_start(self) -> None:
        self.moveCursor(QTextCursor.MoveOperation.Start)

    # Slots

    def _use_theme(self) -> None:
        if self.font().pointSizeF() != code_font().pointSizeF():
            self.setFont(code_font())
            if self._high_lines is not None:
                self.set_high_lines(*self._high_lines)
        self._highlighter.set_theme(theme.current())
        self._colour_visible()
        self.viewport().update()

    def _after_scroll(self) -> None:
        self._colour_visible()
        self.rows_changed.emit()

    # Qt

    def createMimeDataFromSelection(self) -> QMimeData:
        cursor = self.textCursor()
        start, end = self.place(cursor.selectionStart()), self.place(cursor.selectionEnd())
        if cursor.selectionEnd() == self.document().characterCount() - 1:
            # The lines after the last row are folded away, or not inserted yet.
            last = len(self.lines()) - 1
            end = (last, len(self.lines()[last]))
        # The clipboard outlives Python: data created in Python would crash at exit.
        data = super().createMimeDataFromSelection()
        # Reading the text makes Qt create it now, and not later.
        data.text()
        data.clear()
        data.setText(self.text_between(start, end))
        return data

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._colour_visible()
        if self._wraps:
            self._arranging.start()


_STRING = re.compile(r'"(?:\\.|[^"\\])*"|#.*')


@dataclass(frozen=True)
class NamedPlace:
    """A range of lines in which a name refers to one thing."""

    name: str  # The name as written in the text.
    first: int  # Lines from 1, both included; inner ones go before outer ones.
    last: int
    card: CardText  # The card of the thing.
    entity: str = ""  # The entity's id, or ``""``.


@dataclass(frozen=True)
class _Found:
    place: NamedPlace
    line: int
    start: int
    end: int


class CodeCards:
    """Lookup of names in a text, and their cards."""

    def __init__(self, editor: CodeText) -> None:
        self._editor = editor
        self._places: list[NamedPlace] = []
        self.card = HoverCard(editor.viewport(), below=True)

    def set_places(self, places: Iterable[NamedPlace]) -> None:
        """Set the names of another text."""
        self.card.dismiss()
        self._places = sorted(places, key=lambda place: place.last - place.first)

    def hover(self, at: QPoint) -> None:
        """Show the card of the name under the mouse after a delay, or none."""
        found = self._under(at)
        if found is None:
            self.card.leave()
        else:
            self.card.want(found.place.card, self._rect(found))

    def show_at_caret(self) -> str:
        """Show the card of the name at the caret; return its text, or ``""``."""
        found = self._at(*self._editor.caret())
        if found is None:
            return ""
        self.card.show_now(found.place.card, self._rect(found))
        return found.place.card.plain()

    def entity_under(self, at: QPoint) -> str:
        """Return the id of the entity named under the mouse, on its first line, or ``""``."""
        return self._begun(self._under(at))

    def entity_at_caret(self) -> str:
        """Return the id of the entity named at the caret, on its first line, or ``""``."""
        return self._begun(self._at(*self._editor.caret()))

    def _begun(self, found: _Found | None) -> str:
        begins = found is not None and found.line + 1 == found.place.first
        return found.place.entity if found is not None and begins else ""

    def _under(self, at: QPoint) -> _Found | None:
        if not self._places:
            return None
        for line, block, row in self._editor.visible(self._editor.viewport().rect()):
            if row.top() <= at.y() < row.bottom() and block.layout().lineCount():
                text_line = block.layout().lineAt(0)
                x = at.x() - row.left() + text_line.x()
                if not text_line.x() <= x <= text_line.x() + text_line.naturalTextWidth():
                    return None
                on = QTextLine.CursorPosition.CursorOnCharacter
                return self._at(line, text_line.xToCursor(x, on))
        return None

    def _at(self, line: int, column: int) -> _Found | None:
        text = self._editor.lines()[line]
        for place in self._places:
            if not place.first <= line + 1 <= place.last:
                continue
            start = text.find(place.name)
            while start >= 0:
                end = start + len(place.name)
                if start <= column <= end and _stands_alone(text, start, end):
                    return _Found(place, line, start, end)
                start = text.find(place.name, end)
        return None

    def _rect(self, found: _Found) -> QRect:
        for line, block, row in self._editor.visible(self._editor.viewport().rect()):
            if line == found.line:
                text_line = block.layout().lineAt(0)
                left = row.left() - text_line.x() + x_of(text_line.cursorToX(found.start))
                right = row.left() - text_line.x() + x_of(text_line.cursorToX(found.end))
                return QRect(
                    round(left), round(row.top()), round(right - left), round(row.height())
                )
        return QRect()


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Return whether a name is a variable: no part of another, attribute, keyword or string."""
    before, after = text[start - 1 : start], text[end : end + 2]
    if before == "." or before.isalnum() or before == "_":
        return False
    if after[:1].isalnum() or after[:1] == "_" or (after[:1] == "=" and after != "=="):
        return False
    return not any(part.start() < start < part.end() for part in _STRING.finditer(text))


_NONE = Qt.KeyboardModifier.NoModifier
_SHIFT = Qt.KeyboardModifier.ShiftModifier
_CONTROL = Qt.KeyboardModifier.ControlModifier

KEYS = {
    (Qt.Key.Key_F, _CONTROL): "find",
    (Qt.Key.Key_G, _CONTROL): "line",
    (Qt.Key.Key_F3, _NONE): "next",
    (Qt.Key.Key_F3, _SHIFT): "previous",
    (Qt.Key.Key_Escape, _NONE): "close",
    # Most keyboards give a brace for the bracket's key with Shift.
    (Qt.Key.Key_BracketLeft, _CONTROL | _SHIFT): "fold",
    (Qt.Key.Key_BraceLeft, _CONTROL | _SHIFT): "fold",
    (Qt.Key.Key_BracketRight, _CONTROL | _SHIFT): "unfold",
    (Qt.Key.Key_BraceRight, _CONTROL | _SHIFT): "unfold",
}
"""Command for each key."""

_MOVING = (
    QKeySequence.StandardKey.MoveToStartOfDocument,
    QKeySequence.StandardKey.MoveToEndOfDocument,
    QKeySequence.StandardKey.SelectStartOfDocument,
    QKeySequence.StandardKey.SelectEndOfDocument,
)


def key_of(event: QKeyEvent) -> str:
    """Return the command of a key, or ``""``."""
    modifiers = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
    return KEYS.get((Qt.Key(event.key()), modifiers), "")


def is_ours(event: QKeyEvent) -> bool:
    """Return whether the text with the focus handles a key before the window's shortcuts."""
    if any(event.matches(key) for key in _MOVING):
        return True
    return key_of(event) not in ("", "close", "previous", "next")


class CodeEditor(CodeText):
    """A text whose lines belong to entities, with marks, clicks and hovering."""

    # A line was clicked, or entered by keyboard; the argument is its innermost entity.
    entity_clicked = Signal(str, object)
    entity_hovered = Signal(str)  # The innermost entity of the line under the mouse, or ``""``.
    key_pressed = Signal(str)  # A command of `KEYS` was triggered.
    # A heading was clicked or entered: its key, and whether its action was clicked.
    heading_clicked = Signal(str, bool)

    def __init__(self) -> None:
        super().__init__()
        self.marks = CodeMarks()  # The marks of lines; call `repaint_lines` after a change.
        self._hovered = ""
        self._pressed: QPoint | None = None
        self.cards = CodeCards(self)
        self._gutter = self.make_gutter()
        self.viewport().setMouseTracking(True)
        self._describe: Callable[[str], str] | None = None
        self.rows_changed.connect(self._gutter.update)
        self.rows_changed.connect(self._describe_caret)
        self.rows_changed.connect(self.cards.card.dismiss)
        self.cursorPositionChanged.connect(self.repaint_lines)
        theme.notifier().changed.connect(self.repaint_lines)

    def set_text(
        self,
        text: str,
        language: str,
        form: CompactScript | None = None,
        *,
        wraps: bool = False,
        headings: Mapping[int, Heading] = NO_HEADINGS,
        keep_folds: bool = False,
        folding: Folding | None = None,
    ) -> None:
        """Show another text, and clear spans, marks and changes."""
        self.marks.clear()
        self.cards.set_places(())
        super().set_text(
            text,
            language,
            form,
            wraps=wraps,
            headings=headings,
            keep_folds=keep_folds,
            folding=folding,
        )
        width = self._gutter.set_count(self.content.count)
        if width != self.viewportMargins().left():
            self.setViewportMargins(width, 0, 0, 0)
            self._place_gutter()

    def reveal(self, entity: str) -> bool:
        """Scroll to the first lines of an entity; return False if it has none."""
        spans = self.marks.spans_of(entity)
        if not spans:
            return False
        self.show_lines(spans[0].first - 1, spans[0].last - 1)
        return True

    def entity_at(self, y: float) -> str:
        """Return the innermost entity of the line at a height in the viewport, or ``""``."""
        return self.marks.entity(self.line_at(y))

    def click_line(self, y: float, modifiers: Qt.KeyboardModifier) -> None:
        """Handle a click on the line at this height."""
        entity = self.entity_at(y)
        if entity:
            self.entity_clicked.emit(entity, modifiers)

    def show_matches(self, matches: Sequence[Match], current: Match | None) -> None:
        """Mark the matches of a search, and highlight the current one."""
        self.marks.find(matches, current)
        self.repaint_lines()

    def make_gutter(self) -> Gutter:
        """Return the gutter beside the text."""
        return Gutter(self)

    # Painting

    def is_selected(self, number: int) -> bool:
        """Return whether a line belongs to the selection."""
        return self.marks.is_selected(number)

    def is_here(self, number: int) -> bool:
        """Return whether a line is the one that is pointed at."""
        return self.marks.is_here(number)

    def caret_line(self) -> int:
        """Return the caret's line, or -1 without the focus."""
        return self.place(self.textCursor().position())[0] if self.hasFocus() else -1

    def paint_ground(self, painter: QPainter, number: int, row: QRectF, caret: int) -> None:
        """Paint the background of a line over a row; ``caret`` is the line of the caret."""
        colours = theme.current()
        ground = self.marks.ground(number, colours)
        if not ground and number == caret:
            ground = colours.hover
        if ground:
            painter.fillRect(row, QColor(ground))

    def paint_behind(
        self, painter: QPainter, number: int, block: QTextBlock, row: QRectF, caret: int
    ) -> None:
        """Paint what is behind the text of a line; the text begins at ``row``."""
        if (heading := self.heading(number)) is not None:
            left, top = -self._gutter.width(), self.top_of_heading(number, row)
            area = QRectF(left, top, 0, row.bottom() - top)
            paint_heading(painter, heading, area, self.viewport().width() - left)
            return
        whole = QRectF(0, row.top(), self.viewport().width(), row.height())
        self.paint_ground(painter, number, whole, caret)
        paint_matches(painter, self.marks, number, block, row, theme.current())

    def paint_over(self, painter: QPainter, number: int, block: QTextBlock, row: QRectF) -> None:
        """Paint what is in front of the text of a line."""
        text = self.fold_text(number)
        if text:
            paint_fold(painter, fold_mark(block, row, text), text, theme.current())
        elif note := self.content.note(number):
            self.paint_note(painter, note, block, row)

    def paint_note(self, painter: QPainter, note: str, block: QTextBlock, row: QRectF) -> None:
        """Paint a note at the right edge, if the line leaves room for it."""
        gutter = self._gutter
        left = self.viewport().width() - _GAP - gutter.metrics.horizontalAdvance(note)
        if end_of_line(block, row) + _GAP < left:
            painter.setFont(gutter.font_of_numbers)
            painter.setPen(QColor(theme.current().quiet))
            base = row.center().y() + _NUMBER_PIXELS * 0.365
            painter.drawText(QPointF(left, round(base)), note)

    def visible_lines(self, area: QRect) -> list[tuple[int, QRectF]]:
        """Return number and area of the lines that overlap an area of the viewport."""
        return [(line, row) for line, _, row in self.visible(area)]

    def is_own_key(self, event: QKeyEvent) -> bool:
        """Return whether the text with the focus handles a key before the window's menus."""
        return is_ours(event)

    def show_card(self) -> bool:
        """Show the card of the name at the caret, and announce it; return False without one."""
        said = self.cards.show_at_caret()
        if said:
            self.announce(said)
        return bool(said)

    def repaint_lines(self) -> None:
        """Repaint the text and the gutter, since marks have changed."""
        self._describe_caret()
        self.viewport().update()
        self._gutter.update()

    def toggle_fold_at(self, y: float) -> bool:
        """Fold or unfold the region that begins at this height; return False if there is none."""
        line = self.line_at(y)
        return line >= 0 and self.toggle_fold(line)

    def set_describing(self, describe: Callable[[str], str] | None) -> None:
        """Set the function that describes the entity of a line, for screen readers."""
        self._describe = describe

    def top_of_heading(self, line: int, row: QRectF) -> float:
        """Return the top of a heading; the first one covers the margin above it."""
        return row.top() - (0 if line else _MARGIN)

    def press_heading(self, at: QPointF) -> bool:
        """Handle a click on a heading, at a place in the viewport; return False for none."""
        line = self.line_at(at.y())
        heading = self.heading(line) if line >= 0 else None
        if heading is None:
            return False
        wide = TextMetrics(ui_font(12)).horizontalAdvance(heading.action) + 2 * _GAP
        acts = bool(heading.action) and at.x() > self.viewport().width() - wide
        self.heading_clicked.emit(heading.key, acts)
        return True

    def line_state(self, line: int) -> str:
        """Return a description of a line besides its text: entity, marks and folds."""
        if (heading := self.heading(line)) is not None:
            state = _("open") if heading.is_open else _("closed")
            return " · ".join(filter(None, (heading.title, heading.note, state)))
        entity = self.marks.entity(line)
        owner = self._describe(entity) if self._describe is not None and entity else ""
        folded = self.fold_text(line)
        words = (
            owner,
            _("of the selection") if self.marks.is_selected(line) else "",
            _("changed") if self.marks.is_changed(line) else "",
            _("folded, {folded}", folded=folded) if folded else "",
        )
        return " · ".join(word for word in words if word)

    def _fold_mark_at(self, at: QPoint) -> bool:
        for line, block, row in self.visible(self.viewport().rect()):
            text = self.fold_text(line)
            if text and fold_mark(block, row, text).contains(at):
                return True
        return False

    def _place_gutter(self) -> None:
        area = self.contentsRect()
        width = self._gutter.sizeHint().width()
        self._gutter.setGeometry(area.left(), area.top(), width, area.height())

    # Slots

    def _describe_caret(self) -> None:
        # Screen readers speak the description of the focused widget when it changes.
        line = self.place(self.textCursor().position())[0]
        text = self.line_state(line) or self.folds_text()
        if text != self.accessibleDescription():
            self.setAccessibleDescription(text)

    def _hover(self, entity: str) -> None:
        if entity != self._hovered:
            self._hovered = entity
            self.entity_hovered.emit(entity)

    # Qt

    def viewportEvent(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            line = self.line_at(event.pos().y())
            text = "" if line < 0 else self.content.whole_line(line)
            QToolTip.showText(event.globalPos(), text[:LONGEST], self.viewport())
            return True
        return super().viewportEvent(event)

    def event(self, event: QEvent) -> bool:
        if (
            event.type() == QEvent.Type.ShortcutOverride
            and isinstance(event, QKeyEvent)
            and self.is_own_key(event)
        ):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = key_of(event)
        if self.cards.card.dismiss() and key == "close":
            return
        if key:
            self.key_pressed.emit(key)
            if key == "close":
                event.ignore()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            line = self.place(self.textCursor().position())[0]
            heading = self.heading(line)
            if heading is not None:
                self.heading_clicked.emit(heading.key, False)
                return
            entity = self.cards.entity_at_caret() or self.marks.entity(line)
            if entity:
                self.entity_clicked.emit(entity, event.modifiers())
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        super().mousePressEvent(event)
        left = event.button() == Qt.MouseButton.LeftButton
        self._pressed = event.position().toPoint() if left else None

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        pressed, self._pressed = self._pressed, None
        if pressed is None or self.textCursor().hasSelection():
            return
        at = event.position().toPoint()
        if (at - pressed).manhattanLength() >= 4 or self.press_heading(event.position()):
            return
        if self._fold_mark_at(at):
            self.toggle_fold(self.line_at(at.y()))
        elif entity := self.cards.entity_under(at):
            self.entity_clicked.emit(entity, event.modifiers())
        else:
            self.click_line(event.position().y(), event.modifiers())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        if not event.buttons():
            line = self.line_at(event.position().y()) if self._headings else -1
            is_heading = line >= 0 and self.heading(line) is not None
            shape = Qt.CursorShape.PointingHandCursor if is_heading else Qt.CursorShape.IBeamCursor
            self.viewport().setCursor(shape)
            self._hover(self.entity_at(event.position().y()))
            self.cards.hover(event.position().toPoint())

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._hover("")
        self.cards.card.leave()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_gutter()

    def paintEvent(self, event: QPaintEvent) -> None:
        rows, caret = list(self.visible(event.rect())), self.caret_line()
        painter = QPainter(self.viewport())
        for line, block, row in rows:
            self.paint_behind(painter, line, block, row, caret)
        painter.end()
        super().paintEvent(event)
        painter = QPainter(self.viewport())
        for line, block, row in rows:
            self.paint_over(painter, line, block, row)
        painter.end()
