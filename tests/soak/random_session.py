"""What a user may do in a session, drawn at random."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Literal

import msgspec

from lowerscope.app.shell.window import MainWindow
from lowerscope.core.files.pipelines_and_schedules import find_pipeline, with_pipeline
from lowerscope.core.model.recipe import STRATEGIES, Recipe, Source, Strategy
from lowerscope.core.model.schedule import Primitive
from lowerscope.core.model.tuning_records import TuneOptions
from tests.end_to_end.driving import wait_until

SOURCES = ("sample:matmul_relu", "sample:fashion_mlp")
PIPELINES = ("legalise", "fuse", "default-build")

Activity = Literal[
    "loading", "lowering", "stepping", "scheduling", "building", "running", "tuning", "idle"
]


class RandomSession:
    """Drives a window that has a model open.

    Parameters
    ----------
    window
        What is driven.
    random
        Of all that is drawn.
    """

    def __init__(self, window: MainWindow, random: random.Random) -> None:
        self.window = window
        self.document = window.document
        self.random = random
        self._activities: dict[Activity, Callable[[], None]] = {
            "loading": self._load,
            "lowering": self._lower,
            "stepping": self._step,
            "scheduling": self._schedule,
            "building": self._build,
            "running": self._run,
            "tuning": self._tune,
            "idle": lambda: None,
        }

    def do(self, activity: Activity) -> None:
        """Begin something of this kind; what comes of it comes later."""
        self._activities[activity]()

    def change(self) -> None:
        """Change the recipe at random."""
        before = self.wanted()
        while self.wanted() == before:
            self._lower()

    def _load(self) -> None:
        """Open another model, or draw other weights for this one."""
        recipe = self.wanted()
        if self.random.random() < 0.3:
            spec = next(each for each in SOURCES if each != recipe.source.spec)
            self.document.open(Recipe(source=Source(spec=spec), lowering="te"))
        else:
            seed = self.random.randrange(1 << 30)
            self.document.change(msgspec.structs.replace(recipe, seed=seed))

    def _lower(self) -> None:
        """Change a strategy or the pipeline, or take a change back."""
        recipe, commands = self.wanted(), self.window.commands
        drawn = self.random.random()
        if drawn < 0.2 and self.document.can_undo:
            commands.action("undo").trigger()
        elif drawn < 0.3 and self.document.can_redo:
            commands.action("redo").trigger()
        elif drawn < 0.5:
            name = self.random.choice(PIPELINES)
            self.document.change(with_pipeline(recipe, find_pipeline(name).steps))
        elif drawn < 0.75:
            snapshot = self.document.snapshot
            assert snapshot is not None
            calls = [node.id for node in snapshot.fx if node.opcode.startswith("call")]
            strategies: tuple[Strategy, ...] = STRATEGIES
            self.document.lower_nodes((self.random.choice(calls),), self.random.choice(strategies))
        else:
            others = [each for each in STRATEGIES if each != recipe.lowering]
            commands.action(self.random.choice(others)).trigger()

    def _step(self) -> None:
        """Go through the passes, and look at functions."""
        stepping, snapshot = self.window.features.stepping, self.document.snapshot
        stepping.set_section(self.random.choice(("passes", "translate")))
        for _ in range(self.random.randint(1, 4)):
            stepping.step(self.random.choice((-1, 1, 1)))
        if snapshot is not None and snapshot.functions:
            self.document.select((self.random.choice(snapshot.functions).id,))

    def _schedule(self) -> None:
        """Add a primitive to a function's schedule, or look at one of its steps."""
        scheduling, snapshot = self.window.features.scheduling, self.document.snapshot
        functions = () if snapshot is None else snapshot.functions
        if not functions:
            return
        self.document.select((self.random.choice(functions).id,))
        self.window.commands.action("workbench").trigger()
        if not wait_until(lambda: scheduling.record is not None or scheduling.problem, 20_000):
            return
        record = scheduling.record
        loops = [] if record is None else [each for each in record.tree if each.kind == "loop"]
        if not loops or len(record.steps) > 6:  # type: ignore[union-attr]
            return
        loop = self.random.choice(loops).reference
        if loop is None:
            return
        steps = (
            Primitive(id="", name="split", arguments={"loop": loop, "factors": (None, 4)}),
            Primitive(id="", name="unroll", arguments={"loop": loop}),
            Primitive(id="", name="parallel", arguments={"loop": loop}),
        )
        scheduling.editing.apply(self.random.choice(steps))

    def _build(self) -> None:
        """Look at the passes of the build, which the worker compiles for."""
        self.window.features.build.look(False)
        self.document.change(
            msgspec.structs.replace(self.wanted(), seed=self.random.randrange(1 << 30))
        )
        self.window.features.build.look(True)

    def _run(self) -> None:
        self.window.commands.action("run").trigger()

    def _tune(self) -> None:
        self.window.features.tuning.start(TuneOptions(slowest=1, trials=4000, fresh=True))

    def wanted(self) -> Recipe:
        """Return the recipe that was asked for last."""
        recipe = self.document.wanted
        assert recipe is not None
        return recipe
