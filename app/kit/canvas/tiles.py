"""Tile cache of a large drawing: the time of a frame does not depend on the drawing's size."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from PySide6.QtCore import QPointF, QRect, QRectF
from PySide6.QtGui import QColor, QPainter, QPixmap

SIDE = 256
SMALL_SIDE = 128
"""Side of a tile, in screen pixels; the small one is for scales with thousands of nodes a tile."""

BUDGET_MS = 4.0
"""Time in a frame for drawing missing tiles."""

OVERVIEW = 0.08
"""Below this scale, tiles of half of it, a quarter … are scaled down."""

CROWDED = 0.15
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
    if zoom < OVERVIEW:
        return float(OVERVIEW * 2.0 ** math.ceil(math.log2(zoom / OVERVIEW)))
    if settled:
        return zoom
    return float(2.0 ** (round(math.log2(zoom) * _STEPS) / _STEPS))


def _inside(area: QRectF, side: float) -> list[tuple[int, int]]:
    left, right = math.floor(area.left() / side), math.floor(area.right() / side)
    top, bottom = math.floor(area.top() / side), math.floor(area.bottom() / side)
    return [(x, y) for y in range(top, bottom + 1) for x in range(left, right + 1)]
