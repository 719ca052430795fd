"""Primitives of blocks: their place of computation, contents, instructions, and reductions."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import types
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache, partial
from math import prod
from pathlib import Path
from typing import Any

import tvm
from tvm import s_tir, sym, tirx
from tvm.ir.expr import TensorLoad
from tvm.tirx.analysis import undefined_vars

from lowerscope.core.ir.tensorir import collected, known, mentions
from lowerscope.core.lowering.legal_forms import make_known
from lowerscope.core.model.texts import _, _n
from lowerscope.core.schedule.dot_instructions import BFLOAT16_DOT, INTEGER_DOT, register
from lowerscope.core.schedule.loop_primitives import reduces
from lowerscope.core.schedule.memory_primitives import WRITE, buffer_of_block
from lowerscope.core.schedule.primitive import (
    BLOCK,
    LOOP,
    UNIT_ITERS,
    Arguments,
    Call,
    FunctionSelection,
    PrimitiveSpec,
    at_loops,
    block_at_loop,
    field,
    one_block,
    one_loop,
)
from lowerscope.core.schedule.references import Place, below, loops_around
from lowerscope.core.schedule.step_errors import REFUSED, StepFailed, step_error

# --- inlining -----------------------------------------------------------------------------------


def _inlines(call: Call) -> None:
    """Reject an inlining that brings a comparison of floats into the ``not`` of a reader.

    TVM makes ``b < a`` of ``not a <= b``, which is another value where one of them is NaN.
    """
    if negated_in(call.places, call.block):
        raise StepFailed(_NEGATED.format(block=call.block.name_hint))


def _inlines_back(call: Call) -> None:
    """Reject the same for a block that is inlined into its producer."""
    for place in call.places:
        if place.is_block and _negates(place.stmt, call.block):
            raise StepFailed(_NEGATED.format(block=place.name))


_NEGATED = _(
    "{block} compares floats, and its consumer negates that: TVM would invert the "
    "comparison, which is wrong for NaN"
)


def negated_in(found: Sequence[Place], block: Any) -> bool:
    """Return whether a reader of a block in a function negates a comparison of floats in it."""
    return any(_negates(block, each.stmt) for each in found if each.is_block)


def _negates(block: Any, reader: Any) -> bool:
    if not block.writes:
        return False  # the root block
    written = block.writes[0].source
    if str(written.dtype) != "bool" or reader.same_as(block):
        return False
    if not any(region.source.same_as(written) for region in reader.reads):
        return False
    loads = (
        load
        for negation in collected(reader.body, _NEGATIONS)
        for load in collected(negation, TensorLoad)
    )
    if not any(each.source.same_as(written) for each in loads):
        return False
    compared = collected(block.body, _COMPARISONS)
    return any("float" in str(each.a.ty.dtype) for each in compared)


_NEGATIONS = (tirx.Not, tirx.EQ, tirx.NE)
"""Expressions that negate: TVM writes the latter two as ``not`` where one side is a constant."""


_COMPARISONS = (tirx.LT, tirx.LE, tirx.GT, tirx.GE, tirx.EQ, tirx.NE)


# --- moving -------------------------------------------------------------------------------------


def _at(site: FunctionSelection, *, consumers: bool) -> Iterator[Arguments]:
    yield from block_at_loop(site)
    block = site.block
    if block is None:
        return
    others = site.neighbours(block, consumers=consumers)
    beside = others[:1] if consumers else others[-1:]
    loops = [loop for other in beside for loop in site.around(other)]
    # Where there are none, TVM says why not.
    yield from at_loops(site, block, loops[::-1] or site.around(block)[:1])


def _moves(call: Call) -> None:
    """Reject moving a block whose condition leaves out some values of its axes.

    TVM regenerates the loops from the extents of the axes, and loses the condition: a block of
    ``rfactor``, of an axis that the split did not divide, would then read elements that do not
    exist.
    """
    block = call.block
    place = next(each for each in call.places if each.stmt.same_as(block))
    conditions = list(conjuncts(place.realize.predicate))
    values = list(place.realize.iter_values)
    analyzer = sym.Analyzer()
    # That of a split axis says no more than where the axis ends.
    left = [
        each
        for each in conditions
        if not isinstance(each, tirx.LT)
        or not any(analyzer.can_prove_equal(each.a, value) for value in values)
    ]
    if left and _leaves_out(left, call, [axis.dom.extent for axis in block.iter_vars]):
        raise StepFailed(
            _(
                "{name_hint} is computed only where {left}, which TVM would drop: split by a "
                "divisor of the extent, or leave the block in place"
            ),
            name_hint=block.name_hint,
            left=left[0],
        )


def conjuncts(condition: Any) -> Iterator[Any]:
    """Yield the conjuncts of a condition, except those that always hold."""
    if isinstance(condition, tirx.And):
        yield from conjuncts(condition.a)
        yield from conjuncts(condition.b)
    elif known(condition) != 1:
        yield condition


def _leaves_out(conditions: list[Any], call: Call, axes: list[Any]) -> bool:
    """Return whether the loops cover fewer values than the axes have, as far as that is known."""
    loops = [call.sch.get(each) for each in call.sch.get_loops(call.values["block"])]
    extents = {each.loop_var: known(each.extent) for each in loops}
    ends = [known(getattr(each, "b", None)) for each in conditions]
    sizes = [known(each) for each in axes]
    if None in (*extents.values(), *ends, *sizes):
        return True
    values = Fraction(prod(each or 1 for each in extents.values()))
    for condition, end in zip(conditions, ends, strict=True):
        whole = prod(extents.get(each) or 1 for each in undefined_vars(condition.a))
        values *= Fraction(end or 1, whole)
    return prod(each or 1 for each in sizes) > values


def _moves_back(call: Call) -> None:
    """Reject a block that reads nothing computed: it would be computed whole at each iteration."""
    try:
        producers = call.sch.get_producers(call.values["block"])
    except REFUSED as error:
        raise StepFailed.of(step_error(error)) from error
    if not producers:
        raise StepFailed(
            _("{name_hint} reads no result of another block"), name_hint=call.block.name_hint
        )


# --- tensor instructions ------------------------------------------------------------------------

_OWN = "lowerscope"

_NEEDS = (
    ("avx512vnni", "x86", ("dot_16x4_vnni",)),
    ("avx512bw", "x86", ("dot_16x4_avx512",)),
    ("dotprod", "arm_cpu", ("dot_4x4_i8i8s32_sdot", "dot_4x4_u8u8u32_udot")),
    ("neon", "arm_cpu", ("dot_4x4_i8i8s32_neon",)),
    ("avx512bf16", _OWN, (BFLOAT16_DOT,)),
    ("avx512vnni", _OWN, (INTEGER_DOT,)),
)
"""Features of a processor, and TVM's file and names of the instructions that need them.

