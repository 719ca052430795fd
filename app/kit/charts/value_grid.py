"""A grid of numbers around an element of a matrix."""

from math import isfinite

from PySide6.QtCore import QPointF, QRectF, QSize
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from lowerscope.app.kit import theme
from lowerscope.app.kit.charts.heat_map import HeatPiece
from lowerscope.app.kit.typefaces import TextMetrics, ui_font

ROW, COLUMN, HEADING = 22.0, 72.0, 44.0
_LONGEST = 7
_PAD = 6.0


class ValueGrid(QWidget):
    """A grid of as many numbers as fit, of a piece around one of its elements."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._piece: HeatPiece | None = None
        self._at = (0, 0)
        self._font = ui_font(12, tabular=True)
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        theme.notifier().changed.connect(self.update)

    def set_piece(self, piece: HeatPiece | None) -> None:
        """Show the numbers of a piece."""
        self._piece = piece
        self.update()

    def set_place(self, row: int, column: int) -> None:
        """Show the numbers around an element."""
        self._at = (row, column)
        self.update()

    def shown(self) -> dict[tuple[int, int], str]:
        """Return the visible numbers as text, by row and column of the matrix."""
        piece = self._piece
        if piece is None:
            return {}
        cells = self._cells(piece)
        return {
            (piece.row_edges[i], piece.column_edges[j]): _text(piece, i, j)
            for i in cells[0]
            for j in cells[1]
        }

    def _cells(self, piece: HeatPiece) -> tuple[range, range]:
        """Return the rows and the columns of cells that fit."""
        at = piece.cell_of(*self._at) or (0, 0)
        rows = max(1, int((self.height() - ROW) / ROW))
        columns = max(1, int((self.width() - HEADING) / COLUMN))
        return _around(at[0], rows, piece.height), _around(at[1], columns, piece.width)

    # Qt

    def sizeHint(self) -> QSize:
        return QSize(round(HEADING + 3 * COLUMN), round(8 * ROW))

    def minimumSizeHint(self) -> QSize:
        return QSize(round(HEADING + COLUMN), round(3 * ROW))

    def paintEvent(self, event: QPaintEvent) -> None:
        piece = self._piece
        if piece is None:
            return
        colours = theme.current()
        painter = QPainter(self)
        painter.setFont(self._font)
        metrics = TextMetrics(self._font)
        rows, columns = self._cells(piece)
        here = piece.cell_of(*self._at)

        def write(words: str, right: float, row: float, colour: str) -> None:
            painter.setPen(QColor(colour))
            left = right - _PAD - metrics.horizontalAdvance(words)
            painter.drawText(QPointF(left, row * ROW + ROW / 2 + metrics.ascent() / 2 - 1), words)

        for place, j in enumerate(columns):
            right = HEADING + (place + 1) * COLUMN
            write(_range(piece.column_edges, j), right, 0, colours.quiet)
        for line, i in enumerate(rows, start=1):
            write(_range(piece.row_edges, i), HEADING, line, colours.quiet)
            for place, j in enumerate(columns):
                area = QRectF(HEADING + place * COLUMN, line * ROW, COLUMN, ROW)
                if here == (i, j):
                    painter.fillRect(area, QColor(colours.accent_ground))
                wrong = piece.is_marked(i, j)
                write(
                    _text(piece, i, j), area.right(), line, colours.wrong if wrong else colours.text
                )
            painter.fillRect(
                QRectF(0, (line + 1) * ROW - 1, HEADING + len(columns) * COLUMN, 1),
                QColor(colours.line),
            )


def _around(at: int, count: int, whole: int) -> range:
    """Return `count` indices around `at`, clamped to `whole`."""
    first = max(0, min(at - count // 2, whole - count))
    return range(first, min(whole, first + count))


def _range(edges: tuple[int, ...], place: int) -> str:
    first, last = edges[place], edges[place + 1] - 1
    return str(first) if first == last else f"{first}–{last}"


def _text(piece: HeatPiece, i: int, j: int) -> str:
    value = piece.value(i, j)
    words = f"{value:.3g}"
    if isfinite(value) and len(words) > _LONGEST:
        mantissa, exponent = f"{value:.1e}".split("e")
        words = f"{mantissa}e{int(exponent)}"
    return f"✕ {words}" if piece.is_marked(i, j) else words
