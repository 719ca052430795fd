"""Specifications of primitives, and the selections that they are offered for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import cached_property
from typing import Any

import tvm
from tvm import tirx
from tvm.s_tir import Schedule

from lowerscope.core.ir.tensorir import known
from lowerscope.core.model.schedule import Argument, Reference
from lowerscope.core.model.schedule_records import Field, FieldKind
from lowerscope.core.model.texts import _
from lowerscope.core.schedule.references import (
    Outputs,
    Place,
    function_of,
    loops_around,
    places,
    resolve,
    stmt_of,
)
from lowerscope.core.schedule.step_errors import REFUSED

Arguments = dict[str, Argument]

MAX_UNROLLED = 1024
"""Maximum number of copies of blocks by unrolled loops: LLVM takes 3 s for 512 of a sum, half a
minute for 1,024, and minutes for more."""


@dataclass(frozen=True)
class FunctionSelection:
    """A selection in a function, for which primitives are offered.

    `named`: the reference to each, in the order of `found`. `outputs`: results of the steps so far.
    `chosen`: the places that are selected, in the order in which they were.
    """

    sch: Schedule
    target: tvm.target.Target
    found: tuple[Place, ...]
    named: tuple[Reference, ...]
    outputs: Outputs
    chosen: tuple[int, ...]

    @property
    def only(self) -> int | None:
        """The selected place, if it is the only one, and not the outermost block."""
        return self.chosen[0] if len(self.chosen) == 1 and self.chosen[0] else None

    @property
    def loop(self) -> int | None:
        """The place of the selected loop, if nothing else is selected."""
        return self.loops[0] if len(self.loops) == 1 else None

    @property
    def block(self) -> int | None:
        """The place of the selected block, if it is in another and nothing else is selected."""
        return self.only if self.only is not None and self.found[self.only].is_block else None

    @property
    def block_and_loop(self) -> tuple[int, int] | None:
        """The places of a selected block and a selected loop, in either order."""
        blocks = [each for each in self.chosen if self.found[each].is_block]
        loops = [each for each in self.chosen if not self.found[each].is_block]
        return (blocks[0], loops[0]) if len(blocks) == len(loops) == 1 else None

    @property
    def loops(self) -> list[int]:
        """The places of the selected loops, if nothing else is selected."""
        has_blocks = any(self.found[each].is_block for each in self.chosen)
        return [] if has_blocks else list(self.chosen)

    def stmt(self, place: int) -> Any:
        """Return the ``For`` or ``SBlock`` of a place."""
        return self.found[place].stmt

    def names(self, places: list[int]) -> tuple[Reference, ...]:
        """Return the references to some places."""
        return tuple(self.named[place] for place in places)

    def inner_loop(self, loop: int) -> int | None:
        """Return the loop that is the whole body of another."""
        return loop + 1 if isinstance(self.stmt(loop).body, tirx.For) else None

    def outer_loop(self, loop: int) -> int | None:
        """Return the loop whose whole body another one is."""
        parent = self.found[loop].parent
        if parent < 0 or self.found[parent].is_block:
            return None
        return parent if isinstance(self.stmt(parent).body, tirx.For) else None

    def extent(self, loop: int) -> int | None:
        """Return the extent of a loop; ``None`` where it is symbolic."""
        return known(self.stmt(loop).extent)

    def around(self, block: int) -> list[int]:
        """Return the places of the loops around a block, the outermost first."""
        return loops_around(self.found, block)

    def neighbours(self, block: int, *, consumers: bool) -> list[int]:
        """Return the places of the consumers of a block's output, or the producers of its input."""
        sch = self.sch.copy()
        made = resolve(sch, self.named[block], self.outputs)
        try:
            next_to = sch.get_consumers(made) if consumers else sch.get_producers(made)
        except REFUSED:
            # TVM does not find producers among blocks that have no order.
            return []
        stmts = [stmt_of(sch, each) for each in next_to]
        return [
            index
            for index, place in enumerate(self.found)
            if place.is_block and any(place.stmt.same_as(stmt) for stmt in stmts)
        ]


