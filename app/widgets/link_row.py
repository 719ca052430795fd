"""A row that can be clicked: a title with a line of description below it.

It uses Qt's own widgets and the style sheet, without custom painting, since it is part of the
window's first paint; see `lowerscope.app.theme`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QPushButton, QSizePolicy, QVBoxLayout, QWidget

from lowerscope.app.widgets.plain_text import Label
from lowerscope.app.widgets.typefaces import SHOWN_CHARACTERS, TextMetrics

if TYPE_CHECKING:
    from PySide6.QtGui import QEnterEvent, QKeyEvent, QResizeEvent

PADDING = 12
HEIGHT = 46
LEAST_WIDTH = 160


class LinkRow(QPushButton):
    """A flat, wide button with two lines of text, elided where they do not fit."""

    def __init__(self, title: str, description: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._lines = (_line(title, "link", self), _line(description, "quiet", self))
        self._texts = (title, description)
        self.setProperty("row", True)
        self.setAccessibleName(title)
        self.setAccessibleDescription(description)
        self.setToolTip(description)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMinimumWidth(LEAST_WIDTH)
        self.setFixedHeight(HEIGHT)
        column = QVBoxLayout(self)
        column.setContentsMargins(PADDING, 4, PADDING, 5)
        column.setSpacing(0)
        for line in self._lines:
            column.addWidget(line)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        from PySide6.QtCore import Qt

        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        else:
            super().keyPressEvent(event)

    def enterEvent(self, event: QEnterEvent) -> None:
        from PySide6.QtCore import Qt

        self.setCursor(Qt.CursorShape.PointingHandCursor)
        super().enterEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        room = self.width() - 2 * PADDING
        for line, text in zip(self._lines, self._texts, strict=True):
            # Qt's own eliding takes an argument of its namespace, which is slow to make.
            metrics = TextMetrics(line.font())
            shown = text[:SHOWN_CHARACTERS]
            while len(shown) > 1 and metrics.horizontalAdvance(shown) > room:
                shown = f"{shown.rstrip('…')[:-1]}…"
            line.setText(shown)


def _line(text: str, role: str, parent: QWidget) -> Label:
    line = Label(text, parent)
    line.setProperty("role", role)
    line.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
    return line
