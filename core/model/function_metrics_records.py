"""Metrics of a scheduled function: its work, its times, and its correctness."""

from __future__ import annotations

from typing import Literal

import msgspec

Verdict = Literal["same", "differs", "inconclusive", "unknown"]
"""Verdict of a check."""


class Peaks(msgspec.Struct, frozen=True, kw_only=True):
    """Measured peaks of this machine: multiply-adds, and memory bandwidth.

    One multiply-add counts as two operations; 1 GB is 10⁹ bytes.
    """

    # gflops, gbytes_per_second: of multiply-adds on ``float32``, and of memory
    gflops: float
    gbytes_per_second: float
    # threads, target: with which that was measured
    threads: int
    target: str
    # cache_bytes, cache_gbytes_per_second: the size of the last-level cache, and the bandwidth of
    # what stays in the caches: a function that is called again and again with fewer bytes than that
    # does not wait for memory
    cache_bytes: int = 0
    cache_gbytes_per_second: float = 0.0

    def bandwidth(self, moved: float) -> float:
        """Return the bandwidth, in GB/s, of a function that moves `moved` bytes."""
        in_cache = moved <= self.cache_bytes
        return self.cache_gbytes_per_second if in_cache else self.gbytes_per_second

    def best_ms(self, flops: float, moved: float) -> float:
        """Return the minimum time of a function, in milliseconds, by the roofline."""
        computing = flops / (self.gflops * 1e6)
        return max(computing, moved / (self.bandwidth(moved) * 1e6) if moved else 0.0)


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """Work of one call of a function."""

    calls: int  # of it, in one run of the model
    # Arithmetic operations on floating-point numbers of the unscheduled function; ``None`` where it
    # calls others, or its size is not known.
    flops: float | None
    # read, written: bytes of its inputs and outputs, as far as they are touched: each element once
    read: int | None
    written: int | None
    intensity: float | None  # operations per byte
    # The size that this is for, such as ``"batch = 5"``: the one that the model is traced at. Empty
    # for a function that has but one.
    at: str = ""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """Time of a function, and its rates."""

    # milliseconds, low, high: median, and the quarters below and above it, of ``repeats``
    # measurements
    milliseconds: float
    low: float
    high: float
    repeats: int
    build_ms: float  # time of its compilation
    # gflops, gbytes_per_second: `Work` by that time
    gflops: float | None = None
    gbytes_per_second: float | None = None
    # Share of the rate that the machine's peaks allow at its intensity, from 0 to 1; ``None`` where
    # it is far beyond them, since the compiler has left out some of `Work`.
    share: float | None = None
    # Time of torch for the same nodes; ``None`` where it has none of its own for them.
    torch_ms: float | None = None
    torch_nodes: tuple[str, ...] = ()  # the names of these nodes
    torch_does_more: bool = False  # whether the function is only a part of what these nodes compute
    at: str = ""  # see `Work`
    # Whether other programs used the processors that it, or torch, was to run on: then ratios of
    # the times are unreliable.
    disturbed: bool = False


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """Comparison of a scheduled function with the unscheduled one."""

    # ``"same"``, ``"differs"``, ``"inconclusive"`` where none differs, but an output has no finite
    # value in either function, or ``"unknown"`` where there was no time for it.
    verdict: Verdict
    # Description of the difference, number of elements that are not finite in both functions, or
    # reason why it is not known.
    reason: str = ""
    # max_abs_error, tolerance: the largest absolute difference of a floating-point output, and the
    # limit: the longer the reduction, the higher. ``None`` for outputs that are compared exactly.
    max_abs_error: float | None = None
    tolerance: float | None = None
    # Whether a call that took too long is still running: nothing but the end of the process stops
    # it.
    running: bool = False
    at: str = ""  # see `Work`
