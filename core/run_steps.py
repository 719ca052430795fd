"""The steps of a run: the calls of the virtual machine, each with its line of the bytecode."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import torch

from lowerscope.core.calls import BoundCall, CallsOf, watched
from lowerscope.core.errors import LowerscopeError
from lowerscope.core.execution.bytecode import BUILTIN, bytecode_of
from lowerscope.core.execution.running import Execution
from lowerscope.core.passes.following import inverse
from lowerscope.core.progress import Progress
from lowerscope.core.run_records import CallRun
from lowerscope.core.stages import Stages

REPEATS = 5
"""Watched runs of a source without torch, whose nodes need none."""


def call_runs(
    stages: Stages,
    calls: Sequence[BoundCall],
    places: Sequence[int],
    milliseconds: Sequence[float],
    bindings_of: Sequence[tuple[str, ...]],
    nodes_of: Sequence[tuple[str, ...]],
) -> tuple[CallRun, ...]:
    """Return the records of the calls of a run.

    Parameters
    ----------
    places
        As in `Watched`: which of all calls each was. These are made in the order of the bytecode,
        one for each of its instructions that calls.
    bindings_of, nodes_of
        Ids of what each call computes.
    """
    lines = bytecode_of(stages.recorded.built.executable.as_text(), "main")
    calling = [number for number, line in enumerate(lines, start=1) if line.call]
    found = []
    for index, (call, place) in enumerate(zip(calls, places, strict=True)):
        number = calling[place] if place < len(calling) else 0
        # With branches, what is called is not what is written one after the other.
        is_there = number > 0 and lines[number - 1].call == call.event
        found.append(
            CallRun(
                function=call.callee,
                milliseconds=milliseconds[index],
                nodes=nodes_of[index],
                bindings=bindings_of[index],
                entity=_entity_of(stages, call.callee),
                line=number if is_there else 0,
                own=place - (places[index - 1] + 1 if index else 0),
            )
        )
    return tuple(found)


def calls_without_nodes(
    stages: Stages, inputs: Sequence[torch.Tensor], progress: Progress
) -> tuple[CallRun, ...]:
    """Run a few times, watched, and return the calls of a source without torch.

    Nothing where the calls cannot be told: see `watched`.

    Raises
    ------
    Cancelled
        If the user has stopped it.
    """
    progress.report("Timing call by call")
    calls = CallsOf(stages.recorded, "main").calls
    execution = Execution(stages.built.executable, "main", stages.arguments(inputs))
    # What a function prints or counts, it does once a call.
    repeats = REPEATS if stages.transformed.module["main"].is_pure else 1
    times: list[list[float]] = []
    places: list[int] = []
    try:
        for _ in range(repeats):
            seen = watched(execution, calls, progress=progress)
            times.append(seen.seconds)
            places = seen.places
            progress.check()
    except LowerscopeError:
        return ()
    origins = inverse(stages.transformed.bindings_in_main)
    return call_runs(
        stages,
        calls,
        places,
        [statistics.median(each) * 1000 for each in zip(*times, strict=True)],
        [origins.get(call.binding, ()) for call in calls],
        [()] * len(calls),
    )


def _entity_of(stages: Stages, callee: str) -> str:
    if callee in stages.recorded.tensorir:
        return f"tir:{callee}"
    return "" if callee.startswith(BUILTIN) else f"ext:{callee}"
