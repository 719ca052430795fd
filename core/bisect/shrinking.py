"""Shrinking of a model to the smallest that still shows the fault of a step."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import torch
import tvm

from lowerscope.core.bisect.first_step import Item, Probe, Prober, Unreported
from lowerscope.core.bisect.small_model import Parts, SmallModel
from lowerscope.core.files.approved import approve
from lowerscope.core.ir.tensorir import structure_of
from lowerscope.core.model.explanation_records import BisectStage
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.recipe import Override, Recipe, Source, Step, overrides_on
from lowerscope.core.model.schedule import APPLY_SCHEDULES, Schedule
from lowerscope.core.model.texts import _
from lowerscope.core.stages import Pipeline, Stages

SECONDS = 150.0
"""Processor time after which the smallest model so far is taken."""

FEW = 4
"""Number of neighbouring nodes that are tried where no half of the model shows the fault."""

EXTENTS = (2, 3, 4, 8, 16)
"""Sizes that are tried in place of larger ones."""


@dataclass(frozen=True)
class Small:
    """A small model that shows the fault, and its recipe.

    `before`: the module before the step; ``None`` for the translation.
    `after`: the module after it.
    `probe`: the run of the module after the step.
    """

    model: SmallModel
    recipe: Recipe
    stages: Stages
    before: tvm.IRModule | None
    after: tvm.IRModule
    probe: Probe


class Shrinking:
    """The search for the smallest model that shows the fault of a step.

    Args:
        item: The step.
        folder: For the programs of the models that are tried.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        recipe: Recipe,
        item: Item,
        inputs: Sequence[torch.Tensor],
        folder: Path,
        progress: Progress,
    ) -> None:
        self._pipeline, self._item, self._folder = pipeline, item, folder
        self._progress = progress
        self._tried = 0
        self._end = time.process_time() + SECONDS
        self._quiet = Unreported(progress)
        self._stages = pipeline.stages(recipe, self._quiet)
        traced, lowered = self._stages.traced, self._stages.lowered
        assert traced is not None
        assert lowered is not None
        self._tracer = traced.tracer
        self._strategies = {name: each.strategy for name, each in lowered.nodes.items()}
        self._recipe = self._up_to(recipe)
        with self._stages.running():
            self.parts = Parts(traced, inputs, recipe.seed)

    def smallest(self, first: Sequence[str] = ()) -> Small | None:
        """Return the smallest model that was found; ``None`` if no part of the model shows it.

        Args:
            first: Names of nodes that may be enough.
        """
        names, found = self._fewest(first)
        if found is None:
            return None
        found = self._with_fewer_steps(found, names)
        return self._with_smaller_shapes(found, names)

    def _up_to(self, recipe: Recipe) -> Recipe:
        """Return the recipe up to the step."""
        steps = list(recipe.steps[: self._item.step])
        steps = [each for each in steps[:-1] if each.on] + steps[-1:]
        return msgspec.structs.replace(
            recipe,
            steps=tuple(steps),
            schedules=recipe.schedules if steps else (),
            inputs=(),
            dimensions=(),
            overrides=(),
            tracer=self._tracer,
        )

    def imported(self, small: Small) -> Small | None:
        """Return a small model as TVM's importer lowers it; ``None`` if that hides the fault."""
        if self._item.stage == "translate" or small.recipe.params_as_inputs:
            return None
        recipe = msgspec.structs.replace(
            small.recipe,
            translator="tvm-export",
            tracer="auto",
            lowering="high-level",
            overrides=(),
        )
        try:
            found = (self._judged(small.model, each) for each in self._with_schedules(recipe))
            return next((each for each in found if each is not None), None)
        except LowerscopeError:
            return None

    # Fewer nodes

    def _fewest(self, first: Sequence[str]) -> tuple[tuple[str, ...], Small | None]:
        names, found = self.parts.names, None
        if first:
            found = self._of_nodes(first)
            names = tuple(first) if found else names
        while (part := self._part_of(names)) is not None:
            names, found = part
        if len(names) > 2 * FEW and (part := self._few_of(names)) is not None:
            names, found = part
        return self._without_single_nodes(names, found)

    def _few_of(self, names: Sequence[str]) -> tuple[tuple[str, ...], Small] | None:
        """Return a few neighbouring nodes that show the fault."""
        for start in range(0, len(names) - FEW // 2, FEW // 2):
            part = tuple(names[start : start + FEW])
            if (found := self._of_nodes(part)) is not None:
                return part, found
        return None

    def _part_of(self, names: Sequence[str]) -> tuple[tuple[str, ...], Small] | None:
        """Return half of some neighbouring nodes that shows the fault."""
        size = (len(names) + 1) // 2
        if size == len(names):
            return None
        starts = dict.fromkeys((0, len(names) - size, (len(names) - size) // 2))
        for start in starts:
            part = tuple(names[start : start + size])
            if (found := self._of_nodes(part)) is not None:
                return part, found
        return None

    def _without_single_nodes(
        self, names: Sequence[str], found: Small | None
    ) -> tuple[tuple[str, ...], Small | None]:
        """Leave out groups of nodes, and then single ones, as long as the fault shows."""
        names, size = tuple(names), max(1, len(names) // 2)
        while True:
            for start in range(0, len(names), size):
                rest = (*names[:start], *names[start + size :])
                if rest and (other := self._of_nodes(rest)) is not None:
                    names, found = rest, other
                    break
            else:
                if size == 1:
                    return names, found
                size //= 2
            size = min(size, max(1, len(names) // 2))

    def _of_nodes(self, names: Sequence[str]) -> Small | None:
        made = self.parts.model_of(names)
        return None if made is None else self._tried_model(*made, self._recipe)

    # Fewer steps, smaller shapes

    def _with_fewer_steps(self, found: Small, names: Sequence[str]) -> Small:
        for place in reversed(range(len(found.recipe.steps) - 1)):
            steps = found.recipe.steps
            fewer = (*steps[:place], *steps[place + 1 :])
            found = self._better(found, found.model, names, fewer)
        return found

    def _with_smaller_shapes(self, found: Small, names: Sequence[str]) -> Small:
        for extent in found.model.extents:
            for smaller in (each for each in EXTENTS if each < extent):
                model = found.model.with_numbers(
                    lambda value, old=extent, new=smaller: new if value == old else value  # type: ignore[misc]
                )
                better = self._better(found, model, names, found.recipe.steps)
                if better is not found:
                    found = better
                    break
        for name, filling in found.model.inputs.items():
            for axis, extent in enumerate(filling.shape):
                for smaller in (each for each in EXTENTS if each < extent):
                    model = found.model.with_extent(name, axis, smaller)
                    better = self._better(found, model, names, found.recipe.steps)
                    if better is not found:
                        found = better
                        break
        return found

    def _better(
        self, found: Small, model: SmallModel, names: Sequence[str], steps: tuple[Step, ...]
    ) -> Small:
        """Return the small model with another program or other steps, if that shows the fault."""
        if steps == found.recipe.steps and model == found.model:
            return found
        if not runs_in_torch(model):
            return found
        recipe = msgspec.structs.replace(self._recipe, steps=steps)
        made = self.parts.model_of(names)
        kept = names if made is None else made[1]
        return self._tried_model(model, kept, recipe) or found

    # One model

    def _tried_model(self, model: SmallModel, names: Sequence[str], recipe: Recipe) -> Small | None:
        """Return a model, if it shows the fault of the step."""
        if time.process_time() > self._end:
            return None
        self._tried += 1
        self._progress.report(
            _(
                "Shrinking, model {count}: {nodes} of {all} nodes",
                count=self._tried,
                nodes=len(model.calls),
                all=len(self.parts.names),
            )
        )
        try:
            return self._shown(model, names, recipe)
        except LowerscopeError:
            # It cannot be traced, lowered, built or run.
            return None

    def _shown(self, model: SmallModel, names: Sequence[str], recipe: Recipe) -> Small | None:
        path = self._folder / f"small_model_{self._tried}.py"
        text = f"{imports_of(model)}\n\n\n{model.text()}"
        path.write_text(text, encoding="utf-8")
        approve(path, text.encode())
        recipe = msgspec.structs.replace(recipe, source=Source(spec=str(path), entry="Model"))
        recipe = self._with_strategies(recipe, names)
        for each in self._with_schedules(recipe):
            found = self._judged(model, each)
            if found is not None:
                return found
        return None

    def _judged(self, model: SmallModel, recipe: Recipe) -> Small | None:
        stages = self._pipeline.stages(recipe, self._quiet)
        before, after = sides_of(stages, self._item.stage)
        prober = Prober(stages, recipe, self._quiet)
        found = prober.probe(after)
        if not found.differs:
            return None
        if before is not None and not prober.probe(before).is_right:
            return None
        return Small(model, recipe, stages, before, after, found)

    def _with_strategies(self, recipe: Recipe, names: Sequence[str]) -> Recipe:
        """Return the recipe with the strategies that the nodes had in the model."""
        if not overrides_on(self._stages.recipe):
            return recipe
        traced = self._pipeline.stages(recipe, self._quiet).traced
        assert traced is not None
        nodes = [each for each in traced.graph_module.graph.nodes if each.op.startswith("call_")]
        overrides = tuple(
            Override(pattern=f"fx:{node.name}", strategy=self._strategies[name])  # type: ignore[arg-type]
            for node, name in zip(nodes, names, strict=False)
            if self._strategies[name] not in ("", recipe.lowering)
        )
        return msgspec.structs.replace(recipe, overrides=overrides)

    def _with_schedules(self, recipe: Recipe) -> Iterator[Recipe]:
        """Yield the recipe for each function that can have the schedule of the step."""
        item = self._item
        if item.stage != "schedule" or recipe.steps[-1].name != APPLY_SCHEDULES:
            yield msgspec.structs.replace(recipe, schedules=())
            return
        stages = self._pipeline.stages(recipe, self._quiet)
        for name, function in stages.functions.by_name.items():
            states = self._pipeline.replays.replay(
                name, function, stages.target, item.primitives, self._progress.check
            )
            if all(each.status != "failed" for each in states[-1].steps):
                schedule = Schedule(
                    function=name, structure=structure_of(function), primitives=item.primitives
                )
                yield msgspec.structs.replace(recipe, schedules=(schedule,))


def sides_of(stages: Stages, stage: BisectStage) -> tuple[tvm.IRModule | None, tvm.IRModule]:
    """Return the modules before and after the last step; of the translation, that alone.

    Raises a `LowerscopeError` if a step fails.
    """
    if stage == "translate":
        return None, stages.module
    after = stages.completed
    last = [each for each in stages.transformed.runs if each.depth == 0][-1]
    return last.before, after


def imports_of(model: SmallModel) -> str:
    """Return the imports of a model's program."""
    return "import operator\n\nimport torch" if "operator." in model.text() else "import torch"


def runs_in_torch(model: SmallModel) -> bool:
    names: dict[str, Any] = {}
    state = torch.get_rng_state()
    with contextlib.suppress(Exception), torch.inference_mode():
        # The text is our own; whatever torch raises, the shapes do not fit.
        exec(f"{imports_of(model)}\n{model.text()}", names)
        names["Model"]().eval()(*names["example_inputs"]())
        torch.set_rng_state(state)
        return True
    torch.set_rng_state(state)
    return False


def is_optimised_wrongly(small: Small) -> bool:
    """Return whether a small model is right if LLVM does not optimise."""
    try:
        return Prober(small.stages, small.recipe).without_optimisation(small.after).is_right
    except LowerscopeError:
        return False
