"""A row that can be clicked: a title with a line of description below it."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from lowerscope.app import theme

PADDING = 12
HEIGHT = 46


class LinkRow(QAbstractButton):
    """A flat, wide button with two lines of text, elided where they do not fit."""

    def __init__(self, title: str, description: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._description = description
        self.setText(title)
        self.setAccessibleName(title)
        self.setAccessibleDescription(description)
        self.setToolTip(description)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.notifier().changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(320, HEIGHT)

    def minimumSizeHint(self) -> QSize:
        return QSize(160, HEIGHT)

    def enterEvent(self, event: object) -> None:
        self.update()

    def leaveEvent(self, event: object) -> None:
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        lit = self.underMouse() or self.isDown()
        painter.setBrush(QColor(colours.panel if lit else colours.ground))
        line = colours.accent if self.hasFocus() else colours.line if lit else colours.ground
        painter.setPen(QPen(QColor(line), 1))
        painter.drawRoundedRect(box, 6, 6)
        room = self.width() - 2 * PADDING
        rows = (
            (self.text(), theme.ui_font(13, QFont.Weight.Medium), colours.text, 19.0),
            (self._description, theme.ui_font(12), colours.quiet, 36.0),
        )
        for text, font, colour, base in rows:
            painter.setFont(font)
            painter.setPen(QColor(colour))
            elided = QFontMetricsF(font).elidedText(text, Qt.TextElideMode.ElideRight, room)
            painter.drawText(QPointF(PADDING, base), elided)
