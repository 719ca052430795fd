"""Messages between a tuning and its measuring process.

A message is its length in four bytes, and MessagePack.
"""

from __future__ import annotations

import struct
from typing import TypeVar

import msgspec

from lowerscope.core.errors import Problem

LENGTH = struct.Struct("<I")

T = TypeVar("T")


class Sized(msgspec.Struct, frozen=True):
    """A function at one size, as TVM writes it to JSON; see `AtSizes`.

    ``static`` is empty where it is the function itself.
    """

    function: str
    static: str = ""


class Subject(msgspec.Struct, frozen=True, tag=True):
    """The unscheduled function of the candidates that follow, which is run.

    Attributes
    ----------
    number
        Unique among all subjects; one that the process knows already is not run again.
    base
        Before it is scheduled.
    target
        As JSON.
    seed
        Of its inputs.
    threads
        Number of threads that it is run with.
    seconds
        Time limit of its run; without a result by then, nothing is checked.
    """

    number: int
    base: Sized
    target: str
    seed: int
    threads: int
    seconds: float


class Candidate(msgspec.Struct, frozen=True, tag=True):
    """A schedule of a subject: it is compiled, timed, and checked where it is the best so far.

    Attributes
    ----------
    subject, scheduled
        Number of the subject, and the scheduled function.
    best
        The time in seconds that it has to beat; ``None`` for any.
    rival
        The function with that time: a candidate that seems to beat it is timed by turns with it,
        since the machine may have been busy at the earlier measurement.
    always
        Time both by turns also where the candidate does not seem to beat it.
    """

    subject: int
    scheduled: Sized
    best: float | None = None
    rival: Sized | None = None
    always: bool = False


class Outcome(msgspec.Struct, frozen=True):
    """Outcome of a subject or a candidate.

    Attributes
    ----------
    seconds
        The shortest of some calls; ``None`` where it could not be run.
    rival_seconds
        Those of the rival, where they were timed by turns.
    disturbed
        Whether other programs used the processors that they were to run on.
    reason
        Why not, or why it does not count: it computes something else.
    problem
        Why nothing more can be measured; ``None`` where that is not so.
    """

    seconds: float | None = None
    reason: str = ""
    problem: Problem | None = None
    rival_seconds: float | None = None
    disturbed: bool = False


Message = Subject | Candidate


def frame(message: msgspec.Struct) -> bytes:
    """Return a message as a frame."""
    data = msgspec.msgpack.encode(message)
    return LENGTH.pack(len(data)) + data
