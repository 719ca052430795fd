"""Which part of a matrix a heat map shows, and where that stands in its picture."""

from PySide6.QtCore import QPointF, QRectF

FEWEST = 4.0
"""Rows or columns that are shown at least."""

LARGEST = 40.0
"""Pixels of an element at most."""

MOST_UNEQUAL = 4.0
"""Elements are squares as long as they fill the room up to this ratio."""


class HeatView:
    """A rectangle of elements, kept inside of the matrix, in a rectangle of pixels.

    Attributes
    ----------
    rows, columns : int
        Of the whole matrix.
    part : QRectF
        What is shown: columns to the right, rows down.
    """

    def __init__(self) -> None:
        self.rows = self.columns = 0
        self.part = QRectF()

    def set_extent(self, rows: int, columns: int) -> bool:
        """Take another matrix, shown as a whole; False where its extent is what it was."""
        if (rows, columns) == (self.rows, self.columns):
            return False
        self.rows, self.columns = rows, columns
        self.show_all()
        return True

    def show_all(self) -> None:
        """Show the whole matrix."""
        self.part = QRectF(0, 0, self.columns, self.rows)

    @property
    def is_empty(self) -> bool:
        """Whether the matrix has no elements."""
        return self.rows == 0 or self.columns == 0

    @property
    def is_whole(self) -> bool:
        """Whether all of the matrix is shown."""
        return self.part.width() >= self.columns and self.part.height() >= self.rows

    def range(self) -> tuple[int, int, int, int]:
        """Return the first row and column that are shown, and how many there are of each."""
        top, left = int(self.part.top()), int(self.part.left())
        bottom, right = -int(-self.part.bottom() // 1), -int(-self.part.right() // 1)
        return top, left, min(bottom, self.rows) - top, min(right, self.columns) - left

    def zoom(self, factor: float, around: QPointF) -> None:
        """Show fewer elements, or with a factor below 1 more, around a place of the matrix."""
        width = min(self.columns, max(min(FEWEST, self.columns), self.part.width() / factor))
        height = min(self.rows, max(min(FEWEST, self.rows), self.part.height() / factor))
        across = (around.x() - self.part.left()) / self.part.width()
        down = (around.y() - self.part.top()) / self.part.height()
        self.part = QRectF(around.x() - across * width, around.y() - down * height, width, height)
        self._keep_inside()

    def pan(self, across: float, down: float) -> None:
        """Show what is so many elements to the right and below."""
        self.part.translate(across, down)
        self._keep_inside()

    def reveal(self, row: int, column: int) -> None:
        """Have an element among those that are shown."""
        part = self.part
        across = min(0.0, column - part.left()) or max(0.0, column + 1 - part.right())
        down = min(0.0, row - part.top()) or max(0.0, row + 1 - part.bottom())
        self.pan(across, down)

    def element_size(self, room: QRectF) -> tuple[float, float]:
        """Return width and height of an element in a picture that fits into some room."""
        width, height = room.width() / self.part.width(), room.height() / self.part.height()
        if max(width, height) <= MOST_UNEQUAL * min(width, height):
            width = height = min(width, height)
        return min(width, LARGEST), min(height, LARGEST)

    def _keep_inside(self) -> None:
        left = min(max(0.0, self.part.left()), self.columns - self.part.width())
        top = min(max(0.0, self.part.top()), self.rows - self.part.height())
        self.part.moveTo(left, top)
