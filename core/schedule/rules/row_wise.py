"""Row-wise reductions, and elementwise uses of their results: softmax, norms, sums, argmax."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import tirx
from tvm.s_tir import SBlock
from tvm.sym import Analyzer, detect_linear_equation

from lowerscope.core.ir.tensorir import collected, known, mentions
from lowerscope.core.model.reasons import reason
from lowerscope.core.model.schedule import At, Reference
from lowerscope.core.schedule.loop_primitives import reduces
from lowerscope.core.schedule.references import Place, function_of
from lowerscope.core.schedule.rules.movement import accesses_of, axes_in_row, whole_rows
from lowerscope.core.schedule.rules.recorder import (
    CHEAP,
    REDUCTION,
    SPATIAL,
    WORTH_THREADS,
    Contraction,
    Machine,
    ScheduleRecorder,
    blocks_of,
    contraction_of,
    is_spatial,
    operations,
)


@dataclass(frozen=True)
class Stage:
    """A block that writes a result, or input of later blocks.

    `extents`: of its axes, those of a reduction last; ``None`` for an unknown one.
    `near`: the axis along which its reads are contiguous; -1 for none.
    `dtype`: dtype of its computation.
    `counts`: whether it writes indices beside values, as argmax does.
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


def stages_of(writing: ScheduleRecorder) -> tuple[Stage, ...]:
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
    values = zip(axes, place.realize.iter_values, strict=True)
    if not all(isinstance(at, tirx.Var) or known(axis.dom.extent) == 1 for axis, at in values):
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


def inline_cheap(writing: ScheduleRecorder) -> None:
    """Inline blocks that are cheap, or are read once.

    Raises `StepFailed` if TVM or a guard rejects it.
    """
    given = function_of(writing.sch).params
    for name in writing.blocks():
        block = writing.block(At(name))
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
            why = (
                reason("its value has a single consumer")
                if once
                else reason("computing it again costs less than a store and a load")
            )
            writing.inline(name, why)


def matrix_times_vector(writing: ScheduleRecorder, machine: Machine) -> bool:
    """Rows of a matrix times a vector, where the values of a row are adjacent.

    Adjacent columns are in the lanes of a contraction; so is a matrix whose layout can be changed
    when the model is built.
    """
    found = contraction_of(writing)
    if found is None or not _has_rows(found):
        return False
    return row_by_row(writing, machine)


def _has_rows(found: Contraction) -> bool:
    """Return whether one buffer has a row for each result, and the other serves several results.

    Of a stack, each matrix has a vector.
    """
    results = [axis for axis, extent in enumerate(found.spatial) if extent > 1]
    for matrix, vector in ((0, 1), (1, 0)):
        if (
            not found.free[matrix]
            and all(found.is_read_by(matrix, axis) for axis in results)
            and not all(found.is_read_by(vector, axis) for axis in results)
            and found.plain[matrix][-1] >= len(found.spatial)
        ):
            return True
    return False


PARTITION = "pragma_loop_partition_hint"


def row_by_row(writing: ScheduleRecorder, machine: Machine) -> bool:
    """Schedule a function with a reduction; ``None`` where it has none."""
    for name in writing.blocks():
        if not writing.loops(name):
            why = reason("TVM does not change a reduction beside a block without a loop")
            writing.do("add_unit_loop", why, block_or_loop=At(name))
    before = stages_of(writing)
    if not any(each.reduces for each in before):
        return False
    inline_cheap(writing)
    _split_groups(writing)
    stages = stages_of(writing)
    if not stages:
        return False
    rows = _rows(writing, stages)
    parts: list[str] = []
    for number, stage in enumerate(stages):
        if stage.reduces and stage.near >= stage.spatial:
            # With a condition for the remainder, TVM lets a single block begin apart.
            last = not any(each.reduces for each in stages[number + 1 :])
            if None in stage.extents[stage.spatial :] and not last:
                continue
            parts += _reduce_lanes(writing, stage, machine)
        elif stage.spatial > rows and not (stage.reduces and stage.near < 0):
            _fill_lanes(writing, stage, rows, machine)
    if rows:
        _merge(writing, rows)
        _share(writing, stages, rows, machine)
    else:
        for stage in stages:
            _share_stage(writing, stage, machine)
    for name in parts:
        _begin(writing, name)
    for name in writing.blocks():
        _leave_rest(writing, name)
    return bool(writing.primitives)


