"""Viewport over a drawing: a tile cache, scrolling, dragging, zooming, and animated panning."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from PySide6.QtCore import (
    QEasingCurve,
    QEvent,
    QPointF,
    QRect,
    QRectF,
    QSizeF,
    Qt,
    QVariantAnimation,
)
from PySide6.QtGui import (
    QColor,
    QKeyEvent,
    QMouseEvent,
    QNativeGestureEvent,
    QPainter,
    QPixmap,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QFrame

SIDE = 256
SMALL_SIDE = 128
"""Side of a tile, in screen pixels; the small one is for scales with many names a tile."""

BUDGET_MS = 4.0
"""Time in a frame for drawing missing tiles."""

OVERVIEW = 0.08
"""Below this scale, tiles of half of it, a quarter … are scaled down while zooming."""

CROWDED = 0.6
"""Below this scale tiles are small."""

_KEPT_BYTES = 96 * 2**20
# Number of scales for each doubling, while the view is zooming.
_STEPS = 2
# Scales that are considered for a stand-in, and tiles that it may consist of.
_LOOKED_AT = 8
_MOST_STAND_INS = 250

Draw = Callable[[QPainter, QRectF, float], None]
_Key = tuple[float, int, int]


class Scene(NamedTuple):
    """The visible part of a drawing."""

    size: QRect  # The viewport.
    origin: QPointF  # The position of the drawing's origin in the viewport.
    zoom: float  # The scale.

    def seen(self) -> QRectF:
        """Return the visible part, in the drawing's coordinates."""
        corner = (QPointF(self.size.topLeft()) - self.origin) / self.zoom
        return QRectF(corner, QRectF(self.size).size() / self.zoom)

    def on_screen(self, x: float, y: float, side: float) -> QRect:
        """Return the screen area of a square of the drawing in whole pixels, without gaps."""
        zoom, origin = self.zoom, self.origin
        left, top = round(x * zoom + origin.x()), round(y * zoom + origin.y())
        right = round((x + side) * zoom + origin.x())
        bottom = round((y + side) * zoom + origin.y())
        return QRect(left, top, right - left, bottom - top)


