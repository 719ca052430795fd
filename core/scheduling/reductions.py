"""Primitives of reductions and of paddings."""

from __future__ import annotations

from collections.abc import Iterator

from lowerscope.core.schedule_records import Field
from lowerscope.core.scheduling.blocks import BLOCK
from lowerscope.core.scheduling.entry import Arguments, Entry, Site
from lowerscope.core.scheduling.loop_guards import reduces
from lowerscope.core.scheduling.picking import around, block_alone, block_and_loop


def _decompose(site: Site) -> Iterator[Arguments]:
    both = block_and_loop(site)
    if both is not None:
        yield {"block": site.named[both[0]], "loop": site.named[both[1]]}
    block = block_alone(site)
    if block is None:
        return
    loops = around(site, block)
    first = next(
        (place for place, loop in enumerate(loops) if reduces(site.found[loop].stmt)), None
    )
    # Before the outermost loop of the reduction is as far inside as the initial value can go.
    tried = loops[first::-1] if first is not None else loops[:1]
    for loop in tried:
        yield {"block": site.named[block], "loop": site.named[loop]}


ENTRIES = (
    Entry(
        name="decompose_reduction",
        group="Reductions",
        title="initialize {block} before {loop}",
        offer="initialize in a block of its own",
        parameters=(
            BLOCK,
            Field(
                name="loop",
                label="Before",
                kind="loop",
                help="The loop before which the initial value is written.",
            ),
        ),
        candidates=_decompose,
    ),
)
