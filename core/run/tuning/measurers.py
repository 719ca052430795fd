"""Measurement of candidates in another process, which they may crash or hang."""

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
from typing import Any, TypeVar

import msgspec

from lowerscope.core.ir.libraries import import_libraries
from lowerscope.core.model.encoding import UNREADABLE
from lowerscope.core.model.problems import Problem, error_of
from lowerscope.core.model.texts import _

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
            return Outcome(
                reason=_("it took longer than {seconds:g} s, and was stopped", seconds=seconds)
            )
        except UNREADABLE as error:
            self._restart()
            return Outcome(
                reason=_("it corrupted the process that measures it: {error}", error=error)
            )
        except EOFError:
            code = self._process.wait()
            self._restart()
            how = signal.Signals(-code).name if code < 0 else _("exit code {code}", code=code)
            return Outcome(reason=_("it crashed with {how}", how=how))

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
        self.close()
        self._process = _start(self._words)
        self._fresh = True

    def close(self) -> None:
        """Kill the measuring process."""
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


_BUDGET = 0.2
"""Seconds that all timed calls of a candidate should take together."""


_REPEATS = 20
"""Maximum number of measurements of a candidate."""


_BATCH = 1e-3
"""Minimum duration of one measurement, in seconds: several calls of a shorter function are one."""


_TURNS = 12
"""Measurements of each of two schedules that are timed by turns."""


_LONG = 0.5
"""Seconds from which on a function is not called again to be timed by turns."""


_HOPELESS = 3.0
"""Multiple of the best time from which on a first call is not repeated."""


class Bench:
    """Compiles, times and checks the candidates of functions.

    `is_here`: whether they are timed on this machine.
    """

    is_here = True

    def __init__(self) -> None:
        # They take seconds to import, and the parent works meanwhile.
        import_libraries("lowerscope.core.run.checking")
        import torch
        import tvm

        from lowerscope.core.run import checking

        self._torch, self._tvm, self._checking = torch, tvm, checking
        self._subjects: dict[int, _Known] = {}

    def take(self, message: Message) -> Outcome:
        """Return the outcome of a subject or of a candidate."""
        from lowerscope.core.build.targets import ProcessorUse

        use = ProcessorUse()
        outcome = self._taken(message)
        known = message if isinstance(message, Subject) else self._subjects[message.subject].subject
        disturbed = self.is_here and use.was_short(known.threads)
        return msgspec.structs.replace(outcome, disturbed=disturbed)

    def _taken(self, message: Message) -> Outcome:
        if isinstance(message, Subject):
            return self._subject(message)
        known = self._subjects[message.subject]
        try:
            return self._candidate(known, message)
        except self._refused as error:
            return Outcome(reason=_first_line(error))

    def forget(self, number: int) -> None:
        """Forget a subject, so that it is run again."""
        self._subjects.pop(number, None)

    @property
    def _refused(self) -> tuple[type[BaseException], ...]:
        from lowerscope.core.model.problems import TVM_ERRORS, LowerscopeError

        return (*TVM_ERRORS, LowerscopeError, MemoryError, OSError)

    def _subject(self, message: Subject) -> Outcome:
        from lowerscope.core.build.targets import use_threads

        if message.number in self._subjects:
            return Outcome()
        use_threads(message.threads)
        target = self._tvm.target.Target(message.target)
        known = self._subjects[message.number] = _Known(message, target)
        limit = self._limit(message)
        try:
            base = self._sized(message.base)
            known.reference = self._checking.reference_of(
                base, target, message.seed, limit, self.compiled
            )
            call = self._callable(base, known)
            seconds = shortest(call, None)
        except self._checking.TookTooLong:
            return Outcome(
                reason=_("it takes longer than {seconds:g} s unscheduled", seconds=message.seconds)
            )
        except self._refused as error:
            return Outcome(reason=_first_line(error))
        return Outcome(seconds)

    def _candidate(self, known: _Known, message: Candidate) -> Outcome:
        sized = self._sized(message.scheduled)
        call = self._callable(sized, known)
        seconds, rival = shortest(call, message.best), None
        beaten = message.best is None or seconds < message.best
        if message.rival is not None and (beaten or message.always):
            seconds, rival = self._by_turns(call, seconds, message, known)
            beaten = rival is None or seconds < rival
        if known.reference is None or not beaten:
            return Outcome(seconds, rival_seconds=rival)
        try:
            checked = self._checking.compare(
                sized.function,
                known.target,
                known.reference,
                self._limit(known.subject),
                self.compiled,
            )
        except self._checking.TookTooLong:
            return Outcome(reason=_("there was no time to check it"))
        if checked.verdict != "same":
            unsure = checked.verdict == "inconclusive"
            what = _("it cannot be checked") if unsure else _("its result differs")
            return Outcome(reason=f"{what}: {checked.reason}")
        return Outcome(seconds, rival_seconds=rival)

    def _by_turns(
        self, call: Callable[[int], float], seconds: float, message: Candidate, known: _Known
    ) -> tuple[float, float | None]:
        """Return the times of a candidate and its rival by turns; ``None`` if this takes long."""
        assert message.rival is not None
        if message.best is not None and message.best > _LONG:
            return seconds, None
        rival = self._callable(self._sized(message.rival), known)
        rival(1)
        number, its_number = _calls(seconds), _calls(min(rival(1), rival(1)))
        turns = [(call(number), rival(its_number)) for _turn in range(_TURNS)]
        return min(each for each, _other in turns), min(each for _other, each in turns)

    def _limit(self, subject: Subject) -> Any:
        from lowerscope.core.model.progress import Silent

        return self._checking.Limit(subject.seconds, subject.threads, Silent())

    def _sized(self, sized: Sized) -> Any:
        from lowerscope.core.run.standalone import AtSizes

        function = self._tvm.ir.load_json(sized.function)
        return AtSizes(function, self._tvm.ir.load_json(sized.static) if sized.static else function)

    def _callable(self, sized: Any, known: _Known) -> Callable[[int], float]:
        """Compile a function, and return the function that times a number of its calls."""
        packed = without_packing(sized.function)
        compiled = self.compiled(packed, known.target)
        static = packed if sized.static is sized.function else sized.static
        arguments = known.arguments(static)

        def call(number: int) -> float:
            return self.seconds(compiled, arguments, number)

        return call

    def compiled(self, function: Any, target: Any) -> Any:
        """Return a function compiled for the machine where it is going to run."""
        from lowerscope.core.run.standalone import compile_alone

        return compile_alone(function, target)

    def seconds(self, compiled: Any, arguments: Sequence[Any], number: int) -> float:
        """Return the mean time of `number` calls."""
        return float(compiled.seconds(arguments, number))


