"""Runs that report the current call, so that it is known if the process crashes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
import torch

from lowerscope.core.errors import LowerscopeError, error_of
from lowerscope.core.execution.running import Execution
from lowerscope.core.memo import key_of
from lowerscope.core.progress import Progress
from lowerscope.core.running.calls import BoundCall, CallsOf
from lowerscope.core.running.node_calls import Owners
from lowerscope.core.running.running_call import NO_CALL, call_name, place_of
from lowerscope.core.stages import Stages


@dataclass(frozen=True)
class NamedCalls:
    """The calls of ``main``, their labels, and the ids of the FX nodes that each computes."""

    calls: tuple[BoundCall, ...]
    names: tuple[str, ...]
    nodes: tuple[tuple[str, ...], ...]


def named_calls(stages: Stages) -> NamedCalls:
    """Return the calls of ``main`` of the built module, cached with the build."""

    def make() -> NamedCalls:
        found = CallsOf(stages.recorded, "main")
        lowered = stages.lowered
        nodes = (
            [()] * len(found.calls) if lowered is None else Owners(stages, lowered, found).nodes_of
        )
        names = tuple(
            call_name(call.callee, each) for call, each in zip(found.calls, nodes, strict=True)
        )
        return NamedCalls(found.calls, names, tuple(nodes))

    return stages.keep("calls", key_of("calls", stages.build_key, stages.lower_key), make)


class Follower:
    """Reporter of the current call of a run.

    Parameters
    ----------
    calls
        Of the run, in order. If the run departs from it, as with branches, a call is the first
        with its name.
    progress
        Notified.
    """

    def __init__(self, calls: Sequence[BoundCall], progress: Progress) -> None:
        self.index = 0
        self.inside = False
        self._events = [call.event for call in calls]
        self._known = frozenset(self._events)
        self._progress = progress
        self._depth = 0

    def tell(self, _function: object, name: str, before: bool, *_call: object) -> int:
        """Handle the notification before and after a call; see `Execution.watch`."""
        self._depth += 1 if before else -1
        if name in self._known and self._depth == before:
            self.move(name, bool(before))
        return 0

    def move(self, event: str, inside: bool) -> None:
        """Move to a call, or, not `inside`, behind it."""
        if inside:
            here = self.index
            in_order = here < len(self._events) and self._events[here] == event
            self.index = here if in_order else self._events.index(event)
        else:
            self.index += 1
        self.inside = inside
        self._progress.at_call(self.index, inside)


@contextlib.contextmanager
def calls_told(named: NamedCalls, progress: Progress) -> Iterator[None]:
    """Give `progress` the names of the calls for the runs in the body."""
    progress.begin_calls(named.names)
    try:
        yield
    finally:
        progress.begin_calls(())


def followed_outputs(
    execution: Execution, named: NamedCalls, progress: Progress
) -> tuple[torch.Tensor, ...]:
    """Run once, as `Execution.outputs`, and notify `progress` of each call, in `calls_told`.

    Raises
    ------
    LowerscopeError
        If the run fails; the error names the call.
    """
    follower = Follower(named.calls, progress)
    progress.at_call(0, False)
    execution.watch(follower.tell)
    try:
        return execution.outputs()
    except LowerscopeError as error:
        place = place_of(follower.index, follower.inside, named.names)
        raise error_of(
            msgspec.structs.replace(
                error.problem, where=place.text or error.problem.where, calls=place.names
            )
        ) from error
    finally:
        execution.watch(None)
        progress.at_call(NO_CALL, False)
