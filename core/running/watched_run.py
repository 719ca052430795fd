"""Instrumented run of ``main``: its times, and the inputs and outputs of its calls."""

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
"""Total time of the timed runs, in seconds; of a slower one, one is enough."""

_UNREAD = "nothing reads it, so the memory that it is made of was used again before"

Take = Callable[[int, Sequence[torch.Tensor], str], None]
"""Callback with the index of a call, its values, and why these are not to be compared, if so."""


class WatchedRun:
    """A run of a built model, before and after it is made.

    Parameters
    ----------
    keep
        Bytes of values that are cached.

    Attributes
    ----------
    arguments
        Of ``main``.
    functions
        The called functions so far, by event.
    values
        The cached values.
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
        # Side effects of a function occur once a call.
        self._is_pure = bool(stages.transformed.module["main"].is_pure)

    def run(
        self, note: Callable[[int, Sequence[Any]], None], take: Take, progress: Progress
    ) -> Watched:
        """Run once, and process the values.

        Parameters
        ----------
        note
            Notified of the outputs of each call at once.
        take
            Given the values of each call, in order: after the run, since torch's threads in between
            would slow it down; or at once, if they cannot be cached.
        progress
            Notified of each call before it begins.

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
            The result of `run`, which counts as one of them if there is no time for others.
        repeats
            At most.

        Raises
        ------
        Cancelled
            If the user has cancelled it.
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
"""Types of a call's results; for a call made by a pass, it may be memory instead."""


def _seen(value: Any) -> torch.Tensor:
    """Return a value as a tensor, a view that is valid until the memory is reused."""
    if isinstance(value, tvm.runtime.Tensor):
        return torch.utils.dlpack.from_dlpack(value)
    return to_torch(value)


def _constants(calls: CallsOf) -> list[Any]:
    """Return the constant tensors in ``main``."""
    found: list[Any] = []

    def note(expression: Any) -> None:
        if isinstance(expression, ir.GenericConst):
            found.append(expression.value)

    relax.analysis.post_order_visit(dict(relax_functions(calls.before))["main"], note)
    return found
