"""A large drawing as tiles, so that a frame costs the same however much there is to draw."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable

from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPixmap

SIDE = 512
"""Of a tile, in pixels of the screen."""

BUDGET_MS = 8.0
"""What missing tiles may take of a frame."""

OVERVIEW = 0.08
"""Below this scale pictures of half, a quarter … of it are scaled down."""

_KEPT_BYTES = 96 * 2**20
# Scales of pictures for a view on the move: this many for each doubling.
_STEPS = 2

Draw = Callable[[QPainter, QRectF, float], None]
_Key = tuple[float, int, int]


class TileCache:
    """Tiles of a drawing at some scales; those used least recently go first.

    While the scale is on the move, tiles of a scale nearby stand in; in each frame some of those
    that are missing are drawn.

    Parameters
    ----------
    draw : callable
        Draws an area with a painter whose coordinates are the drawing's, for a scale.
    """

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._tiles: OrderedDict[_Key, QPixmap] = OrderedDict()
        self._levels: dict[float, int] = {}
        self._cost = 4.0

    def clear(self) -> None:
        """Forget all tiles: the drawing has changed."""
        self._tiles.clear()
        self._levels.clear()

    def paint(
        self,
        painter: QPainter,
        size: QRect,
        origin: QPointF,
        zoom: float,
        ground: QColor,
        settled: bool,
    ) -> bool:
        """Paint what is seen, as far as there is time; True when nothing is missing.

        Parameters
        ----------
        painter : QPainter
            Its coordinates are the viewport's.
        size : QRect
            The viewport.
        origin : QPointF
            Where the drawing's 0, 0 is in it.
        zoom : float
            The scale.
        ground : QColor
            What is behind the drawing.
        settled : bool
            Whether this scale will stay: only then is it drawn at exactly this one.
        """
        ratio = painter.device().devicePixelRatio()
        level = _level(zoom, settled)
        side = SIDE / ratio / level
        seen = QRectF(
            QPointF(size.left() - origin.x(), size.top() - origin.y()) / zoom,
            QRectF(size).size() / zoom,
        )
        wanted = _inside(seen, side)
        middle = seen.center() / side
        missing = [each for each in wanted if (level, *each) not in self._tiles]
        missing.sort(key=lambda each: abs(each[0] + 0.5 - middle.x()) + abs(each[1] - middle.y()))
        start = time.perf_counter()
        drawn = 0
        for x, y in missing:
            spent = (time.perf_counter() - start) * 1000
            if drawn and spent + self._cost > BUDGET_MS:
                break
            self._make(level, x, y, ratio, ground)
            drawn += 1
            last = (time.perf_counter() - start) * 1000 - spent
            self._cost = 0.7 * self._cost + 0.3 * last
        painter.save()
        for x, y in wanted:
            target = _on_screen(QRectF(x * side, y * side, side, side), origin, zoom)
            tile = self._tiles.get((level, x, y))
            if tile is not None:
                self._tiles.move_to_end((level, x, y))
                if target.width() * ratio == tile.width():
                    painter.drawPixmap(target.topLeft(), tile)
                else:
                    painter.drawPixmap(target, tile)
            else:
                self._paint_stand_in(painter, target & size, origin, zoom, ratio, level, ground)
        painter.restore()
        return drawn == len(missing)

    def _make(self, level: float, x: int, y: int, ratio: float, ground: QColor) -> None:
        tile = QPixmap(SIDE, SIDE)
        tile.setDevicePixelRatio(ratio)
        tile.fill(ground)
        side = SIDE / ratio
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
        self,
        painter: QPainter,
        target: QRect,
        origin: QPointF,
        zoom: float,
        ratio: float,
        level: float,
        ground: QColor,
    ) -> None:
        """Paint a part of the viewport from tiles of another scale, the nearest that has it."""
        area = QRectF((QPointF(target.topLeft()) - origin) / zoom, QRectF(target).size() / zoom)
        most: list[tuple[QRect, QPixmap]] = []
        for other in sorted(self._levels, key=lambda each: abs(math.log(each / zoom))):
            if other == level:
                continue
            side = SIDE / ratio / other
            places = _inside(area, side)
            if len(places) > 64:
                continue
            found = [
                (_on_screen(QRectF(x * side, y * side, side, side), origin, zoom), tile)
                for x, y in places
                if (tile := self._tiles.get((other, x, y))) is not None
            ]
            if len(found) > len(most):
                most = found
            if len(found) == len(places):
                break
        painter.setClipRect(target, Qt.ClipOperation.ReplaceClip)
        painter.fillRect(target, ground)
        for place, tile in most:
            painter.drawPixmap(place, tile)
        painter.setClipping(False)


def _level(zoom: float, settled: bool) -> float:
    """The scale of the tiles for a scale of the view."""
    if zoom < OVERVIEW:
        return float(OVERVIEW * 2.0 ** math.ceil(math.log2(zoom / OVERVIEW)))
    if settled:
        return zoom
    return float(2.0 ** (round(math.log2(zoom) * _STEPS) / _STEPS))


def _inside(area: QRectF, side: float) -> list[tuple[int, int]]:
    left, right = math.floor(area.left() / side), math.floor(area.right() / side)
    top, bottom = math.floor(area.top() / side), math.floor(area.bottom() / side)
    return [(x, y) for y in range(top, bottom + 1) for x in range(left, right + 1)]


def _on_screen(area: QRectF, origin: QPointF, zoom: float) -> QRect:
    """An area in whole pixels of the viewport, with no gap to the one beside it."""
    return QRect(
        QPoint(
            round(area.left() * zoom + origin.x()),
            round(area.top() * zoom + origin.y()),
        ),
        QPoint(
            round(area.right() * zoom + origin.x()) - 1,
            round(area.bottom() * zoom + origin.y()) - 1,
        ),
    )
