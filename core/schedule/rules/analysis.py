"""Analysis for rules: the blocks of a function in order, its reduction, and its contraction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import tirx
from tvm.ir.expr import TensorLoad
from tvm.s_tir import SBlock

from lowerscope.core.ir.tensorir import LAYOUT_FREE
from lowerscope.core.schedule.parameters import known, mentions
from lowerscope.core.schedule.references import Place, function_of, places
from lowerscope.core.schedule.rules.costs import operations
from lowerscope.core.schedule.rules.recorder import ScheduleRecorder

SPATIAL, REDUCTION = 0, 2
"""Kinds of axes, as TVM numbers them."""


@dataclass(frozen=True)
class Contraction:
    """A block that sums the products of two buffers, with the blocks before and after it.

    Attributes
    ----------
    spatial, reduced
        Extents of its axes; the spatial ones are the indices of its output, in order.
    reads
        For each of the two buffers that it reads, for each of its indices, the numbers of the axes
        that stand in it.
    plain
        For each of the two, the numbers of the axes that are an index by themselves, or -1.
    elements
        How many elements each of the two has.
    free
        Whether each of the two is an argument whose layout may change when the model is built: a
        constant.
    finishing
        Estimated number of operations on a complete sum.
    """

    block: str
    spatial: tuple[int, ...]
    reduced: tuple[int, ...]
    reads: tuple[tuple[frozenset[int], ...], ...]
    plain: tuple[tuple[int, ...], ...]
    elements: tuple[int, ...]
    free: tuple[bool, ...]
    dtype: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    finishing: int

    def is_read_by(self, read: int, axis: int) -> bool:
        """Return whether the element of a buffer changes with an axis."""
        return any(axis in each for each in self.reads[read])

    def times_read(self, read: int, axis: int) -> int:
        """Return the number of indices of a buffer in which an axis occurs."""
        return sum(axis in each for each in self.reads[read])

    @property
    def is_plain(self) -> bool:
        """Return whether all indices of the two buffers are plain axes, as in a matrix product."""
        return all(axis >= 0 for plain in self.plain for axis in plain)

    @property
    def work(self) -> int:
        """Number of products that are summed."""
        return math.prod((*self.spatial, *self.reduced))

    def uses(self, read: int) -> float:
        """Return the mean number of multiplications of an element of a buffer."""
        return self.work / self.elements[read]


def blocks_of(writing: ScheduleRecorder) -> list[Place]:
    """Return the blocks below the root, in the order of the script."""
    return [each for each in places(function_of(writing.sch))[1:] if each.is_block]


def is_spatial(block: SBlock) -> bool:
    """Return whether each value of the axes of a block writes an element of its own."""
    return all(int(axis.iter_type) == SPATIAL for axis in block.iter_vars)


@dataclass(frozen=True)
class Reduction:
    """The only reduction block of a function, with the blocks before and after it.

    Its body is `store`, one element for each value of its spatial axes.
    """

    place: Place
    store: Any
    before: list[Place]
    after: list[Place]

    @property
    def axes(self) -> list[Any]:
        """Its axes."""
        return list(self.place.stmt.iter_vars)

    @property
    def kinds(self) -> list[int]:
        """Kinds of its axes: see `SPATIAL`."""
        return [int(axis.iter_type) for axis in self.axes]

    @property
    def rank(self) -> int:
        """Number of its spatial axes; `is_in_order` has them first."""
        return self.kinds.count(SPATIAL)

    @property
    def is_in_order(self) -> bool:
        """Return whether the spatial axes come before the others."""
        return self.kinds == sorted(self.kinds)

    @property
    def regions(self) -> list[Any]:
        """Regions of the buffers that it reads, without its own output."""
        reads = self.place.stmt.reads
        return [each for each in reads if not each.source.same_as(self.store.buffer)]

    @property
    def reads(self) -> tuple[tuple[frozenset[int], ...], ...]:
        """For each of `regions`, for each of its indices, the numbers of the axes in it."""
        return tuple(
            tuple(
                frozenset(n for n, axis in enumerate(self.axes) if mentions(each.min, axis.var))
                for each in region.region
            )
            for region in self.regions
        )


def reduction_of(writing: ScheduleRecorder) -> Reduction | None:
    """Return the only reduction block of a function, if it sets its elements to a value first."""
    found = blocks_of(writing)
    sums = [place for place, each in enumerate(found) if not is_spatial(each.stmt)]
    if len(sums) != 1 or len({each.name for each in found}) < len(found):
        return None
    at = sums[0]
    block: Any = found[at].stmt
    spatial = [axis.var for axis in block.iter_vars if int(axis.iter_type) == SPATIAL]
    if block.init is None or not isinstance(block.body, tirx.BufferStore):
        return None
    if not are_same(block.body.indices, spatial):
        return None
    return Reduction(found[at], block.body, found[:at], found[at + 1 :])


def are_same(ones: Sequence[Any], others: Sequence[Any]) -> bool:
    """Return whether two lists hold the same variables."""
    return len(ones) == len(others) and all(
        one.same_as(other) for one, other in zip(ones, others, strict=True)
    )


def names_of(places: Sequence[Place]) -> tuple[str, ...]:
    """Return the names of blocks."""
    return tuple(each.name for each in places)


def contraction_of(writing: ScheduleRecorder) -> Contraction | None:
    """Return the only reduction block of a function, if it sums products of two buffers."""
    found = reduction_of(writing)
    if found is None or not found.is_in_order or not _is_sum_of_product(found.store):
        return None
    extents = [known(axis.dom.extent) for axis in found.axes]
    elements = [_elements(each.source) for each in found.regions]
    sizes = [extent for extent in extents if extent is not None]
    counts = [count for count in elements if count is not None]
    if len(counts) != 2 or len(elements) != 2 or len(sizes) < len(extents):
        return None
    return Contraction(
        block=found.place.name,
        spatial=tuple(sizes[: found.rank]),
        reduced=tuple(sizes[found.rank :]),
        reads=found.reads,
        plain=tuple(_plain(each, found.axes) for each in found.regions),
        elements=tuple(counts),
        free=tuple(_is_free(writing, each.source) for each in found.regions),
        dtype=str(found.store.buffer.dtype),
        before=names_of(found.before),
        after=names_of(found.after),
        finishing=sum(operations(each.stmt.body) for each in found.after),
    )


def bytes_of(dtype: str) -> int:
    """Return the size of a value, in bytes."""
    return max(1, int(tvm.DataType(dtype).bits) // 8)


def _elements(buffer: Any) -> int | None:
    extents = [known(each) for each in buffer.shape]
    sizes = [extent for extent in extents if extent is not None]
    return math.prod(sizes) if len(sizes) == len(extents) else None


def _is_free(writing: ScheduleRecorder, buffer: Any) -> bool:
    function = function_of(writing.sch)
    free = function.attrs.get(LAYOUT_FREE, ()) if function.attrs else ()
    return any(function.params[int(each)].same_as(buffer) for each in free)


def _is_sum_of_product(store: Any) -> bool:
    value = store.value
    if not isinstance(value, tirx.Add):
        return False
    parts = [value.a, value.b]
    own = [each for each in parts if isinstance(each, TensorLoad)]
    own = [each for each in own if each.source.same_as(store.buffer)]
    others = [each for each in parts if not any(each.same_as(mine) for mine in own)]
    return len(own) == 1 and len(others) == 1 and isinstance(_bare(others[0]), tirx.Mul)


def _bare(value: Any) -> Any:
    while isinstance(value, tirx.Cast):
        value = value.value
    return value


def _plain(region: Any, axes: Sequence[Any]) -> tuple[int, ...]:
    return tuple(
        next((number for number, axis in enumerate(axes) if axis.var.same_as(each.min)), -1)
        for each in region.region
    )
