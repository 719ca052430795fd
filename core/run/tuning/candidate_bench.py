"""The bench that compiles, checks and times candidates of a tuning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from lowerscope.core.run.tuning.measurers import Candidate, Message, Outcome, Sized, Subject

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
            return Outcome(reason=f"it takes longer than {message.seconds:g} s unscheduled")
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
            return Outcome(reason="there was no time to check it")
        if checked.verdict != "same":
            unsure = checked.verdict == "inconclusive"
            what = "it cannot be checked" if unsure else "it computes something else"
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
        turns = [(call(number), rival(its_number)) for _ in range(_TURNS)]
        return min(each for each, _ in turns), min(each for _, each in turns)

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
    return min(first, *(call(number) for _ in range(repeats)))


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
