"""Primitives of blocks: their place of computation, and their contents."""

from __future__ import annotations

from collections.abc import Iterator

from lowerscope.core.records.schedule import Field
from lowerscope.core.scheduling import block_guards, intrinsics
from lowerscope.core.scheduling.entry import Arguments, Entry, Site
from lowerscope.core.scheduling.loops import PRESERVE_UNIT_ITERS
from lowerscope.core.scheduling.picking import (
    around,
    block_alone,
    block_and_loop,
    loop_alone,
    neighbours,
)

BLOCK = Field(name="block", label="Block", kind="block", help="The block that it is applied to.")
_UNDER = Field(name="loop", label="Under", kind="loop", help="The loop that it is moved under.")
_UNIT_LOOPS = Field(
    name="preserve_unit_loops",
    label="Keep loops of extent 1",
    kind="flag",
    default=False,
    help="Loops of extent 1 are made as well.",
)
_PLACE = Field(
    name="index",
    label="Place",
    kind="integer",
    default=-1,
    low=-2,
    help="Among what stands in the loop: -1 as late as possible, -2 as early, or a number from 0.",
)


def one_block(site: Site) -> Iterator[Arguments]:
    """Propose a block by itself."""
    block = block_alone(site)
    if block is not None:
        yield {"block": site.named[block]}


def _at(site: Site, *, consumers: bool) -> Iterator[Arguments]:
    both = block_and_loop(site)
    if both is not None:
        yield {"block": site.named[both[0]], "loop": site.named[both[1]]}
    block = block_alone(site)
    if block is None:
        return
    others = neighbours(site, block, consumers=consumers)
    beside = others[:1] if consumers else others[-1:]
    loops = [loop for other in beside for loop in around(site, other)]
    for loop in loops[::-1]:
        yield {"block": site.named[block], "loop": site.named[loop]}
    if not loops:
        # TVM then says why not.
        for loop in around(site, block)[:1]:
            yield {"block": site.named[block], "loop": site.named[loop]}


def _compute_at(site: Site) -> Iterator[Arguments]:
    yield from _at(site, consumers=True)


def _reverse_compute_at(site: Site) -> Iterator[Arguments]:
    yield from _at(site, consumers=False)


def _axes(site: Site) -> Iterator[Arguments]:
    block = block_alone(site)
    if block is None:
        return
    count = len(site.found[block].stmt.iter_vars)
    order = (*range(count - 2), count - 1, count - 2) if count > 1 else tuple(range(count))
    yield {"block": site.named[block], "new_order": order}


def _blockize(site: Site) -> Iterator[Arguments]:
    loop = loop_alone(site)
    if loop is not None:
        yield {"target": site.named[loop]}


def _tensorize(site: Site) -> Iterator[Arguments]:
    names = intrinsics.names(site.target)
    if len(site.chosen) != 1 or not site.chosen[0].index:
        return
    for name in names or ("",):
        yield {"block_or_loop": site.chosen[0].reference, "tensor_intrin": name}


ENTRIES = (
    Entry(
        name="compute_inline",
        group="Where a block is computed",
        title="inline {block} into its readers",
        offer="inline into what reads it",
        parameters=(BLOCK,),
        guard=block_guards.compute_inline,
        candidates=one_block,
    ),
    Entry(
        name="reverse_compute_inline",
        group="Where a block is computed",
        title="inline {block} into what it reads",
        offer="inline into what it reads",
        parameters=(BLOCK,),
        guard=block_guards.reverse_compute_inline,
        candidates=one_block,
    ),
    Entry(
        name="compute_at",
        group="Where a block is computed",
        title="compute {block} under {loop}",
        offer="compute under a loop of what reads it",
        parameters=(BLOCK, _UNDER, _UNIT_LOOPS, _PLACE),
        candidates=_compute_at,
        guard=block_guards.compute_at,
    ),
    Entry(
        name="reverse_compute_at",
        group="Where a block is computed",
        title="compute {block} under {loop}, after what it reads",
        offer="compute under a loop of what it reads",
        parameters=(BLOCK, _UNDER, _UNIT_LOOPS, _PLACE),
        candidates=_reverse_compute_at,
        guard=block_guards.reverse_compute_at,
    ),
    Entry(
        name="reorder_block_iter_var",
        group="Blocks",
        title="order the axes of {block} as {new_order}",
        offer="change the order of its axes",
        parameters=(
            BLOCK,
            Field(
                name="new_order",
                label="Axes",
                kind="order",
                help="The axes of the block, in their new order.",
            ),
        ),
        candidates=_axes,
    ),
    Entry(
        name="blockize",
        group="Blocks",
        title="make a block of all under {target}",
        offer="make a block of all that is under it",
        parameters=(
            Field(name="target", label="Loop", kind="loop", help="The outermost of its loops."),
            PRESERVE_UNIT_ITERS,
        ),
        candidates=_blockize,
    ),
    Entry(
        name="tensorize",
        group="Blocks",
        title="compute {block_or_loop} with {tensor_intrin}",
        offer="compute with an instruction of the processor",
        parameters=(
            Field(
                name="block_or_loop",
                label="What",
                kind="loop or block",
                help="The outermost of the loops that the instruction takes the place of.",
            ),
            Field(
                name="tensor_intrin",
                label="Instruction",
                kind="choice",
                default="",
                help="Those that the target has.",
            ),
            PRESERVE_UNIT_ITERS,
        ),
        candidates=_tensorize,
        guard=intrinsics.check,
    ),
)
