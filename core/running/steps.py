"""Steps of a run: the calls of the virtual machine, each with its line of the bytecode."""

from __future__ import annotations

from collections.abc import Sequence

from lowerscope.core.execution.bytecode import BUILTIN, bytecode_of
from lowerscope.core.records.run import CallRun
from lowerscope.core.running.calls import BoundCall
from lowerscope.core.stages import Stages


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
        As in `Watched`: the index of each among all calls. These are in the order of the bytecode,
        one for each call instruction.
    bindings_of, nodes_of
        Ids of the bindings and nodes that each call computes.
    """
    lines = bytecode_of(stages.recorded.built.executable.as_text(), "main")
    calling = [number for number, line in enumerate(lines, start=1) if line.call]
    found = []
    for index, (call, place) in enumerate(zip(calls, places, strict=True)):
        number = calling[place] if place < len(calling) else 0
        # With branches, the order of the calls is not that of the text.
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


def _entity_of(stages: Stages, callee: str) -> str:
    if callee in stages.recorded.tensorir:
        return f"tir:{callee}"
    return "" if callee.startswith(BUILTIN) else f"ext:{callee}"
