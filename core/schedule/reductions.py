"""Primitives of reductions and of paddings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import tvm
from tvm import sym, tirx

from lowerscope.core.lowering.legal_forms import make_known
from lowerscope.core.schedule.blocks import conjuncts
from lowerscope.core.schedule.failures import StepFailed
from lowerscope.core.schedule.loops import reduces
from lowerscope.core.schedule.memory import WRITE, buffer_of_block
from lowerscope.core.schedule.parameters import collected, known, mentions
from lowerscope.core.schedule.primitive import (
    BLOCK,
    LOOP,
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
from lowerscope.core.schedule.references import Place, loops_around

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
        raise StepFailed(f"the buffer of the parts has no dimension {axis}")
    loop = call.stmt("loop")
    if not call.forced and not _all_begin(call.places, loop.loop_var):
        raise StepFailed(
            f"some parts of {loop.loop_var.name} may have no value, and would begin with what is in"
            " memory: split by no more than there are values, or apply it anyway, and then"
            " decompose_reduction",
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
            f"{block.name_hint} is not linear, and would be applied at each step of the "
            "reduction: the result is another one",
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
        raise StepFailed(f"{call.block.name_hint} has {axes} axes, and not {padding}")


def _unpad(site: FunctionSelection) -> Iterator[Arguments]:
    yield from block_at_loop(site)
    if site.block is not None:
        yield from at_loops(site, site.block, site.around(site.block))


ENTRIES = (
    PrimitiveSpec(
        name="decompose_reduction",
        group="Reductions",
        title="initialize {block} before {loop}",
        offer="initialize in a block of its own",
        parameters=(
            BLOCK,
            field("loop", "Before", "loop", "The loop before which the initial value is written."),
        ),
        candidates=_decompose,
    ),
    PrimitiveSpec(
        name="rfactor",
        group="Reductions",
        title="reduce the parts of {loop} by themselves",
        offer="reduce in parts, then reduce these",
        parameters=(
            LOOP,
            field(
                "factor_axis",
                "Axis of the parts",
                "integer",
                "Where the dimension of the parts stands in their buffer.",
                default=0,
            ),
        ),
        candidates=one_loop,
        guard=_rfactors,
    ),
    PrimitiveSpec(
        name="fuse_reduction_epilogue",
        group="Reductions",
        title="put {epilogue_block} into {reduction_block}",
        offer="put what follows into the reduction",
        parameters=(
            field("reduction_block", "Reduction", "block", "The block that reduces."),
            field(
                "epilogue_block",
                "What follows",
                "block",
                "The block that reads its result, and adds to it.",
            ),
        ),
        candidates=_epilogue,
        guard=_is_linear,
    ),
    PrimitiveSpec(
        name="pad_einsum",
        group="Padding",
        title="pad the axes of {block} to multiples of {padding}",
        offer="pad its axes to multiples",
        parameters=(
            BLOCK,
            field(
                "padding",
                "Multiples",
                "integers",
                "One number for each axis: its extent grows to a multiple of it.",
                low=1,
                high=1024,
            ),
        ),
        candidates=_pad,
        guard=_pads,
    ),
    PrimitiveSpec(
        name="decompose_padding",
        group="Padding",
        title="fill the padding of {block} before {loop}",
        offer="fill the padding in a block of its own",
        parameters=(
            BLOCK,
            field("loop", "Before", "loop", "The loop before which the padding is filled."),
        ),
        candidates=_unpad,
    ),
    PrimitiveSpec(
        name="rolling_buffer",
        group="Padding",
        title="keep {write_buffer_index} of {block} in a rolling buffer",
        offer="keep what it writes in a rolling buffer",
        parameters=(BLOCK, WRITE),
        candidates=one_block,
        guard=buffer_of_block,
    ),
)