def _split_groups(writing: ScheduleRecorder) -> None:
    """Split axes of which groups have one result each, as channels in a group norm."""
    for place in blocks_of(writing):
        axes = list(place.stmt.iter_vars)
        sizes = [_group(place.stmt, axis) for axis in axes]
        if not any(sizes) or not is_spatial(place.stmt):
            continue
        names = [f"i{number}" for number in range(len(axes))]
        made = [
            f"{name} // {size}, {name} % {size}" if size else name
            for name, size in zip(names, sizes, strict=True)
        ]
        writing.do(
            "transform_block_layout",
            reason("groups have an axis of their own, as in the results of each"),
            block=At(place.name),
            index_map=f"{', '.join(names)} -> {', '.join(made)}",
        )


def _group(block: Any, axis: Any) -> int:
    """Return by what an axis is divided in an index of a read; 0 if it is in none."""
    for region in block.reads:
        for each in region.region:
            index = each.min
            if isinstance(index, tirx.FloorDiv) and index.a.same_as(axis.var):
                size, extent = known(index.b), known(axis.dom.extent)
                if size and extent and extent % size == 0:
                    return size
    return 0


def _rows(writing: ScheduleRecorder, stages: tuple[Stage, ...]) -> int:
    """Return the number of outer axes that are the same in all stages; 0 for none.

    A stage then reads the same row of other stages.
    """
    if any(each.reduces and 0 <= each.near < each.spatial for each in stages):
        return 0
    rows = min(each.spatial for each in stages)
    places = blocks_of(writing)
    read = [region.source for place in places for region in place.stmt.reads]
    written = [
        region.source
        for place in places
        for region in place.stmt.writes
        if any(region.source.same_as(each) for each in read)
    ]
    while rows:
        extents = {each.extents[:rows] for each in stages}
        if len(extents) == 1 and all(_along(place, rows, written) for place in places):
            return rows
        rows -= 1
    return 0


def _along(place: Place, rows: int, written: list[object]) -> bool:
    """Return whether a block uses intermediate results row by row."""
    axes = place.stmt.iter_vars[:rows]
    analyzer = Analyzer()
    for axis in place.stmt.iter_vars:
        analyzer.bind(axis.var, axis.dom)
    for region in (*place.stmt.reads, *place.stmt.writes):
        if not any(region.source.same_as(each) for each in written):
            continue
        if len(region.region) < rows:
            return False
        if not all(
            analyzer.can_prove_equal(axis.var, each.min)
            for axis, each in zip(axes, region.region[:rows], strict=True)
        ):
            return False
    return True


def _lanes(extent: int | None, most: int) -> int:
    """Return the number of lanes of a loop: a power of two, a divisor unless that is too small.

    TVM does not vectorize code with a condition, as a remainder has: of a short loop, lanes are
    rather left empty.
    """
    least = _LEAST if extent is None or extent < _WITH_REST else most // 2
    lanes = most
    while extent is not None and lanes >= max(1, least) and extent % lanes:
        lanes //= 2
    if lanes >= min(least, most):
        return lanes
    lanes = most
    while extent is not None and lanes > extent:
        lanes //= 2
    return lanes


_INDEPENDENT = 4
"""Registers of partial results that do not wait for one another."""

_LONG = 1 << 11
"""Number of values from which on they are worth being reduced last."""

_PLAIN_LONG = 1 << 8
"""The same for values that are not computed first: the registers wait for nothing else."""

_HALVED = 8
"""Partial results that are reduced in halves; a power of two."""

_LEAST = 4
"""Minimum number of lanes."""

_WITH_REST = 64
"""Number of values from which on those that fill the lanes are worth a loop of their own."""


