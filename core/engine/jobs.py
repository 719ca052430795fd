"""The child's work: jobs, the lanes that they run in, and what a job can say meanwhile."""

from __future__ import annotations

import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import msgspec

from lowerscope.core import sandbox
from lowerscope.core.engine.protocol import Failure, Progress, ProtocolError, Reply, to_raw
from lowerscope.core.errors import (
    Cancelled,
    LowerscopeError,
    Problem,
    is_interrupt,
    last_line,
    problem_of_system,
)
from lowerscope.core.memory_limit import is_shortage, shortage
from lowerscope.core.running.running_call import CallWriter
from lowerscope.core.sources.approved_files import raise_refused, refusals

PROGRESS_INTERVAL = 0.05
"""Seconds between two messages on the progress of one job, at least."""

EARLY_TEXTS = 20
"""So many times, a job's new text does not wait for the interval to be over."""

Send = Callable[[Reply | Failure | Progress], None]

CANCELLED = Problem(what="Cancelled", code="cancelled")


class Context:
    """What a method is given besides its parameters: a way to tell, and to hear of a cancel."""

    def __init__(
        self,
        tell: Callable[[str, float | None], None],
        stop: threading.Event,
        calls: CallWriter | None = None,
    ) -> None:
        self._tell = tell
        self._stop = stop
        self._calls = calls

    def report(self, text: str, fraction: float | None = None) -> None:
        """Say what is being done, and how much of it is done, from 0 to 1 where that is known.

        It may be called at any rate.

        Raises
        ------
        Cancelled
            If the answer is no longer wanted.
        """
        self.check()
        self._tell(text, fraction)

    def check(self) -> None:
        """Raise `Cancelled` if the answer is no longer wanted."""
        if self._stop.is_set():
            raise Cancelled

    def begin_calls(self, names: Sequence[str]) -> None:
        """Say that a run of these calls begins; with none, that it is over."""
        if self._calls is not None:
            self._calls.begin(names)

    def at_call(self, index: int, inside: bool) -> None:
        """Say that a call of the run is under way, or, not `inside`, that it comes next."""
        if self._calls is not None:
            self._calls.at(index, inside)

    def at_part(self, part: str) -> None:
        """Say which part of the recipe is being applied; ``""`` when it is over."""
        if self._calls is not None:
            self._calls.at_part(part)


Call = Callable[[Any, Context], Any]
"""A method: takes its parameter struct and a context, returns its result."""


@dataclass
class _Told:
    """What has been sent of a job's progress, and what waits."""

    at: float = 0.0
    text: str = ""
    early: int = 0
    waiting: Progress | None = None


