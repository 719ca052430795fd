"""Jobs of a child process, their lanes, and their progress."""

from __future__ import annotations

import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from lowerscope.core.engine.protocol import Failure, Progress, ProtocolError, Reply, to_raw
from lowerscope.core.files.approved import raise_refused, refusals
from lowerscope.core.model.problems import (
    Cancelled,
    LowerscopeError,
    Problem,
    is_interrupt,
    last_line,
    problem_of_system,
)
from lowerscope.core.model.queries import Query
from lowerscope.core.sandbox import bubblewrap
from lowerscope.core.sandbox.memory_limit import is_shortage, shortage
from lowerscope.core.sandbox.running_call import CallWriter

PROGRESS_INTERVAL = 0.05
"""Minimum time between two messages on the progress of one job, in seconds."""

EARLY_TEXTS = 20
"""Number of texts of a job that are sent without waiting for the interval."""

Send = Callable[[Reply | Failure | Progress], None]

CANCELLED = Problem(what="Cancelled", code="cancelled")


class Context:
    """The progress of a job, and whether it is cancelled."""

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
        """Report the work under way, and its share done, from 0 to 1 where that is known.

        It may be called at any rate.

        Raises a `Cancelled` if the job is cancelled.
        """
        self.check()
        self._tell(text, fraction)

    def check(self) -> None:
        """Raise `Cancelled` if the job is cancelled."""
        if self._stop.is_set():
            raise Cancelled

    def begin_calls(self, names: Sequence[str]) -> None:
        """Report the start of a run of these calls; with none, its end."""
        if self._calls is not None:
            self._calls.begin(names)

    def at_call(self, index: int, inside: bool) -> None:
        """Report that a call of the run is under way or, if not `inside`, that it comes next."""
        if self._calls is not None:
            self._calls.at(index, inside)

    def at_part(self, part: str) -> None:
        """Report the part of the recipe that is being applied; ``""`` at the end."""
        if self._calls is not None:
            self._calls.at_part(part)


Answer = Callable[[Query[Any], Context], Any]
"""Takes a query and a context, and returns the answer."""


class NotCached(Exception):
    """The answer has to be computed, and not in the light lane."""


@dataclass
class _Told:
    """Progress of a job that has been sent, and that waits."""

    at: float = 0.0
    text: str = ""
    early: int = 0
    waiting: Progress | None = None


class ProgressPace:
    """Sends the progress of jobs at intervals of `PROGRESS_INTERVAL`, but always the latest.

    The first texts of a job go at once, so that the window knows the work of a job that crashed.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._changed = threading.Condition()
        self._told: dict[int, _Told] = {}
        threading.Thread(target=self._send_late, name="progress", daemon=True).start()

    def put(self, progress: Progress) -> None:
        """Send `progress` now or, unless it is superseded, when the interval is over."""
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
    """Return the seconds until the next message on a job may be sent."""
    return told.at + PROGRESS_INTERVAL - time.monotonic()


@dataclass(eq=False)
class Job:
    """A request that has been accepted; ``stop`` is set when it is cancelled."""

    id: int
    query: Query[Any]
    stop: threading.Event = field(default_factory=threading.Event)


class Jobs:
    """All jobs that have no answer yet. Every job gets one answer.

    Args:
        send: Sends an answer.
        calls: Records the call of a run that is under way; ``None`` for no record.
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
            if running is not None:
                running.stop.set()
        if waiting is not None:
            self._send(Failure(id, CANCELLED))

    def run(self, job: Job, answer_to: Answer) -> bool:
        """Run `job` and answer it, unless it was cancelled before.

        Returns:
            Whether the job is done: ``False`` where `answer_to` raised `NotCached`, after which it
                waits again.
        """
        with self._lock:
            if self._waiting.pop(job.id, None) is None:
                return True
            self._running[job.id] = job
        answer = self._answer(job, answer_to)
        self._pace.finish(job.id)
        with self._lock:
            del self._running[job.id]
            if answer is None and job.stop.is_set():
                # Cancelled since then: it does not wait again, perhaps behind a long run.
                answer = Failure(job.id, CANCELLED)
            if answer is None:
                self._waiting[job.id] = job
                return False
        try:
            self._send(answer)
        except ProtocolError as error:
            self._send(Failure(job.id, Problem(what=f"internal error: {error}", code="internal")))
        return True

    def _answer(self, job: Job, answer_to: Answer) -> Reply | Failure | None:
        def tell(text: str, fraction: float | None) -> None:
            self._pace.put(Progress(job.id, text, fraction))

        before = refusals()
        try:
            try:
                result = answer_to(job.query, Context(tell, job.stop, self._calls))
            finally:
                raise_refused(before)
            return Reply(job.id, to_raw(result))
        except BaseException as error:  # a model file may raise SystemExit or anything else
            if is_interrupt(error):
                raise
            if isinstance(error, NotCached) and not job.stop.is_set():
                return None
            if job.stop.is_set() or isinstance(error, Cancelled):
                return Failure(job.id, CANCELLED)
            return Failure(job.id, problem_of(error))
        finally:
            if self._calls is not None:
                # It may have ended in the middle of a part.
                self._calls.at_part("")


class Lane:
    """Jobs that run one after the other."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Job] = queue.SimpleQueue()

    def put(self, job: Job) -> None:
        """Add `job` at the end."""
        self._queue.put(job)

    def run(self, run: Callable[[Job], None]) -> NoReturn:
        """Run the lane's jobs by `run`, forever."""
        while True:
            run(self._queue.get())


def problem_of(error: BaseException) -> Problem:
    """Return the problem that `error` carries, or that of memory or the sandbox.

    Anything else is an internal error, and logged.
    """
    if isinstance(error, LowerscopeError):
        return bubblewrap.explained(error.problem, error)
    if is_shortage(error):
        return shortage(last_line(error))
    problem = problem_of_system(error)
    if problem is not None:
        return bubblewrap.explained(problem, error)
    text = "".join(traceback.format_exception(error))
    print(text, file=sys.stderr, flush=True)
    summary = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
    problem = Problem(what=f"internal error: {summary}", code="internal", details=text)
    return bubblewrap.explained(problem, error)