Some are Lowerscope's own.
"""

_SUMS = {"int32", "uint32"}
"""Dtypes in which TVM's instructions accumulate."""

_SATURATES = "dot_16x4_avx512"
"""The instruction that adds pairs of products in 16 bits, and saturates."""


def intrinsics(target: tvm.target.Target) -> tuple[str, ...]:
    """Return TVM's names of the instructions that `target` has."""
    return tuple(name for _other, offered in _offered(target) for name in offered)


def _offered(target: tvm.target.Target) -> list[tuple[str, tuple[str, ...]]]:
    has = tvm.get_global_func("target.target_has_feature")
    return [(file, offered) for feature, file, offered in _NEEDS if has(feature, target)]


def register_intrinsics(target: tvm.target.Target) -> None:
    """Register the instructions that `target` has, so that TVM finds them by their names."""
    for file, _other in _offered(target):
        _load(file)


@contextlib.contextmanager
def without_those_of_gpus() -> Iterator[None]:
    """Prevent TVM, in the body, from registering the instructions of all targets: see `_load`."""
    name = "tvm.s_tir.tensor_intrin"
    if name in sys.modules:
        yield
        return
    sys.modules[name] = types.ModuleType(name)
    try:
        yield
    finally:
        del sys.modules[name]


@cache
def _load(file: str) -> None:
    """Register the instructions of one file of TVM.

    Importing the package makes those of all GPUs as well, which takes half a minute. A later import
    uses what is loaded here.
    """
    if file == _OWN:
        register()
        return
    name = f"tvm.s_tir.tensor_intrin.{file}"
    if name in sys.modules:
        return
    path = Path(s_tir.__file__).with_name("tensor_intrin") / f"{file}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


