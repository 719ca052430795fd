"""A schedule as a Python program that needs no function to apply it to."""

from __future__ import annotations

from dataclasses import replace

from lowerscope.core.python_text import comment, quoted
from lowerscope.core.schedules import At, Primitive, Reference, Schedule, references_of
from lowerscope.core.scheduling.code import Code, call_of, program
from lowerscope.core.scheduling.failures import StepFailed
from lowerscope.core.scheduling.primitives import entry_of
from lowerscope.core.scheduling.titles import call_text


def program_by_name(schedule: Schedule) -> str:
    """Return the program ``apply_trace``, which fetches blocks by their names, and loops by place.

    Blocks and loops from before the first step are fetched at the top.
    """
    lines = _Lines()
    for primitive in schedule.primitives:
        for each in references_of(primitive):
            if isinstance(each, At) and each.first:
                lines.fetch(each)
    for primitive in schedule.primitives:
        lines.add(primitive)
    return program(schedule.function, replace(Code(), lines=tuple(lines.written)))


class _Lines:
    """The lines of a program, and the variables in it."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self._first: dict[At, str] = {}
        self._made: dict[str, str] = {}
        self._count = 0

    def fetch(self, at: At) -> str:
        """Return the variable of a block, or of a loop around it, fetched by a line of its own."""
        if at in self._first:
            return self._first[at]
        which = f"  # number {at.occurrence + 1} of that name" if at.occurrence else ""
        block = f"sch.get_sblock({quoted(at.block)})"
        name = f"{'b' if at.loop is None else 'l'}{self._next()}"
        found = block if at.loop is None else f"sch.get_loops({block})[{at.loop}]"
        self.written.append(f"{name} = {found}{which}")
        if at.first:
            self._first[at] = name
        return name

    def add(self, primitive: Primitive) -> None:
        """Add the call of a step."""
        if not primitive.on:
            self._remark(f"off: {call_of(primitive)}")
            return
        try:
            entry = entry_of(primitive.name)
            call = call_text(primitive, self._named, ())
        except StepFailed as failed:
            self._remark(failed.error.message)
            return
        made = f"made{self._next()}"
        self._made[primitive.id] = f"{made}[{{}}]" if entry.many else made
        self.written.append(f"{made} = {call}")

    def _named(self, reference: Reference) -> str:
        if isinstance(reference, At):
            return self.fetch(reference)
        return self._made.get(reference.step, "None").format(reference.output)

    def _remark(self, text: str) -> None:
        self.written.append(comment(text))

    def _next(self) -> int:
        self._count += 1
        return self._count - 1
