"""The strip beside a difference: all of its changes at once, and where the view is."""

from collections.abc import Sequence

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from lowerscope.app import theme
from lowerscope.app.widgets.diff.rows import Row

_LEAST = 2.0


class DiffStrip(QWidget):
    """Marks at the heights of changes: removed at the left, added at the right, changed at both.

    Signals
    -------
    chosen(float)
        A height was clicked, as a share of the whole.
    """

    WIDTH = 14

    chosen = Signal(float)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._blocks: list[tuple[str, float, float]] = []
        self._height = 1
        self._view = (0, 0)
        self.setCursor(Qt.CursorShape.ArrowCursor)
        self.setToolTip(self.tr("All changes: click to go there"))

    def set_rows(self, rows: Sequence[Row], tops: Sequence[int]) -> None:
        """Take other rows, with the top of each and the end of the last."""
        self._height = max(1, tops[-1])
        blocks: list[tuple[str, float, float]] = []
        for place, row in enumerate(rows):
            if row.kind not in ("added", "removed", "changed"):
                continue
            if blocks and blocks[-1][0] == row.kind and blocks[-1][2] == tops[place]:
                blocks[-1] = (row.kind, blocks[-1][1], tops[place + 1])
            else:
                blocks.append((row.kind, tops[place], tops[place + 1]))
        self._blocks = blocks
        self.update()

    def set_view(self, top: int, height: int) -> None:
        """Say which part of it all is in view."""
        self._view = (top, height)
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
                painter.fillRect(QRectF(3, at, 4, length), QColor(colours.wrong))
            if kind != "removed":
                painter.fillRect(QRectF(8, at, 4, length), QColor(colours.right))
        painter.fillRect(QRectF(0, 0, 1, self.height()), QColor(colours.line))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.chosen.emit(event.position().y() / self._scale() / self._height)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self.chosen.emit(event.position().y() / self._scale() / self._height)
