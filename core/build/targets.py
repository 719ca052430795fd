"""Targets: parsing, checks and properties, and the threads and processor use of a machine."""

from __future__ import annotations

import contextlib
import difflib
import json
import shlex
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import psutil
import torch
import tvm

from lowerscope.core.model.machines import TargetRecord
from lowerscope.core.model.problems import TVM_ERRORS, LowerscopeError, last_line
from lowerscope.core.model.processors import MACHINE, usable_processors
from lowerscope.core.model.recipe import ANY_PROCESSOR, NATIVE
from lowerscope.core.model.run_records import were_taken
from lowerscope.core.model.texts import _, alternatives, enumeration
from lowerscope.core.schedule.rules.recorder import machine_of


def use_threads(count: int) -> int:
    """Set the number of threads of torch and TVM, 0 for all; return the number that both use."""
    count = min(count or MACHINE, MACHINE)
    torch.set_num_threads(count)
    tvm.get_global_func("runtime.config_threadpool")(1, count)
    return count


def threads_of_tvm() -> int:
    """Return the number of threads that TVM runs parallel loops with."""
    return int(tvm.get_global_func("runtime.NumThreads")())


@contextlib.contextmanager
def one_torch_thread() -> Iterator[None]:
    """Limit torch to one thread in the body."""
    count = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(count)


_IDLE = ("idle", "iowait")
_COUNTED_TWICE = ("guest", "guest_nice")
"""Fields that the system also adds to user time."""


class ProcessorUse:
    """Measurement of processor use, started on creation."""

    def __init__(self) -> None:
        self._usable = usable_processors()
        self.processors = len(self._usable)
        self._began = time.monotonic()
        self._busy, self._own = self._times()

    def by_others(self) -> float:
        """Return the average number of processors used by other programs since the start."""
        busy, own = self._times()
        elapsed = time.monotonic() - self._began
        others = (busy - self._busy) - (own - self._own)
        return min(max(others / elapsed, 0.0), float(self.processors)) if elapsed > 0 else 0.0

    def was_short(self, threads: int) -> bool:
        """Return whether other programs used processors that `threads` threads needed."""
        return were_taken(self.by_others(), self.processors, threads)

    def _times(self) -> tuple[float, float]:
        """Return the seconds that the processors were busy, in total and with this process."""
        spent = psutil.cpu_times(percpu=True)
        busy = sum(
            seconds
            for number, each in enumerate(spent)
            if number in self._usable
            for kind, seconds in each._asdict().items()
            if kind not in (*_IDLE, *_COUNTED_TWICE)
        )
        return busy, time.process_time()


_FLAGS = {"mcpu", "mtriple", "mattr", "num-cores", "mabi", "mfloat-abi", "opt-level"}
"""Options of the form ``llvm -mcpu=skylake``, used by older tutorials and TVM's tags."""

_ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}
"""Alternative names of architectures in triples."""

_TODO = _('Write llvm, native, or JSON such as {"kind": "llvm", "mcpu": "skylake"}')


@lru_cache(maxsize=64)
def make_target(text: str, threads: int) -> tvm.target.Target:
    """Make the target that a recipe names.

    Raises a `LowerscopeError` if TVM or LLVM does not know the target, or it is not a processor.

    `text`: ``"llvm"`` for any processor of this kind, ``"native"`` for this machine's own, or an
        argument of ``tvm.target.Target``: a kind, a tag, or JSON; also ``llvm -mcpu=…``.
    `threads`: number of cores to compile for; 0 for all that this process may use, or as many as
        the text says.
    """
    target = _made(_description(text, threads), text)
    if target.kind.name != "llvm":
        raise LowerscopeError(
            _(
                "the target {text!r} is of kind {name}; only processors are supported",
                text=text,
                name=target.kind.name,
            ),
            where="--target",
            todo=_("Choose a target of kind llvm"),
        )
    if "cl-opt" in target.attrs:
        raise LowerscopeError(
            _("LLVM's own options (cl-opt) are not accepted: they can make LLVM end the process"),
            where="--target",
            todo=_("Leave them out"),
        )
    _check(target, text)
    if threads and not int(target.attrs.get("num-cores", 0)):
        target = _made({**target.export(), "num-cores": threads}, text)
    return target


