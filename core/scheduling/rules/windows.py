"""Reductions over a window of the input: depthwise convolutions, poolings and others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import sym, tirx
from tvm.ir.expr import TensorLoad

from lowerscope.core.rendering.programs.expression_text import operator_name
from lowerscope.core.scheduling.references import Place
from lowerscope.core.scheduling.rules.reading import REDUCTION, SPATIAL, blocks_of, is_spatial
from lowerscope.core.scheduling.rules.writing import Writing
from lowerscope.core.scheduling.sizes import known, mentions


@dataclass(frozen=True)
class Window:
    """A block that reduces a window of its input, with the blocks before and after it.

    Attributes
    ----------
    block
        Its name.
    spatial
        Extents of the axes of its output, in order; ``None`` for one that is symbolic.
    reduced
        Extents of the axes that are reduced.
    reads
        For each buffer that it reads, for each of its indices, the numbers of the axes in it.
    is_strided
        Whether adjacent outputs in a row read elements that are not adjacent.
    dtype
        Dtype of the output.
    pads
        Names of the blocks before it that pad what it reads.
    before, after
        Names of the other blocks.
    """

    block: str
    spatial: tuple[int | None, ...]
    reduced: tuple[int, ...]
    reads: tuple[tuple[frozenset[int], ...], ...]
    is_strided: bool
    dtype: str
    pads: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def is_window(self) -> bool:
        """Return whether an index of the reads moves with the output, and with the window."""
        count = len(self.spatial)
        return any(
            any(axis < count for axis in each) and any(axis >= count for axis in each)
            for read in self.reads
            for each in read
        )

    def is_shared(self, axis: int) -> bool:
        """Return whether all reads change with an axis."""
        return all(any(axis in each for each in read) for read in self.reads)


def window_of(writing: Writing) -> Window | None:
    """Return the only reduction block of a function, if the later blocks are elementwise in it."""
    found = blocks_of(writing)
    names = [each.name for each in found]
    sums = [each for each in found if not is_spatial(each.stmt)]
    if len(sums) != 1 or len(set(names)) < len(names):
        return None
    block: Any = sums[0].stmt
    at = found.index(sums[0])
    axes = list(block.iter_vars)
    kinds = [int(axis.iter_type) for axis in axes]
    store = block.body
    if block.init is None or not isinstance(store, tirx.BufferStore) or kinds != sorted(kinds):
        return None
    spatial = [axis for axis in axes if int(axis.iter_type) == SPATIAL]
    extents = [known(axis.dom.extent) for axis in axes]
    reduced = [
        extent
        for extent, kind in zip(extents, kinds, strict=True)
        if kind == REDUCTION and extent is not None
    ]
    if not spatial or len(spatial) + len(reduced) < len(axes):
        return None
    if not _is_at(store.indices, spatial):
        return None
    if not all(_goes_along(each, store.buffer, len(spatial)) for each in found[at + 1 :]):
        return None
    regions = [each for each in block.reads if not each.source.same_as(store.buffer)]
    reads = tuple(
        tuple(
            frozenset(number for number, axis in enumerate(axes) if mentions(each.min, axis.var))
            for each in region.region
        )
        for region in regions
    )
    pads = tuple(each.name for each in found[:at] if is_pad(each.stmt))
    return Window(
        block=names[at],
        spatial=tuple(extents[: len(spatial)]),
        reduced=tuple(reduced),
        reads=reads,
        is_strided=any(_is_strided(each, spatial[-1].var) for each in regions),
        dtype=str(store.buffer.dtype),
        pads=pads,
        before=tuple(each for each in names[:at] if each not in pads),
        after=tuple(names[at + 1 :]),
    )


def _is_strided(region: Any, row: Any) -> bool:
    last = region.region[-1].min
    if not mentions(last, row):
        return any(mentions(each.min, row) for each in region.region)
    found = sym.detect_linear_equation(last, [row])
    return len(found) == 0 or known(found[0]) != 1


def _is_at(indices: Any, axes: list[Any]) -> bool:
    return len(indices) == len(axes) and all(
        index.same_as(axis.var) for index, axis in zip(indices, axes, strict=True)
    )


def _goes_along(place: Place, reduced: Any, rank: int) -> bool:
    """Return whether a block uses each reduced element by itself."""
    block: Any = place.stmt
    if len(block.iter_vars) != rank or not isinstance(block.body, tirx.BufferStore):
        return False
    variables = [axis.var for axis in block.iter_vars]
    places = [
        [each.min for each in region.region]
        for region in block.reads
        if region.source.same_as(reduced)
    ]
    return all(
        all(index.same_as(var) for index, var in zip(each, variables, strict=True))
        for each in [*places, list(block.body.indices)]
    )


def is_pad(block: Any) -> bool:
    """Return whether a block copies within some bounds, and writes a constant outside."""
    value = getattr(block.body, "value", None)
    if value is None or operator_name(value) != "if_then_else":
        return False
    _, inside, outside = value.args
    return isinstance(inside, TensorLoad) and isinstance(outside, (tirx.FloatImm, tirx.IntImm))
