"""Primitives of loops: splitting, fusing, ordering, execution, sampled factors, and annotations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from tvm import ir, sym, tirx

from lowerscope.core.ir.tensorir import collected, known, mentions, operator_name
from lowerscope.core.model.texts import _
from lowerscope.core.schedule.primitive import (
    BLOCK,
    LOOP,
    LOOPS,
    MAX_UNROLLED,
    UNIT_ITERS,
    Arguments,
    Call,
    FunctionSelection,
    PrimitiveSpec,
    field,
    one_block,
    one_loop,
)
from lowerscope.core.schedule.references import Place, around, below
from lowerscope.core.schedule.step_errors import StepFailed

_FACTORS = field(
    "factors",
    _("Factors"),
    "factors",
    _(
        "From the outermost to the innermost loop. One can be left open: it follows from the "
        "others."
    ),
    low=1,
)

_INNER: tuple[int, ...] = (32, 16, 8, 64, 4, 2)
"""Extents of an inner loop, the most usual first: some vectors of the processor."""

_MAX_LANES = 256
"""Maximum number of lanes of a vectorized loop: LLVM takes minutes for much longer vectors."""


# --- splitting ----------------------------------------------------------------------------------


def _split(site: FunctionSelection) -> Iterator[Arguments]:
    for each in one_loop(site):
        assert site.loop is not None
        yield {**each, "factors": (None, inner_extent(site.extent(site.loop)))}


def inner_extent(size: int | None) -> int:
    """Return a sensible extent of the inner of two loops that `size` is split into.

    A divisor of `size`, smaller than it, if there is one; otherwise one with a remainder.
    """
    if size is None:
        return 16
    tried: tuple[int, ...] = (*_INNER, *range(3, 64, 2))
    for inner in tried:
        if size % inner == 0 and inner < size:
            return inner
    return 16 if size > 16 else size or 1


def _divides(call: Call) -> None:
    """Reject a split without predicates that does not divide: it writes beyond the buffer."""
    if not call.values["disable_predication"]:
        return
    extent = known(call.stmt("loop").extent)
    factors = [known(factor) for factor in call.values["factors"] if factor is not None]
    numbers = [factor for factor in factors if factor is not None and factor >= 1]
    if extent is None or len(numbers) < len(factors):
        raise StepFailed(_("without the condition, factors and extent must be numbers"))
    product = math.prod(numbers)
    is_open = len(call.values["factors"]) > len(factors)
    if extent % product if is_open else extent != product:
        raise StepFailed(
            _(
                "without the condition, the factors must divide {extent}: the loop would run "
                "beyond the buffer's end"
            ),
            extent=extent,
        )


def _partition(site: FunctionSelection) -> Iterator[Arguments]:
    for each in one_loop(site):
        assert site.loop is not None
        yield {**each, "factors": (max(1, (site.extent(site.loop) or 2) // 2), None)}


def _partitions(call: Call) -> None:
    """Guard the partition of a loop of a reduction: each part starts from the initial value.

    Unless that is set before the loop.
    """
    loop = call.stmt("loop")
    if sum(place.is_block for place in below(loop)) > 1:
        # TVM follows the loops inwards without end.
        raise StepFailed(_("a loop with several blocks in it cannot be partitioned"))
    begins = any(each.is_block and each.stmt.init is not None for each in below(loop))
    if not call.forced and begins and reduces(loop):
        raise StepFailed(
            _(
                "for a loop of a reduction, each part would restart from the initial value: "
                "the result would be wrong"
            ),
            unsafe=True,
        )


def reduces(loop: tirx.For) -> bool:
    """Return whether an axis of a reduction depends on `loop`."""
    return any(
        axis.iter_type != tirx.IterVar.DataPar and mentions(value, loop.loop_var)
        for place in below(loop)
        if place.is_block
        for axis, value in zip(place.stmt.iter_vars, place.realize.iter_values, strict=True)
    )


# --- several loops ------------------------------------------------------------------------------


def _fuse(site: FunctionSelection) -> Iterator[Arguments]:
    loops = sorted(site.loops)
    for each in [loops] if len(loops) > 1 else _nested(site):
        yield {"loops": site.names(each)}


def _reorder(site: FunctionSelection) -> Iterator[Arguments]:
    loops = site.loops
    # Those that were selected in the order of the script are to change it.
    order = loops if loops != sorted(loops) else loops[::-1]
    for each in [order] if len(loops) > 1 else (pair[::-1] for pair in _nested(site)):
        yield {"loops": site.names(each)}


def _nested(site: FunctionSelection) -> Iterator[list[int]]:
    """Yield the selected loop with the one in it, and with the one around it; or it alone."""
    loop = site.loop
    if loop is None:
        return
    inner, outer = site.inner_loop(loop), site.outer_loop(loop)
    if inner is not None:
        yield [loop, inner]
    if outer is not None:
        yield [outer, loop]
    if inner is None and outer is None:
        yield [loop]


def _several(call: Call) -> None:
    """Reject a single loop: TVM accepts it, and does nothing."""
    if len(call.values["loops"]) < 2:
        raise StepFailed(_("there is no other loop around it or in it without siblings"))


def _merge(site: FunctionSelection) -> Iterator[Arguments]:
    loops, loop = sorted(site.loops), site.loop
    if loop is None:
        if loops:
            yield {"loops": site.names(loops)}
        return
    others = [
        index
        for index, other in enumerate(site.found)
        if not other.is_block
        and index != loop
        and other.depth == site.found[loop].depth
        and site.extent(index) == site.extent(loop)
    ]
    for other in sorted(others, key=lambda index: abs(index - loop))[:2]:
        yield {"loops": site.names(sorted((loop, other)))}
    if not others:
        yield {"loops": site.names([loop])}


def _merges(call: Call) -> None:
    """Reject one loop with itself, and loops inside of one another: TVM crashes on them."""
    stmts = [call.sch.get(loop) for loop in call.values["loops"]]
    if len(stmts) < 2:
        raise StepFailed(_("there is no other loop of the same extent beside it"))
    found = call.places
    chosen = [_index(found, stmt) for stmt in stmts]
    if len(set(chosen)) < len(chosen):
        raise StepFailed(_("a loop cannot be merged with itself"))
    for index in chosen:
        if not set(chosen).isdisjoint(around(found, found[index])):
            raise StepFailed(_("loops inside of one another cannot be merged; fuse them"))
    if not call.forced and any(_depends(found, *pair) for pair in itertools.pairwise(chosen)):
        raise StepFailed(
            _(
                "an iteration of one loop may need results of later iterations of the other: "
                "the result can be wrong; compute_at moves a block under a loop"
            ),
            unsafe=True,
        )


def _index(found: Sequence[Place], stmt: Any) -> int:
    return next(index for index, place in enumerate(found) if place.stmt.same_as(stmt))


def _depends(found: Sequence[Place], first: int, second: int) -> bool:
    """Return whether a merged loop could read values too early, or write them too early.

    It could not if each buffer that both touch is indexed, in one of its dimensions, by each of the
    merged loops alone and in the same way, and nothing between them touches what they do.
    """
    pairs: list[tuple[Any, Any]] = []
    while min(first, second) >= 0 and first != second:
        if found[first].is_block or found[second].is_block:
            break
        pairs.append((found[first].stmt, found[second].stmt))
        first, second = found[first].parent, found[second].parent
    one, other = pairs[0]
    mine, theirs = _accesses_of(below(one)), _accesses_of(below(other))
    if any(
        left[0].same_as(right[0]) and (left[2] or right[2])
        for right in _accesses_between(found, one, other)
        for left in (*mine, *theirs)
    ):
        return True
    return any(
        not all(_alike(left, left_loop, right, right_loop) for left_loop, right_loop in pairs)
        for left in mine
        for right in theirs
        if left[0].same_as(right[0]) and (left[2] or right[2])
    )


_Access = tuple[Any, list[Any], bool]
"""A buffer, the loops that its dimensions are indexed by where it is a loop alone, and whether it
is written."""


def _accesses_between(found: Sequence[Place], one: Any, other: Any) -> list[_Access]:
    """Return the reads and writes of the blocks between two loops in the script."""
    begin, end = sorted((_index(found, one), _index(found, other)))
    return _accesses_of(found[begin + len(below(found[begin].stmt)) : end])


def _accesses_of(found: Sequence[Place]) -> list[_Access]:
    made: list[_Access] = []
    for place in found:
        if not place.is_block:
            continue
        bound = dict(
            zip([axis.var for axis in place.stmt.iter_vars], place.realize.iter_values, strict=True)
        )
        analyzer = sym.Analyzer()
        for axis in place.stmt.iter_vars:
            analyzer.bind(axis.var, axis.dom)
        for regions, written in ((place.stmt.reads, False), (place.stmt.writes, True)):
            for region in regions:
                places = [each.min for each in region.region]
                indices = [
                    bound.get(each if each in bound else analyzer.simplify(each)) for each in places
                ]
                made.append((region.source, indices, written))
    return made


def _alike(left: _Access, left_loop: Any, right: _Access, right_loop: Any) -> bool:
    return any(
        mine is not None
        and theirs is not None
        and left_loop.loop_var.same_as(mine)
        and right_loop.loop_var.same_as(theirs)
        for mine, theirs in zip(left[1], right[1], strict=True)
    )


# --- execution ----------------------------------------------------------------------------------


def _vectorizes(call: Call) -> None:
    """Reject loops that LLVM cannot vectorize, or takes minutes for."""
    loop = call.stmt("loop")
    extent = known(loop.extent)
    if extent is None:
        raise StepFailed(_("a vectorized loop needs a constant extent; split it first"))
    if extent > _MAX_LANES:
        raise StepFailed(
            _(
                "a vector of {extent} elements takes minutes to build; split the loop first, "
                "so that the inner one has at most {max_lanes}"
            ),
            extent=extent,
            max_lanes=_MAX_LANES,
        )
    alone = _one_by_one(loop.body)
    if alone:
        raise StepFailed(
            _(
                "TVM computes {alone} element by element, and would lose the values that the "
                "block names"
            ),
            alone=alone,
        )


def _one_by_one(body: Any) -> str:
    """Return a function that TVM cannot vectorize in a body with bindings; empty for none."""
    calls = collected(body, ir.Call) if collected(body, tirx.Bind) else []
    names = (operator_name(each) for each in calls if not each.op.get_attr("TVectorizable"))
    return next((name for name in names if name not in _MADE_VECTORS_OF), "")


_MADE_VECTORS_OF = ("if_then_else", "likely", "reinterpret", "Cast")
"""Operators that TVM vectorizes without an attribute that says so."""


def _unrolls(call: Call) -> None:
    """Reject unrolling that makes too much code."""
    extent = known(call.stmt("loop").extent)
    if extent is None:
        raise StepFailed(_("an unrolled loop needs a constant extent; split it first"))
    if extent > MAX_UNROLLED:
        raise StepFailed(
            _(
                "{extent} copies of the body take minutes to build; split the loop first, so "
                "that the inner one has at most {max_unrolled}"
            ),
            extent=extent,
            max_unrolled=MAX_UNROLLED,
        )


def _binds(call: Call) -> None:
    """Reject GPU threads on a processor: TVM accepts them, and the build fails."""
    raise StepFailed(
        _(
            "the target {name} is a processor, and has no threads of a GPU; parallel runs a "
            "loop on its cores"
        ),
        name=call.target.kind.name,
    )


def _unit(site: FunctionSelection) -> Iterator[Arguments]:
    if site.only is not None:
        yield {"block_or_loop": site.named[site.only]}


_RUNS = _("Kind of a loop")

LOOP_PRIMITIVES = (
    PrimitiveSpec(
        name="split",
        group=_("Loops"),
        title=_("split {loop} into {factors}"),
        offer=_("split into nested loops"),
        parameters=(
            LOOP,
            _FACTORS,
            UNIT_ITERS,
            field(
                "disable_predication",
                _("No condition for the remainder"),
                "flag",
                _("Leaves out the condition where the factors do not divide the extent."),
                default=False,
            ),
        ),
        candidates=_split,
        guard=_divides,
        many=True,
    ),
    PrimitiveSpec(
        name="fuse",
        group=_("Loops"),
        title=_("fuse {loops}"),
        offer=_("fuse nested loops into one"),
        parameters=(LOOPS, UNIT_ITERS),
        candidates=_fuse,
        guard=_several,
        starred="loops",
    ),
    PrimitiveSpec(
        name="reorder",
        group=_("Loops"),
        title=_("order {loops}"),
        offer=_("change the order of loops"),
        parameters=(LOOPS,),
        candidates=_reorder,
        guard=_several,
        starred="loops",
    ),
    PrimitiveSpec(
        name="loop_partition",
        group=_("Loops"),
        title=_("partition {loop} into {factors}"),
        offer=_("cut into consecutive loops"),
        parameters=(LOOP, _FACTORS, UNIT_ITERS),
        candidates=_partition,
        guard=_partitions,
        many=True,
    ),
    PrimitiveSpec(
        name="merge",
        group=_("Loops"),
        title=_("merge {loops}"),
        offer=_("merge adjacent loops"),
        parameters=(LOOPS,),
        candidates=_merge,
        guard=_merges,
        starred="loops",
    ),
    PrimitiveSpec(
        name="add_unit_loop",
        group=_("Loops"),
        title=_("add a loop of extent 1 around {block_or_loop}"),
        offer=_("add a loop of extent 1 around it"),
        parameters=(field("block_or_loop", _("Around"), "loop or block", _("A loop or a block.")),),
        candidates=_unit,
    ),
    PrimitiveSpec(
        name="parallel",
        group=_RUNS,
        title=_("run {loop} in parallel"),
        offer=_("run in parallel on the cores"),
        parameters=(LOOP,),
        candidates=one_loop,
    ),
    PrimitiveSpec(
        name="vectorize",
        group=_RUNS,
        title=_("vectorize {loop}"),
        offer=_("compute in vectors"),
        parameters=(LOOP,),
        candidates=one_loop,
        guard=_vectorizes,
    ),
    PrimitiveSpec(
        name="unroll",
        group=_RUNS,
        title=_("unroll {loop}"),
        offer=_("write out each iteration"),
        parameters=(LOOP,),
        candidates=one_loop,
        guard=_unrolls,
    ),
    PrimitiveSpec(
        name="bind",
        group=_RUNS,
        title=_("bind {loop} to {thread_axis}"),
        offer=_("bind to threads of a GPU"),
        parameters=(
            LOOP,
            field(
                "thread_axis",
                _("Thread axis"),
                "choice",
                "",
                default="threadIdx.x",
                choices=tuple(
                    f"{kind}Idx.{axis}" for kind in ("block", "thread") for axis in "xyz"
                ),
            ),
        ),
        candidates=one_loop,
        guard=_binds,
    ),
)


def _perfect_tile(call: Call) -> None:
    """Reject decisions whose product is not the extent."""
    _check_factors(call, _extent(call))
    decision, most = call.values["decision"], call.values["max_innermost_factor"]
    if decision is not None and decision[-1] > most:
        raise StepFailed(_("the innermost factor is at most {most}"), most=most)


def _partitioned_tile(call: Call) -> None:
    """Reject parts that are empty or do not divide the extent."""
    extent = _extent(call)
    if call.values["partition_pos"] > call.values["n"]:
        raise StepFailed(_("the second part must begin among the factors"))
    if extent % call.values["innerpart_factor"]:
        raise StepFailed(_("the product of the second part must divide {extent}"), extent=extent)
    _check_factors(call, extent)


def _extent(call: Call) -> int:
    extent = known(call.stmt("loop").extent)
    if extent is None:
        raise StepFailed(_("factors can be sampled only for a constant extent"))
    return extent


def _check_factors(call: Call, extent: int) -> None:
    decision = call.values["decision"]
    if decision is None:
        return
    if len(decision) != call.values["n"] or min(decision, default=0) < 1:
        raise StepFailed(
            _("the decision needs {value} factors of at least 1"), value=call.values["n"]
        )
    if math.prod(decision) != extent:
        raise StepFailed(
            _("the product of the decision is {prod}, not {extent}"),
            prod=math.prod(decision),
            extent=extent,
        )


def _categorical(call: Call) -> None:
    """Reject invalid probabilities."""
    candidates, chances = call.values["candidates"], call.values["probs"]
    if not candidates or len(candidates) != len(chances):
        raise StepFailed(_("each number needs one probability"))
    if min(chances) < 0 or abs(sum(chances) - 1) > 1e-3:
        raise StepFailed(_("probabilities are from 0 to 1 and sum to 1"))
    decision = call.values["decision"]
    if decision is not None and not 0 <= decision < len(candidates):
        raise StepFailed(_("the decision is from 0 to {count}"), count=len(candidates) - 1)


def _compute_location(call: Call) -> None:
    """Reject decisions that are not a place."""
    decision = call.values["decision"]
    if decision is None:
        return
    loops = len(call.sch.get_loops(call.values["block"]))
    if not -2 <= decision < 64:
        raise StepFailed(
            _("the decision is -2, -1, or the place of one of {loops} loops"), loops=loops
        )


def _nothing(site: FunctionSelection) -> Iterator[Arguments]:
    if not site.chosen:
        yield {}


_COUNT = field(
    "n", _("Tiles"), "integer", _("Number of factors to draw, for split."), default=2, low=1, high=8
)
_DECISION = field(
    "decision", _("Decision"), "integers", _("Values to take instead of drawing."), optional=True
)
_ONE_DECISION = field(
    "decision",
    _("Decision"),
    "integer",
    _("Place among the candidates to take instead of drawing."),
    optional=True,
)
_RANDOM = _("Drawn at random")

SAMPLING_PRIMITIVES = (
    PrimitiveSpec(
        name="sample_perfect_tile",
        group=_RANDOM,
        title=_("draw {n} factors of {loop}"),
        offer=_("draw factors that divide its extent"),
        parameters=(
            LOOP,
            _COUNT,
            field(
                "max_innermost_factor",
                _("Innermost at most"),
                "integer",
                _("The largest factor of the innermost loop."),
                default=16,
                low=1,
                high=1024,
            ),
            _DECISION,
        ),
        candidates=one_loop,
        guard=_perfect_tile,
        many=True,
        draws=True,
    ),
    PrimitiveSpec(
        name="sample_partitioned_tile",
        group=_RANDOM,
        title=_("draw {n} factors of {loop} in two parts"),
        offer=_("draw factors in two parts"),
        parameters=(
            LOOP,
            _COUNT,
            field(
                "partition_pos",
                _("Second part from"),
                "integer",
                _("The first of the factors that belong to the second part."),
                default=1,
                low=0,
                high=8,
            ),
            field(
                "innerpart_factor",
                _("Second part's product"),
                "integer",
                _("The product of the second part is a multiple of it."),
                default=1,
                low=1,
                high=4096,
            ),
            _DECISION,
        ),
        candidates=one_loop,
        guard=_partitioned_tile,
        many=True,
        draws=True,
    ),
    PrimitiveSpec(
        name="sample_categorical",
        group=_RANDOM,
        title=_("draw one of {candidates}"),
        offer=_("sample one of several numbers"),
        parameters=(
            field(
                "candidates",
                _("Metrics"),
                "integers",
                _("One of them is drawn."),
                default=(4, 8, 16),
            ),
            field(
                "probs",
                _("Probabilities"),
                "numbers",
                _("One for each number; their sum is 1."),
                default=(0.25, 0.5, 0.25),
            ),
            _ONE_DECISION,
        ),
        candidates=_nothing,
        guard=_categorical,
        draws=True,
    ),
    PrimitiveSpec(
        name="sample_compute_location",
        group=_RANDOM,
        title=_("draw a loop to compute {block} under"),
        offer=_("draw a loop to compute it under"),
        parameters=(BLOCK, _ONE_DECISION),
        candidates=one_block,
        guard=_compute_location,
        draws=True,
    ),
)


_AUTO_UNROLL = "pragma_auto_unroll_max_step"
LAYOUT_REWRITE = "meta_schedule.layout_rewrite_preproc"
"""Annotation of a block that ``SplitLayoutRewritePreproc`` makes a function of its own."""

_NUMBERS: dict[str, int] = {
    # The build of many more steps takes minutes, and never ends at 2**30.
    _AUTO_UNROLL: 1024,
    "pragma_auto_unroll_max_depth": 64,
    "pragma_unroll_explicit": 1,
    "pragma_loop_partition_hint": 1,
}
"""The pragmas of the unroller that take numbers, and the largest."""

_OF_OTHERS = (
    "software_pipeline_",
    "double_buffer_",
    "async_",
    "buffer_dim_align",
    "explicit_",
    "layout_free_",
    "thread_extent_",
    "tir.",
    "tirx.",
    "s_tir.",
    "auto_copy",
    "irregular_loop_mark",
    "warp_execution",
)
"""Annotations that passes of other targets read, or other primitives write."""


def _annotates(call: Call) -> None:
    """Reject pragmas that the build does not know, or takes minutes for."""
    key, value = call.values["ann_key"], call.values["ann_val"]
    if key in call.stmt("block_or_loop").annotations:
        raise StepFailed(_("it has an annotation {key} already"), key=key)
    if not key or key.startswith(_OF_OTHERS):
        raise StepFailed(
            _(
                "{key} is read by passes that this target does not have, or set by other "
                "primitives",
                key=key,
            )
            if key
            else _("an annotation needs a name")
        )
    if not key.startswith("pragma_"):
        return
    if key not in _NUMBERS:
        raise StepFailed(
            _("there is no pragma {key}; the build knows {numbers}"),
            key=key,
            numbers=_(", ").join(_NUMBERS),
        )
    number = known(value)
    if number is None or not 0 <= number <= _NUMBERS[key]:
        raise StepFailed(_("{key} is a number from 0 to {numbers}"), key=key, numbers=_NUMBERS[key])


def _unannotates(call: Call) -> None:
    """Reject the removal of an annotation that does not exist."""
    keys = [str(key) for key in call.stmt("block_or_loop").annotations]
    if call.values["ann_key"] not in keys:
        raise StepFailed(
            _(
                "it has no annotation {value}; it has {keys}",
                value=call.values["ann_key"],
                keys=_(", ").join(keys),
            )
            if keys
            else _("it has no annotations")
        )


def _annotate(site: FunctionSelection) -> Iterator[Arguments]:
    if site.only is not None:
        on: Arguments = {"block_or_loop": site.named[site.only]}
        packs: Arguments = {"ann_key": LAYOUT_REWRITE, "ann_val": True}
        yield on | packs if site.found[site.only].is_block else on


def _unannotate(site: FunctionSelection) -> Iterator[Arguments]:
    if site.only is not None:
        keys = [str(key) for key in site.stmt(site.only).annotations]
        for key in keys or [_AUTO_UNROLL]:
            yield {"block_or_loop": site.named[site.only], "ann_key": key}


_ON = field("block_or_loop", _("On"), "loop or block", _("A loop or a block."))
_KEY = field(
    "ann_key",
    _("Name"),
    "text",
    _("pragma_auto_unroll_max_step unrolls loops below that many steps."),
    default=_AUTO_UNROLL,
)
_VALUE = field("ann_val", _("Value"), "value", _("A number, a string, or several."), default=16)

ANNOTATION_PRIMITIVES = (
    PrimitiveSpec(
        name="annotate",
        group=_("Annotations"),
        title=_("annotate {block_or_loop} with {ann_key} = {ann_val}"),
        offer=_("annotate"),
        parameters=(_ON, _KEY, _VALUE),
        candidates=_annotate,
        guard=_annotates,
    ),
    PrimitiveSpec(
        name="unannotate",
        group=_("Annotations"),
        title=_("remove {ann_key} from {block_or_loop}"),
        offer=_("remove an annotation"),
        parameters=(_ON, _KEY),
        choices={"ann_key": lambda _unused, stmt: tuple(map(str, stmt.annotations))},
        candidates=_unannotate,
        guard=_unannotates,
    ),
)
