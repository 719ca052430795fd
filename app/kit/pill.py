"""A verdict: a mark, a word and a number on a coloured background."""

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, QTimer
from PySide6.QtGui import QColor, QFocusEvent, QFont, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from lowerscope.app.kit import theme
from lowerscope.app.kit.focus_ring import came_by_keyboard
from lowerscope.app.kit.typefaces import UI_PIXELS, TextMetrics, ui_font

_HEIGHT = 28
_PAD = 12.0
_LEAST = 120
_MARKS = {"right": "✓", "wrong": "✕", "unsure": "?", "neutral": "", "busy": ""}
_TURN_MS = 80


class Pill(QAbstractButton):
    """A verdict that can be clicked for details."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._ring = False
        self._role = "neutral"
        self._words = ""
        self._figure = ""
        self._angle = 0
        self._turning = QTimer(self)
        self._turning.setInterval(_TURN_MS)
        self._turning.timeout.connect(self._turn)
        self.setFont(ui_font(weight=QFont.Weight.DemiBold, tabular=True))
        # The text is elided if there is no room for it.
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        theme.notifier().changed.connect(self.update)

    def set_state(self, role: str, text: str, figure: str = "", tooltip: str = "") -> None:
        """Set the verdict.

        Args:
            role: ``"right"``, ``"wrong"``, ``"unsure"``, ``"neutral"`` or ``"busy"``.
            text, figure: The word, and the number that supports it.
            tooltip: More about it.
        """
        assert role in _MARKS, role
        self._role, self._words, self._figure = role, text, figure
        self.setText(self._whole())
        self.setAccessibleName(self._whole())
        self.setToolTip(tooltip)
        self._keep_turning()
        self.updateGeometry()
        self.update()

    def role(self) -> str:
        """Return the role that was set last."""
        return self._role

    def _whole(self) -> str:
        words = " · ".join(part for part in (self._words, self._figure) if part)
        return " ".join(part for part in (_MARKS[self._role], words) if part)

    def _colours(self) -> tuple[str, str]:
        colours = theme.current()
        return {
            "right": (colours.right, colours.right_ground),
            "wrong": (colours.wrong, colours.wrong_ground),
            "unsure": (colours.unsure, colours.changed),
            "neutral": (colours.quiet, colours.hover),
            "busy": (colours.accent, colours.accent_ground),
        }[self._role]

    def _keep_turning(self) -> None:
        if self._role == "busy" and self.isVisible():
            self._turning.start()
        else:
            self._turning.stop()

    def _turn(self) -> None:
        self._angle = (self._angle + 30) % 360
        self.update()

    # Qt

    def sizeHint(self) -> QSize:
        width = TextMetrics(self.font()).horizontalAdvance(self.text())
        busy = 18 if self._role == "busy" else 0
        return QSize(round(width + busy + 2 * _PAD), _HEIGHT)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint().boundedTo(QSize(_LEAST, _HEIGHT))

    def showEvent(self, event: object) -> None:
        self._keep_turning()

    def hideEvent(self, event: object) -> None:
        self._turning.stop()

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._ring = came_by_keyboard(event)
        super().focusInEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        words, ground = self._colours()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        outer = QRectF(self.rect())
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(ground))
        painter.drawRoundedRect(outer, 6, 6)
        if self._ring and self.hasFocus():
            painter.setPen(QPen(QColor(words), 1))
            painter.drawRoundedRect(outer.adjusted(0.5, 0.5, -0.5, -0.5), 6, 6)
        x = _PAD
        if self._role == "busy":
            pen = QPen(QColor(words), 2)
            pen.setCapStyle(Qt.PenCapStyle.RoundCap)
            painter.setPen(pen)
            ring = QRectF(x, outer.center().y() - 5.5, 11, 11)
            painter.drawArc(ring, -self._angle * 16, 270 * 16)
            x += 18
        painter.setPen(QColor(words))
        painter.setFont(self.font())
        room = outer.width() - x - _PAD + 1
        text = TextMetrics(self.font()).elidedText(self.text(), Qt.TextElideMode.ElideRight, room)
        painter.drawText(QPointF(x, round(outer.center().y() + UI_PIXELS * 0.364)), text)