def shortest(call: Callable[[int], float], best: float | None) -> float:
    """Return the shortest time of a call, in seconds.

    `best`: a time; a function that takes several times as long is not called often.
    """
    call(1)
    first = min(call(1), call(1))
    if first < _BATCH:
        # One call from Python takes microseconds by itself.
        first = call(_calls(first))
    if best is not None and first > _HOPELESS * best:
        return first
    number = _calls(first)
    repeats = max(1, min(_REPEATS, int(_BUDGET / max(first * number, 1e-7))))
    return min(first, *(call(number) for _turn in range(repeats)))


def _calls(seconds: float) -> int:
    """Return the number of calls of a function in one measurement."""
    return max(1, round(_BATCH / max(seconds, 1e-7)))


def without_packing(function: Any) -> Any:
    """Return a function without the packing of its weights, where that is done at build.

    Where TVM cannot remove it, such as where the weights are padded, it stays.
    """
    import tvm
    from tvm.s_tir.transform import RemoveWeightLayoutRewriteBlock

    from lowerscope.core.model.problems import TVM_ERRORS

    if "layout_free_buffers" not in (function.attrs or {}):
        return function
    module = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
    try:
        return RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(module)["main"]
    except TVM_ERRORS:
        return function


class _Known:
    """A subject, with its expected results, and the tensors that candidates are called with."""

    def __init__(self, subject: Subject, target: Any) -> None:
        self.subject = subject
        self.target = target
        self.reference: Any = None
        self._drawn: dict[tuple[Any, ...], Sequence[Any]] = {}

    def arguments(self, static: Any) -> Sequence[Any]:
        """Return tensors for the parameters of a function, all of static shapes."""
        from lowerscope.core.run.standalone import draw_arguments, static_parameters

        parameters = static_parameters(static)
        key = tuple((each.shape, each.dtype) for each in parameters)
        if key not in self._drawn:
            self._drawn[key] = draw_arguments(static, parameters, self.subject.seed)
        return self._drawn[key]


def _first_line(error: BaseException) -> str:
    from lowerscope.core.model.problems import LowerscopeError, last_line

    return error.problem.what if isinstance(error, LowerscopeError) else last_line(error)