def _reduce_lanes(writing: ScheduleRecorder, stage: Stage, machine: Machine) -> tuple[str, ...]:
    """Reduce in as many parts as a register has lanes, and then these.

    Returns the name of the block of the parts, if they need separate initialisation.
    """
    near, extent = stage.near, stage.extents[stage.near]
    most = machine.lanes(stage.dtype)
    if extent is not None and extent % most and stage.near == len(stage.extents) - 1:
        reduced = len(stage.extents) - stage.spatial
        axes = min(reduced, axes_in_row(writing.block(At(stage.name))))
        if axes > 1:
            loops = writing.loops(stage.name)[-axes:]
            writing.do("fuse", reason("one long row is reduced"), loops=loops)
            near = len(writing.loops(stage.name)) - 1
            row = stage.extents[-axes:]
            extent = None if None in row else math.prod(each or 1 for each in row)
    lanes = _lanes(extent, most)
    sizes = stage.extents[stage.spatial :]
    if not stage.counts and None not in sizes:
        # A single register would wait for each of its sums.
        count = math.prod(each or 1 for each in sizes)
        if count >= _LONG:
            lanes = max(lanes, _lanes(extent, _INDEPENDENT * most))
        if count >= _PLAIN_LONG and not _computes(writing.block(At(stage.name)).body):
            wide = lanes * _columns(extent, lanes, most)
            lanes = lanes if wide % _HALVED else max(lanes, wide)
    if extent is not None and extent % lanes and extent >= 4 * _HALVED:
        lanes = max(lanes, 2 * _HALVED)
    while stage.counts and extent is not None and extent % lanes:
        # TVM does not build places, which are integers, with a condition.
        lanes //= 2
    if lanes == extent and _multiplies_bytes(writing.block(At(stage.name)).body):
        # LLVM sums such a row by vpdpbusd, and loses three of its four sums.
        lanes //= 2
    if lanes < 2 or (stage.counts and extent is None):
        return ()
    folds = not stage.counts and lanes > _HALVED and lanes % _HALVED == 0
    halves = _HALVED.bit_length() - 1 if folds else 0
    why = reason("{lanes} partial results are one vector register", lanes=lanes)
    factors = (None, lanes >> halves, *(2,) * halves)
    writing.do("split", why, loop=At(stage.name, loop=near), factors=factors)
    folded, parts = [], stage.name
    for depth in reversed(range(near + 1, near + 2 + halves)):
        parts = _factor(writing, At(parts, loop=depth), stage.spatial, forced=extent is None)
        folded.append(parts)
    folded.pop()
    for count, name in enumerate(folded, 1):
        lane = _join_lanes(writing, name, count)
        writing.vectorize(lane, reason("the lanes are computed together"))
    _join_lanes(writing, parts, halves + 1)
    if stage.counts:
        why = reason("TVM does not vectorize a search: at least the parts are independent")
        writing.unroll(writing.loops(parts)[-1], why)
    else:
        _vectorize(writing, parts, extent, lanes, stage.spatial)
    # Without parts of parts, TVM lets only one block begin apart whose remaining values make a
    # condition: the first values begin it. Where their number is not known, there may be fewer than
    # lanes, and lanes without any need an initial value as well.
    begun = () if extent is not None and extent % lanes and not folds else (parts,)
    return (*begun, *reversed(folded))


def _computes(body: Any) -> bool:
    """Return whether a block computes what it reduces, or converts it to another float."""
    casts = collected(body, tirx.Cast)
    return bool(collected(body, tirx.Let)) or any("float" in str(each.ty.dtype) for each in casts)


def _multiplies_bytes(body: Any) -> bool:
    """Return whether a block multiplies integers of eight bits."""
    casts = (each for product in collected(body, tirx.Mul) for each in (product.a, product.b))
    dtypes = [str(each.value.ty.dtype) for each in casts if isinstance(each, tirx.Cast)]
    return any(each in ("int8", "uint8") for each in dtypes)


def _factor(writing: ScheduleRecorder, loop: At, axis: int, *, forced: bool) -> str:
    """Reduce each value of a loop by itself; return the name of the block that does.

    `axis`: the place of these results among the indices of the new buffer. `forced`: with an
    unknown number of values, there may be fewer than lanes.
    """
    made = writing.do(
        "rfactor",
        reason("each lane has its own result, and these are reduced last"),
        forced=forced,
        loop=loop,
        factor_axis=axis,
    )[0]
    return str(writing.block(made).name_hint)


def _join_lanes(writing: ScheduleRecorder, block: str, axes: int) -> At:
    """Make one innermost loop of those over the lanes, or one for each register; return it.

    `axes`: how many there are; the others of the block are of results.
    """
    kinds = [int(each.iter_type) for each in writing.block(At(block)).iter_vars]
    lanes = [axis for axis, kind in enumerate(kinds) if kind == SPATIAL][:axes]
    depths = [writing.bound(block, axis)[-1] for axis in lanes]
    loops = writing.loops(block)
    if depths != [*range(len(loops))][-axes:]:
        others = (depth for depth in range(min(depths), len(loops)) if depth not in depths)
        order = [loops[depth] for depth in (*others, *depths)]
        writing.reorder(order, reason("the lanes are innermost"))
    first, *halves = writing.loops(block)[-axes:]
    if halves and (writing.extent(first) or 0).bit_count() > 1:
        # LLVM has no masks for other numbers of lanes.
        writing.unroll(first, reason("registers cannot be indexed"))
        first, *halves = halves
    if halves:
        writing.do("fuse", reason("the lanes are one row"), loops=(first, *halves))
    return writing.loops(block)[-1]