@dataclass(frozen=True)
class Call:
    """A primitive that is about to be applied.

    `sch`: a copy of the schedule, which it is applied to. `values`: the arguments as TVM takes
    them.
    """

    sch: Schedule
    target: tvm.target.Target
    values: Mapping[str, Any]
    forced: bool

    def stmt(self, argument: str) -> Any:
        """Return the ``For`` or ``SBlock`` that an argument names."""
        return self.sch.get(self.values[argument])

    @cached_property
    def block(self) -> Any:
        """The ``SBlock`` of the argument ``block``."""
        return self.stmt("block")

    @property
    def places(self) -> tuple[Place, ...]:
        """The loops and blocks of the function."""
        return places(function_of(self.sch))


Candidates = Callable[[FunctionSelection], Iterator[Arguments]]
"""Arguments to try for the selection, the best first; none where it does not fit."""

Choices = Callable[[FunctionSelection, Any], tuple[str, ...]]
"""Returns the choices of a field at the selected ``For`` or ``SBlock``."""

Text = Callable[[Argument, Any | None], str]
"""Formats an argument, with the instruction that TVM noted; ``None`` where it was not applied."""

Guard = Callable[[Call], None]
"""Raises `StepFailed` for uses that TVM would wrongly accept, or crash on."""


@dataclass(frozen=True)
class PrimitiveSpec:
    """Specification of a primitive; its help is in ``resources/help/primitives.md``.

    `name`: name of the method of ``tvm.s_tir.Schedule``.
    `title`: description of a step, with its arguments in braces.
    `offer`: its short description in the menu.
    `starred`: the argument whose members TVM takes as positional arguments.
    `converted`: Converts arguments to TVM's values whose meaning depends on other arguments.
    `many`: whether it returns a list; otherwise one result, or none.
    `draws`: whether it draws at random, where its decision is not given.
    """

    name: str
    group: str
    title: str
    offer: str
    parameters: tuple[Field, ...]
    candidates: Candidates
    guard: Guard | None = None
    starred: str = ""
    converted: Mapping[str, Callable[[Call], Any]] = dataclass_field(default_factory=dict)
    texts: Mapping[str, Text] = dataclass_field(default_factory=dict)
    choices: Mapping[str, Choices] = dataclass_field(default_factory=dict)
    many: bool = False
    draws: bool = False

    @cached_property
    def by_name(self) -> Mapping[str, Field]:
        """Its arguments by name."""
        return {parameter.name: parameter for parameter in self.parameters}


def field(name: str, label: str, kind: FieldKind, help: str, **rest: Any) -> Field:
    """Return a field of a primitive's form; see `Field` for the rest."""
    return Field(name=name, label=label, kind=kind, help=help, **rest)


# Fields and candidates of several primitives.

LOOP = field("loop", _("Loop"), "loop", _("The loop to apply it to."))
LOOPS = field("loops", _("Loops"), "loops", _("From the outermost to the innermost."))
BLOCK = field("block", _("Block"), "block", _("The block to apply it to."))
UNIT_ITERS = field(
    "preserve_unit_iters",
    _("Keep axes of extent 1"),
    "flag",
    _("Loops of extent 1 stay in the bindings of the block's axes."),
    default=True,
)


def one_loop(site: FunctionSelection) -> Iterator[Arguments]:
    """Propose a loop by itself."""
    if site.loop is not None:
        yield {"loop": site.named[site.loop]}


def one_block(site: FunctionSelection) -> Iterator[Arguments]:
    """Propose a block by itself."""
    if site.block is not None:
        yield {"block": site.named[site.block]}


def at_loops(site: FunctionSelection, block: int, loops: list[int]) -> Iterator[Arguments]:
    """Propose a block with each of some loops."""
    for loop in loops:
        yield {"block": site.named[block], "loop": site.named[loop]}


def block_at_loop(site: FunctionSelection) -> Iterator[Arguments]:
    """Propose a selected block with a selected loop."""
    if site.block_and_loop is not None:
        block, loop = site.block_and_loop
        yield from at_loops(site, block, [loop])
