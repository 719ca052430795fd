"""Properties of a target's processor that rules need."""

from __future__ import annotations

from dataclasses import dataclass

import tvm

from lowerscope.core.execution.environment import MACHINE


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
