"""The text part of the code view: a text, its gutter, and what its lines are marked with."""

from collections.abc import Callable, Mapping

from PySide6.QtCore import QEvent, QPoint, QRect, QRectF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QToolTip, QWidget

from lowerscope.app import theme
from lowerscope.app.widgets.code.cards import CodeCards
from lowerscope.app.widgets.code.gutter import Gutter
from lowerscope.app.widgets.code.keys import is_ours, key_of
from lowerscope.app.widgets.code.marks import CodeMarks
from lowerscope.app.widgets.code.painting import fold_mark, paint_fold, paint_matches
from lowerscope.app.widgets.code.text import CodeText
from lowerscope.app.widgets.plain_text import LONGEST


class CodeEditor(CodeText):
    """A text whose lines belong to entities: they are marked, clicked and hovered.

    Attributes
    ----------
    marks : CodeMarks
        What lines are marked with; call `repaint_lines` after a change.

    Signals
    -------
    entity_clicked(str, Qt.KeyboardModifiers)
        The innermost entity of the line that was clicked, or entered by the keyboard.
    entity_hovered(str)
        The innermost entity of the line under the mouse, or ``""``.
    key_pressed(str)
        One of the keys of `code_keys.KEYS`, by what it is for.
    """

    entity_clicked = Signal(str, object)
    entity_hovered = Signal(str)
    key_pressed = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.marks = CodeMarks()
        self._hovered = ""
        self._pressed: QPoint | None = None
        self.cards = CodeCards(self)
        self._gutter = Gutter(self, self)
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
        hidden: Mapping[int, tuple[int, int]] | None = None,
        *,
        keep_folds: bool = False,
    ) -> None:
        """Show another text; nothing has spans, marks or changes any more."""
        self.marks.clear()
        self.cards.set_places(())
        super().set_text(text, language, hidden, keep_folds=keep_folds)
        width = self._gutter.set_count(len(self.lines()))
        if width != self.viewportMargins().left():
            self.setViewportMargins(width, 0, 0, 0)
            self._place_gutter()

    def reveal(self, entity: str) -> bool:
        """Scroll until the first lines of the entity are in view; False when it has none."""
        spans = self.marks.spans_of(entity)
        if not spans:
            return False
        self.show_lines(spans[0].first - 1, spans[0].last - 1)
        return True

    def entity_at(self, y: float) -> str:
        """The innermost entity of the line at this height of the viewport, or ``""``."""
        return self.marks.entity(self.line_at(y))

    def click_line(self, y: float, modifiers: Qt.KeyboardModifier) -> None:
        """Do what a click on the line at this height does."""
        entity = self.entity_at(y)
        if entity:
            self.entity_clicked.emit(entity, modifiers)

    # Painting

    def is_selected(self, number: int) -> bool:
        """Whether a line belongs to what is selected."""
        return self.marks.is_selected(number)

    def is_here(self, number: int) -> bool:
        """Whether a line is the one that is pointed at."""
        return self.marks.is_here(number)

    def caret_line(self) -> int:
        """The caret's line, or -1 without the focus."""
        return self.place(self.textCursor().position())[0] if self.hasFocus() else -1

    def paint_ground(self, painter: QPainter, number: int, row: QRectF) -> None:
        """Paint what is behind a line over a row."""
        colours = theme.current()
        ground = self.marks.ground(number, colours)
        if not ground and number == self.caret_line():
            ground = colours.hover
        if ground:
            painter.fillRect(row, QColor(ground))

    def visible_lines(self, area: QRect) -> list[tuple[int, QRectF]]:
        """Number and place of the lines that touch an area of the viewport."""
        return [(line, row) for line, _, row in self.visible(area)]

    def show_card(self) -> None:
        """Show what is known of the name at the caret, and say it to a screen reader."""
        said = self.cards.show_at_caret()
        if said:
            self.announce(said)

    def repaint_lines(self) -> None:
        """Paint the text and the gutter anew: lines have other marks."""
        self._describe_caret()
        self.viewport().update()
        self._gutter.update()

    def toggle_fold_at(self, y: float) -> bool:
        """Fold or unfold the region that begins at this height; False where none does."""
        line = self.line_at(y)
        return line >= 0 and self.toggle_fold(line)

    def set_describing(self, describe: Callable[[str], str] | None) -> None:
        """Say in words what the entity of a line is, for screen readers."""
        self._describe = describe

    def line_state(self, line: int) -> str:
        """What the eye sees of a line besides its text: what it belongs to, marks and folds."""
        entity = self.marks.entity(line)
        owner = self._describe(entity) if self._describe is not None and entity else ""
        folded = self.fold_text(line)
        words = (
            owner,
            self.tr("of the selection") if self.marks.is_selected(line) else "",
            self.tr("changed") if self.marks.is_changed(line) else "",
            self.tr("folded, {0}").format(folded) if folded else "",
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
        # Screen readers say the description of what has the focus when it is another one.
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
            text = "" if line < 0 else self.whole_line(line)
            QToolTip.showText(event.globalPos(), text[:LONGEST], self.viewport())
            return True
        return super().viewportEvent(event)

    def event(self, event: QEvent) -> bool:
        if (
            event.type() == QEvent.Type.ShortcutOverride
            and isinstance(event, QKeyEvent)
            and is_ours(event)
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
        if (at - pressed).manhattanLength() >= 4:
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
        colours = theme.current()
        rows = list(self.visible(event.rect()))
        painter = QPainter(self.viewport())
        for line, block, row in rows:
            whole = QRectF(0, row.top(), self.viewport().width(), row.height())
            self.paint_ground(painter, line, whole)
            paint_matches(painter, self.marks, line, block, row, colours)
        painter.end()
        super().paintEvent(event)
        painter = QPainter(self.viewport())
        for line, block, row in rows:
            text = self.fold_text(line)
            if text:
                paint_fold(painter, fold_mark(block, row, text), text, colours)
        painter.end()
