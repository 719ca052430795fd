"""The program that both children run: reads requests, runs them in two lanes, answers.

The descriptors of its pipes are taken before anything that might print is imported: any later
output goes to stderr, which is the window's log. The heavy lane runs in the main thread, since a
model file may do what is allowed only there.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import queue
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NoReturn, Protocol, get_args

import msgspec

from lowerscope.core.engine.protocol import (
    TO_CHILD,
    VERSION,
    Approved,
    Cancel,
    Failure,
    FrameReader,
    Hello,
    Progress,
    ProtocolError,
    Ready,
    Reply,
    Request,
    ToChild,
    ToWindow,
    encode_frame,
    failure_of,
    reply_to,
)
from lowerscope.core.files.approved import put_in_force, raise_refused, refusals
from lowerscope.core.ir.libraries import import_libraries
from lowerscope.core.model.encoding import UNREADABLE
from lowerscope.core.model.problems import (
    Cancelled,
    LowerscopeError,
    Problem,
    is_interrupt,
    last_line,
    problem_of_system,
)
from lowerscope.core.model.queries import QUERIES, LaneName, Query, Role
from lowerscope.core.model.texts import _
from lowerscope.core.sandbox import bubblewrap
from lowerscope.core.sandbox.memory_limit import (
    is_shortage,
    limit_memory,
    shortage,
    taken_by_group,
    task_limit,
)
from lowerscope.core.sandbox.running_call import CallWriter
from lowerscope.core.sandbox.temporary_files import remove_own

PROGRESS_INTERVAL = 0.05
"""Minimum time between two messages on the progress of one job, in seconds."""

EARLY_TEXTS = 20
"""Number of texts of a job that are sent without waiting for the interval."""

REST_AFTER = 1.0
"""Time without jobs after which the engine rests, in seconds."""

Send = Callable[[Reply | Failure | Progress], None]

CANCELLED = Problem(what=_("Cancelled"), code="cancelled")


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
            self._send(Failure(job.id, _internal(error)))
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
            return reply_to(job.id, result)
        except BaseException as error:  # a model file may raise SystemExit or anything else
            if is_interrupt(error):
                raise
            if isinstance(error, NotCached) and not job.stop.is_set():
                return None
            if job.stop.is_set() or isinstance(error, Cancelled):
                return Failure(job.id, CANCELLED)
            return failure_of(job.id, problem_of(error))
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

    def is_empty(self) -> bool:
        """Return whether no job waits."""
        return self._queue.empty()

    def run(self, run: Callable[[Job], None], rest: Callable[[], None] | None = None) -> NoReturn:
        """Run the lane's jobs by `run`, forever; call `rest` when there was none for a while."""
        while True:
            try:
                job = self._queue.get(timeout=None if rest is None else REST_AFTER)
            except queue.Empty:
                assert rest is not None
                rest()
                job = self._queue.get()
            run(job)


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
    return bubblewrap.explained(_internal(summary, text), error)


def _internal(error: object, details: str = "") -> Problem:
    return Problem(what=_("internal error: {error}", error=error), code="internal", details=details)


class Answers(Protocol):
    """The code behind all queries: a `core.pipeline.Pipeline`."""

    def answer(self, query: Query[Any], progress: Context) -> Any:
        """Return the answer to a query."""

    def is_cached(self, query: Query[Any], progress: Context) -> bool:
        """Return whether a query that is ``cached_first`` can be answered at once."""

    def rest(self, is_wanted: Callable[[], bool]) -> None:
        """Free memory while nothing is asked: until `is_wanted`."""


Warm = Callable[[], Answers]
"""Imports all that answering needs, and returns it."""


def serve(
    role: Role, warm: Warm, calls_file: int | None = None, memory: int | None = None
) -> NoReturn:
    """Answer queries on descriptors 0 and 1 until the window closes the pipe.

    Args:
        role: The role of this child.
        warm: Called when the window has been greeted.
        calls_file: The descriptor by which the window reads the call of a run that is under way, if
            any.
        memory: Limit on the memory of this process, and of all that it starts together, in bytes;
            ``None`` for none.
    """
    channel = Channel.claim()
    lead_group()
    faulthandler.enable(file=2)
    running = None if calls_file is None else CallWriter(calls_file)
    channel.start_guard(memory, running)
    if memory is not None:
        limit_memory(memory)
    # A model file that reads the command line must not see this program's.
    sys.argv[1:] = []

    jobs = Jobs(channel.send, running)
    lanes: dict[LaneName, Lane] = {"heavy": Lane(), "light": Lane()}
    _start("reader", partial(_read, channel, role, jobs, lanes))

    channel.send(Hello(VERSION, os.getpid(), role))
    began = time.monotonic()
    try:
        answers = warm()
    except Exception as error:
        channel.send(failure_of(0, problem_of(error)))
        end_group(1)
    channel.send(Ready((time.monotonic() - began) * 1000))

    def answer_cached(query: Query[Any], context: Context) -> Any:
        if query.cached_first and not answers.is_cached(query, context):
            raise NotCached
        return answers.answer(query, context)

    def run_light(job: Job) -> None:
        if not jobs.run(job, answer_cached):
            lanes["heavy"].put(job)

    def run_heavy(job: Job) -> None:
        jobs.run(job, answers.answer)

    def rest() -> None:
        answers.rest(lambda: not lanes["heavy"].is_empty())

    _start("light lane", partial(lanes["light"].run, run_light))
    # The worker measures, and its tensors stay where they are.
    lanes["heavy"].run(run_heavy, rest if role == "engine" else None)


def _start(name: str, target: Callable[[], None]) -> None:
    threading.Thread(target=target, name=name, daemon=True).start()


