"""The steps of each timeline in one form, for the rows of lists and the dots of the slider."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from lowerscope.core.records.run import CallRun
from lowerscope.core.records.schedule import ScheduleStep
from lowerscope.core.records.steps import PassRecord, TranslationRecord

Status = Literal["done", "failed", "skipped", "off"]

HEAVY = 0.8
"""Share of a run's time that the heavy calls take together, the longest first."""


@dataclass(frozen=True)
class StepLine:
    """A step of a list.

    Attributes
    ----------
    number
        Position in the list, from 1.
    label
        Displayed number, ``3``, or ``3.17`` for a nested one.
    title
        Name of the pass, or of the FX node.
    depth, parent
        Nesting depth, and number of the step that directly contains it; 0 for none.
    step
        Position of the recipe's step that it belongs to, from 1; 0 for none.
    milliseconds
        Duration; ``None`` if not measured.
    changed
        Names of the functions that it changed, added or removed.
    left_out, status, error
        As in `PassRecord`.
    note
        Result of a node's translation, or computation of a call.
    heavy
        Whether a call is one of the few that take most of the run's time.
    is_break
        Whether playing stops at a call.
    """

    number: int
    title: str
    label: str = ""
    depth: int = 0
    parent: int = 0
    step: int = 0
    milliseconds: float | None = None
    changed: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    status: Status = "done"
    error: str = ""
    note: str = ""
    heavy: bool = False
    is_break: bool = False


@dataclass(frozen=True)
class StepFilter:
    """Filter of the steps.

    Attributes
    ----------
    hide_unchanged
        Skip steps that changed nothing.
    name, function
        Substrings of a step's title, and of the name of a function that it changed; empty for any.
    """

    hide_unchanged: bool = True
    name: str = ""
    function: str = ""

    def takes(self, line: StepLine) -> bool:
        """Return whether a step passes the filter; one that failed always does."""
        if self.name and self.name.casefold() not in line.title.casefold():
            return False
        if self.function:
            wanted = self.function.casefold()
            return any(wanted in name.casefold() for name in line.changed)
        return not self.hide_unchanged or bool(line.changed) or line.status == "failed"


def pass_lines(records: Sequence[PassRecord]) -> tuple[StepLine, ...]:
    """Return the steps of the recipe's passes, or of the build's own."""
    return tuple(
        StepLine(
            number=record.number,
            title=record.name,
            label=record.label or str(record.number),
            depth=record.depth,
            parent=record.parent,
            step=record.step,
            milliseconds=record.milliseconds if record.status in ("done", "failed") else None,
            changed=record.changed,
            left_out=record.left_out,
            status=record.status,
            error=record.error,
        )
        for record in records
    )


def node_lines(records: Sequence[TranslationRecord]) -> tuple[StepLine, ...]:
    """Return the steps of the translation to Relax."""
    return tuple(
        StepLine(
            number=record.number,
            title=record.node.removeprefix("fx:"),
            label=str(record.number),
            changed=record.changed,
            note=_came_to(record) if record.changed else "",
        )
        for record in records
    )


def schedule_lines(function: str, steps: Sequence[ScheduleStep]) -> tuple[StepLine, ...]:
    """Return the primitives of the schedule of a function."""
    return tuple(
        StepLine(
            number=number,
            title=step.title,
            label=str(number),
            milliseconds=step.milliseconds if step.status == "done" else None,
            changed=(function,) if step.changes else (),
            status=step.status,
            error="" if step.error is None else step.error.message,
            note=step.comment,
        )
        for number, step in enumerate(steps, start=1)
    )


def call_lines(
    calls: Sequence[CallRun], breaks: Collection[str] = frozenset(), error: str = ""
) -> tuple[StepLine, ...]:
    """Return the calls of a run.

    Parameters
    ----------
    breaks
        The nodes and bindings at whose calls playing stops.
    error
        Error of the run in the last of these; empty if it succeeded. With an error, their times are
        unknown.
    """
    heavy, stops = _heavy(calls), frozenset(breaks)
    return tuple(
        StepLine(
            number=number,
            title=call.function,
            label=str(number),
            milliseconds=None if error else call.milliseconds,
            note=_computes(call),
            status="failed" if error and number == len(calls) else "done",
            error=error if number == len(calls) else "",
            heavy=number - 1 in heavy,
            is_break=not stops.isdisjoint((*call.nodes, *call.bindings)),
        )
        for number, call in enumerate(calls, start=1)
    )


def _heavy(calls: Sequence[CallRun]) -> frozenset[int]:
    left = HEAVY * sum(call.milliseconds for call in calls)
    found: set[int] = set()
    for index in sorted(range(len(calls)), key=lambda each: -calls[each].milliseconds):
        if left <= 0:
            break
        found.add(index)
        left -= calls[index].milliseconds
    return frozenset(found)


def _computes(call: CallRun) -> str:
    nodes = [node.removeprefix("fx:") for node in call.nodes]
    names = nodes or [binding.rpartition("/")[2] for binding in call.bindings]
    return ", ".join(names[:4]) + (" …" if len(names) > 4 else "") or "of no node"


def _came_to(record: TranslationRecord) -> str:
    names = [binding.rpartition("/")[2] for binding in record.bindings]
    parts = []
    if names:
        shown = ", ".join(names[:4]) + (" …" if len(names) > 4 else "")
        parts.append(f"{len(names)} binding{'' if len(names) == 1 else 's'}: {shown}")
    if record.functions:
        parts.append(f"function {', '.join(record.functions[:4])}")
    return " · ".join(parts)
