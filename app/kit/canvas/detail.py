"""Level of detail of a graph: below a scale, named blocks stand for boxes too small to be read.

An expanded module whose boxes are too small becomes one block with its name. What is in no such
module, and too small by itself, is merged with its neighbours in the same layers into blocks of a
readable size.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest

from PySide6.QtCore import QPointF, QRectF

from lowerscope.app.kit.canvas.graph_geometry import GraphIndex, Places, region_rect
from lowerscope.core.model.graph import Box, Region
from lowerscope.core.model.texts import _

DETAIL_SCALE = 0.8
"""Below this scale boxes have header and name alone, at a readable size."""

CHEVRON_SCALE = 0.45
"""Below this scale headers, and the chevrons in them, are too small to be drawn and clicked."""

BLOCK_SCALE = 0.385
"""Below this scale blocks stand for boxes that are too small, and for modules with boxes of their
own: the bar of a module has no room for a title."""

_HIGH, _WIDE = 12.0, 36.0
"""Least height and width in pixels of a box or block with a name."""

_ALONE = 120.0
"""Greatest width in pixels of a narrow block with nothing beside it."""

BESIDE = _ALONE
"""Width in pixels that blocks may extend beyond the graph."""

_LETTER = 7.0

_RUN_WIDTH = 64.0
"""Least width in pixels of neighbours in a block."""

_PARTS = 4
"""Least number of names that a narrow module with modules inside is high, to show these."""

_MOST_WORDS = 4
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
        self._levels: dict[float, Level] = {}
        self._whole = Level(index)
        self._tree = _Tree(index)

    def at(self, zoom: float) -> Level:
        """Return the level for a scale."""
        if zoom >= BLOCK_SCALE:
            return self._whole
        # The level of the next smaller scale of a few, at which names fit as well.
        step = math.floor(math.log2(zoom / BLOCK_SCALE) * _STEPS)
        scale = BLOCK_SCALE * 2.0 ** (step / _STEPS)
        if scale not in self._levels:
            self._levels[scale] = _Folding(self._tree, scale).level()
        return self._levels[scale]


def _key(region: Region) -> str:
    """Return the key that boxes and frames inside have as their group."""
    return region.id or region.title


@dataclass(slots=True)
class _Item:
    """A box or an expanded module as a whole, or a layer or band of these."""

    left: float
    top: float
    right: float
    bottom: float
    box: Box | None = None
    region: Region | None = None
    parts: list[_Item] = field(default_factory=list)

    def add(self, other: _Item) -> None:
        """Add a part."""
        self.left, self.top = min(self.left, other.left), min(self.top, other.top)
        self.right, self.bottom = max(self.right, other.right), max(self.bottom, other.bottom)
        self.parts += other.parts or [other]

    @property
    def title(self) -> str:
        """Name of the box or module."""
        of = self.box or self.region
        return "" if of is None else of.title.partition(" · ")[0] if self.region else of.title


def _group(item: _Item) -> _Item:
    """Return a group of one item, to which others can be added."""
    return _Item(item.left, item.top, item.right, item.bottom, parts=item.parts or [item])


def _item(rect: QRectF, box: Box | None = None, region: Region | None = None) -> _Item:
    return _Item(rect.left(), rect.top(), rect.right(), rect.bottom(), box, region)


class _Tree:
    """The boxes and frames directly in each frame, by its key; ``""`` for those in none."""

    def __init__(self, index: GraphIndex) -> None:
        self.index = index
        self.boxes: dict[str, list[_Item]] = {}
        self.frames: dict[str, list[_Item]] = {}
        graph = index.graph
        keys = {_key(region) for region in graph.regions}
        for box in graph.boxes:
            item = _item(index.rects[box.id], box=box)
            self.boxes.setdefault(box.group if box.group in keys else "", []).append(item)
        for region in graph.regions:
            around = region.group if region.group != _key(region) else ""
            item = _item(region_rect(region), region=region)
            self.frames.setdefault(around if around in keys else "", []).append(item)
        for items in self.boxes.values():
            items.sort(key=lambda each: each.top + each.bottom)


class _Folding:
    """Finds out which modules and neighbours become blocks at a scale."""

    def __init__(self, tree: _Tree, scale: float) -> None:
        self._tree = tree
        self._scale = scale
        self._high, self._wide = _HIGH / scale, _WIDE / scale
        self._blocks: list[Block] = []
        self._closed: set[str] = set()

    def level(self) -> Level:
        boxes: list[_Item] = []
        inside = self._tree.index.inside
        for item in self._tree.boxes.get("", ()):
            if not self._is_legible(item):
                boxes.append(item)
            elif len(inside((block := self._block([item], _ALONE, "")).rect)) == 1:
                # With nothing beside it, it has room for the whole name.
                self._blocks.append(block)
        self._fold(self._tree.frames.get("", ()), boxes, "")
        return Level(self._tree.index, self._blocks, frozenset(self._closed))

    def _is_legible(self, item: _Item) -> bool:
        return self._is_high(item) and item.right - item.left >= self._wide

    def _is_high(self, item: _Item) -> bool:
        return item.bottom - item.top >= self._high

    def _fold(self, frames: Iterable[_Item], small: list[_Item], path: str) -> None:
        """Make blocks of modules, and of what is small beside them.

        Args:
            frames: The modules.
            small: Items to merge with those modules that are small.
            path: Names of the modules around, as far as these are too narrow for them.
        """
        for item in frames:
            assert item.region is not None
            key = _key(item.region)
            inside = self._tree.frames.get(key, [])
            is_open = inside and key not in self._tree.boxes and key not in self._closed
            if is_open and all(self._is_legible(each) for each in inside):
                self._fold(inside, [], "")
            elif is_open and item.bottom - item.top >= _PARTS * self._high:
                # Too narrow for a name in each part, but a band of them has one.
                is_narrow = item.right - item.left < self._wide
                if is_narrow:
                    self._closed.add(key)
                self._fold(inside, [], f"{path}{item.title}." if is_narrow else "")
            elif self._is_legible(item):
                self._blocks.append(self._block([item], _WIDE, path))
            else:
                small.append(item)
        for band in self._bands(small):
            runs = self._runs(band)
            widest = _WIDE if len(runs) > 1 else _ALONE
            self._blocks += [self._block(run.parts, widest, path) for run in runs]

    def _close(self, item: _Item) -> Iterator[Box]:
        """Yield the boxes that an item is or has, and close the frames in it."""
        if item.box is not None:
            yield item.box
        elif item.region is not None and _key(item.region) not in self._closed:
            key = _key(item.region)
            self._closed.add(key)
            for each in (*self._tree.boxes.get(key, ()), *self._tree.frames.get(key, ())):
                yield from self._close(each)

    def _bands(self, items: list[_Item]) -> list[_Item]:
        """Return items layer by layer, with as many layers together as a name is high."""
        layers: list[_Item] = []
        for item in sorted(items, key=lambda each: each.top + each.bottom):
            if layers and (item.top + item.bottom) / 2 < layers[-1].bottom:
                layers[-1].add(item)
            else:
                layers.append(_group(item))
        bands: list[_Item] = []
        counts: list[int] = []
        for layer, below in zip_longest(layers, layers[1:]):
            is_last = below is None or below.top - layer.bottom >= self._high
            if (
                bands
                and layer.top - bands[-1].bottom < self._high
                and not self._is_high(layer)
                and (not self._is_high(bands[-1]) or (is_last and counts[-1] > 1))
            ):
                bands[-1].add(layer)
                counts[-1] += 1
            else:
                bands.append(layer)
                counts.append(1)
        return bands

    def _runs(self, band: _Item) -> list[_Item]:
        """Return the neighbours in a band, from the left: each run as wide as a name."""
        wide = _RUN_WIDTH / self._scale
        runs: list[_Item] = []
        for item in sorted(band.parts, key=lambda each: each.left):
            last = runs[-1] if runs else None
            if last is not None and (
                item.left < last.right
                or (item.left - last.right < wide and last.right - last.left < wide)
            ):
                last.add(item)
            else:
                runs.append(_group(item))
        if len(runs) > 1 and runs[-1].right - runs[-1].left < wide:
            last = runs.pop()
            runs[-1].add(last)
        return runs

    def _block(self, items: Sequence[_Item], widest: float, path: str) -> Block:
        """Return the block of some neighbours, at least as high and as wide as its name."""
        extent = _group(items[0])
        for item in items[1:]:
            extent.add(item)
        boxes = [box for item in items for box in self._close(item)]
        region = items[0].region if len(items) == 1 else None
        if region is not None:
            title, family = path + region.title, region.family
        else:
            title = _title(items, boxes, path)
            family = _most_common(each.region.family for each in items if each.region is not None)
            family = family or _most_common(box.family for box in boxes)
        width = max(_WIDE, min(widest, _LETTER * len(title) + _WIDE / 2)) / self._scale
        rect = QRectF(QPointF(extent.left, extent.top), QPointF(extent.right, extent.bottom))
        across, down = max(0.0, width - rect.width()) / 2, max(0.0, self._high - rect.height()) / 2
        return Block(
            rect.adjusted(-across, -down, across, down),
            title,
            family,
            tuple(box.id for box in boxes),
            "" if region is None else region.id,
        )


def _most_common(families: Iterable[str]) -> str:
    count = Counter(family for family in families if family)
    return count.most_common(1)[0][0] if count else ""


def _title(items: Sequence[_Item], boxes: Sequence[Box], path: str) -> str:
    """Return the name of a block of neighbours: of modules, or of the operators in it."""
    if len(items) == 1:
        return items[0].title
    if any(item.region for item in items):
        parent = items[0].title.rpartition(".")[0]
        last = items[-1].title.removeprefix(f"{parent}.") if parent else items[-1].title
        return f"{path}{items[0].title} … {last}"
    operators = Counter(box.operator or box.title for box in boxes)
    words = _(", ").join(each for each, _ in operators.most_common(_MOST_WORDS))
    return words if len(operators) == len(boxes) else f"{words} × {len(boxes)}"
