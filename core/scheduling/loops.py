"""Primitives of loops: splitting, fusing, ordering, and execution."""

from __future__ import annotations

from collections.abc import Iterator

from lowerscope.core.records.schedule import Field
from lowerscope.core.scheduling import loop_guards
from lowerscope.core.scheduling.entry import Arguments, Entry, Site
from lowerscope.core.scheduling.picking import (
    chosen_loops,
    extent,
    inner_loop,
    loop_alone,
    outer_loop,
)

LOOP = Field(name="loop", label="Loop", kind="loop", help="The loop that it is applied to.")
LOOPS = Field(
    name="loops", label="Loops", kind="loops", help="From the outermost to the innermost."
)
PRESERVE_UNIT_ITERS = Field(
    name="preserve_unit_iters",
    label="Keep axes of extent 1",
    kind="flag",
    default=True,
    help="Loops of extent 1 stay in the bindings of the block's axes.",
)
FACTORS = Field(
    name="factors",
    label="Factors",
    kind="factors",
    low=1,
    help="From the outermost to the innermost loop. One can be left open: it is what is missing.",
)

_INNER: tuple[int, ...] = (32, 16, 8, 64, 4, 2)
"""Extents of an inner loop, the most usual first: some vectors of the processor."""


def one_loop(site: Site) -> Iterator[Arguments]:
    """Propose a loop by itself."""
    loop = loop_alone(site)
    if loop is not None:
        yield {"loop": site.named[loop]}


def _split(site: Site) -> Iterator[Arguments]:
    loop = loop_alone(site)
    if loop is None:
        return
    size = extent(site, loop)
    yield {"loop": site.named[loop], "factors": (None, inner_extent(size))}


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


def _partition(site: Site) -> Iterator[Arguments]:
    loop = loop_alone(site)
    if loop is None:
        return
    size = extent(site, loop)
    yield {"loop": site.named[loop], "factors": (max(1, (size or 2) // 2), None)}


def _fuse(site: Site) -> Iterator[Arguments]:
    loops = sorted(chosen_loops(site))
    if len(loops) > 1:
        yield {"loops": tuple(site.named[loop] for loop in loops)}
    if len(loops) != 1:
        return
    loop = loops[0]
    inner, outer = inner_loop(site, loop), outer_loop(site, loop)
    if inner is not None:
        yield {"loops": (site.named[loop], site.named[inner])}
    if outer is not None:
        yield {"loops": (site.named[outer], site.named[loop])}
    if inner is None and outer is None:
        yield {"loops": (site.named[loop],)}


def _merge(site: Site) -> Iterator[Arguments]:
    loops = sorted(chosen_loops(site))
    if len(loops) > 1:
        yield {"loops": tuple(site.named[loop] for loop in loops)}
    if len(loops) != 1:
        return
    loop = loops[0]
    place = site.found[loop]
    others = [
        index
        for index, other in enumerate(site.found)
        if not other.is_block
        and index != loop
        and other.depth == place.depth
        and extent(site, index) == extent(site, loop)
    ]
    for other in sorted(others, key=lambda index: abs(index - loop))[:2]:
        yield {"loops": tuple(site.named[each] for each in sorted((loop, other)))}
    if not others:
        yield {"loops": (site.named[loop],)}


def _reorder(site: Site) -> Iterator[Arguments]:
    loops = chosen_loops(site)
    if len(loops) > 1:
        # Those that were selected in the order of the script are to change it.
        order = loops if loops != sorted(loops) else loops[::-1]
        yield {"loops": tuple(site.named[loop] for loop in order)}
    if len(loops) != 1:
        return
    loop = loops[0]
    inner, outer = inner_loop(site, loop), outer_loop(site, loop)
    if inner is not None:
        yield {"loops": (site.named[inner], site.named[loop])}
    if outer is not None:
        yield {"loops": (site.named[loop], site.named[outer])}
    if inner is None and outer is None:
        yield {"loops": (site.named[loop],)}


def _unit(site: Site) -> Iterator[Arguments]:
    if len(site.chosen) == 1 and site.chosen[0].index:
        yield {"block_or_loop": site.chosen[0].reference}


ENTRIES = (
    Entry(
        name="split",
        group="Loops",
        title="split {loop} into {factors}",
        offer="split into nested loops",
        parameters=(
            LOOP,
            FACTORS,
            PRESERVE_UNIT_ITERS,
            Field(
                name="disable_predication",
                label="No condition for the rest",
                kind="flag",
                default=False,
                help="Leaves out the condition where the factors do not divide the extent.",
            ),
        ),
        candidates=_split,
        guard=loop_guards.split,
        many=True,
    ),
    Entry(
        name="fuse",
        group="Loops",
        title="fuse {loops}",
        offer="fuse nested loops into one",
        parameters=(LOOPS, PRESERVE_UNIT_ITERS),
        candidates=_fuse,
        guard=loop_guards.several,
        starred="loops",
    ),
    Entry(
        name="reorder",
        group="Loops",
        title="order {loops}",
        offer="change the order of loops",
        parameters=(LOOPS,),
        candidates=_reorder,
        guard=loop_guards.several,
        starred="loops",
    ),
    Entry(
        name="loop_partition",
        group="Loops",
        title="partition {loop} into {factors}",
        offer="cut into loops one after the other",
        parameters=(LOOP, FACTORS, PRESERVE_UNIT_ITERS),
        candidates=_partition,
        guard=loop_guards.loop_partition,
        many=True,
    ),
    Entry(
        name="merge",
        group="Loops",
        title="merge {loops}",
        offer="merge loops that stand side by side",
        parameters=(LOOPS,),
        candidates=_merge,
        guard=loop_guards.merge,
        starred="loops",
    ),
    Entry(
        name="add_unit_loop",
        group="Loops",
        title="add a loop of extent 1 around {block_or_loop}",
        offer="add a loop of extent 1 around it",
        parameters=(
            Field(
                name="block_or_loop",
                label="Around",
                kind="loop or block",
                help="A loop or a block.",
            ),
        ),
        candidates=_unit,
    ),
    Entry(
        name="parallel",
        group="How a loop runs",
        title="run {loop} in parallel",
        offer="run in parallel on the cores",
        parameters=(LOOP,),
        candidates=one_loop,
    ),
    Entry(
        name="vectorize",
        group="How a loop runs",
        title="vectorize {loop}",
        offer="vectorize",
        parameters=(LOOP,),
        candidates=one_loop,
        guard=loop_guards.vectorize,
    ),
    Entry(
        name="unroll",
        group="How a loop runs",
        title="unroll {loop}",
        offer="unroll",
        parameters=(LOOP,),
        candidates=one_loop,
        guard=loop_guards.unroll,
    ),
    Entry(
        name="bind",
        group="How a loop runs",
        title="bind {loop} to {thread_axis}",
        offer="bind to threads of a GPU",
        parameters=(
            LOOP,
            Field(
                name="thread_axis",
                label="Thread axis",
                kind="choice",
                default="threadIdx.x",
                choices=tuple(
                    f"{kind}.{axis}" for kind in ("blockIdx", "threadIdx") for axis in "xyz"
                ),
            ),
        ),
        candidates=one_loop,
        guard=loop_guards.bind,
    ),
)
