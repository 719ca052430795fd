"""Measured peaks of this machine: multiply-adds, and memory and cache bandwidth.

All of it is measured, each as the best of many short tries in rounds some tenths of a second apart:
another process that takes a processor for as long as a round does not count:

- *Multiply-adds*: a TensorIR kernel of independent chains ``x = x * 0.5 + 1`` whose values stay in
  vector registers, in every thread at once. It is built for the recipe's target, and for this
  machine's own processor: the generic target has no fused multiply-add, and the share of a peak
  that leaves out most of the machine says little. torch's product of two matrices counts as well,
  if it is faster.
- *Memory*: torch's ``x = y + 2 z`` and ``x = y``, and its sum of ``y``, on tensors that are several
  times as large as the last-level cache. The fetch before a write is not counted, as in STREAM.
- *Caches*: a TensorIR kernel of ``x = y + 2 z`` on arrays of which each thread has some 100 kB.

Peaks are cached in a file, by processor, target, threads and versions.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import torch
import tvm

from lowerscope.core.build.build import compile_function
from lowerscope.core.build.targets import make_target
from lowerscope.core.files.cache import read_kept, write_kept
from lowerscope.core.files.directories import cache_folder
from lowerscope.core.files.memo import key_of
from lowerscope.core.model.encoding import UNREADABLE
from lowerscope.core.model.processors import MACHINE, processor_name
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.schedule_records import Peaks

_SECONDS = 0.1
"""Seconds of each kind of attempt in a round."""

_TURNS = 4
"""Number of rounds."""

_LANES, _CHAINS, _DEPTH, _STEPS = 16, 12, 8, 5000
_ELEMENTS, _ROUNDS = 8192, 50
_MATRIX = 768

_MULTIPLY_ADD = f"""
@T.prim_func(s_tir=True)
def main(x: T.Buffer(({{threads}}, {_CHAINS}, {_LANES}), "float32")):
    T.func_attr({{{{"global_symbol": "main", "tirx.noalias": True}}}})
    for p in T.parallel({{threads}}):
        for k in range({_STEPS}):
            for c in T.unroll({_CHAINS}):
                for lane in T.vectorized({_LANES}):
                    x[p, c, lane] = {{chain}}