def _begin(writing: ScheduleRecorder, parts: str) -> None:
    """Initialise the parts before the loops of the reduction."""
    block = writing.block(At(parts))
    kinds = [int(axis.iter_type) for axis in block.iter_vars]
    reduced = [axis for axis, kind in enumerate(kinds) if kind == REDUCTION]
    first = min(depth for axis in reduced for depth in writing.bound(parts, axis))
    writing.begin(parts, first, reason("the parts are initialised before the first value"))


_DIVIDED = (tirx.FloorDiv, tirx.FloorMod)


def _leave_rest(writing: ScheduleRecorder, block: str) -> None:
    """Compute the values that do not fill the lanes in a loop of their own.

    TVM does not vectorize code with a condition, as the remainder has; the others then have none.
    """
    place = next(each for each in blocks_of(writing) if each.name == block)
    rest = place.realize.predicate
    if known(rest) is not None or not isinstance(rest, tirx.LT):
        return
    length = known(rest.b)
    loops = [loop for loop in writing.loops(block) if _step_of(writing, rest.a, loop) > 1]
    if length is None or not loops:
        return
    loop = loops[-1]
    full, left = divmod(length, _step_of(writing, rest.a, loop))
    own = writing.block(loop).loop_var
    fused = [
        axis.var
        for axis, value in zip(place.stmt.iter_vars, place.realize.iter_values, strict=True)
        if any(mentions(each, own) for each in collected([value], _DIVIDED))
    ]
    divided = collected(place.stmt.body, _DIVIDED)
    if left == 1 and any(mentions(each, axis) for each in divided for axis in fused):
        # TVM fails to vectorize a loop of one value whose place was fused of two, and is divided.
        return
    stmt = writing.block(loop)
    is_alone = len(collected(stmt.body, SBlock)) == 1
    is_begun = place.stmt.init is None or not reduces(stmt)
    if is_alone and is_begun and 1 < full < (writing.extent(loop) or 0):
        writing.do(
            "loop_partition",
            reason("the last values do not fill a register and have a loop of their own"),
            loop=loop,
            factors=(full, None),
        )


def _step_of(writing: ScheduleRecorder, index: Any, loop: At) -> int:
    """Return how far an index moves with each iteration of a loop; 0 if that is not known."""
    steps = detect_linear_equation(index, [writing.block(loop).loop_var])
    return (known(steps[0]) or 0) if steps else 0


def _vectorize(
    writing: ScheduleRecorder, block: str, extent: int | None, lanes: int, first: int
) -> None:
    loops = writing.loops(block)
    # TVM loses annotations of a loop when it narrows its variable, as it does known ones.
    if extent is None and len(loops) - 2 >= first:
        writing.do(
            "annotate",
            reason("the last values do not fill a register and have a loop of their own"),
            block_or_loop=loops[-2],
            ann_key=PARTITION,
            ann_val=1,
        )
    writing.vectorize(loops[-1], reason("the lanes are computed together"))


