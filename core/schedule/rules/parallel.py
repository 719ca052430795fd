"""Steps that rules share: one block behind a reduction, and work for threads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import tvm

from lowerscope.core.model.processors import MACHINE
from lowerscope.core.model.schedule import At, Made
from lowerscope.core.schedule.rules.recorder import SPATIAL, ScheduleRecorder, blocks_of

# --- Properties of a target's processor that rules need ---


@dataclass(frozen=True)
class Machine:
    """A processor.

    `vector_bytes` and `registers`: width of a vector register, and how many of them there are.
    """

    vector_bytes: int
    registers: int
    threads: int

    def lanes(self, dtype: str) -> int:
        """Return the number of values of a dtype in a vector register."""
        kind = tvm.DataType(dtype)
        return max(1, self.vector_bytes * 8 // max(8, int(kind.bits)))


_VECTORS = (("avx512f", 64, 32), ("avx", 32, 16), ("sve", 16, 32), ("neon", 16, 32))


def machine_of(target: tvm.target.Target) -> Machine:
    """Return the processor of an LLVM target, by its features in LLVM."""
    has = tvm.get_global_func("target.llvm_cpu_has_feature")
    found = ((size, count) for feature, size, count in _VECTORS if has(feature, target))
    size, count = next(found, (16, 16))
    threads = int(target.attrs.get("num-cores", 0)) or MACHINE
    return Machine(size, count, threads)


def gather(writing: ScheduleRecorder, block: str, after: Sequence[str]) -> str:
    """Leave one block behind a reduction, by inlining or a cache, and return its name.

    `after`: those that are computed from its result, the last one last.
    """
    if not after:
        writing.do(
            "cache_write",
            "what is reduced is kept apart until it is complete",
            block=At(block),
            write_buffer_index=0,
            storage_scope="local",
        )
        return writing.blocks()[-1]
    for each in after[:-1]:
        writing.inline(each, "what is done with a sum is done at once")
    return after[-1]


WORTH_THREADS = 1 << 15
"""Values that take about as long as waking other threads."""

SHARES = 8
"""Shares for each thread, so that none waits long for another one."""


def threads(writing: ScheduleRecorder, machine: Machine) -> bool:
    """Parallel loops of every other function, distributed among threads."""
    found = blocks_of(writing)
    names = [each.name for each in found]
    if machine.threads < 2 or len(set(names)) < len(names):
        return False
    for place in found:
        loops = writing.loops(place.name)
        kinds = [int(axis.iter_type) for axis in place.stmt.iter_vars]
        axes = [axis for axis, kind in enumerate(kinds) if kind == SPATIAL]
        spatial = writing.inners(place.name, axes, 0)
        sizes = [writing.extent(each) for each in loops]
        # Outer loops on which only output elements depend.
        outer = [loop for loop, own in zip(loops, spatial, strict=False) if loop == own]
        if len(loops) < 1 or not outer or any(size is None for size in sizes):
            continue
        worth = math.prod(size for size in sizes if size is not None) >= WORTH_THREADS
        if writing.choose(f"threads for {place.name}", (0, 1), int(worth)):
            parallelise(writing, tuple(outer), machine)
    return bool(writing.primitives)


def parallelise(writing: ScheduleRecorder, loops: tuple[At, ...], machine: Machine) -> int:
    """Fuse as many loops, the outermost first, as each thread needs for a share.

    Returns the number of fused or parallel loops; 0 for none.
    """
    count, shares, known = 0, 1, True
    while count < len(loops) and shares < SHARES * machine.threads:
        extent = writing.extent(loops[count])
        # An unknown extent does not count: it may be one.
        shares, known = shares * (extent or 1), known and extent is not None
        count += 1
    if shares < 2 and known:
        return 0
    shared: At | Made = loops[0]
    if count > 1:
        shared = writing.do("fuse", "parts that threads can share out", loops=loops[:count])[0]
    writing.do("parallel", "each thread has parts of its own", loop=shared)
    return count