class TileCache:
    """Cache of a drawing's tiles at some scales; the least recently used are evicted.

    While the view is zooming, tiles of a scale nearby stand in; each frame draws some of the
    missing ones.

    Args:
        draw: Draws an area at a scale, with a painter in the drawing's coordinates.
    """

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._tiles: OrderedDict[_Key, QPixmap] = OrderedDict()
        self._levels: dict[float, int] = {}
        self._cost = 4.0

    def clear(self) -> None:
        """Clear the cache: the drawing has changed."""
        self._tiles.clear()
        self._levels.clear()

    def paint(
        self,
        painter: QPainter,
        scene: Scene,
        ground: QColor,
        settled: bool,
        bounds: QRectF,
        is_frame: bool,
    ) -> bool:
        """Paint the visible part, as far as there is time; return whether nothing is missing.

        Args:
            painter: Its coordinates are the viewport's.
            scene: The visible part.
            ground: The background of the drawing.
            settled: Whether this scale will stay: only then is it drawn at exactly this one.
            bounds: The whole drawing: there is nothing elsewhere.
            is_frame: Whether the whole viewport is painted; for a part of it, missing tiles are not
                drawn.
        """
        ratio = painter.device().devicePixelRatio()
        level = _level(scene.zoom, settled)
        side = _side(level) / ratio / level
        seen = scene.seen() & bounds
        if seen.isEmpty():
            return True
        wanted = _inside(seen, side)
        missing = [each for each in wanted if (level, *each) not in self._tiles]
        left = len(missing)
        if missing and is_frame:
            middle = seen.center() / side
            missing.sort(key=lambda at: abs(at[0] + 0.5 - middle.x()) + abs(at[1] - middle.y()))
            left -= self._make_some(level, missing, ratio, ground)
        if left:
            self._paint_stand_in(painter, scene, seen, ratio, level)
        self._paint_tiles(painter, scene, level, wanted, ratio)
        return not left

    def _make_some(
        self, level: float, missing: list[tuple[int, int]], ratio: float, ground: QColor
    ) -> int:
        """Draw missing tiles while there is time; return their number."""
        start = time.perf_counter()
        spent = 0.0
        for number, (x, y) in enumerate(missing):
            if number and spent + self._cost > BUDGET_MS:
                return number
            self._make(level, x, y, ratio, ground)
            before, spent = spent, (time.perf_counter() - start) * 1000
            self._cost = 0.5 * self._cost + 0.5 * (spent - before)
        return len(missing)

    def _paint_tiles(
        self,
        painter: QPainter,
        scene: Scene,
        level: float,
        places: list[tuple[int, int]],
        ratio: float,
    ) -> None:
        side = _side(level) / ratio / level
        is_exact = level == scene.zoom
        for x, y in places:
            tile = self._tiles.get((level, x, y))
            if tile is None:
                continue
            self._tiles.move_to_end((level, x, y))
            target = scene.on_screen(x * side, y * side, side)
            if is_exact:
                painter.drawPixmap(target.topLeft(), tile)
            else:
                painter.drawPixmap(target, tile)

    def _make(self, level: float, x: int, y: int, ratio: float, ground: QColor) -> None:
        pixels = _side(level)
        tile = QPixmap(pixels, pixels)
        tile.setDevicePixelRatio(ratio)
        tile.fill(ground)
        side = pixels / ratio
        painter = QPainter(tile)
        painter.translate(-x * side, -y * side)
        painter.scale(level, level)
        area = QRectF(x * side / level, y * side / level, side / level, side / level)
        beside = 8 / level
        self._draw(painter, area.adjusted(-beside, -beside, beside, beside), level)
        painter.end()
        self._tiles[level, x, y] = tile
        self._levels[level] = self._levels.get(level, 0) + 1
        while len(self._tiles) * SIDE * SIDE * 4 > _KEPT_BYTES:
            (old, _, _), _ = self._tiles.popitem(last=False)
            self._levels[old] -= 1
            if not self._levels[old]:
                del self._levels[old]

    def _paint_stand_in(
        self, painter: QPainter, scene: Scene, seen: QRectF, ratio: float, level: float
    ) -> None:
        """Paint tiles of another scale: the nearest one that has the most of the visible part."""
        best: tuple[float, float, list[tuple[int, int]]] = (0.0, 0.0, [])
        nearest = sorted(self._levels, key=lambda each: abs(math.log(each / scene.zoom)))
        for other in nearest[:_LOOKED_AT]:
            side = _side(other) / ratio / other
            if other == level or seen.width() * seen.height() > _MOST_STAND_INS * side * side:
                continue
            places = _inside(seen, side)
            there = [each for each in places if (other, *each) in self._tiles]
            share = len(there) / len(places)
            if share > best[0]:
                best = share, other, there
            if share == 1:
                break
        if best[2]:
            self._paint_tiles(painter, scene, best[1], best[2], ratio)


def _side(level: float) -> int:
    return SIDE if level >= CROWDED else SMALL_SIDE


def _level(zoom: float, settled: bool) -> float:
    """Return the scale of the tiles for a scale of the view."""
    if settled:
        return zoom
    if zoom < OVERVIEW:
        return float(OVERVIEW * 2.0 ** math.ceil(math.log2(zoom / OVERVIEW)))
    return float(2.0 ** (round(math.log2(zoom) * _STEPS) / _STEPS))


def _inside(area: QRectF, side: float) -> list[tuple[int, int]]:
    left, right = math.floor(area.left() / side), math.floor(area.right() / side)
    top, bottom = math.floor(area.top() / side), math.floor(area.bottom() / side)
    return [(x, y) for y in range(top, bottom + 1) for x in range(left, right + 1)]


# --- Pan and zoom of a drawing, without Qt widgets ---

#: Least scale; a graph that does not fit at it can be made smaller still.
SMALLEST = 0.05
LARGEST = 4.0
#: Least scale at which a graph is opened to fit the width.
READABLE = 0.85
#: Least scale at which it is opened to fit as a whole.
OVERVIEW_SCALE = 0.65

# At least this many pixels of the drawing stay visible.
_KEPT = 48.0
_ROOM = 8.0