def _description(text: str, threads: int) -> object:
    if text == NATIVE:
        processor = tvm.get_global_func("target.llvm_get_system_cpu")()
        cores = min(threads or MACHINE, MACHINE)
        return {"kind": "llvm", "mcpu": processor, "num-cores": cores}
    if text.startswith("llvm "):
        return _from_flags(text)
    return text


def _from_flags(text: str) -> dict[str, Any]:
    """Parse ``llvm -mcpu=skylake -num-cores=4``, which TVM itself no longer accepts."""
    found: dict[str, Any] = {"kind": "llvm"}
    try:
        words = shlex.split(text)[1:]
    except ValueError as error:
        raise LowerscopeError(f"{text!r}: {error}", where="--target", todo=_TODO) from error
    for word in words:
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or not equals or name not in _FLAGS:
            known = _(", ").join(f"-{each}=…" for each in sorted(_FLAGS))
            raise LowerscopeError(
                _("{word!r} is not an option of a target", word=word),
                where="--target",
                todo=_("Available: {known}", known=known),
            )
        number = value.isascii() and value.isdigit()
        found[name] = int(value) if number else value.split(",") if name == "mattr" else value
    return found


def _made(description: object, text: str) -> tvm.target.Target:
    try:
        return tvm.target.Target(description)
    except TVM_ERRORS as error:
        reason = last_line(error).partition(". Target creation from")[0]
        raise LowerscopeError(
            _("TVM does not know the target {text!r}: {reason}", text=text, reason=reason),
            where="--target",
            todo=_TODO,
        ) from error


def _check(target: tvm.target.Target, text: str) -> None:
    """Reject names that LLVM does not know: it would use another processor, or crash."""
    known = [str(each) for each in tvm.get_global_func("target.llvm_get_targets")()]
    architecture = architecture_of(target)
    if _family(architecture) not in known:
        raise _unknown("architecture", architecture, known, text)
    cpu = cpu_of(target)
    # Without its processor: LLVM prints a complaint for each query about an unknown one.
    plain = _made({"kind": "llvm", "mtriple": triple_of(target)}, text)
    listed = [str(each) for each in tvm.get_global_func("target.llvm_get_cpu_archlist")(plain)]
    if cpu and cpu != "generic" and listed and cpu not in listed:
        raise _unknown(
            _("processor of {architecture}", architecture=architecture), cpu, listed, text
        )
    wanted = [str(each) for each in target.attrs.get("mattr", ())]
    has = features_of(target)
    for each in wanted:
        if each.startswith("+") and each[1:] not in has:
            raise _unknown(
                _("feature of {architecture}", architecture=architecture), each[1:], [], text
            )


def _unknown(kind: str, name: str, known: list[str], text: str) -> LowerscopeError:
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    return LowerscopeError(
        _("LLVM knows no {kind} called {name}", kind=kind, name=name),
        where=f"--target {text}",
        todo=_("Did you mean {close}?", close=alternatives(close))
        if close
        else _("See lowerscope targets"),
    )


def _family(architecture: str) -> str:
    """Return LLVM's name of an architecture: ``arm`` for ``armv7l``."""
    for prefix in ("armv", "thumbv"):
        if architecture.startswith(prefix):
            return prefix[:-1]
    if len(architecture) == 4 and architecture[0] == "i" and architecture.endswith("86"):
        return "i386"
    return architecture


def triple_of(target: tvm.target.Target) -> str:
    """Return a target's triple, by default that of this machine."""
    return str(target.attrs.get("mtriple", "") or host_triple())


def host_triple() -> str:
    """Return this machine's triple, ``x86_64-conda-linux-gnu``."""
    return str(tvm.get_global_func("target.llvm_get_system_triple")())


def architecture_of(target: tvm.target.Target) -> str:
    """Return the architecture of a target: ``x86_64``, ``aarch64``, …"""
    return architecture_in(triple_of(target))


def architecture_in(triple: str) -> str:
    name = triple.partition("-")[0]
    return _ARCHITECTURES.get(name, name)