def _tensorizes(call: Call) -> None:
    """Reject an instruction that the target does not have: its code would not run."""
    name, offered = call.values["tensor_intrin"], _offered(call.target)
    if not offered:
        raise StepFailed(_("TVM knows no tensor instruction of this target; native may have some"))
    file = next((file for file, named in offered if name in named), None)
    if file is None:
        raise StepFailed(
            _("the target has {intrinsics}"), intrinsics=_(", ").join(intrinsics(call.target))
        )
    dtypes = _written(call.stmt("block_or_loop"))
    if file != _OWN and not dtypes & _SUMS:
        # Loading them takes longer than the whole menu may.
        raise StepFailed(
            _("{name} adds products of 8 bits in 32 bits, and this computes in {sorted}"),
            name=name,
            sorted=_(", ").join(sorted(dtypes)) or _("nothing"),
        )
    _load(file)
    if name == _SATURATES and not call.forced:
        raise StepFailed(
            _("it adds in 16 bits and truncates overflow: the result can differ"), unsafe=True
        )


def _written(stmt: Any) -> set[str]:
    """Return the dtypes that the blocks write which an instruction is to replace."""
    blocks = [stmt] if isinstance(stmt, s_tir.SBlock) else []
    blocks += [place.stmt for place in below(stmt.body) if place.is_block]
    return {str(region.source.ty.dtype) for block in blocks for region in block.writes}


def _tensorize(site: FunctionSelection) -> Iterator[Arguments]:
    if site.only is not None:
        for name in intrinsics(site.target) or ("",):
            yield {"block_or_loop": site.named[site.only], "tensor_intrin": name}


# --- the table ----------------------------------------------------------------------------------


def _axes(site: FunctionSelection) -> Iterator[Arguments]:
    for each in one_block(site):
        assert site.block is not None
        count = len(site.stmt(site.block).iter_vars)
        order = (*range(count - 2), count - 1, count - 2) if count > 1 else tuple(range(count))
        yield {**each, "new_order": order}


def _blockize(site: FunctionSelection) -> Iterator[Arguments]:
    if site.loop is not None:
        yield {"target": site.named[site.loop]}


_WHERE = _("Place of computation")

_AT = (
    BLOCK,
    field("loop", _("Under"), "loop", _("The loop to move it under.")),
    field(
        "preserve_unit_loops",
        _("Keep loops of extent 1"),
        "flag",
        _("Loops of extent 1 are made as well."),
        default=False,
    ),
    field(
        "index",
        _("Place"),
        "integer",
        _(
            "Among the items of the loop: -1 as late as possible, -2 as early as possible, or "
            "a number from 0."
        ),
        default=-1,
        low=-2,
    ),
)

