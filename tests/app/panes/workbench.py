"""A workbench whose engine applies primitives as plain values."""

from __future__ import annotations

from collections.abc import Callable

from lowerscope.core.model.queries import MovesQuery, ScheduleQuery
from lowerscope.core.model.schedule import Argument, At, Made, Primitive, schedule_for
from lowerscope.core.model.schedule_records import (
    Field,
    LoopNode,
    Move,
    ScheduleRecord,
    ScheduleStep,
    StepError,
)
from lowerscope.core.model.snapshot import TextRecord
from tests.app.plain_values import RECIPE, Bench

LOOP = At(block="matmul", loop=0)
FACTORS = Field(name="factors", label="Factors", kind="factors", product=8)


def primitive(name: str, **arguments: Argument) -> Primitive:
    """Return a primitive on the outermost loop that has no id yet."""
    return Primitive(id="", name=name, arguments={"loop": LOOP, **arguments})


def move(name: str, *fields: Field, legal: bool = True) -> Move:
    """Return a primitive as it is offered."""
    words = dict.fromkeys(("title", "group", "help", "before", "after"), "")
    return Move(name=name, legal=legal, primitive=primitive(name), fields=fields, **words)


class Workbench:
    """The model of the scheduled function, and answers to what it sends.

    Attributes
    ----------
    failing
        Names of the primitives that cannot be applied.
    moves
        The primitives that are offered for each selection.
    """

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.document = bench.document
        self.scheduling = bench.features.scheduling
        self.editing = self.scheduling.editing
        self.trying = self.scheduling.trying
        self.variants = bench.features.variants
        self.failing: set[str] = set()
        self.moves: tuple[Move, ...] = (move("unroll"), move("split", FACTORS))
        bench.open(RECIPE)
        self.scheduling.look("dense")
        bench.features.stepping.set_section("schedule")
        self.settle()

    def settle(self) -> None:
        """Answer what has been sent until nothing is missing."""
        pending = True
        while pending:
            pending = False
            for each in list(self.bench.engine.sent):
                if each.fate:
                    continue
                if isinstance(each.query, ScheduleQuery):
                    each.answer(self.applied(each.query))
                    pending = True
                elif isinstance(each.query, MovesQuery):
                    each.answer(self.moves)
                    pending = True

    def applied(self, query: ScheduleQuery) -> ScheduleRecord:
        """Return the function after the primitives of a query, as the engine does."""
        schedule = schedule_for(query.recipe.schedules, query.function, "structure")
        primitives = () if schedule is None else schedule.primitives
        index = len(primitives) if query.index is None else query.index
        loop = LoopNode(
            id=f"tir:{query.function}/i",
            kind="loop",
            name="i",
            depth=0,
            parent=-1,
            reference=LOOP,
            extent="8",
            size=8,
        )
        return ScheduleRecord(
            function=query.function,
            structure="structure",
            index=index,
            script=TextRecord(text=f"after {index}", language="python"),
            tree=self._tree(loop, primitives[:index]),
            steps=tuple(self._step(each) for each in primitives),
            predicted_ms=1.5 + index if query.priced else None,
        )

    def _tree(self, loop: LoopNode, applied: tuple[Primitive, ...]) -> tuple[LoopNode, ...]:
        """Return the only loop, or those that it was split into."""
        for each in applied:
            if each.name == "split" and each.on and each.name not in self.failing:
                names = [(f"{loop.id}_{place}", place) for place in range(2)]
                return tuple(
                    LoopNode(
                        id=id,
                        kind="loop",
                        name=f"i_{place}",
                        depth=place,
                        parent=place - 1,
                        reference=Made(step=each.id, output=place),
                    )
                    for id, place in names
                )
        return (loop,)

    def _step(self, primitive: Primitive) -> ScheduleStep:
        failed = primitive.name in self.failing and not primitive.forced
        return ScheduleStep(
            id=primitive.id,
            title=primitive.name,
            code="",
            status="off" if not primitive.on else "failed" if failed else "done",
            error=StepError(message="it does not fit", unsafe=True) if failed else None,
            names=("i",),
        )

    def apply(self, name: str, **arguments: Argument) -> None:
        """Apply a primitive at the current step."""
        self.editing.apply(primitive(name, **arguments))
        self.settle()

    def do(self, change: Callable[[], object]) -> None:
        """Change something, and answer what is sent for it."""
        change()
        self.settle()

    @property
    def ids(self) -> list[str]:
        """The ids of the steps as shown, in order."""
        record = self.scheduling.record
        return [] if record is None else [each.id for each in record.steps]

    @property
    def statuses(self) -> list[str]:
        """The status of each step as shown."""
        record = self.scheduling.record
        return [] if record is None else [each.status for each in record.steps]