def _read(channel: Channel, role: Role, jobs: Jobs, lanes: Mapping[LaneName, Lane]) -> NoReturn:
    """Put requests into their lanes, until the window has gone."""
    try:
        for message in channel.messages():
            match message:
                case Approved():
                    put_in_force(message.files)
                case Cancel():
                    jobs.cancel(message.id)
                case Request():
                    try:
                        job = _accept(message, role)
                    except ProtocolError as error:
                        channel.send(Failure(message.id, _internal(error)))
                    else:
                        jobs.add(job)
                        lanes[job.query.lane].put(job)
    except ProtocolError as error:
        print(f"The window sent something else than a message: {error}", file=sys.stderr)
        end_group(1)
    remove_own()
    end_group(0)


def _accept(request: Request, role: Role) -> Job:
    """Return the job of `request`.

    Raises a `ProtocolError` if there is no such query, its fields are of other types, or the other
    child answers it.
    """
    kind = QUERIES.get(request.name)
    if kind is None:
        raise ProtocolError(f"there is no query {request.name!r}")
    try:
        query = msgspec.msgpack.decode(request.query, type=kind)
    except UNREADABLE as error:
        raise ProtocolError(f"{request.name}: {error}") from error
    if query.child != role:
        raise ProtocolError(f"{request.name} is for the {query.child}")
    return Job(request.id, query)


def _open_pipeline() -> Answers:
    """Import torch and TVM, and return a pipeline."""
    # TVM replaces the handlers of fatal signals by its own, which print the C++ side of a crash.
    # Enabled after that, faulthandler prints the Python side and leaves the rest to them.
    faulthandler.disable()
    import_libraries("lowerscope.core.stages")
    faulthandler.enable(file=2)

    from lowerscope.core.stages import Pipeline

    return Pipeline()


_READ_SIZE = 2**20
_GUARD_PERIOD_MS = 250


class Channel:
    """The pipes to and from the window. Messages may be sent from any thread."""

    def __init__(self, source: int, sink: int) -> None:
        self._source = source
        self._sink = sink
        self._sending = threading.Lock()

    @classmethod
    def claim(cls) -> Channel:
        """Take descriptors 0 and 1; leave the null device and stderr in their place."""
        source, sink = os.dup(0), os.dup(1)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)
        return cls(source, sink)

    def send(self, message: ToWindow) -> None:
        """Write `message`; without a window to read it, end the process group.

        Raises a `ProtocolError` if the message is too long or has no encoding. Nothing has been
        written then.
        """
        frame = memoryview(encode_frame(message))
        with self._sending:
            try:
                while frame:
                    frame = frame[os.write(self._sink, frame) :]
            except BrokenPipeError:
                end_group(0)

    def messages(self) -> Iterator[ToChild]:
        """Yield the messages of the window, until it closes the pipe.

        Raises a `ProtocolError` if it sends something that is not a message.
        """
        reader = FrameReader(TO_CHILD)
        while data := os.read(self._source, _READ_SIZE):
            yield from reader.feed(data)

    def start_guard(self, limit: int | None = None, calls: CallWriter | None = None) -> None:
        """Fork a process that kills the group when the window or this process has gone.

        It also does so when the group holds too much memory, since each process that this one
        starts has a limit of its own, or has too many processes and threads. In a sandbox, whose
        supervisor counts all of its processes, it does not.

        A thread of this process can do so only while it gets the interpreter lock, which foreign
        code may hold forever, and not at all after a crash. The process must not have threads yet.
        Does nothing where this process does not lead its group, such as in a shell's pipeline.

        Args:
            limit: Bytes that the processes of the group may hold together; ``None`` for any number.
            calls: Records when they hold more.
        """
        if sys.platform == "win32" or not _leads_group():
            return
        leader = os.getpid()
        if os.fork() != 0:
            return
        # A copy of the writing end would keep the window from seeing the end of the stream.
        for descriptor in (0, 1, 2, self._sink):
            os.close(descriptor)
        window = select.poll()
        window.register(self._source, 0)  # 0: only that the other end is closed, no data
        gone = False
        while not gone and os.getppid() == leader:
            gone = bool(window.poll(_GUARD_PERIOD_MS))
            if bubblewrap.is_inside():
                continue
            held, tasks = taken_by_group(leader)
            if limit is not None and held > limit:
                if calls is not None:
                    calls.say_too_much(held)
                break
            if tasks > task_limit():
                if calls is not None:
                    calls.say_too_many(tasks)
                break
        # A window that still runs closes the pipe as well, and then reads the work of this process
        # at its end.
        if gone and os.getppid() == leader:
            remove_own()
        os.killpg(leader, signal.SIGKILL)


def lead_group() -> None:
    """Lead a process group: in a sandbox, the program that made it leads the first one."""
    if bubblewrap.is_inside() and not _leads_group():
        os.setsid()


def end_group(code: int) -> NoReturn:
    """Exit this process, and kill its process group if it leads one."""
    if sys.platform != "win32" and _leads_group():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(code)


def _leads_group() -> bool:
    return sys.platform != "win32" and os.getpgrp() == os.getpid()


def main() -> NoReturn:
    """Run as ``python -m lowerscope.core.engine.server --role engine|worker``."""
    parser = argparse.ArgumentParser(prog="lowerscope.core.engine.server", description=__doc__)
    parser.add_argument("--role", choices=get_args(Role), required=True)
    parser.add_argument(
        "--calls",
        type=int,
        default=None,
        help=_("file descriptor for the name of the current call"),
    )
    parser.add_argument("--memory-limit", type=int, default=None, help=_("in bytes"))
    options = parser.parse_args()
    bubblewrap.enter()
    role: Role = options.role
    serve(role, _open_pipeline, options.calls, options.memory_limit)


if __name__ == "__main__":
    main()