class CanvasView:
    """Scale and position of a drawing in a viewport."""

    def __init__(self) -> None:
        self.zoom = 1.0  # Pixels of the viewport per pixel of the drawing.
        self.origin = QPointF()  # Position of the drawing's origin in the viewport.
        self._bounds = QRectF()
        self._size = QSizeF()
        self._middle = 0.0
        # Whether the view has not been moved since ``go_home`` or ``fit``: then it follows the
        # viewport's size.
        self.at_home = True
        self._is_fitted = False

    def set_bounds(self, bounds: QRectF) -> None:
        """Set the extent of the drawing."""
        self._bounds = bounds
        self._clamp()

    def resize(self, size: QSizeF) -> None:
        """Set the size of the viewport, in pixels."""
        was_whole = self.is_whole()
        self._size = size
        if self._is_fitted or (was_whole and not self.at_home and not self.is_whole()):
            self.fit()
        elif self.at_home:
            self.go_home(self._middle)
        else:
            self._clamp()

    def is_whole(self) -> bool:
        """Return whether all of the drawing is visible."""
        shown = self.to_viewport(self._bounds)
        return QRectF(QPointF(-1, -1), self._size + QSizeF(2, 2)).contains(shown)

    def go_home(self, middle: float) -> None:
        """Show all of the drawing, or its top where that would be too small to read.

        Args:
            middle: The x that is centred if not all of the width fits.
        """
        self._middle = middle
        if self._fitting_zoom(self._bounds) >= OVERVIEW_SCALE:
            self.fit()
            self.at_home, self._is_fitted = True, False
            return
        width = self._bounds.width()
        share = self._size.width() / width if width and self._size.width() else 1.0
        # If it would not fit all the same, text keeps its full size.
        self.zoom = share if READABLE <= share < 1.0 else 1.0
        fits = width * self.zoom <= self._size.width() + 1
        x = self._bounds.center().x() if fits else middle
        self.origin = QPointF(
            round(self._size.width() / 2 - x * self.zoom), round(-self._bounds.top() * self.zoom)
        )
        self._clamp()
        self.at_home, self._is_fitted = True, False

    def fit(self) -> None:
        """Fit all of the drawing into the view, centred, never larger than 100 %."""
        self.fit_to(self._bounds)
        self._is_fitted = True

    def fit_to(self, area: QRectF) -> None:
        """Fit this part of the drawing into the view, centred, never larger than 100 %."""
        if area.isEmpty():
            return
        self.zoom = max(self.smallest(), self._fitting_zoom(area))
        middle = QPointF(self._size.width() / 2, self._size.height() / 2)
        self.move_to(middle - area.center() * self.zoom)

    def _fitting_zoom(self, area: QRectF) -> float:
        """Return the scale at which a part of the drawing fits, at most 100 %."""
        if area.isEmpty() or self._size.isEmpty():
            return 1.0
        width, height = self._size.width() - 2 * _ROOM, self._size.height() - 2 * _ROOM
        return min(1.0, max(1.0, width) / area.width(), max(1.0, height) / area.height())

    def smallest(self) -> float:
        """Return the least scale, at which all of a large drawing fits."""
        if self._bounds.isEmpty() or self._size.isEmpty():
            return SMALLEST
        return min(SMALLEST, 0.9 * self._fitting_zoom(self._bounds))

    def zoom_to(self, zoom: float, anchor: QPointF) -> None:
        """Change the scale; the point at ``anchor`` in the viewport stays fixed."""
        fixed = self.to_graph(anchor)
        self.zoom = min(LARGEST, max(self.smallest(), zoom))
        self.move_to(anchor - fixed * self.zoom)

    def move_to(self, origin: QPointF) -> None:
        """Move the drawing's origin to a position in the viewport, as far as some stays visible."""
        self.at_home = self._is_fitted = False
        # Whole pixels: pictures of parts of the drawing are placed side by side.
        self.origin = QPointF(origin.toPoint())
        self._clamp()

    def move_by(self, by: QPointF) -> None:
        """Move the drawing by an offset in pixels."""
        self.move_to(self.origin + by)

    def origin_to_show(self, rect: QRectF) -> QPointF:
        """Return the origin that makes this part of the drawing visible with the least movement."""
        seen = self.to_viewport(rect).adjusted(-_ROOM, -_ROOM, _ROOM, _ROOM)
        dx = _least_shift(seen.left(), seen.right(), self._size.width())
        dy = _least_shift(seen.top(), seen.bottom(), self._size.height())
        return self.origin + QPointF(dx, dy)

    def show_whole(self) -> None:
        """Make all of the drawing visible with the least movement, if it fits at this scale."""
        if self.zoom <= self._fitting_zoom(self._bounds):
            self.move_to(self.origin_to_show(self._bounds))

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
            _range(self.origin.y(), shown.top(), shown.bottom(), self._size.height()),
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


