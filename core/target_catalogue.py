"""Available targets, the effect of each, and whether it can run on this machine."""

from __future__ import annotations

from collections.abc import Sequence

import tvm

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.execution.environment import MACHINE
from lowerscope.core.execution.targets import (
    NATIVE,
    architecture_in,
    architecture_of,
    cpu_of,
    features_of,
    host_triple,
    make_target,
    triple_of,
)
from lowerscope.core.records.target import TargetRecord
from lowerscope.core.scheduling.rules.machine import machine_of

FEATURES = {
    "avx": "AVX",
    "avx2": "AVX2",
    "fma": "FMA",
    "avx512f": "AVX-512",
    "avx512bw": "AVX-512 BW",
    "avx512vnni": "AVX-512 VNNI",
    "avxvnni": "AVX-VNNI",
    "avx512bf16": "AVX-512 BF16",
    "avx512fp16": "AVX-512 FP16",
    "amx-int8": "AMX int8",
    "amx-bf16": "AMX bf16",
    "neon": "NEON",
    "dotprod": "dot product",
    "fullfp16": "FP16",
    "bf16": "BF16",
    "i8mm": "int8 matrices",
    "sve": "SVE",
    "sve2": "SVE2",
    "sme": "SME",
    "v": "RVV",
}
"""LLVM's names of the features that change how a model is computed, and their usual names."""

CATALOGUE = {
    "llvm": "any processor of this kind",
    NATIVE: "this machine, with all that it has",
    '{"kind": "llvm", "mcpu": "x86-64-v3"}': "x86 of the last ten years",
    '{"kind": "llvm", "mcpu": "skylake-avx512"}': "x86 servers with AVX-512",
    '{"kind": "llvm", "mcpu": "sapphirerapids"}': "x86 servers with VNNI, BF16 and AMX",
    '{"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a72"}': "Raspberry Pi 4",
    '{"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a76"}': "Raspberry Pi 5",
    '{"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "neoverse-n1"}': "ARM servers",
    '{"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "neoverse-v1"}': (
        "ARM servers with SVE"
    ),
}
"""Targets to choose from, with their purposes; any other can be typed."""

_SYSTEMS = ("linux", "darwin", "macos", "windows", "android")


def target_records(texts: Sequence[str], threads: int) -> tuple[TargetRecord, ...]:
    """Return the effect of each target; without any, of those of `CATALOGUE`.

    Raises
    ------
    LowerscopeError
        If there is no such target: see `make_target`.
    """
    return tuple(target_record(text, threads) for text in texts or CATALOGUE)


def target_record(text: str, threads: int) -> TargetRecord:
    """Return the effect of a target.

    Raises
    ------
    LowerscopeError
        If there is no such target: see `make_target`.
    """
    target = make_target(text, threads)
    machine = machine_of(target)
    has = features_of(target)
    return TargetRecord(
        text=text,
        title=CATALOGUE.get(text, ""),
        architecture=architecture_of(target),
        cpu=cpu_of(target) or "generic",
        vector_bits=machine.vector_bytes * 8,
        lanes=machine.lanes("float32"),
        registers=machine.registers,
        threads=int(target.attrs.get("num-cores", 0)) or threads or MACHINE,
        features=tuple(name for key, name in FEATURES.items() if key in has),
        hindrance=hindrance(target),
    )


def hindrance(target: tvm.target.Target) -> str:
    """Return the reason why this machine cannot run code for a target; empty where it can."""
    here = make_target(NATIVE, 0)
    return lacks(target, here, host_triple(), "this machine")


def lacks(
    target: tvm.target.Target, processor: tvm.target.Target, triple: str, machine: str
) -> str:
    """Return the reason why a machine cannot run code for a target; empty where it can.

    Parameters
    ----------
    processor, triple
        Processor and target triple of the machine.
    machine
        In words: ``this machine``.
    """
    needed = triple_of(target)
    ours, theirs = architecture_in(triple), architecture_in(needed)
    if ours != theirs:
        return f"it is for {theirs}, and {machine} is {ours}"
    if _system(triple) != _system(needed):
        return f"it is for {_system(needed)}, and {machine} has {_system(triple)}"
    missing = (features_of(target) & FEATURES.keys()) - features_of(processor)
    named = [FEATURES[each] for each in FEATURES if each in missing]
    return f"{machine} has no {', no '.join(named)}" if named else ""


def check_runs_here(target: tvm.target.Target) -> None:
    """Reject running code that is built for another machine.

    Raises
    ------
    LowerscopeError
        With the reason, and the way to a machine that can.
    """
    reason = hindrance(target)
    if reason:
        raise LowerscopeError(
            f"what is built for this target cannot run here: {reason}",
            where="run",
            todo="Run it on such a machine, with --tracker HOST:PORT --key KEY or Target, Remote "
            "machine…; or choose the target native",
        )


def _system(triple: str) -> str:
    return next((each for each in _SYSTEMS if each in triple), "no system")
