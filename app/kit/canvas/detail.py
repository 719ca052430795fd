"""Level of detail of a graph: below a scale, named blocks stand for boxes too small to be read.

An expanded module whose boxes are too small becomes one block with its name. What is in no such
module, and too small by itself, is merged with its neighbours in the same layers into blocks of a
readable size.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from PySide6.QtCore import QCoreApplication, QPointF, QRectF

from lowerscope.app.kit.canvas.graph_geometry import GraphIndex, Places, region_rect
from lowerscope.core.model.graph import Box, Region

DETAIL_SCALE = 0.8
"""Below this scale boxes have header and name alone, at a readable size."""

BLOCK_SCALE = 0.385
"""Below this scale blocks stand for boxes that are too small, and for modules with boxes of their
own: the bar of a module has no room for a title."""

_HIGH, _WIDE = 12.0, 36.0
"""Least height and width in pixels of a box or block with a name."""

_ALONE = 120.0
"""Greatest width in pixels of a narrow block with nothing beside it."""

_LETTER = 7.0

_MOST_WORDS = 8
_STEPS = 2
"""Number of levels for each doubling of the scale."""


@dataclass(frozen=True)
class Block:
    """A rectangle with a name that stands for boxes: an expanded module's, or neighbours.

    Attributes:
        frame: Id of the module, or ``""``.
    """

    rect: QRectF
    title: str
    family: str
    boxes: tuple[str, ...]
    frame: str = ""


class Level:
    """Boxes, frames and blocks that are drawn at a scale.

    Args:
        index: The graph.
        blocks: The blocks.
        closed: Keys of the frames that are blocks, or inside of one.
    """

    def __init__(
        self, index: GraphIndex, blocks: Sequence[Block] = (), closed: frozenset[str] = frozenset()
    ) -> None:
        self.blocks = blocks
        self._index = index
        self._closed = closed
        self._block_of = {name: number for number, each in enumerate(blocks) for name in each.boxes}
        sides = [each.rect.height() for each in blocks]
        cell = max(1.0, 4 * sum(sides) / len(sides)) if sides else 1.0
        self._places = Places({number: each.rect for number, each in enumerate(blocks)}, cell)

    @cached_property
    def frames(self) -> list[Region]:
        """The frames that are drawn as such."""
        return [each for each in self._index.graph.regions if _key(each) not in self._closed]

    def boxes_in(self, area: QRectF) -> list[str]:
        """Return the boxes in an area that are drawn as such."""
        inside = self._index.inside(area)
        return [name for name in inside if name not in self._block_of] if self.blocks else inside

    def blocks_in(self, area: QRectF) -> list[Block]:
        """Return the blocks in an area."""
        return [self.blocks[number] for number in self._places.inside(area)]

    def blocks_of(self, names: Iterable[str]) -> list[Block]:
        """Return the blocks that stand for some boxes or frames."""
        frames = {each.frame: number for number, each in enumerate(self.blocks) if each.frame}
        numbers = {self._block_of.get(name, frames.get(name)) for name in names}
        return [self.blocks[number] for number in numbers if number is not None]

    def at(self, point: QPointF) -> Block | None:
        """Return the block at a position."""
        number = self._places.at(point)
        return None if number is None else self.blocks[number]


class Detail:
    """The levels of detail of a graph, made when they are first shown."""

    def __init__(self, index: GraphIndex) -> None:
        self._index = index
        self._levels: dict[float, Level] = {}
        self._whole = Level(index)

    def at(self, zoom: float) -> Level:
        """Return the level for a scale."""
        if zoom >= BLOCK_SCALE:
            return self._whole
        # The level of the next smaller scale of a few, at which names fit as well.
        step = math.floor(math.log2(zoom / BLOCK_SCALE) * _STEPS)
        scale = BLOCK_SCALE * 2.0 ** (step / _STEPS)
        if scale not in self._levels:
            self._levels[scale] = _Folding(self._index, scale).level()
        return self._levels[scale]


def _key(region: Region) -> str:
    """Return the key that boxes and frames inside have as their group."""
    return region.id or region.title


@dataclass(frozen=True)
class _Item:
    """A box, or an expanded module as a whole."""

    rect: QRectF
    title: str
    boxes: tuple[str, ...]
    frame: str = ""
    family: str = ""


@dataclass
class _Band:
    """Items of one or more layers, and its extent."""

    items: list[_Item]
    top: float
    bottom: float
    layers: int = 1

    def add(self, item: _Item) -> None:
        self.items.append(item)
        self.top = min(self.top, item.rect.top())
        self.bottom = max(self.bottom, item.rect.bottom())


class _Folding:
    """Finds out which modules and neighbours become blocks at a scale."""

    def __init__(self, index: GraphIndex, scale: float) -> None:
        self._index = index
        self._scale = scale
        self._boxes: dict[str, list[Box]] = {}
        self._frames: dict[str, list[Region]] = {}
        keys = {_key(region) for region in index.graph.regions}
        for box in index.graph.boxes:
            self._boxes.setdefault(box.group if box.group in keys else "", []).append(box)
        for region in index.graph.regions:
            around = region.group if region.group != _key(region) else ""
            self._frames.setdefault(around if around in keys else "", []).append(region)
        self._blocks: list[Block] = []
        self._closed: set[str] = set()

    def level(self) -> Level:
        small: list[_Item] = []
        for box in self._boxes.get("", ()):
            rect = self._index.rects[box.id]
            if not self._is_legible(rect):
                small.append(_Item(rect, box.title, (box.id,), family=box.family))
        for region in self._frames.get("", ()):
            self._fold(region, small)
        for band in self._bands(small):
            self._blocks += self._merged(band)
        return Level(self._index, self._blocks, frozenset(self._closed))

    def _is_legible(self, rect: QRectF) -> bool:
        return rect.height() * self._scale >= _HIGH and rect.width() * self._scale >= _WIDE

    def _fold(self, region: Region, small: list[_Item]) -> None:
        """Leave a module open, or make it a block, or an item to merge where it is too small."""
        frames = self._frames.get(_key(region), ())
        is_legible = all(self._is_legible(region_rect(each)) for each in frames)
        if is_legible and _key(region) not in self._boxes:
            for each in frames:
                self._fold(each, small)
            return
        rect = region_rect(region)
        inside = tuple(self._close(region))
        if self._is_legible(rect):
            self._blocks.append(Block(rect, region.title, region.family, inside, region.id))
        else:
            small.append(_Item(rect, region.title, inside, region.id, region.family))

    def _close(self, region: Region) -> Iterable[str]:
        """Close a frame and those inside of it; yield the boxes."""
        self._closed.add(_key(region))
        yield from (box.id for box in self._boxes.get(_key(region), ()))
        for each in self._frames.get(_key(region), ()):
            if _key(each) not in self._closed:
                yield from self._close(each)

    def _bands(self, items: list[_Item]) -> list[list[_Item]]:
        """Return items layer by layer, with as many layers together as a name is high."""
        layers: list[_Band] = []
        for item in sorted(items, key=lambda each: each.rect.center().y()):
            if layers and item.rect.center().y() < layers[-1].bottom:
                layers[-1].add(item)
            else:
                layers.append(_Band([item], item.rect.top(), item.rect.bottom()))
        bands: list[_Band] = []
        for index, layer in enumerate(layers):
            before = bands[-1] if bands else None
            is_last = index == len(layers) - 1 or not self._is_near(layer, layers[index + 1])
            if (
                before is not None
                and self._is_near(before, layer)
                and not self._is_high(layer)
                and (not self._is_high(before) or (is_last and before.layers > 1))
            ):
                for item in layer.items:
                    before.add(item)
                before.layers += 1
            else:
                bands.append(layer)
        return [band.items for band in bands]

    def _is_high(self, band: _Band) -> bool:
        return (band.bottom - band.top) * self._scale >= _HIGH

    def _is_near(self, band: _Band, below: _Band) -> bool:
        return (below.top - band.bottom) * self._scale < _HIGH

    def _merged(self, band: list[_Item]) -> list[Block]:
        """Return the blocks of a band, from the left: each as wide as a name."""
        runs: list[list[_Item]] = []
        right = left = 0.0
        for item in sorted(band, key=lambda each: each.rect.left()):
            rect = item.rect
            is_near = (rect.left() - right) * self._scale < _WIDE
            is_narrow = (right - left) * self._scale < _WIDE
            if runs and (rect.left() < right or (is_near and is_narrow)):
                runs[-1].append(item)
                right = max(right, rect.right())
            else:
                runs.append([item])
                left, right = rect.left(), rect.right()
        if len(runs) > 1 and (right - left) * self._scale < _WIDE:
            last = runs.pop()
            runs[-1] += last
        return [self._block(run, _WIDE if len(runs) > 1 else _ALONE) for run in runs]

    def _block(self, run: list[_Item], widest: float) -> Block:
        """Return the block of some neighbours, at least as high and as wide as its name."""
        rect = QRectF()
        for item in run:
            rect |= item.rect
        boxes = tuple(name for item in run for name in item.boxes)
        families = Counter(self._index.nodes[name].family for name in boxes)
        del families[""]
        title, family, frame = run[0].title, run[0].family, run[0].frame
        if len(run) > 1:
            title, frame = _title(run, self._index.nodes), ""
            family = families.most_common(1)[0][0] if families else ""
        width = max(_WIDE, min(widest, _LETTER * len(title) + _WIDE / 2))
        across = max(0.0, width / self._scale - rect.width()) / 2
        down = max(0.0, _HIGH / self._scale - rect.height()) / 2
        return Block(rect.adjusted(-across, -down, across, down), title, family, boxes, frame)


def _title(run: Sequence[_Item], nodes: Mapping[str, Box]) -> str:
    """Return the name of a block of neighbours: of modules, or of the operators in it."""
    if any(item.frame for item in run):
        return f"{run[0].title} … {run[-1].title}"
    boxes = [nodes[name] for item in run for name in item.boxes]
    operators = Counter(box.operator or box.title for box in boxes)
    words = ", ".join(each for each, _ in operators.most_common(_MOST_WORDS))
    if len(operators) == len(boxes):
        return words
    if len(operators) == 1:
        return f"{len(boxes)} × {words}"
    return QCoreApplication.translate("GraphCanvas", "{0} nodes: {1}").format(len(boxes), words)