"""

_TRIAD = f"""
@T.prim_func(s_tir=True)
def main(
    x: T.Buffer(({{threads}}, {_ELEMENTS}), "float32"),
    y: T.Buffer(({{threads}}, {_ELEMENTS}), "float32"),
    z: T.Buffer(({{threads}}, {_ELEMENTS}), "float32"),
):
    T.func_attr({{{{"global_symbol": "main", "tirx.noalias": True}}}})
    for p in T.parallel({{threads}}):
        for k in range({_ROUNDS}):
            for i in range({_ELEMENTS // _LANES}):
                for lane in T.vectorized({_LANES}):
                    x[p, i * {_LANES} + lane] = (
                        y[p, i * {_LANES} + lane] + z[p, i * {_LANES} + lane] * T.float32(2)
                    )
"""


def measure_peaks(text: str, threads: int, progress: Progress) -> Peaks:
    """Measure the peaks of this machine; it takes some three seconds.

    Raises `Cancelled` between two tries.
    """
    progress.report("Measuring what this machine can do at best", 0.0)
    native = make_target("native", threads)
    targets = {str(each): each for each in (make_target(text, threads), native)}.values()
    kernels = {
        "gflops": list(_multiply_add_kernels(targets, threads)),
        "cache": [_cache_kernel(native, threads)],
        "memory": list(_memory_kernels(cache_bytes())),
    }
    best = dict.fromkeys(kernels, 0.0)
    for turn in range(_TURNS):
        for name, tried in kernels.items():
            progress.report("Measuring what this machine can do at best", turn / _TURNS)
            for amount, call in tried:
                best[name] = max(best[name], amount / _best(call, progress) / 1e9)
    return Peaks(
        gflops=best["gflops"],
        gbytes_per_second=best["memory"],
        threads=threads,
        target=text,
        cache_bytes=cache_bytes(),
        cache_gbytes_per_second=max(best["cache"], best["memory"]),
    )


Kernel = tuple[float, Callable[[], Any]]
"""Amount that is computed or moved, and the function that does it."""


def _multiply_add_kernels(targets: Iterable[tvm.target.Target], threads: int) -> Iterator[Kernel]:
    operations = 2.0 * threads * _CHAINS * _LANES * _DEPTH * _STEPS
    for target in targets:
        kernel = _built(_multiply_add_text(threads), target)
        yield operations, partial(kernel, _zeros(threads, _CHAINS, _LANES))
    a, b = torch.ones(_MATRIX, _MATRIX), torch.ones(_MATRIX, _MATRIX)
    yield 2.0 * _MATRIX**3, partial(torch.mm, a, b, out=torch.empty_like(a))


def _multiply_add_text(threads: int) -> str:
    chain = "x[p, c, lane]"
    for _ in range(_DEPTH):
        chain = f"({chain} * T.float32(0.5) + T.float32(1))"
    return _MULTIPLY_ADD.format(threads=threads, chain=chain)


def _built(text: str, target: tvm.target.Target) -> Callable[..., Any]:
    function = tvm.script.from_source(text)
    built: Callable[..., Any] = compile_function("main", function, target).jit()["main"]
    return built


def _zeros(*shape: int) -> tvm.runtime.Tensor:
    values = tvm.runtime.empty(shape, "float32")
    torch.utils.dlpack.from_dlpack(values).zero_()
    return values


def _cache_kernel(target: tvm.target.Target, threads: int) -> Kernel:
    triad = _built(_TRIAD.format(threads=threads), target)
    arrays = [_zeros(threads, _ELEMENTS) for _ in range(3)]
    return 3.0 * 4 * threads * _ELEMENTS * _ROUNDS, partial(triad, *arrays)


def _memory_kernels(cache: int) -> Iterator[Kernel]:
    elements = min(max(2 * cache, 64 << 20), 256 << 20) // 4
    size = 4.0 * elements
    x, y, z = (torch.ones(elements) for _ in range(3))
    yield 3 * size, lambda: torch.add(y, z, alpha=2.0, out=x)
    yield 2 * size, lambda: x.copy_(y)
    yield size, lambda: y.sum()


def _best(call: Callable[[], Any], progress: Progress) -> float:
    """Return the time of the fastest call, in seconds."""
    call()
    best, until = math.inf, time.perf_counter() + _SECONDS
    while time.perf_counter() < until or best is math.inf:
        progress.check()
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def cache_bytes() -> int:
    """Return the size of the last-level cache, or a usual one where it is not known."""
    sizes = [8 << 20]
    for file in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = file.read_text().strip()
        factor = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
        digits = text.rstrip("KMG")
        if digits.isdigit():
            sizes.append(int(digits) * factor)
    return max(sizes[1:], default=sizes[0])


# --- kept ---------------------------------------------------------------------------------------


def peaks_key(text: str, threads: int) -> str:
    """Return the cache key of measured peaks."""
    versions = (torch.__version__, tvm.__version__)
    return key_of("peaks", 3, processor_name(), MACHINE, text, threads, *versions)


def kept_peaks(key: str) -> Peaks | None:
    """Return the cached peaks, if there are any."""
    try:
        return msgspec.json.decode(read_kept(_file(key)), type=Peaks)
    except (OSError, *UNREADABLE):
        # Nothing was measured yet, or by a version with another format, or the file is damaged.
        return None


def keep_peaks(key: str, peaks: Peaks) -> Peaks:
    """Cache peaks that exceed the cached ones; return the best of both."""
    old = kept_peaks(key)
    if old is not None:
        peaks = msgspec.structs.replace(
            peaks,
            gflops=max(peaks.gflops, old.gflops),
            gbytes_per_second=max(peaks.gbytes_per_second, old.gbytes_per_second),
            cache_gbytes_per_second=max(peaks.cache_gbytes_per_second, old.cache_gbytes_per_second),
        )
    if peaks != old:
        write_kept(_file(key), msgspec.json.encode(peaks))
    return peaks


def _file(key: str) -> Path:
    return cache_folder() / f"peaks-{key}.json"
