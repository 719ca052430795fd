"""Instrumented runs, with notifications of the virtual machine for each call."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.execution.bytecode import BUILTIN
from lowerscope.core.execution.running import Execution
from lowerscope.core.progress import SILENT, Progress
from lowerscope.core.running.calls import BoundCall
from lowerscope.core.running.running_call import NO_CALL

Took = Callable[[int, tuple[Any, ...]], None]
"""Callback with the index of a call, and its input or output tensors."""


class _Watch:
    """Handler of the virtual machine's notifications in one run."""

    def __init__(
        self,
        calls: Sequence[BoundCall],
        took: Took | None,
        begins: Took | None,
        progress: Progress,
    ) -> None:
        self.functions: dict[str, Any] = {}
        self.seconds: list[float] = []
        self.places: list[int] = []
        self.failure: BaseException | None = None
        self._calls = calls
        self._events = frozenset(call.event for call in calls)
        self._took = took
        self._begins = begins
        self._at_call = progress.at_call
        self._depth = 0
        self._made = 0
        self._start = 0.0

    def tell(self, function: Any, name: str, before: bool, returned: Any, *args: Any) -> int:
        now = time.perf_counter()
        if before:
            self._depth += 1
            if self._depth == 1:
                self._made += 1
                if self._begins is not None:
                    self._begin(name, args)
                if name in self._events:
                    self._at_call(len(self.seconds), True)
                self._start = time.perf_counter()
            return 0
        self._depth -= 1
        place = len(self.seconds)
        # Nested calls are a part of the outer one.
        if self._depth or self.failure is not None or name not in self._events:
            return 0
        if place < len(self._calls) and self._calls[place].event == name:
            self.seconds.append(now - self._start)
            self.places.append(self._made - 1)
            self.functions[name] = function
            self._at_call(place + 1, False)
            if self._took is not None:
                self._tell(self._took, place, self._calls[place].values_of(returned, args))
        elif not name.startswith(BUILTIN):
            self.failure = _out_of_order()
        return 0

    def _begin(self, name: str, args: Sequence[Any]) -> None:
        place = len(self.seconds)
        if self.failure is None and place < len(self._calls) and self._calls[place].event == name:
            assert self._begins is not None
            self._tell(self._begins, place, self._calls[place].reads_of(args))

    def _tell(self, told: Took, place: int, tensors: tuple[Any, ...]) -> None:
        try:
            told(place, tensors)
        except Exception as error:  # TVM would wrap the error in a message of its own
            self.failure = error


def watch(
    execution: Execution, calls: Sequence[BoundCall], progress: Progress = SILENT
) -> list[float]:
    """Run once and return the time of each call: see `watched`."""
    return watched(execution, calls, progress=progress).seconds


@dataclass(frozen=True)
class Watched:
    """Results of an instrumented run.

    Attributes
    ----------
    seconds
        The time of each call, with some microseconds of overhead.
    places
        Index of each among all calls of the virtual machine, in run order and from 0: it makes
        others in between, for memory and shapes.
    functions
        The called functions, by event.
    """

    seconds: list[float]
    places: list[int]
    functions: dict[str, Any]


def watched(
    execution: Execution,
    calls: Sequence[BoundCall],
    took: Took | None = None,
    begins: Took | None = None,
    functions: dict[str, Any] | None = None,
    progress: Progress = SILENT,
) -> Watched:
    """Run once and return the results for each call.

    Parameters
    ----------
    took
        Called with the index and the value of each call as soon as it is computed: the memory is
        reused later. Not a part of the call's time.
    begins
        Called with the index of a call and its inputs, just before it; not a part of its time.
    functions
        Filled with the called functions by event.
    progress
        Notified of each call before it begins.

    Raises
    ------
    LowerscopeError
        If the run fails, or its calls are not those of `calls` in order, as with branches.
    """
    seen = _Watch(calls, took, begins, progress)
    if functions is not None:
        seen.functions = functions
    execution.watch(seen.tell)
    try:
        execution.call()
    finally:
        execution.watch(None)
        progress.at_call(NO_CALL, False)
    if seen.failure is not None:
        raise seen.failure
    if len(seen.seconds) != len(calls):
        raise _out_of_order()
    return Watched(seen.seconds, seen.places, seen.functions)


def _out_of_order() -> LowerscopeError:
    return LowerscopeError(
        "the run does not call what main calls, in this order, so calls have no bindings",
        where="run",
        todo="A main with branches is timed as a whole only",
    )
