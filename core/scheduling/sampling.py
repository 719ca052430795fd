"""Primitives that draw tile sizes, numbers and places at random, for other primitives."""

from __future__ import annotations

from collections.abc import Iterator

from lowerscope.core.records.schedule import Field
from lowerscope.core.scheduling import sampling_guards
from lowerscope.core.scheduling.blocks import BLOCK, one_block
from lowerscope.core.scheduling.entry import Arguments, Entry, Site
from lowerscope.core.scheduling.loops import LOOP, one_loop

_COUNT = Field(
    name="n",
    label="Tiles",
    kind="integer",
    default=2,
    low=1,
    high=8,
    help="How many factors are drawn; split takes them.",
)
_DECISION = Field(
    name="decision",
    label="Decision",
    kind="integers",
    optional=True,
    help="What is taken instead of drawing.",
)
_ONE_DECISION = Field(
    name="decision",
    label="Decision",
    kind="integer",
    optional=True,
    help="What is taken instead of drawing: its place among the candidates.",
)


def _nothing(site: Site) -> Iterator[Arguments]:
    if not site.chosen:
        yield {}


ENTRIES = (
    Entry(
        name="sample_perfect_tile",
        group="Drawn at random",
        title="draw {n} factors of {loop}",
        offer="draw factors that divide its extent",
        parameters=(
            LOOP,
            _COUNT,
            Field(
                name="max_innermost_factor",
                label="Innermost at most",
                kind="integer",
                default=16,
                low=1,
                high=1024,
                help="The largest factor of the innermost loop.",
            ),
            _DECISION,
        ),
        candidates=one_loop,
        guard=sampling_guards.perfect_tile,
        many=True,
        draws=True,
    ),
    Entry(
        name="sample_partitioned_tile",
        group="Drawn at random",
        title="draw {n} factors of {loop} in two parts",
        offer="draw factors in two parts",
        parameters=(
            LOOP,
            _COUNT,
            Field(
                name="partition_pos",
                label="Second part from",
                kind="integer",
                default=1,
                low=0,
                high=8,
                help="The first of the factors that belong to the second part.",
            ),
            Field(
                name="innerpart_factor",
                label="Second part's product",
                kind="integer",
                default=1,
                low=1,
                high=4096,
                help="What the product of the second part is a multiple of.",
            ),
            _DECISION,
        ),
        candidates=one_loop,
        guard=sampling_guards.partitioned_tile,
        many=True,
        draws=True,
    ),
    Entry(
        name="sample_categorical",
        group="Drawn at random",
        title="draw one of {candidates}",
        offer="draw one of some numbers",
        parameters=(
            Field(
                name="candidates",
                label="Numbers",
                kind="integers",
                default=(4, 8, 16),
                help="One of them is drawn.",
            ),
            Field(
                name="probs",
                label="Probabilities",
                kind="numbers",
                default=(0.25, 0.5, 0.25),
                help="One for each number; together 1.",
            ),
            _ONE_DECISION,
        ),
        candidates=_nothing,
        guard=sampling_guards.categorical,
        draws=True,
    ),
    Entry(
        name="sample_compute_location",
        group="Drawn at random",
        title="draw a loop to compute {block} under",
        offer="draw a loop to compute it under",
        parameters=(BLOCK, _ONE_DECISION),
        candidates=one_block,
        guard=sampling_guards.compute_location,
        draws=True,
    ),
)
