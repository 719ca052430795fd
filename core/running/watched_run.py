"""One run of ``main`` that is watched: its times, and what its calls read and write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import tvm
from tvm import ir, relax

from lowerscope.core.execution.running import Execution, to_torch, to_tvm
from lowerscope.core.progress import Progress
from lowerscope.core.relax_bindings import relax_functions
from lowerscope.core.running.calls import CallsOf
from lowerscope.core.running.kept_values import KeptValues, addresses_of
from lowerscope.core.running.watching import Watched, watch, watched
from lowerscope.core.stages import Stages

BUDGET = 0.5
"""Seconds that the runs that are timed should take together; of a slower one, one is enough."""

_UNREAD = "nothing reads it, so the memory that it is made of was used again before"

Take = Callable[[int, Sequence[torch.Tensor], str], None]
"""Given the index of a call, its values, and why these are not to be looked at, if so."""


class WatchedRun:
    """A run of a built model, before and after it is made.

    Parameters
    ----------
    keep
        Bytes of values that are kept.

    Attributes
    ----------
    arguments
        What ``main`` is called with.
    functions
        What was called so far, by its event.
    values
        What is kept.
    """

    def __init__(self, stages: Stages, inputs: Sequence[torch.Tensor], keep: int) -> None:
        self.calls = CallsOf(stages.recorded, "main")
        self.arguments = [
            to_tvm(each) if isinstance(each, torch.Tensor) else each
            for each in stages.arguments(inputs)
        ]
        self.functions: dict[str, Any] = {}
        given = addresses_of([*self.arguments, *_constants(self.calls)])
        self.values = KeptValues(keep, self.calls.sources, given)
        self._execution = Execution(stages.built.executable, "main", self.arguments)
        # What a function prints or counts, it does once a call.
        self._is_pure = bool(stages.transformed.module["main"].is_pure)

    def run(
        self, note: Callable[[int, Sequence[Any]], None], take: Take, progress: Progress
    ) -> Watched:
        """Run once, and look at the values.

        Parameters
        ----------
        note
            Told of what each call gives, as soon as it does.
        take
            Given the values of each call, in order: when the run is over, as it goes on with
            torch's threads in between is slower; or at once, where they cannot be kept.
        progress
            Is told of each call before it begins.

        Raises
        ------
        LowerscopeError
            See `calls.watched`.
        """
        waiting: list[int] = []

        def flush() -> None:
            for index in waiting:
                written = self.values.calls[index].written
                kept = [each.value for each in written if each.value is not None]
                take(index, kept, self._why_not(index))
            waiting.clear()

        def took(index: int, tensors: tuple[Any, ...]) -> None:
            note(index, tensors)
            if self.values.took(index, tensors):
                waiting.append(index)
            elif all(isinstance(each, _VALUES) for each in tensors):
                flush()
                take(index, [_seen(each) for each in tensors], self._why_not(index))

        seen = watched(
            self._execution, self.calls.calls, took, self.values.begins, self.functions, progress
        )
        flush()
        return seen

    def times(self, seen: Watched, repeats: int, progress: Progress) -> list[list[float]]:
        """Return the times of the calls in a few runs in seconds, each run's in order.

        Parameters
        ----------
        seen
            What `run` has returned, which is one of them where there is no time for others.
        repeats
            At most.

        Raises
        ------
        Cancelled
            If the user has stopped it.
        """
        once = max(sum(seen.seconds), 1e-6)
        count = min(repeats, int(BUDGET / once)) if self._is_pure else 1
        if count <= 1:
            return [seen.seconds]
        found = []
        for _ in range(count):
            found.append(watch(self._execution, self.calls.calls, progress))
            progress.check()
        return found

    def _why_not(self, index: int) -> str:
        unread = self.values.calls[index].is_stale and index not in self.calls.needed
        return _UNREAD if unread else ""


_VALUES = (tvm.runtime.Tensor, bool, int, float)
"""What a call gives; what a pass has made a call of may give memory instead."""


def _seen(value: Any) -> torch.Tensor:
    """Return a value as a tensor, for as long as it is what it is."""
    if isinstance(value, tvm.runtime.Tensor):
        return torch.utils.dlpack.from_dlpack(value)
    return to_torch(value)


def _constants(calls: CallsOf) -> list[Any]:
    """Return the tensors that stand in ``main``."""
    found: list[Any] = []

    def note(expression: Any) -> None:
        if isinstance(expression, ir.GenericConst):
            found.append(expression.value)

    relax.analysis.post_order_visit(dict(relax_functions(calls.before))["main"], note)
    return found
