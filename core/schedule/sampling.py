"""Primitives that draw tile sizes, numbers and places at random, for other primitives."""

from __future__ import annotations

import math
from collections.abc import Iterator

from lowerscope.core.schedule.failures import StepFailed
from lowerscope.core.schedule.parameters import known
from lowerscope.core.schedule.primitive import (
    BLOCK,
    LOOP,
    Arguments,
    Call,
    FunctionSelection,
    PrimitiveSpec,
    field,
    one_block,
    one_loop,
)


def _perfect_tile(call: Call) -> None:
    """Reject decisions whose product is not the extent."""
    _check_factors(call, _extent(call))
    decision, most = call.values["decision"], call.values["max_innermost_factor"]
    if decision is not None and decision[-1] > most:
        raise StepFailed(f"the innermost factor is at most {most}")


def _partitioned_tile(call: Call) -> None:
    """Reject parts that are empty or do not divide the extent."""
    extent = _extent(call)
    if call.values["partition_pos"] > call.values["n"]:
        raise StepFailed("the second part begins among the factors")
    if extent % call.values["innerpart_factor"]:
        raise StepFailed(f"the second part's product has to divide {extent}")
    _check_factors(call, extent)


def _extent(call: Call) -> int:
    extent = known(call.stmt("loop").extent)
    if extent is None:
        raise StepFailed("factors are drawn of an extent that is a number")
    return extent


def _check_factors(call: Call, extent: int) -> None:
    decision = call.values["decision"]
    if decision is None:
        return
    if len(decision) != call.values["n"] or min(decision, default=0) < 1:
        raise StepFailed(f"the decision has {call.values['n']} factors from 1")
    if math.prod(decision) != extent:
        raise StepFailed(f"the product of the decision is {math.prod(decision)}, not {extent}")


def _categorical(call: Call) -> None:
    """Reject invalid probabilities."""
    candidates, chances = call.values["candidates"], call.values["probs"]
    if not candidates or len(candidates) != len(chances):
        raise StepFailed("there is one probability for each number")
    if min(chances) < 0 or abs(sum(chances) - 1) > 1e-3:
        raise StepFailed("probabilities are from 0 to 1, and together 1")
    decision = call.values["decision"]
    if decision is not None and not 0 <= decision < len(candidates):
        raise StepFailed(f"the decision is from 0 to {len(candidates) - 1}")


def _compute_location(call: Call) -> None:
    """Reject decisions that are not a place."""
    decision = call.values["decision"]
    if decision is None:
        return
    loops = len(call.sch.get_loops(call.values["block"]))
    if not -2 <= decision < 64:
        raise StepFailed(f"the decision is -2, -1, or the place of one of {loops} loops")


def _nothing(site: FunctionSelection) -> Iterator[Arguments]:
    if not site.chosen:
        yield {}


_COUNT = field(
    "n",
    "Tiles",
    "integer",
    "How many factors are drawn; split takes them.",
    default=2,
    low=1,
    high=8,
)
_DECISION = field(
    "decision", "Decision", "integers", "What is taken instead of drawing.", optional=True
)
_ONE_DECISION = field(
    "decision",
    "Decision",
    "integer",
    "What is taken instead of drawing: its place among the candidates.",
    optional=True,
)
_RANDOM = "Drawn at random"

ENTRIES = (
    PrimitiveSpec(
        name="sample_perfect_tile",
        group=_RANDOM,
        title="draw {n} factors of {loop}",
        offer="draw factors that divide its extent",
        parameters=(
            LOOP,
            _COUNT,
            field(
                "max_innermost_factor",
                "Innermost at most",
                "integer",
                "The largest factor of the innermost loop.",
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
        title="draw {n} factors of {loop} in two parts",
        offer="draw factors in two parts",
        parameters=(
            LOOP,
            _COUNT,
            field(
                "partition_pos",
                "Second part from",
                "integer",
                "The first of the factors that belong to the second part.",
                default=1,
                low=0,
                high=8,
            ),
            field(
                "innerpart_factor",
                "Second part's product",
                "integer",
                "What the product of the second part is a multiple of.",
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
        title="draw one of {candidates}",
        offer="draw one of some numbers",
        parameters=(
            field("candidates", "Numbers", "integers", "One of them is drawn.", default=(4, 8, 16)),
            field(
                "probs",
                "Probabilities",
                "numbers",
                "One for each number; together 1.",
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
        title="draw a loop to compute {block} under",
        offer="draw a loop to compute it under",
        parameters=(BLOCK, _ONE_DECISION),
        candidates=one_block,
        guard=_compute_location,
        draws=True,
    ),
)
