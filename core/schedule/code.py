"""A schedule as a Python program, with a variable for each loop and block that it works on."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from tvm import s_tir
from tvm.s_tir.schedule import LoopRV, SBlockRV

from lowerscope.core.files.python_text import comment, docstring, quoted
from lowerscope.core.model.schedule import At, Made, Primitive, Reference, Schedule, references_of
from lowerscope.core.schedule import dot_instructions
from lowerscope.core.schedule.applying import call_text
from lowerscope.core.schedule.dot_instructions import uses_dot
from lowerscope.core.schedule.primitive_table import entry_of
from lowerscope.core.schedule.references import (
    Output,
    Outputs,
    Place,
    function_of,
    index_of,
    loops_around,
    outer_block,
    places,
    resolve,
    stmt_of,
    unresolved,
)
from lowerscope.core.schedule.step_errors import StepFailed

Variables = Mapping[Reference, str]
"""Variables of the loops, blocks and numbers that a primitive refers to."""


@dataclass(frozen=True)
class Code:
    """The program of the primitives that were applied so far.

    `made`: the variables that hold the results of primitives, by their ids. `known`: all variables,
    with the loops, blocks and numbers that they hold.
    """

    lines: tuple[str, ...] = ()
    last: str = ""
    made: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    known: tuple[tuple[str, Output], ...] = ()

    def fetching(
        self, primitive: Primitive, sch: s_tir.Schedule, outputs: Outputs
    ) -> tuple[Code, Variables]:
        """Return the program with lines that fetch the loops and blocks of a primitive by place.

        `sch`: the schedule that the primitive is going to be applied to; it knows the loops and
        blocks that are fetched from then on. `outputs`: results of the steps so far, with the loops
        and blocks before the first primitive.
        """
        code, variables = self, dict[Reference, str]()
        found: Sequence[Place] = ()
        for reference in references_of(primitive):
            if isinstance(reference, Made):
                names = self.made.get(reference.step, ())
                if 0 <= reference.output < len(names):
                    variables[reference] = names[reference.output]
                continue
            found = found or places(function_of(sch))
            index = _place_of(found, reference, sch, outputs)
            # Without one, the primitive is about to fail for that reason.
            if index is not None:
                code, variables[reference] = code._holding(index, found, sch)
        return code, variables

    def after(
        self,
        primitive: Primitive,
        variables: Variables,
        sch: s_tir.Schedule,
        outputs: tuple[Output, ...],
    ) -> Code:
        """Return the program with the call of a primitive that was applied, and its results."""
        code, names = self._named(outputs)
        call = _call(_decided(primitive, sch), variables, names, sch.trace.insts[-1])
        return replace(
            code, lines=(*code.lines, call), last=call, made={**code.made, primitive.id: names}
        )

    def without(self, remark: str) -> Code:
        """Return the program with a comment on a primitive that was not applied."""
        return replace(self, lines=(*self.lines, comment(remark)))

    def _holding(self, index: int, found: Sequence[Place], sch: s_tir.Schedule) -> tuple[Code, str]:
        """Return the variable that holds a loop or block, and the program that fetches it."""
        stmt = found[index].stmt
        for name, output in self.known:
            if isinstance(output, LoopRV | SBlockRV) and stmt.same_as(stmt_of(sch, output)):
                return self, name
        if found[index].is_block:
            return self._fetching_block(index, found, sch)
        block = next(
            place
            for place, each in enumerate(found)
            if each.is_block and index in loops_around(found, place)
        )
        code, name = self._holding(block, found, sch)
        loops = sch.get_loops(code._output(name))
        code, names = code._named(tuple(loops))
        comma = "," if len(names) == 1 else ""
        line = f"{', '.join(names)}{comma} = sch.get_loops({name})"
        return (
            replace(code, lines=(*code.lines, line)),
            names[loops_around(found, block).index(index)],
        )

    def _fetching_block(
        self, index: int, found: Sequence[Place], sch: s_tir.Schedule
    ) -> tuple[Code, str]:
        block = found[index]
        if sum(each.is_block and each.name == block.name for each in found) == 1:
            code, (name,) = self._named((sch.get_sblock(block.name),))
            line = f"{name} = sch.get_sblock({quoted(block.name)})"
        else:
            code, outer = self._holding(outer_block(found, index), found, sch)
            children = sch.get_child_blocks(code._output(outer))
            place = next(
                place
                for place, child in enumerate(children)
                if block.stmt.same_as(stmt_of(sch, child))
            )
            code, (name,) = code._named((children[place],))
            line = f"{name} = sch.get_child_blocks({outer})[{place}]"
        return replace(code, lines=(*code.lines, line)), name

    def _output(self, name: str) -> Output:
        return dict(self.known)[name]

    def _named(self, outputs: tuple[Output, ...]) -> tuple[Code, tuple[str, ...]]:
        """Return names for the results of a call, and the program that knows them."""
        first = len(self.known)
        names = tuple(
            f"{_letter(output)}{number}" for number, output in enumerate(outputs, start=first)
        )
        return replace(self, known=(*self.known, *zip(names, outputs, strict=True))), names


def _place_of(found: Sequence[Place], at: At, sch: s_tir.Schedule, outputs: Outputs) -> int | None:
    """Return the place of a block or a loop around it; ``None`` if it does not exist."""
    with suppress(StepFailed):
        return index_of(found, stmt_of(sch, resolve(sch, at, outputs)))
    return None


def program(function: str, code: Code) -> str:
    """Return a Python program with the function ``apply_trace``, which applies a schedule.

    It registers Lowerscope's own instructions, if the schedule uses one.
    """
    name = docstring(function)
    has_own = any(map(uses_dot, code.lines))
    types = any("tirx.const(" in line for line in code.lines)
    lines = [
        *((inspect.getsource(dot_instructions), "register()", "") if has_own else ()),
        "from tvm import s_tir" + (", tirx" if types else ""),
        "",
        "",
        "def apply_trace(sch: s_tir.Schedule) -> None:",
        f'    """Schedule {name}: in a module of several functions, after',
        f'    sch.work_on("{name}")."""',
        *(f"    {line}" for line in code.lines),
    ]
    return "\n".join(lines) + "\n"


def call_of(primitive: Primitive) -> str:
    """Return the call of a primitive that was not applied, with its references in words."""
    try:
        return _call(primitive, {}, (), None)
    except StepFailed:
        return f"sch.{primitive.name}(…)"


def _call(
    primitive: Primitive, variables: Variables, names: tuple[str, ...], instruction: Any | None
) -> str:
    return call_text(
        primitive,
        lambda reference: variables.get(reference) or unresolved(reference),
        names,
        instruction,
    )


def _letter(output: Output) -> str:
    if isinstance(output, LoopRV):
        return "l"
    return "b" if isinstance(output, SBlockRV) else "v"


def _decided(primitive: Primitive, sch: s_tir.Schedule) -> Primitive:
    """Return a primitive with its random decisions, so that its call draws the same."""
    if not entry_of(primitive.name).draws:
        return primitive
    decisions = sch.trace.decisions
    drawn: Any = next(
        (decisions[each] for each in reversed(sch.trace.insts) if each in decisions), None
    )
    decision = tuple(int(each) for each in drawn) if hasattr(drawn, "__len__") else int(drawn)
    return msgspec.structs.replace(
        primitive, arguments={**primitive.arguments, "decision": decision}
    )


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
