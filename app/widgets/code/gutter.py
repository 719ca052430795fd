"""The strip beside the code: line numbers, folding, and a bar beside what is selected."""

from typing import Protocol

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QEnterEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygonF,
)
from PySide6.QtWidgets import QWidget

from lowerscope.app import theme
from lowerscope.app.widgets.typefaces import TextMetrics, code_font

_BAR = 3
_NUMBER_PIXELS = 10
_DIGIT = 6.02
_LEFT = 21
_RIGHT = 6
_CHEVRON = 12.0
_SIZE = 3.2


class Lines(Protocol):
    """What the gutter asks of the editor that it stands beside; lines count from 0."""

    def visible_lines(self, area: QRect) -> list[tuple[int, QRectF]]:
        """Number and place of the lines that touch an area."""
        ...

    def paint_ground(self, painter: QPainter, number: int, row: QRectF) -> None:
        """Paint what is behind a line."""
        ...

    def is_selected(self, number: int) -> bool:
        """Whether a line belongs to what is selected."""
        ...

    def is_here(self, number: int) -> bool:
        """Whether a line is the one that is pointed at."""
        ...

    def can_fold(self, number: int) -> bool:
        """Whether a region begins with a line."""
        ...

    def is_folded(self, number: int) -> bool:
        """Whether the region that begins with a line is folded."""
        ...

    def caret_line(self) -> int:
        """The caret's line, or -1 without the focus."""
        ...

    def click_line(self, y: float, modifiers: Qt.KeyboardModifier) -> None:
        """Do what a click on the line at this height does."""
        ...

    def toggle_fold_at(self, y: float) -> bool:
        """Fold or unfold the region that begins at this height; False where none does."""
        ...


class Gutter(QWidget):
    """The strip.

    Parameters
    ----------
    lines : Lines
        The editor.
    parent : QWidget
        The same, as a widget.
    """

    def __init__(self, lines: Lines, parent: QWidget) -> None:
        super().__init__(parent)
        self._lines = lines
        self._width = 0
        self._hovered = False
        self._font = code_font(_NUMBER_PIXELS)
        self.setCursor(Qt.CursorShape.ArrowCursor)
        self.set_count(1)

    def set_count(self, count: int) -> int:
        """Make room for the numbers of so many lines; the width in pixels."""
        digits = max(2, len(str(count)))
        self._width = round(_LEFT + _DIGIT * digits + _RIGHT)
        return self._width

    def _paint_chevron(self, painter: QPainter, number: int, middle: float) -> None:
        folded = self._lines.is_folded(number)
        if not folded and not (self._hovered and self._lines.can_fold(number)):
            return
        side, point = (_SIZE, _SIZE / 2) if folded else (_SIZE / 2, _SIZE)
        corners = [(-point, -side), (point, 0.0), (-point, side)]
        if not folded:
            corners = [(-point, -side), (0.0, side), (point, -side)]
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(theme.current().quiet), 1.4))
        painter.drawPolyline(QPolygonF([QPointF(_CHEVRON + x, middle + y) for x, y in corners]))
        painter.restore()

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
        colours = theme.current()
        painter = QPainter(self)
        painter.fillRect(event.rect(), QColor(colours.code_ground))
        painter.setFont(self._font)
        metrics = TextMetrics(self._font)
        caret = self._lines.caret_line()
        for number, place in self._lines.visible_lines(event.rect()):
            row = QRectF(0, place.top(), self.width(), place.height())
            self._lines.paint_ground(painter, number, row)
            if self._lines.is_selected(number):
                bar = QRectF(0, place.top(), _BAR, place.height())
                painter.fillRect(bar, QColor(colours.accent))
            if self._lines.is_here(number):
                self._paint_arrow(painter, round(place.center().y()))
            self._paint_chevron(painter, number, round(place.center().y()))
            painter.setPen(QColor(colours.text if number == caret else colours.quiet))
            text = str(number + 1)
            left = self.width() - _RIGHT - metrics.horizontalAdvance(text)
            # Digits are 0.73 em high: in the middle of the row.
            base = place.center().y() + _NUMBER_PIXELS * 0.365
            painter.drawText(QPointF(left, round(base)), text)

    def enterEvent(self, event: QEnterEvent) -> None:
        self._hovered = True
        self.update()

    def leaveEvent(self, event: QEvent) -> None:
        self._hovered = False
        self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        at = event.position()
        if at.x() < _LEFT and self._lines.toggle_fold_at(at.y()):
            return
        self._lines.click_line(at.y(), event.modifiers())
