"""Pan and zoom of a drawing, without Qt widgets."""

from PySide6.QtCore import QPointF, QRectF, QSizeF

#: Least scale; a graph that does not fit at it can be made smaller still, down to the other.
SMALLEST = 0.05
LEAST = 0.01
LARGEST = 4.0
#: Least scale at which a graph is opened to fit the width.
READABLE = 0.85

# At least this many pixels of the drawing stay visible.
_KEPT = 48.0
_ROOM = 16.0
# Room below the drawing for the overlay buttons.
_FOOT = 48.0


class CanvasView:
    """Scale and position of a drawing in a viewport.

    Attributes
    ----------
    zoom : float
        Pixels of the viewport per pixel of the drawing.
    origin : QPointF
        Position of the drawing's origin in the viewport.
    at_home : bool
        Whether the view has not been moved since ``go_home``: then it follows the viewport's size.
    """

    def __init__(self) -> None:
        self.zoom = 1.0
        self.origin = QPointF()
        self._bounds = QRectF()
        self._size = QSizeF()
        self._middle = 0.0
        self.at_home = True

    def set_bounds(self, bounds: QRectF) -> None:
        """Set the extent of the drawing."""
        self._bounds = bounds
        self._clamp()

    def resize(self, size: QSizeF) -> None:
        """Set the size of the viewport, in pixels."""
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
        # If it would not fit all the same, text keeps its full size.
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
        """Fit all of the drawing into the view, centred, never larger than 100 %."""
        self.fit_to(self._bounds)

    def fit_to(self, area: QRectF) -> None:
        """Fit this part of the drawing into the view, centred, never larger than 100 %."""
        if area.isEmpty():
            return
        width, height = self._size.width() - 2 * _ROOM, self._size.height() - _ROOM - _FOOT
        share = min(width / area.width(), height / area.height())
        self.zoom = max(self.smallest(), min(1.0, share))
        middle = QPointF(self._size.width() / 2, _ROOM + height / 2)
        self.move_to(middle - area.center() * self.zoom)

    def smallest(self) -> float:
        """Return the least scale, at which all of a large drawing fits."""
        if self._bounds.isEmpty() or self._size.isEmpty():
            return SMALLEST
        across = self._size.width() / self._bounds.width()
        down = self._size.height() / self._bounds.height()
        return max(LEAST, min(SMALLEST, 0.9 * across, 0.9 * down))

    def zoom_to(self, zoom: float, anchor: QPointF) -> None:
        """Change the scale; the point at ``anchor`` in the viewport stays fixed."""
        fixed = self.to_graph(anchor)
        self.zoom = min(LARGEST, max(self.smallest(), zoom))
        self.move_to(anchor - fixed * self.zoom)

    def move_to(self, origin: QPointF) -> None:
        """Move the drawing's origin to a position in the viewport, as far as some stays visible."""
        self.at_home = False
        # Whole pixels: pictures of parts of the drawing are placed side by side.
        self.origin = QPointF(origin.toPoint())
        self._clamp()

    def move_by(self, by: QPointF) -> None:
        """Move the drawing by an offset in pixels."""
        self.move_to(self.origin + by)

    def origin_to_show(self, rect: QRectF) -> QPointF:
        """Return the origin that makes this part of the drawing visible with the least movement."""
        seen = self.to_viewport(rect).adjusted(-_ROOM, -_ROOM, _ROOM, _ROOM)
        seen.setBottom(seen.bottom() + _FOOT - _ROOM)
        dx = _least_shift(seen.left(), seen.right(), self._size.width())
        dy = _least_shift(seen.top(), seen.bottom(), self._size.height())
        return self.origin + QPointF(dx, dy)

    def to_graph(self, place: QPointF) -> QPointF:
        """Convert a point from viewport to drawing coordinates."""
        return (place - self.origin) / self.zoom

    def to_graph_area(self, area: QRectF) -> QRectF:
        """Convert an area from viewport to drawing coordinates."""
        return QRectF(self.to_graph(area.topLeft()), self.to_graph(area.bottomRight()))

    def to_viewport(self, rect: QRectF) -> QRectF:
        """Convert an area from drawing to viewport coordinates."""
        corner = rect.topLeft() * self.zoom + self.origin
        return QRectF(corner, rect.size() * self.zoom)

    def scroll_ranges(self) -> tuple[tuple[int, int, int, int], tuple[int, int, int, int]]:
        """Return minimum, maximum, value and page of a horizontal and of a vertical scroll bar."""
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
    """Return a range whose value is minus the origin; it covers drawing and view."""
    value = round(-origin)
    least = value + min(0, round(low))
    greatest = value + max(0, round(high - size))
    return least, greatest, value, round(size)
