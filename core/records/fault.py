"""Results of a guarded run. This module imports neither torch nor TVM."""

from __future__ import annotations

import msgspec


class Trespass(msgspec.Struct, frozen=True, kw_only=True):
    """An out-of-bounds write of a call.

    Attributes
    ----------
    call
        Its index in `RunRecord.calls`.
    name
        Its function, with the FX nodes that it computes.
    text
        Description: ``wrote 32 bytes behind its output (4, 10) float32``.
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
        Number of calls with guarded memory.
    trespasses
        Those that changed memory that is not their own, in order.
    until
        The calls up to the first of these: see `Problem.calls`.
    milliseconds
        Duration of the run.
    failure
        Reason why the run failed; empty where it did not.
    """

    calls: int
    trespasses: tuple[Trespass, ...] = ()
    until: tuple[str, ...] = ()
    milliseconds: float = 0.0
    failure: str = ""
