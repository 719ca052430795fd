"""The text part of the code view: lines, gutter, colours, and the lines of what is selected."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from PySide6.QtCore import QEvent, QMimeData, QPoint, QRect, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QHelpEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QTextBlock,
    QTextCursor,
)
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QToolTip, QWidget

from lowerscope.app import theme
from lowerscope.app.widgets.code_gutter import Gutter
from lowerscope.app.widgets.code_lines import LineSet, Match, Span, Spans
from lowerscope.app.widgets.hidden_text import HiddenText
from lowerscope.app.widgets.highlighter import Highlighter
from lowerscope.app.widgets.typefaces import CODE_LINE, code_font

#: Lines that are laid out at once; the rest follows a slice at a time.
SLICE = 10_000
_MARGIN = 6


class CodeEditor(QPlainTextEdit):
    """A text that is read and not written.

    Signals
    -------
    entity_clicked(str, Qt.KeyboardModifiers)
        The innermost entity of the line that was clicked, or entered by the keyboard.
    entity_hovered(str)
        The innermost entity of the line under the mouse, or ``""``.
    find_wanted(), line_wanted(), escape_pressed()
        Ctrl+F, Ctrl+G and Escape.
    next_wanted(), previous_wanted()
        F3 and Shift+F3.
    """

    entity_clicked = Signal(str, object)
    entity_hovered = Signal(str)
    find_wanted = Signal()
    line_wanted = Signal()
    escape_pressed = Signal()
    next_wanted = Signal()
    previous_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._content = HiddenText()
        self._lines: Sequence[str] = []
        self._filled = 0
        self._spans = Spans()
        self._selection: frozenset[str] = frozenset()
        self._selected = LineSet()
        self._changed = LineSet()
        self._matches: dict[int, list[Match]] = {}
        self._current_match: Match | None = None
        self._hovered = ""
        self._pressed: QPoint | None = None
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setFont(code_font())
        self.document().setDocumentMargin(_MARGIN)
        self.setCenterOnScroll(False)
        self.setCursorWidth(1)
        self.viewport().setMouseTracking(True)
        self._highlighter = Highlighter(self.document())
        self._gutter = Gutter(self, self)
        self._filling = QTimer(self)
        self._filling.setInterval(0)
        self._filling.timeout.connect(self._fill_slice)
        self.verticalScrollBar().valueChanged.connect(self._after_scroll)
        self.cursorPositionChanged.connect(self._update_lines)
        theme.notifier().changed.connect(self._use_theme)
        self._use_theme()

    # What is shown

    def set_text(
        self, text: str, language: str, hidden: Mapping[int, tuple[int, int]] | None = None
    ) -> None:
        """Show another text, from its top; nothing has spans, marks or changes any more.

        Parameters
        ----------
        hidden : mapping of int to (int, int), optional
            A part of a line that is not shown, by the line's number, from 0. What is copied has it.
        """
        self._filling.stop()
        same = text == self._content.text
        top = self.verticalScrollBar().value() if same else 0
        self._content = HiddenText(text, hidden)
        self._lines = self._content.lines
        self._spans, self._selected = Spans(), LineSet()
        self._changed = LineSet()
        self._matches, self._current_match = {}, None
        self._highlighter.set_text("\n".join(self._lines), language)
        self._filled = min(SLICE, len(self._lines))
        self.setPlainText("\n".join(self._lines[: self._filled]))
        self.setViewportMargins(self._gutter.set_count(len(self._lines)), 0, 0, 0)
        self._place_gutter()
        if self._filled < len(self._lines):
            self._filling.start()
        if same:
            self._fill_to(top)
            self.verticalScrollBar().setValue(top)
        self._colour_visible()

    def text(self) -> str:
        """The whole text, also while it is still being filled in, and with what is hidden."""
        return self._content.text

    def hidden(self) -> Mapping[int, tuple[int, int]]:
        """The parts of lines that are not shown."""
        return self._content.hidden

    def lines(self) -> Sequence[str]:
        """All lines as they are shown."""
        return self._lines

    def set_spans(self, spans: Iterable[Span]) -> None:
        """Say which lines belong to which entities."""
        self._spans = Spans(spans)
        self._select_lines()

    def set_selection(self, entities: Collection[str]) -> None:
        """Paint the lines of these entities as selected; the view does not move."""
        self._selection = frozenset(entities)
        self._select_lines()

    def set_changed_lines(self, lines: Iterable[int]) -> None:
        """Give these lines, from 1, the ground of a change."""
        self._changed = LineSet((line, line) for line in lines)
        self._update_lines()

    def set_matches(self, matches: Sequence[Match], current: Match | None) -> None:
        """Mark the places that were found, and one of them more than the others."""
        by_line: dict[int, list[Match]] = {}
        for match in matches:
            by_line.setdefault(match.line, []).append(match)
        self._matches, self._current_match = by_line, current
        self._update_lines()

    # Where the view is

    def reveal(self, entity: str) -> bool:
        """Scroll until the first lines of the entity are in view; False when it has none."""
        spans = self._spans.of((entity,))
        if not spans:
            return False
        self.show_lines(spans[0].first - 1, spans[0].last - 1)
        return True

    def show_lines(self, first: int, last: int) -> None:
        """Scroll as little as needed, or to the middle from far away; lines from 0."""
        self._fill_to(last)
        bar = self.verticalScrollBar()
        shown = max(1, self.viewport().height() // CODE_LINE - 1)
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
        """Put the caret on a line and select some of it; line and columns from 0."""
        line = max(0, min(line, len(self._lines) - 1))
        self._fill_to(line)
        block = self.document().findBlockByNumber(line)
        cursor = QTextCursor(block)
        cursor.setPosition(block.position() + start)
        cursor.setPosition(block.position() + end, QTextCursor.MoveMode.KeepAnchor)
        self.show_lines(line, line)
        self.setTextCursor(cursor)

    def caret(self) -> tuple[int, int]:
        """Line and column where the selected text begins, both from 0."""
        cursor = self.textCursor()
        position = cursor.selectionStart()
        block = self.document().findBlock(position)
        return block.blockNumber(), position - block.position()

    def entity_at(self, y: float) -> str:
        """The innermost entity of the line at this height of the viewport, or ``""``."""
        line = self._line_at(y)
        return "" if line < 0 else self._spans.innermost(line + 1)

    def click_line(self, y: float, modifiers: Qt.KeyboardModifier) -> None:
        """Do what a click on the line at this height does."""
        entity = self.entity_at(y)
        if entity:
            self.entity_clicked.emit(entity, modifiers)

    # Painting

    def is_selected(self, number: int) -> bool:
        """Whether a line, from 0, belongs to what is selected."""
        return number + 1 in self._selected

    def caret_line(self) -> int:
        """The caret's line, from 0, or -1 without the focus."""
        return self.textCursor().blockNumber() if self.hasFocus() else -1

    def paint_ground(self, painter: QPainter, number: int, row: QRectF) -> None:
        """Paint what is behind a line, from 0, over a row."""
        colours = theme.current()
        if self.is_selected(number):
            painter.fillRect(row, QColor(colours.accent_ground))
        elif number + 1 in self._changed:
            painter.fillRect(row, QColor(colours.changed))
        elif number == self.caret_line():
            painter.fillRect(row, QColor(colours.hover))

    def _paint_matches(self, painter: QPainter, block: QTextBlock, rect: QRectF) -> None:
        found = self._matches.get(block.blockNumber())
        if not found or block.layout().lineCount() == 0:
            return
        colours = theme.current()
        text_line = block.layout().lineAt(0)
        left = self.contentOffset().x() + text_line.x()
        ground, outline = QColor(colours.library), QColor(colours.library)
        for match in found:
            x0 = _x(text_line.cursorToX(match.start)) + left - text_line.x()
            x1 = _x(text_line.cursorToX(match.end)) + left - text_line.x()
            ground.setAlphaF(0.5 if match == self._current_match else 0.22)
            area = QRectF(x0, rect.top() + 1, x1 - x0, rect.height() - 2)
            painter.fillRect(area, ground)
            if match == self._current_match:
                painter.setPen(outline)
                painter.drawRect(area.adjusted(0, 0, -1, -1))

    def visible_lines(self, area: QRect) -> list[tuple[int, QRectF]]:
        """Number and place of the lines that touch an area of the viewport."""
        result = []
        block = self.firstVisibleBlock()
        offset = self.contentOffset()
        while block.isValid():
            rect = self.blockBoundingGeometry(block).translated(offset)
            if block.layout().lineCount():
                # The first block has the document's margin above its line.
                above = block.layout().lineAt(0).y()
                rect.setTop(rect.top() + above)
                rect.setHeight(block.layout().lineAt(0).height())
            if rect.top() > area.bottom():
                break
            if rect.bottom() >= area.top():
                result.append((block.blockNumber(), rect))
            block = block.next()
        return result

    def _line_at(self, y: float) -> int:
        for number, rect in self.visible_lines(self.viewport().rect()):
            if rect.top() <= y < rect.bottom():
                return number
        return -1

    # Slots

    def _use_theme(self) -> None:
        self._highlighter.set_theme(theme.current())
        self._colour_visible()
        self._update_lines()

    def _after_scroll(self) -> None:
        self._colour_visible()
        self._gutter.update()

    def _update_lines(self) -> None:
        self.viewport().update()
        self._gutter.update()

    def _select_lines(self) -> None:
        spans = self._spans.of(self._selection)
        self._selected = LineSet((span.first, span.last) for span in spans)
        self._update_lines()

    def _colour_visible(self) -> None:
        shown = self.viewport().height() // CODE_LINE + 2
        first = self.firstVisibleBlock()
        self._highlighter.colour(first, first.blockNumber() + shown)

    def _fill_slice(self) -> None:
        self._fill_to(self._filled + SLICE - 1)

    def _fill_to(self, line: int) -> None:
        if line < self._filled:
            return
        end = min(len(self._lines), max(line + 1, self._filled + 1))
        cursor = QTextCursor(self.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.insertText("\n" + "\n".join(self._lines[self._filled : end]))
        self._filled = end
        if self._filled == len(self._lines):
            self._filling.stop()

    def _place_gutter(self) -> None:
        area = self.contentsRect()
        width = self._gutter.sizeHint().width()
        self._gutter.setGeometry(area.left(), area.top(), width, area.height())

    def _hover(self, entity: str) -> None:
        if entity != self._hovered:
            self._hovered = entity
            self.entity_hovered.emit(entity)

    # Qt

    def createMimeDataFromSelection(self) -> QMimeData:
        cursor = self.textCursor()
        places = []
        for position in (cursor.selectionStart(), cursor.selectionEnd()):
            block = self.document().findBlock(position)
            places.append((block.blockNumber(), position - block.position()))
        if not any(places[0][0] <= number <= places[1][0] for number in self._content.hidden):
            return super().createMimeDataFromSelection()
        data = QMimeData()
        data.setText(self._content.whole(*places))
        return data

    def viewportEvent(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            line = self._line_at(event.pos().y())
            text = "" if line < 0 else self._content.whole_line(line)
            QToolTip.showText(event.globalPos(), text, self.viewport())
            return True
        return super().viewportEvent(event)

    def event(self, event: QEvent) -> bool:
        # The keys below are ours while the text has the focus, whatever the window's menus say.
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            standard = QKeySequence.StandardKey
            if event.matches(standard.Find) or _is_go_to_line(event):
                event.accept()
                return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        standard = QKeySequence.StandardKey
        if event.matches(standard.Find):
            self.find_wanted.emit()
        elif _is_go_to_line(event):
            self.line_wanted.emit()
        elif event.key() == Qt.Key.Key_F3:
            back = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            (self.previous_wanted if back else self.next_wanted).emit()
        elif event.key() == Qt.Key.Key_Escape:
            self.escape_pressed.emit()
            event.ignore()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            entity = self._spans.innermost(self.textCursor().blockNumber() + 1)
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
        if (event.position().toPoint() - pressed).manhattanLength() < 4:
            self.click_line(event.position().y(), event.modifiers())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        if not event.buttons():
            self._hover(self.entity_at(event.position().y()))

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._hover("")

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_gutter()
        self._colour_visible()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self.viewport())
        width = self.viewport().width()
        for number, rect in self.visible_lines(event.rect()):
            self.paint_ground(painter, number, QRectF(0, rect.top(), width, rect.height()))
            self._paint_matches(painter, self.document().findBlockByNumber(number), rect)
        painter.end()
        super().paintEvent(event)


def _is_go_to_line(event: QKeyEvent) -> bool:
    return event.key() == Qt.Key.Key_G and event.modifiers() == Qt.KeyboardModifier.ControlModifier


def _x(position: object) -> float:
    # PySide gives the position alone, or with the cursor that it was asked for.
    return float(position[0] if isinstance(position, tuple) else position)  # type: ignore[arg-type]
