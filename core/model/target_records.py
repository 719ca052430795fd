"""Targets as they are shown, with the features that they give a compiler.

This module imports neither torch nor TVM.
"""

from __future__ import annotations

import msgspec

from lowerscope.core.model.encoding import UNREADABLE

_LONGEST = 24
"""Maximum characters of a target that has no shorter name."""


class TargetRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A target and its effect."""

    text: str  # as a recipe names it
    title: str = ""  # in words; empty for one that was typed
    # architecture, cpu: as LLVM calls them
    architecture: str
    cpu: str
    # vector_bits, lanes, registers: width of a vector register, how many float32 that is, and how
    # many registers there are
    vector_bits: int
    lanes: int
    registers: int
    threads: int  # number of cores that rules distribute work to
    # Features of the processor beyond the baseline of its architecture, by their usual names.
    features: tuple[str, ...] = ()
    hindrance: str = ""  # reason why code for it cannot run on this machine; empty where it can


def vector_text(record: TargetRecord) -> str:
    """Return the width of vectors in words: ``512 bits, 16 float32, 32 registers``."""
    return f"{record.vector_bits} bits, {record.lanes} float32, {record.registers} registers"


def target_line(record: TargetRecord) -> str:
    """Return a description of a target on one line."""
    parts = [
        f"{record.architecture} {record.cpu}",
        f"vectors of {vector_text(record)}",
        f"{record.threads} {'thread' if record.threads == 1 else 'threads'}",
        ", ".join(record.features) or "no more features",
        record.hindrance or "runs here",
    ]
    return "; ".join(parts)


def short_target(text: str) -> str:
    """Return a short name of a target: its processor, where it has one."""
    if text.startswith("llvm "):
        named = dict(each.lstrip("-").partition("=")[::2] for each in text.split()[1:])
        return _named(named.get("mcpu"), named.get("mtriple")) or text
    try:
        named = msgspec.json.decode(text, type=dict[str, object])
    except UNREADABLE:
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return _named(named.get("mcpu"), named.get("mtriple")) or str(named.get("kind", text))


def _named(cpu: object, triple: object) -> str:
    architecture = str(triple or "").partition("-")[0]
    if not cpu:
        return architecture
    return f"{cpu} ({architecture})" if architecture else str(cpu)