def _fill_lanes(writing: ScheduleRecorder, stage: Stage, rows: int, machine: Machine) -> None:
    """Compute adjacent elements of one stage, in one row, in the lanes of a register."""
    near = stage.near if rows <= stage.near < stage.spatial else stage.spatial - 1
    if near < 0 or stage.counts:
        # TVM does not vectorize a search.
        return
    extent, most = stage.extents[near], machine.lanes(stage.dtype)
    if near == len(stage.extents) - 1 and extent and extent % most:
        whole = _fuse_row(writing, stage, rows, most)
        if whole is not None:
            extent, near = whole, len(writing.loops(stage.name)) - 1
    lanes = _lanes(extent, most)
    if lanes < 2:
        return
    loop = At(stage.name, loop=near)
    count = _columns(extent, lanes, most) if stage.reduces else 1
    if count > 1:
        why = reason(
            "{columns} vector registers of results: whole cache lines are read", columns=count
        )
        _other, columns, lane = writing.do("split", why, loop=loop, factors=(None, count, lanes))
        loops = writing.loops(stage.name)
        order: tuple[Reference, ...] = (*loops[near + 3 :], columns, lane)
        writing.reorder(order, reason("the lanes are innermost"))
        writing.unroll(writing.loops(stage.name)[-2], reason("registers cannot be indexed"))
        _vectorize(writing, stage.name, extent, lanes, near)
        return
    why = reason("{lanes} values are one vector register", lanes=lanes)
    _other, lane = writing.split(loop, lanes, why)
    loops = writing.loops(stage.name)
    if near + 2 < len(loops):
        order = (*loops[near + 2 :], lane)
        writing.reorder(order, reason("the lanes are innermost"))
    _vectorize(writing, stage.name, extent, lanes, near)


def _fuse_row(writing: ScheduleRecorder, stage: Stage, rows: int, most: int) -> int | None:
    """Make one loop of the last ones, if that is a row; return its extent, ``None`` if not.

    `most`: lanes of a register.
    """
    accesses = accesses_of(writing.block(At(stage.name)))
    axes = 0 if accesses is None else min(accesses.row(stage.extents), stage.spatial - rows)
    if axes > 1:
        row = stage.extents[len(stage.extents) - axes :]
        axes = whole_rows(row, axes, _lanes(math.prod(each or 1 for each in row), most))
    if axes < 2:
        return None
    loops = writing.loops(stage.name)
    why = reason("the loops are contiguous in all reads and writes: one long row")
    writing.do("fuse", why, loops=loops[len(loops) - axes :])
    return writing.extent(writing.loops(stage.name)[-1])


_COLUMNS = 5
"""Most registers of results that are reduced at once."""


def _columns(extent: int | None, lanes: int, most: int) -> int:
    """Return the largest number of vectors of results that divides a row and fits into registers.

    `most`: lanes of a whole register.
    """
    counts = range(1, _COLUMNS * most // lanes + 1)
    return max(each for each in counts if each == 1 or (extent or 1) % (each * lanes) == 0)


def _merge(writing: ScheduleRecorder, rows: int) -> None:
    names = writing.blocks()
    outer: list[At] = []
    # Blocks that share the loop already are one.
    for name in names:
        loop = At(name, loop=rows - 1)
        stmt = writing.block(loop)
        if not any(stmt.same_as(writing.block(each)) for each in outer):
            outer.append(loop)
    if len(outer) > 1:
        writing.do(
            "merge", reason("a row is finished while it is in the cache"), loops=tuple(outer)
        )


def _share(
    writing: ScheduleRecorder, stages: tuple[Stage, ...], rows: int, machine: Machine
) -> None:
    """Distribute the rows among the threads."""
    sizes = stages[0].extents[:rows]
    values = sum(writing.work(each.extents) for each in stages)
    name = writing.blocks()[0]
    _share_loops(writing, writing.loops(name)[:rows], sizes, values, machine)


def _share_stage(writing: ScheduleRecorder, stage: Stage, machine: Machine) -> None:
    outer = stage.near if 0 <= stage.near < stage.spatial else stage.spatial
    blocks = writing.blocks()
    # Where it was decomposed, the block of its parts is named after it.
    parts = (each for each in blocks if each.startswith(stage.name))
    name = stage.name if stage.name in blocks else next(parts)
    loops = writing.loops(name)[: outer + (stage.near == outer)]
    # A loop whose last part was split off cannot be fused.
    loops = tuple(each for each in loops if not writing.block(each).annotations)
    sizes = stage.extents[: len(loops)]
    _share_loops(writing, loops, sizes, writing.work(stage.extents), machine)


def _share_loops(
    writing: ScheduleRecorder,
    loops: tuple[At, ...],
    sizes: tuple[int | None, ...],
    values: int,
    machine: Machine,
) -> None:
    whole = math.prod(machine.threads if each is None else each for each in sizes)
    if machine.threads < 2 or whole < 2 or values < WORTH_THREADS or not loops:
        return
    shared: Reference = loops[0]
    if len(loops) > 1:
        shared = writing.do("fuse", reason("one loop of rows that threads can share"), loops=loops)[
            0
        ]
    writing.do("parallel", reason("each thread has rows of its own"), loop=shared)
