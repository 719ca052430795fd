"""What a guarded run has found. This module imports neither torch nor TVM."""

from __future__ import annotations

import msgspec


class Trespass(msgspec.Struct, frozen=True, kw_only=True):
    """A call that has changed memory that is not its own.

    Attributes
    ----------
    call
        Its index in `RunRecord.calls`.
    name
        What is called, with the FX nodes that it computes.
    text
        What it did: ``wrote 32 bytes behind its output (4, 10) float32``.
    nodes
        Ids of the FX nodes that it computes.
    """

    call: int
    name: str
    text: str
    nodes: tuple[str, ...] = ()


class GuardedRun(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a guarded run.

    Attributes
    ----------
    calls
        How many calls were made with guarded memory.
    trespasses
        Those that changed memory that is not their own, in order.
    until
        What was called up to the first of these: see `Problem.calls`.
    milliseconds
        How long the run took.
    failure
        Why the run did not end well; empty where it did.
    """

    calls: int
    trespasses: tuple[Trespass, ...] = ()
    until: tuple[str, ...] = ()
    milliseconds: float = 0.0
    failure: str = ""
