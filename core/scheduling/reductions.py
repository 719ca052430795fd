"""Primitives of reductions and of paddings."""

from __future__ import annotations

from collections.abc import Iterator

from lowerscope.core.nan_reducers import make_known
from lowerscope.core.records.schedule import Field
from lowerscope.core.scheduling import memory_guards, reduction_guards
from lowerscope.core.scheduling.blocks import BLOCK
from lowerscope.core.scheduling.entry import Arguments, Entry, Site
from lowerscope.core.scheduling.loop_guards import reduces
from lowerscope.core.scheduling.loops import LOOP
from lowerscope.core.scheduling.memory import WRITE
from lowerscope.core.scheduling.picking import (
    around,
    block_alone,
    block_and_loop,
    loop_alone,
    neighbours,
)
from lowerscope.core.scheduling.sizes import known

make_known()


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


def _rfactor(site: Site) -> Iterator[Arguments]:
    loop = loop_alone(site)
    if loop is not None:
        yield {"loop": site.named[loop]}


def _pad(site: Site) -> Iterator[Arguments]:
    block = block_alone(site)
    if block is None:
        return
    sizes = [known(axis.dom.extent) for axis in site.found[block].stmt.iter_vars]
    padding = tuple(16 if size is not None and size > 1 and size % 16 else 1 for size in sizes)
    yield {"block": site.named[block], "padding": padding}


def _unpad(site: Site) -> Iterator[Arguments]:
    both = block_and_loop(site)
    if both is not None:
        yield {"block": site.named[both[0]], "loop": site.named[both[1]]}
    block = block_alone(site)
    if block is not None:
        for loop in around(site, block):
            yield {"block": site.named[block], "loop": site.named[loop]}


def _epilogue(site: Site) -> Iterator[Arguments]:
    block = block_alone(site)
    if block is None:
        return
    for other in neighbours(site, block, consumers=True):
        yield {"reduction_block": site.named[block], "epilogue_block": site.named[other]}
    for other in neighbours(site, block, consumers=False):
        yield {"reduction_block": site.named[other], "epilogue_block": site.named[block]}


def _rolling(site: Site) -> Iterator[Arguments]:
    block = block_alone(site)
    if block is not None:
        yield {"block": site.named[block]}


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
    Entry(
        name="rfactor",
        group="Reductions",
        title="reduce the parts of {loop} by themselves",
        offer="reduce in parts, then reduce these",
        parameters=(
            LOOP,
            Field(
                name="factor_axis",
                label="Axis of the parts",
                kind="integer",
                default=0,
                help="Where the dimension of the parts stands in their buffer.",
            ),
        ),
        candidates=_rfactor,
        guard=reduction_guards.rfactor,
    ),
    Entry(
        name="fuse_reduction_epilogue",
        group="Reductions",
        title="put {epilogue_block} into {reduction_block}",
        offer="put what follows into the reduction",
        parameters=(
            Field(
                name="reduction_block",
                label="Reduction",
                kind="block",
                help="The block that reduces.",
            ),
            Field(
                name="epilogue_block",
                label="What follows",
                kind="block",
                help="The block that reads its result, and adds to it.",
            ),
        ),
        candidates=_epilogue,
        guard=reduction_guards.epilogue,
    ),
    Entry(
        name="pad_einsum",
        group="Padding",
        title="pad the axes of {block} to multiples of {padding}",
        offer="pad its axes to multiples",
        parameters=(
            BLOCK,
            Field(
                name="padding",
                label="Multiples",
                kind="integers",
                low=1,
                high=1024,
                help="One number for each axis: its extent grows to a multiple of it.",
            ),
        ),
        candidates=_pad,
        guard=reduction_guards.pad_einsum,
    ),
    Entry(
        name="decompose_padding",
        group="Padding",
        title="fill the padding of {block} before {loop}",
        offer="fill the padding in a block of its own",
        parameters=(
            BLOCK,
            Field(
                name="loop",
                label="Before",
                kind="loop",
                help="The loop before which the padding is filled.",
            ),
        ),
        candidates=_unpad,
    ),
    Entry(
        name="rolling_buffer",
        group="Padding",
        title="keep {write_buffer_index} of {block} in a rolling buffer",
        offer="keep what it writes in a rolling buffer",
        parameters=(BLOCK, WRITE),
        candidates=_rolling,
        guard=memory_guards.buffer_of_block,
    ),
)