#: Zoom factor of a step.
ZOOM_STEP = 1.25
_WHEEL_STEP = 60.0

_PANS = {
    Qt.Key.Key_Left: QPointF(1, 0),
    Qt.Key.Key_Right: QPointF(-1, 0),
    Qt.Key.Key_Up: QPointF(0, 1),
    Qt.Key.Key_Down: QPointF(0, -1),
}
_REVEAL_MS = 140


class PanningArea(QAbstractScrollArea):
    """A viewport over a drawing, which a subclass paints.

    The wheel scrolls, and zooms with Ctrl; the left button drags the background, the middle one or
    the space bar anything; ``+``, ``-``, ``0`` and F change the scale.
    """

    def __init__(self) -> None:
        super().__init__()
        self.view = CanvasView()  # The visible part of the drawing, and its scale.
        self._space = False
        self._drag: QPointF | None = None
        self._syncing = False
        self._revealed = (QRectF(), False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self._pan = QVariantAnimation(self)
        self._pan.setDuration(_REVEAL_MS)
        self._pan.setEasingCurve(QEasingCurve.Type.OutCubic)
        self._pan.valueChanged.connect(self._pan_to)
        self.horizontalScrollBar().valueChanged.connect(self._scrolled)
        self.verticalScrollBar().valueChanged.connect(self._scrolled)

    def zoom(self) -> float:
        """Return the scale; 1 is 100 %."""
        return self.view.zoom

    def set_zoom(self, zoom: float, anchor: QPointF | None = None) -> None:
        """Change the scale.

        Args:
            zoom: The scale, clamped between that which fits all, or 5 %, and 400 %.
            anchor: The position in the viewport that stays fixed; by default, its middle.
        """
        self._pan.stop()
        at = QRectF(self.viewport().rect()).center() if anchor is None else anchor
        self.view.zoom_to(zoom, at)
        self.show_view()

    def zoom_by(self, factor: float) -> None:
        """Change the scale by a factor, around the middle."""
        self.set_zoom(self.view.zoom * factor)

    def reset_zoom(self) -> None:
        """Reset the scale to 100 %."""
        self.set_zoom(1.0)

    def fit(self) -> None:
        """Fit all of the drawing into the view, never larger than 100 %."""
        self._pan.stop()
        self.view.fit()
        self.show_view()

    def fit_to(self, area: QRectF) -> None:
        """Fit this part of the drawing into the view, never larger than 100 %."""
        self._pan.stop()
        self.view.fit_to(area)
        self.show_view()

    def look_at(self, bounds: QRectF, middle: float | None) -> None:
        """Switch to another drawing.

        Args:
            bounds: Its extent.
            middle: The x that is centred if not all of its width fits; None keeps the position and
                scale.
        """
        self._pan.stop()
        self.view.set_bounds(bounds)
        if middle is not None:
            self.view.go_home(middle)
        self.show_view()

    def bring_into_view(self, rect: QRectF) -> None:
        """Pan, with an animation, until this part of the drawing is visible."""
        origin = self.view.origin_to_show(rect)
        if origin == self.view.origin:
            return
        self._pan.stop()
        self._revealed = (rect, self.view.at_home)
        if self.isVisible():
            self._pan.setStartValue(self.view.origin)
            self._pan.setEndValue(origin)
            self._pan.start()
        else:
            self._pan_to(origin)

    def is_ground(self, place: QPointF) -> bool:
        """Return whether nothing at a position in the viewport can be clicked."""
        return True

    def show_view(self) -> None:
        """Update the scroll bars and the picture to the view."""
        if self._syncing:
            return
        self._syncing = True
        size = self.viewport().size()
        self._set_scroll_bars()
        if self.viewport().size() != size:
            # A scroll bar was shown or hidden, and the view moved with the viewport's size.
            self._set_scroll_bars()
        self._syncing = False
        self.viewport().update()

    def _set_scroll_bars(self) -> None:
        horizontal, vertical = self.view.scroll_ranges()
        for bar, (low, high, value, page) in (
            (self.horizontalScrollBar(), horizontal),
            (self.verticalScrollBar(), vertical),
        ):
            bar.setRange(low, high)
            bar.setPageStep(page)
            bar.setSingleStep(round(_WHEEL_STEP / 3))
            bar.setValue(value)

    def _pan_to(self, origin: QPointF) -> None:
        self.view.move_to(origin)
        self.show_view()

    def _scrolled(self) -> None:
        if not self._syncing:
            x, y = self.horizontalScrollBar().value(), self.verticalScrollBar().value()
            self._pan_to(QPointF(-x, -y))

    def _move_by(self, by: QPointF) -> None:
        self._pan.stop()
        self.view.move_by(by)
        self.show_view()

    def _show_cursor(self) -> None:
        if self._drag is not None:
            shape = Qt.CursorShape.ClosedHandCursor
        elif self._space:
            shape = Qt.CursorShape.OpenHandCursor
        else:
            shape = Qt.CursorShape.ArrowCursor
        self.viewport().setCursor(shape)

    # Qt

    def resizeEvent(self, event: QResizeEvent) -> None:
        size = QRectF(self.viewport().rect()).size()
        if self._pan.state() == QVariantAnimation.State.Running:
            # Its target was computed for another size.
            self._pan.stop()
            rect, self.view.at_home = self._revealed
            self.view.resize(size)
            self.view.move_to(self.view.origin_to_show(rect))
        else:
            self.view.resize(size)
        self.show_view()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        place = event.position()
        left = event.button() == Qt.MouseButton.LeftButton
        middle = event.button() == Qt.MouseButton.MiddleButton
        if middle or (left and (self._space or self.is_ground(place))):
            self._drag = place
            self._show_cursor()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._drag is not None:
            by, self._drag = event.position() - self._drag, event.position()
            self._move_by(by)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._drag = None
        self._show_cursor()

    def wheelEvent(self, event: QWheelEvent) -> None:
        angle = event.angleDelta()
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.set_zoom(self.view.zoom * 1.0015 ** angle.y(), event.position())
        else:
            pixels = event.pixelDelta()
            by = QPointF(pixels) if not pixels.isNull() else QPointF(angle) * (_WHEEL_STEP / 120)
            if event.modifiers() & Qt.KeyboardModifier.ShiftModifier and by.x() == 0:
                by = QPointF(by.y(), 0)
            self._move_by(by)
        event.accept()

    def viewportEvent(self, event: QEvent) -> bool:
        if isinstance(event, QNativeGestureEvent):
            if event.gestureType() == Qt.NativeGestureType.ZoomNativeGesture:
                self.set_zoom(self.view.zoom * (1 + event.value()), event.position())
            return True
        return super().viewportEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = event.key()
        control = event.modifiers() & Qt.KeyboardModifier.ControlModifier
        if control and key in _PANS:
            self._move_by(_PANS[Qt.Key(key)] * _WHEEL_STEP)
        elif key == Qt.Key.Key_F and not event.modifiers():
            self.fit()
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.zoom_by(ZOOM_STEP)
        elif key == Qt.Key.Key_Minus:
            self.zoom_by(1 / ZOOM_STEP)
        elif key == Qt.Key.Key_0:
            self.reset_zoom()
        elif key == Qt.Key.Key_Space and not event.isAutoRepeat():
            self._space = True
            self._show_cursor()
        else:
            super().keyPressEvent(event)

    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Space and not event.isAutoRepeat():
            self._space = False
            self._show_cursor()
        else:
            super().keyReleaseEvent(event)
