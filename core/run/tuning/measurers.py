"""Measurement of candidates by another process, which they may crash or hang."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TypeVar

import msgspec

from lowerscope.core.model.encoding import UNREADABLE
from lowerscope.core.model.problems import Problem, error_of

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

    `number`: unique among all subjects; one that the process knows already is not run again.
    `target`: as JSON. `seconds`: time limit of its run; without a result by then, nothing is
    checked.
    """

    number: int
    base: Sized
    target: str
    seed: int
    threads: int
    seconds: float


class Candidate(msgspec.Struct, frozen=True, tag=True):
    """A schedule of a subject: it is compiled, timed, and checked where it is the best so far.

    `subject`, `scheduled`: number of the subject, and the scheduled function.
    `best`: the time in seconds that it has to beat; ``None`` for any.
    `rival`: the function with that time: a candidate that seems to beat it is timed by turns with
        it, since the machine may have been busy at the earlier measurement.
    `always`: time both by turns also where the candidate does not seem to beat it.
    """

    subject: int
    scheduled: Sized
    best: float | None = None
    rival: Sized | None = None
    always: bool = False


class Outcome(msgspec.Struct, frozen=True):
    """Outcome of a subject or a candidate.

    `seconds`: the shortest of some calls; ``None`` where it could not be run.
    `rival_seconds`: those of the rival, where they were timed by turns.
    `disturbed`: whether other programs used the processors that they were to run on.
    `reason`: why not, or why it does not count: it computes something else.
    `problem`: why nothing more can be measured; ``None`` where that is not so.
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


_POLL = 0.05
"""Seconds between checks for cancellation."""

_START = 60.0
"""Seconds that a process may take to start."""

PATIENCE = 10.0
"""Seconds to compile, run and check a candidate, in addition to its timed calls."""


class _Left:
    """Time that is left, in which periods without a check count little.

    A machine may sleep, and both the measuring and the waiting process may be stopped.
    """

    def __init__(self, seconds: float) -> None:
        self._left = seconds
        self._looked = time.monotonic()

    def check(self) -> None:
        """Raise `TimeoutError` if there is none."""
        now = time.monotonic()
        self._left -= min(now - self._looked, 4 * _POLL)
        self._looked = now
        if self._left < 0:
            raise TimeoutError


class LocalMeasurer:
    """Measures on this machine, in a process that is restarted after a crash.

    `check`: called repeatedly while it waits; may raise to cancel.
    """

    def __init__(
        self, check: Callable[[], None], patience: float = PATIENCE, words: Sequence[str] = ()
    ) -> None:
        self._check = check
        self._words = words
        self._patience = patience
        self._subject: Subject | None = None
        self._process = _start(self._words)
        self._fresh = True

    def __enter__(self) -> LocalMeasurer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._kill()

    @property
    def process(self) -> int:
        """Id of the measuring process."""
        return self._process.pid

    def begin(self, subject: Subject) -> Outcome:
        """Run an unscheduled function; candidates of it follow."""
        self._subject = subject
        return self._asked(subject, 2 * subject.seconds + self._patience)

    def measure(self, candidate: Candidate) -> Outcome:
        """Compile, time and check a candidate of the latest subject."""
        assert self._subject is not None, "a subject comes before its candidates"
        if self._fresh:
            begun = self.begin(self._subject)
            if self._fresh:
                return begun
        calls = 0.0 if candidate.best is None else 10 * candidate.best
        return self._asked(candidate, self._patience + calls)

    def _asked(self, message: Message, seconds: float) -> Outcome:
        if self._fresh:
            seconds += _START
        try:
            outcome = self._answer(message, seconds)
            if outcome.problem is not None:
                raise error_of(outcome.problem)
            return outcome
        except TimeoutError:
            self._restart()
            return Outcome(reason=f"it took longer than {seconds:g} s, and was stopped")
        except UNREADABLE as error:
            self._restart()
            return Outcome(reason=f"it has spoiled the process that measures it: {error}")
        except EOFError:
            code = self._process.wait()
            self._restart()
            how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            return Outcome(reason=f"it crashed with {how}")

    def _answer(self, message: Message, seconds: float) -> Outcome:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        left = _Left(seconds)
        try:
            self._process.stdin.write(frame(message))
            self._process.stdin.flush()
        except BrokenPipeError:
            raise EOFError from None
        source = self._process.stdout.fileno()
        head = self._read(source, LENGTH.size, left)
        (length,) = LENGTH.unpack(head)
        outcome = self._read(source, length, left)
        self._fresh = False
        return msgspec.msgpack.decode(outcome, type=Outcome)

    def _read(self, source: int, size: int, left: _Left) -> bytes:
        data = b""
        while len(data) < size:
            self._check()
            left.check()
            if not select.select([source], [], [], _POLL)[0]:
                continue
            more = os.read(source, size - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def _restart(self) -> None:
        self._kill()
        self._process = _start(self._words)
        self._fresh = True

    def _kill(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            # Unwritten data is no longer needed.
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


def _start(words: Sequence[str]) -> subprocess.Popen[bytes]:
    module = "lowerscope.core.run.tuning.measuring_process"
    program = [sys.executable, "-P", "-m", module, str(os.getpid()), *words]
    return subprocess.Popen(
        program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