BLOCK_PRIMITIVES = (
    PrimitiveSpec(
        name="compute_inline",
        group=_WHERE,
        title=_("inline {block} into its consumers"),
        offer=_("inline into its consumers"),
        parameters=(BLOCK,),
        guard=_inlines,
        candidates=one_block,
    ),
    PrimitiveSpec(
        name="reverse_compute_inline",
        group=_WHERE,
        title=_("inline {block} into its producers"),
        offer=_("inline into its producers"),
        parameters=(BLOCK,),
        guard=_inlines_back,
        candidates=one_block,
    ),
    PrimitiveSpec(
        name="compute_at",
        group=_WHERE,
        title=_("compute {block} under {loop}"),
        offer=_("compute under a loop of its consumer"),
        parameters=_AT,
        candidates=partial(_at, consumers=True),
        guard=_moves,
    ),
    PrimitiveSpec(
        name="reverse_compute_at",
        group=_WHERE,
        title=_("compute {block} under {loop}, after its producers"),
        offer=_("compute under a loop of its producer"),
        parameters=_AT,
        candidates=partial(_at, consumers=False),
        guard=_moves_back,
    ),
    PrimitiveSpec(
        name="reorder_block_iter_var",
        group=_("Blocks"),
        title=_("order the axes of {block} as {new_order}"),
        offer=_("change the order of its axes"),
        parameters=(
            BLOCK,
            field("new_order", _("Axes"), "order", _("The axes of the block, in their new order.")),
        ),
        candidates=_axes,
    ),
    PrimitiveSpec(
        name="blockize",
        group=_("Blocks"),
        title=_("make a block of all under {target}"),
        offer=_("make one block of everything under it"),
        parameters=(
            field("target", _("Loop"), "loop", _("The outermost of its loops.")),
            UNIT_ITERS,
        ),
        candidates=_blockize,
    ),
    PrimitiveSpec(
        name="tensorize",
        group=_("Blocks"),
        title=_("compute {block_or_loop} with {tensor_intrin}"),
        offer=_("compute with an instruction of the processor"),
        parameters=(
            field(
                "block_or_loop",
                _("Part"),
                "loop or block",
                _("The outermost of the loops that the instruction replaces."),
            ),
            field(
                "tensor_intrin",
                _("Instruction"),
                "choice",
                _("The instructions of the target."),
                default="",
            ),
            UNIT_ITERS,
        ),
        choices={"tensor_intrin": lambda site, _unused: intrinsics(site.target)},
        candidates=_tensorize,
        guard=_tensorizes,
    ),
)


make_known()


def _decompose(site: FunctionSelection) -> Iterator[Arguments]:
    yield from block_at_loop(site)
    if site.block is None:
        return
    loops = site.around(site.block)
    first = next((place for place, loop in enumerate(loops) if reduces(site.stmt(loop))), 0)
    # Before the outermost loop of the reduction is as far inside as the initial value can go.
    yield from at_loops(site, site.block, loops[first::-1])


def _rfactors(call: Call) -> None:
    """Reject an axis that the buffer of the parts does not have, and uninitialised parts.

    A part is set to the initial value at its first iteration. Where the split has made more parts
    than there are values, the condition skips that iteration, and uninitialised memory is added up.
    """
    axis = call.values["factor_axis"]
    if not -8 <= axis <= 8:
        raise StepFailed(_("the buffer of the parts has no dimension {axis}"), axis=axis)
    loop = call.stmt("loop")
    if not call.forced and not _all_begin(call.places, loop.loop_var):
        raise StepFailed(
            _(
                "some parts of {name} may have no value, and would begin with the contents of "
                "memory: split by no more than the number of values, or apply it anyway, and "
                "then decompose_reduction"
            ),
            name=loop.loop_var.name,
            unsafe=True,
        )


def _all_begin(found: Sequence[Place], part: Any) -> bool:
    """Return whether each part has a value where the other loops of the reduction begin."""
    for index, place in enumerate(found):
        summed = _summed(place) if place.is_block else []
        if not any(mentions(value, part) for value in summed):
            continue
        analyzer = sym.Analyzer()
        for loop in (found[each].stmt for each in loops_around(found, index)):
            var = loop.loop_var
            begins = not var.same_as(part) and any(mentions(value, var) for value in summed)
            extent = 1 if begins else loop.extent
            analyzer.bind(var, tvm.ir.Range.from_min_extent(loop.min, extent))
        conditions = [each for each in conjuncts(place.realize.predicate) if mentions(each, part)]
        if not all(map(analyzer.can_prove, conditions)):
            return False
    return True


def _summed(block: Place) -> list[Any]:
    """Return the bindings of the reduction axes of a block."""
    pairs = zip(block.stmt.iter_vars, block.realize.iter_values, strict=True)
    return [value for axis, value in pairs if axis.iter_type == tirx.IterVar.CommReduce]


def _epilogue(site: FunctionSelection) -> Iterator[Arguments]:
    if site.block is None:
        return
    own = site.named[site.block]
    for other in site.neighbours(site.block, consumers=True):
        yield {"reduction_block": own, "epilogue_block": site.named[other]}
    for other in site.neighbours(site.block, consumers=False):
        yield {"reduction_block": site.named[other], "epilogue_block": own}


