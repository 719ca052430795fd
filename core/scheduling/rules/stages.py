"""Stages of a function: its blocks once cheap ones are inlined."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import tirx
from tvm.sym import Analyzer, detect_linear_equation

from lowerscope.core.schedules import At
from lowerscope.core.scheduling.references import Place, function_of
from lowerscope.core.scheduling.rules.costs import CHEAP, operations
from lowerscope.core.scheduling.rules.reading import SPATIAL, blocks_of, is_spatial
from lowerscope.core.scheduling.rules.writing import Writing
from lowerscope.core.scheduling.sizes import known, mentions


@dataclass(frozen=True)
class Stage:
    """A block that writes a result, or input of later blocks.

    Attributes
    ----------
    name
        Of the block.
    extents
        Of its axes, those of a reduction last; ``None`` for an unknown one.
    spatial
        Number of spatial axes.
    near
        The axis along which its reads are contiguous; -1 for none.
    dtype
        Dtype of its computation.
    counts
        Whether it writes indices beside values, as argmax does.
    """

    name: str
    extents: tuple[int | None, ...]
    spatial: int
    near: int
    dtype: str
    counts: bool

    @property
    def reduces(self) -> bool:
        """Return whether the stage is a reduction."""
        return self.spatial < len(self.extents)


def stages_of(writing: Writing) -> tuple[Stage, ...]:
    """Return the present stages of a function; none if a block cannot be analysed."""
    found = blocks_of(writing)
    made = tuple(_stage(each, len(writing.loops(each.name))) for each in found)
    names = {each.name for each in found}
    if len(names) < len(found):
        return ()
    return tuple(each for each in made if each is not None) if all(made) else ()


def _stage(place: Place, loops: int) -> Stage | None:
    block = place.stmt
    axes = list(block.iter_vars)
    kinds = [int(axis.iter_type) == SPATIAL for axis in axes]
    # One loop for each axis, in the same order, and reductions inside.
    if len(axes) != loops or kinds != sorted(kinds, reverse=True):
        return None
    if not all(isinstance(value, tirx.Var) for value in place.realize.iter_values):
        return None
    extents = tuple(known(axis.dom.extent) for axis in axes)
    dtypes = {str(each.source.dtype) for each in block.writes}
    near, dtype = _near(block, axes), _dtype(block)
    return Stage(place.name, extents, sum(kinds), near, dtype, counts=len(dtypes) > 1)


def _dtype(block: Any) -> str:
    """Return the widest of the dtypes that are read and written, except those of counters."""
    regions = [*block.reads, *block.writes]
    dtypes = [str(each.source.dtype) for each in regions]
    counted = [each for each in dtypes if not each.startswith(("int64", "bool"))] or dtypes
    return max(counted, key=lambda each: int(tvm.DataType(each).bits))


def _near(block: Any, axes: Sequence[Any]) -> int:
    """Return the axis along which the last index of the reads is contiguous; -1 for none."""
    written = [each.source for each in block.writes]
    reads = [each for each in block.reads if not any(each.source.same_as(w) for w in written)]
    used = [sum(_axes_in(each, axes)) for each in reads]
    if not reads or not max(used):
        regions = list(block.writes)
    else:
        # The buffer with the most axes is read most.
        regions = [each for each, count in zip(reads, used, strict=True) if count == max(used)]
    analyzer = Analyzer()
    for axis in axes:
        analyzer.bind(axis.var, axis.dom)
    for region in regions:
        near = _one_by_one(region, axes, analyzer)
        if near >= 0:
            return near
    return -1


def _axes_in(region: Any, axes: Sequence[Any]) -> Iterator[bool]:
    for axis in axes:
        yield known(axis.dom.extent) != 1 and any(
            mentions(each.min, axis.var) for each in region.region
        )


def _one_by_one(region: Any, axes: Sequence[Any], analyzer: Any) -> int:
    indices = list(region.region)
    while indices and known(region.source.shape[len(indices) - 1]) == 1:
        indices.pop()
    if not indices:
        return -1
    last = analyzer.simplify(indices[-1].min)
    for number in reversed(range(len(axes))):
        var = axes[number].var
        if known(axes[number].dom.extent) == 1 or not mentions(last, var):
            continue
        steps = detect_linear_equation(last, [var])
        if steps and known(steps[0]) == 1:
            return number
    return -1


def inline_cheap(writing: Writing) -> None:
    """Inline blocks that are cheap, or are read once.

    Raises
    ------
    StepFailed
        If TVM or a guard rejects it.
    """
    given = function_of(writing.sch).params
    for name in writing.blocks():
        block = writing.block(At(block=name))
        written = [each.source for each in block.writes]
        if not is_spatial(block) or any(each.same_as(mine) for each in given for mine in written):
            continue
        readers = [
            each
            for each in blocks_of(writing)
            if any(region.source.same_as(written[0]) for region in each.stmt.reads)
        ]
        whole = {known(axis.dom.extent) for axis in block.iter_vars}
        once = len(readers) == 1 and len(readers[0].stmt.iter_vars) <= len(block.iter_vars)
        worth = once or whole == {1} or operations(block.body) <= CHEAP
        if readers and worth and writing.can_inline(name):
            why = "it is read at once" if once else "it costs less than to store and to read it"
            writing.do("compute_inline", why, block=At(block=name))
