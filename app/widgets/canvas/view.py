"""Which part of a drawing is seen, and how large: numbers only."""

from PySide6.QtCore import QPointF, QRectF, QSizeF

#: A graph that is not seen as a whole at this scale can be made smaller still, down to the other.
SMALLEST = 0.05
LEAST = 0.01
LARGEST = 4.0
#: A graph that is opened is made smaller to fit the width, but not smaller than this.
READABLE = 0.85

# At least so many pixels of the drawing stay in view.
_KEPT = 48.0
_ROOM = 16.0
# Below the drawing, where buttons float.
_FOOT = 48.0


class CanvasView:
    """Scale and place of a drawing in a viewport.

    Attributes
    ----------
    zoom : float
        Pixels of the viewport for a pixel of the drawing.
    origin : QPointF
        Where the drawing's 0, 0 is in the viewport.
    at_home : bool
        Nobody moved it since ``go_home``: it follows the viewport's size.
    """

    def __init__(self) -> None:
        self.zoom = 1.0
        self.origin = QPointF()
        self._bounds = QRectF()
        self._size = QSizeF()
        self._middle = 0.0
        self.at_home = True

    def set_bounds(self, bounds: QRectF) -> None:
        """Take another drawing of this extent."""
        self._bounds = bounds
        self._clamp()

    def resize(self, size: QSizeF) -> None:
        """Take another size of the viewport, in pixels."""
        self._size = size
        if self.at_home:
            self.go_home(self._middle)
        else:
            self._clamp()

    def go_home(self, middle: float) -> None:
        """Show the top of the drawing, with all its width or with ``middle`` in the middle."""
        self._middle = middle
        width = self._bounds.width()
        share = self._size.width() / width if width and self._size.width() else 1.0
        # Where it would not fit all the same, words had better have their size.
        self.zoom = share if READABLE <= share < 1.0 else 1.0
        fits = width * self.zoom <= self._size.width() + 1
        x = self._bounds.center().x() if fits else middle
        self.origin = QPointF(
            round(self._size.width() / 2 - x * self.zoom),
            round(-self._bounds.top() * self.zoom),
        )
        self._clamp()
        self.at_home = True

    def fit(self) -> None:
        """Show all of the drawing, in the middle, never larger than 100 %."""
        self.fit_to(self._bounds)

    def fit_to(self, area: QRectF) -> None:
        """Show this part of the drawing, in the middle, never larger than 100 %."""
        if area.isEmpty():
            return
        width, height = self._size.width() - 2 * _ROOM, self._size.height() - _ROOM - _FOOT
        share = min(width / area.width(), height / area.height())
        self.zoom = max(self.smallest(), min(1.0, share))
        middle = QPointF(self._size.width() / 2, _ROOM + height / 2)
        self.move_to(middle - area.center() * self.zoom)

    def smallest(self) -> float:
        """The least scale: all of a large drawing can be seen."""
        if self._bounds.isEmpty() or self._size.isEmpty():
            return SMALLEST
        across = self._size.width() / self._bounds.width()
        down = self._size.height() / self._bounds.height()
        return max(LEAST, min(SMALLEST, 0.9 * across, 0.9 * down))

    def zoom_to(self, zoom: float, anchor: QPointF) -> None:
        """Change the scale; what is at ``anchor`` in the viewport stays there."""
        fixed = self.to_graph(anchor)
        self.zoom = min(LARGEST, max(self.smallest(), zoom))
        self.move_to(anchor - fixed * self.zoom)

    def move_to(self, origin: QPointF) -> None:
        """Put the drawing's 0, 0 at this place of the viewport, as far as some stays in view."""
        self.at_home = False
        # Whole pixels: pictures of parts of the drawing are put side by side.
        self.origin = QPointF(origin.toPoint())
        self._clamp()

    def move_by(self, by: QPointF) -> None:
        """Move the drawing by so many pixels."""
        self.move_to(self.origin + by)

    def origin_to_show(self, rect: QRectF) -> QPointF:
        """Where 0, 0 must be for this part of the drawing to be seen, with the least moving."""
        seen = self.to_viewport(rect).adjusted(-_ROOM, -_ROOM, _ROOM, _ROOM)
        seen.setBottom(seen.bottom() + _FOOT - _ROOM)
        dx = _least_shift(seen.left(), seen.right(), self._size.width())
        dy = _least_shift(seen.top(), seen.bottom(), self._size.height())
        return self.origin + QPointF(dx, dy)

    def to_graph(self, place: QPointF) -> QPointF:
        """From the viewport to the drawing."""
        return (place - self.origin) / self.zoom

    def to_graph_area(self, area: QRectF) -> QRectF:
        """From the viewport to the drawing."""
        return QRectF(self.to_graph(area.topLeft()), self.to_graph(area.bottomRight()))

    def to_viewport(self, rect: QRectF) -> QRectF:
        """From the drawing to the viewport."""
        corner = rect.topLeft() * self.zoom + self.origin
        return QRectF(corner, rect.size() * self.zoom)

    def scroll_ranges(self) -> tuple[tuple[int, int, int, int], tuple[int, int, int, int]]:
        """Least, greatest, value and page of a horizontal and of a vertical scroll bar."""
        shown = self.to_viewport(self._bounds)
        return (
            _range(self.origin.x(), shown.left(), shown.right(), self._size.width()),
            _range(self.origin.y(), shown.top(), shown.bottom() + _FOOT, self._size.height()),
        )

    def _clamp(self) -> None:
        shown = self.to_viewport(self._bounds)
        if shown.isEmpty() or self._size.isEmpty():
            return
        dx = max(0.0, _KEPT - shown.right()) - max(0.0, shown.left() - self._size.width() + _KEPT)
        dy = max(0.0, _KEPT - shown.bottom()) - max(0.0, shown.top() - self._size.height() + _KEPT)
        self.origin = QPointF((self.origin + QPointF(dx, dy)).toPoint())


def _least_shift(low: float, high: float, size: float) -> float:
    if high - low > size:
        return (size - low - high) / 2
    if low < 0:
        return -low
    return min(0.0, size - high)


def _range(origin: float, low: float, high: float, size: float) -> tuple[int, int, int, int]:
    """A bar whose value is minus the origin; it can go as far as drawing and view reach."""
    value = round(-origin)
    least = value + min(0, round(low))
    greatest = value + max(0, round(high - size))
    return least, greatest, value, round(size)