def _is_linear(call: Call) -> None:
    """Guard an epilogue that is not linear: it would be applied at each step of the reduction."""
    block = call.stmt("epilogue_block")
    if collected(block.body, _NOT_LINEAR) and not call.forced:
        raise StepFailed(
            _(
                "{name_hint} is not linear, and would be applied at each step of the "
                "reduction: the result would differ"
            ),
            name_hint=block.name_hint,
            unsafe=True,
        )


_NOT_LINEAR = (tirx.Max, tirx.Min, tirx.Select, tvm.ir.Call)


def _pad(site: FunctionSelection) -> Iterator[Arguments]:
    for each in one_block(site):
        assert site.block is not None
        sizes = [known(axis.dom.extent) for axis in site.stmt(site.block).iter_vars]
        padding = tuple(16 if size is not None and size > 1 and size % 16 else 1 for size in sizes)
        yield {**each, "padding": padding}


def _pads(call: Call) -> None:
    """Reject a number of multiples other than the number of the block's axes."""
    axes, padding = len(call.block.iter_vars), len(call.values["padding"])
    if axes != padding:
        raise StepFailed(
            _n(
                "{name_hint} has {count} axis, not {axes}",
                "{name_hint} has {count} axes, not {axes}",
                axes,
                name_hint=call.block.name_hint,
                axes=padding,
            )
        )


def _unpad(site: FunctionSelection) -> Iterator[Arguments]:
    yield from block_at_loop(site)
    if site.block is not None:
        yield from at_loops(site, site.block, site.around(site.block))


REDUCTION_PRIMITIVES = (
    PrimitiveSpec(
        name="decompose_reduction",
        group=_("Reductions"),
        title=_("initialise {block} before {loop}"),
        offer=_("initialise in a block of its own"),
        parameters=(
            BLOCK,
            field(
                "loop",
                _("Before"),
                "loop",
                _("The loop before which the initial value is written."),
            ),
        ),
        candidates=_decompose,
    ),
    PrimitiveSpec(
        name="rfactor",
        group=_("Reductions"),
        title=_("reduce the parts of {loop} separately"),
        offer=_("reduce in parts, then reduce these"),
        parameters=(
            LOOP,
            field(
                "factor_axis",
                _("Axis of the parts"),
                "integer",
                _("Position of the dimension of the parts in their buffer."),
                default=0,
            ),
        ),
        candidates=one_loop,
        guard=_rfactors,
    ),
    PrimitiveSpec(
        name="fuse_reduction_epilogue",
        group=_("Reductions"),
        title=_("put {epilogue_block} into {reduction_block}"),
        offer=_("merge the epilogue into the reduction"),
        parameters=(
            field("reduction_block", _("Reduction"), "block", _("The block that reduces.")),
            field(
                "epilogue_block",
                _("Epilogue"),
                "block",
                _("The block that reads its result, and adds to it."),
            ),
        ),
        candidates=_epilogue,
        guard=_is_linear,
    ),
    PrimitiveSpec(
        name="pad_einsum",
        group=_("Padding"),
        title=_("pad the axes of {block} to multiples of {padding}"),
        offer=_("pad its axes to multiples"),
        parameters=(
            BLOCK,
            field(
                "padding",
                _("Multiples"),
                "integers",
                _("One number for each axis: its extent grows to a multiple of it."),
                low=1,
                high=1024,
            ),
        ),
        candidates=_pad,
        guard=_pads,
    ),
    PrimitiveSpec(
        name="decompose_padding",
        group=_("Padding"),
        title=_("fill the padding of {block} before {loop}"),
        offer=_("fill the padding in a separate block"),
        parameters=(
            BLOCK,
            field("loop", _("Before"), "loop", _("The loop before which the padding is filled.")),
        ),
        candidates=_unpad,
    ),
    PrimitiveSpec(
        name="rolling_buffer",
        group=_("Padding"),
        title=_("keep {write_buffer_index} of {block} in a rolling buffer"),
        offer=_("keep its output in a rolling buffer"),
        parameters=(BLOCK, WRITE),
        candidates=one_block,
        guard=buffer_of_block,
    ),
)
