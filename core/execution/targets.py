"""Parsing, checking and properties of targets."""

from __future__ import annotations

import difflib
import json
import shlex
from functools import lru_cache
from typing import Any

import tvm

from lowerscope.core.errors import TVM_ERRORS, LowerscopeError, last_line
from lowerscope.core.execution.environment import MACHINE

_FLAGS = {"mcpu", "mtriple", "mattr", "num-cores", "mabi", "mfloat-abi", "opt-level"}
"""Options of the form ``llvm -mcpu=skylake``, used by older tutorials and TVM's tags."""

_ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}
"""Alternative names of architectures in triples."""

_TODO = 'Write llvm, native, or JSON such as {"kind": "llvm", "mcpu": "skylake"}'

NATIVE = "native"
"""A recipe's name for this machine's own processor."""


@lru_cache(maxsize=64)
def make_target(text: str, threads: int) -> tvm.target.Target:
    """Make the target that a recipe names.

    Raises a `LowerscopeError` if TVM or LLVM does not know the target, or it is not a processor.

    Parameters
    ----------
    text
        ``"llvm"`` for any processor of this kind, ``"native"`` for this machine's own, or an
        argument of ``tvm.target.Target``: a kind, a tag, or JSON; also ``llvm -mcpu=…``.
    threads
        Number of cores to compile for; 0 for all that this process may use, or as many as the
        text says.
    """
    target = _made(_description(text, threads), text)
    if target.kind.name != "llvm":
        raise LowerscopeError(
            f"the target {text!r} is of kind {target.kind.name}, and only processors are compiled "
            "for",
            where="--target",
            todo="Choose a target of kind llvm",
        )
    if "cl-opt" in target.attrs:
        raise LowerscopeError(
            "options of LLVM's own (cl-opt) are not taken: LLVM ends the process at them",
            where="--target",
            todo="Leave them out",
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
            known = ", ".join(f"-{each}=…" for each in sorted(_FLAGS))
            raise LowerscopeError(
                f"{word!r} is no option of a target", where="--target", todo=f"There are {known}"
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
            f"TVM does not know the target {text!r}: {reason}", where="--target", todo=_TODO
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
        raise _unknown(f"processor of {architecture}", cpu, listed, text)
    wanted = [str(each) for each in target.attrs.get("mattr", ())]
    has = features_of(target)
    for each in wanted:
        if each.startswith("+") and each[1:] not in has:
            raise _unknown(f"feature of {architecture}", each[1:], [], text)


def _unknown(kind: str, name: str, known: list[str], text: str) -> LowerscopeError:
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    return LowerscopeError(
        f"LLVM knows no {kind} called {name}",
        where=f"--target {text}",
        todo=f"Did you mean {' or '.join(close)}?" if close else "See lowerscope targets",
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
    """Return the architecture of a triple."""
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