class ProgressPace:
    """Sends the progress of jobs no faster than `PROGRESS_INTERVAL`, but always the latest.

    The first texts of a job go at once, so that the window knows what a job was at when it crashed.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._changed = threading.Condition()
        self._told: dict[int, _Told] = {}
        threading.Thread(target=self._send_late, name="progress", daemon=True).start()

    def put(self, progress: Progress) -> None:
        """Send `progress` now or, unless it is overtaken, when the interval is over."""
        with self._changed:
            told = self._told.setdefault(progress.id, _Told())
            told.waiting = progress
            if _delay(told) <= 0:
                self._send_waiting(told)
            elif told.text != progress.text and told.early < EARLY_TEXTS:
                told.early += 1
                self._send_waiting(told)
            else:
                self._changed.notify()

    def finish(self, job: int) -> None:
        """Send no more of `job`."""
        with self._changed:
            self._told.pop(job, None)

    def _send_waiting(self, told: _Told) -> None:
        assert told.waiting is not None
        told.at = time.monotonic()
        told.text = told.waiting.text
        self._send(told.waiting)
        told.waiting = None

    def _send_late(self) -> NoReturn:
        with self._changed:
            while True:
                late = [told for told in self._told.values() if told.waiting is not None]
                for told in late:
                    if _delay(told) <= 0:
                        self._send_waiting(told)
                delays = [_delay(told) for told in late if told.waiting is not None]
                self._changed.wait(max(0.0, min(delays)) if delays else None)


def _delay(told: _Told) -> float:
    """Return the seconds until more may be sent of a job."""
    return told.at + PROGRESS_INTERVAL - time.monotonic()


@dataclass(eq=False)
class Job:
    """A request that has been accepted; ``stop`` is set when it is cancelled."""

    id: int
    method: str
    params: msgspec.Struct
    stop: threading.Event = field(default_factory=threading.Event)


class Jobs:
    """All jobs that have no answer yet. Every job gets one answer.

    Parameters
    ----------
    send
        Sends an answer.
    calls
        Takes down which call of a run is under way; ``None`` for nowhere.
    """

    def __init__(self, send: Send, calls: CallWriter | None = None) -> None:
        self._send = send
        self._calls = calls
        self._pace = ProgressPace(send)
        self._lock = threading.Lock()
        self._waiting: dict[int, Job] = {}
        self._running: dict[int, Job] = {}

    def add(self, job: Job) -> None:
        """Accept `job`, which some lane will run."""
        with self._lock:
            self._waiting[job.id] = job

    def cancel(self, id: int) -> None:
        """Answer a job that waits; tell one that runs to stop; ignore one that is done."""
        with self._lock:
            waiting = self._waiting.pop(id, None)
            running = self._running.get(id)
        if waiting is not None:
            self._send(Failure(id, CANCELLED))
        elif running is not None:
            running.stop.set()

    def run(self, job: Job, call: Call) -> None:
        """Run `job` by `call` and answer it, unless it was cancelled before."""
        with self._lock:
            if self._waiting.pop(job.id, None) is None:
                return
            self._running[job.id] = job
        answer = self._answer(job, call)
        with self._lock:
            del self._running[job.id]
        self._pace.finish(job.id)
        try:
            self._send(answer)
        except ProtocolError as error:
            self._send(Failure(job.id, Problem(what=f"internal error: {error}", code="internal")))

    def _answer(self, job: Job, call: Call) -> Reply | Failure:
        def tell(text: str, fraction: float | None) -> None:
            self._pace.put(Progress(job.id, text, fraction))

        before = refusals()
        try:
            try:
                result = call(job.params, Context(tell, job.stop, self._calls))
            finally:
                raise_refused(before)
            return Reply(job.id, to_raw(result))
        except BaseException as error:  # a model file may raise SystemExit or anything else
            if is_interrupt(error):
                raise
            if job.stop.is_set() or isinstance(error, Cancelled):
                return Failure(job.id, CANCELLED)
            return Failure(job.id, problem_of(error))
        finally:
            if self._calls is not None:
                # It may have been left in the middle of a part.
                self._calls.at_part("")


class Lane:
    """Jobs that run one after the other."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Job] = queue.SimpleQueue()

    def put(self, job: Job) -> None:
        """Add `job` at the end."""
        self._queue.put(job)

    def run(self, run: Callable[[Job], None]) -> NoReturn:
        """Run the lane's jobs by `run`, for ever."""
        while True:
            run(self._queue.get())


def problem_of(error: BaseException) -> Problem:
    """Return the problem that `error` carries, or that memory or the sandbox refused something.

    Anything else is an internal error, and logged.
    """
    if isinstance(error, LowerscopeError):
        return sandbox.explained(error.problem, error)
    if is_shortage(error):
        return shortage(last_line(error))
    problem = problem_of_system(error)
    if problem is not None:
        return sandbox.explained(problem, error)
    text = "".join(traceback.format_exception(error))
    print(text, file=sys.stderr, flush=True)
    summary = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
    problem = Problem(what=f"internal error: {summary}", code="internal", details=text)
    return sandbox.explained(problem, error)