def cpu_of(target: tvm.target.Target) -> str:
    """Return LLVM's name of a target's processor; empty for any."""
    return str(target.attrs.get("mcpu", ""))


def features_of(target: tvm.target.Target) -> frozenset[str]:
    """Return LLVM's names of the features of a target's processor."""
    found = tvm.get_global_func("target.llvm_get_cpu_features")(target)
    return frozenset(str(each) for each in found)


def target_json(triple: str, cpu: str, threads: int | None) -> str:
    """Return a target for another machine as the text that a user would type."""
    known: dict[str, Any] = {"kind": "llvm", "mtriple": triple, "mcpu": cpu}
    return json.dumps({**known, "num-cores": threads} if threads else known)


# --- Available targets, the effect of each, and whether it can run on this machine ---

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
    "dotprod": _("dot product"),
    "fullfp16": "FP16",
    "bf16": "BF16",
    "i8mm": _("int8 matrices"),
    "sve": "SVE",
    "sve2": "SVE2",
    "sme": "SME",
    "v": "RVV",
}
"""LLVM's names of the features that change how a model is computed, and their usual names."""

CATALOGUE = {
    NATIVE: _("this machine, with all of its features"),
    ANY_PROCESSOR: _("any processor of this kind"),
    '{"kind": "llvm", "mcpu": "x86-64-v3"}': _("x86 of the last ten years"),
    '{"kind": "llvm", "mcpu": "skylake-avx512"}': _("x86 servers with AVX-512"),
    '{"kind": "llvm", "mcpu": "sapphirerapids"}': _("x86 servers with VNNI, BF16 and AMX"),
    '{"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a72"}': _("Raspberry Pi 4"),
    '{"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a76"}': _("Raspberry Pi 5"),
    '{"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "neoverse-n1"}': _("ARM servers"),
    '{"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "neoverse-v1"}': (
        _("ARM servers with SVE")
    ),
}
"""Targets to choose from, with their purposes; any other can be typed."""

_SYSTEMS = ("linux", "darwin", "macos", "windows", "android")


def target_records(texts: Sequence[str], threads: int) -> tuple[TargetRecord, ...]:
    """Return the effect of each target; without any, of those of `CATALOGUE`.

    Raises `LowerscopeError` if there is no such target: see `make_target`.
    """
    return tuple(target_record(text, threads) for text in texts or CATALOGUE)


def target_record(text: str, threads: int) -> TargetRecord:
    """Return the effect of a target.

    Raises `LowerscopeError` if there is no such target: see `make_target`.
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
    return lacks(target, here, host_triple(), _("this machine"))


def lacks(
    target: tvm.target.Target, processor: tvm.target.Target, triple: str, machine: str
) -> str:
    """Return the reason why a machine cannot run code for a target; empty where it can.

    `processor`, `triple`: Processor and target triple of the machine.
    `machine`: in words: ``this machine``.
    """
    needed = triple_of(target)
    ours, theirs = architecture_in(triple), architecture_in(needed)
    if ours != theirs:
        return _(
            "it is for {theirs}, and {machine} is {ours}", theirs=theirs, machine=machine, ours=ours
        )
    if _system(triple) != _system(needed):
        return _(
            "it is for {system}, and {machine} has {system2}",
            system=_system(needed),
            machine=machine,
            system2=_system(triple),
        )
    missing = (features_of(target) & FEATURES.keys()) - features_of(processor)
    named = [FEATURES[each] for each in FEATURES if each in missing]
    return _("{machine} lacks {named}", machine=machine, named=enumeration(named)) if named else ""


def check_runs_here(target: tvm.target.Target) -> None:
    """Reject running code that is built for another machine.

    Raises `LowerscopeError` with the reason, and the way to a machine that can.
    """
    reason = hindrance(target)
    if reason:
        raise LowerscopeError(
            _("code built for this target cannot run here: {reason}", reason=reason),
            where="run",
            todo=_(
                "Run it on such a machine: --tracker HOST:PORT --key KEY; or choose the target "
                "native"
            ),
        )


def _system(triple: str) -> str:
    return next((each for each in _SYSTEMS if each in triple), _("no system"))
