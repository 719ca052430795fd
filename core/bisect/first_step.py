"""The search for the first step after which a module differs from its reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import msgspec
import torch
import tvm
import tvm_ffi

from lowerscope.core.build.build import RecordedBuild, recorded_build, register_library
from lowerscope.core.ir.tensorir import prim_funcs_of
from lowerscope.core.model.dimensions import runs_of
from lowerscope.core.model.explanation_records import BisectStage, ProbedModule
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.progress import SILENT, Progress, Silent
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.run_records import OutputVerdict
from lowerscope.core.model.schedule import APPLY_SCHEDULES, SCHEDULING, Applied, Primitive
from lowerscope.core.model.texts import _
from lowerscope.core.model.tolerances import Tolerances
from lowerscope.core.passes.recording import PassRun
from lowerscope.core.run.compare.verdicts import Verdict, difference
from lowerscope.core.run.execution import Execution, filled_memory
from lowerscope.core.run.implementations import (
    check_callable,
    inputs_at,
    judge_run,
    reference_of,
)
from lowerscope.core.schedule.replay import Replays
from lowerscope.core.schedule.whole_model import with_functions
from lowerscope.core.stages import Stages


class Unreported(Silent):
    """Progress of parts of a search, which are not reported one by one."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def report(self, text: str, fraction: float | None = None) -> None:
        """Raise `Cancelled` if the search was cancelled."""
        self._progress.check()

    def check(self) -> None:
        """Raise `Cancelled` if the search was cancelled."""
        self._progress.check()


RIGHT: tuple[OutputVerdict, ...] = ("match", "rounding")
"""Verdicts on a module without a fault."""

Outputs = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Probe:
    """The run of one module."""

    verdict: Verdict
    outputs: Outputs

    @property
    def is_right(self) -> bool:
        """Return whether it matches, or differs by rounding only."""
        return self.verdict.verdict in RIGHT

    @property
    def differs(self) -> bool:
        """Return whether it differs by more than rounding."""
        return self.verdict.verdict == "differ"


class Prober:
    """Builds modules of one recipe, runs them on the same inputs, and compares with the reference.

    Args:
        index: Of the sizes of the named dimensions.
    """

    def __init__(
        self, stages: Stages, recipe: Recipe, progress: Progress = SILENT, index: int = 0
    ) -> None:
        self._stages, self._recipe, self._progress = stages, recipe, progress
        self._sizes = runs_of(recipe)[index]

    @cached_property
    def values(self) -> Outputs:
        """The inputs."""
        return inputs_at(self._sizes, self._stages, self._recipe)

    @cached_property
    def expected(self) -> tuple[tuple[str, torch.Tensor], ...] | None:
        """The outputs of the reference, by name; ``None`` without one."""
        return self.expected_again()

    def expected_again(self) -> tuple[tuple[str, torch.Tensor], ...] | None:
        """Run the reference."""
        stages = self._stages
        with stages.running():
            _side, reference = reference_of(stages.loaded, self.values, self._recipe.seed)
            return None if reference is None else reference.named_outputs()

    def build(self, module: tvm.IRModule, target: tvm.target.Target | None = None) -> RecordedBuild:
        """Build a module.

        Raises a `LowerscopeError` if TVM fails.
        """
        with self._stages.loaded.environment():
            return recorded_build(module, target or self._stages.target)

    def run(self, build: RecordedBuild) -> Probe:
        """Run what was built, and compare it.

        Raises a `LowerscopeError` if the run fails.
        """
        self._progress.check()
        stages = self._stages
        # Before TVM, which would read out of bounds for an invalid index.
        expected = self.expected
        register_library({} if stages.lowered is None else stages.lowered.library)
        with stages.running():
            arguments = stages.arguments_of(build.module, self.values)
            with filled_memory():
                execution = Execution(build.built.executable, "main", arguments)
                outputs = execution.outputs(self._recipe.seed)
            verdict, _expected = judge_run(
                stages, self._recipe, self.values, outputs, expected, build
            )
        return Probe(verdict, outputs)

    def probe(self, module: tvm.IRModule) -> Probe:
        """Build and run a module: see `build` and `run`."""
        return self.run(self.build(module))

    def without_optimisation(self, module: tvm.IRModule) -> Probe:
        """Build a module without LLVM's optimisation, and run it: see `build` and `run`."""
        target = tvm.target.Target({**self._stages.target.export(), "opt-level": 0})
        return self.run(self.build(module, target))


@dataclass(frozen=True)
class Item:
    """A step of a recipe that changes the module.

    `title`: in words: ``step 3 (FuseOps)``.
    `step`: place of the recipe's step, from 1; 0 for the translation.
    `module`: makes the module after it.
    `primitives`: of a primitive: those of its function up to it.
    """

    stage: BisectStage
    name: str
    title: str
    step: int
    module: Callable[[], tvm.IRModule]
    moment: Moment
    function: str = ""
    primitives: tuple[Primitive, ...] = ()


def items_of(stages: Stages, replays: Replays, progress: Progress) -> list[Item]:
    """Return the translation and the steps that change the module, in order.

    A scheduling step counts as the primitives that it applies, and a pass that consists of others
    as these. Raises a `LowerscopeError` if a step failed.
    """
    _module = stages.completed
    transformed = stages.transformed
    nodes = () if stages.traced is None else tuple(stages.traced.graph_module.graph.nodes)
    items = [
        Item(
            stage="translate",
            name="",
            title=_("the translation"),
            step=0,
            module=lambda: stages.module,
            moment=Moment(section="translate", index=len(nodes)),
        )
    ]
    applied = iter(transformed.schedules)
    for number, run in enumerate(transformed.runs, start=1):
        if run.depth or run.status != "done" or run.after is None:
            continue
        if run.name in SCHEDULING:
            own = next(applied, ())
            items += _primitives(run, number, own, stages, replays, progress)
        elif not is_same(run.before, run.after):
            items += _passes(transformed.runs, number, run)
    return items


def is_same(one: tvm.IRModule, other: tvm.IRModule) -> bool:
    """Return whether two modules are equal."""
    return bool(one.same_as(other) or tvm_ffi.structural_equal(one, other))


def _passes(runs: Sequence[PassRun], number: int, outer: PassRun) -> Iterator[Item]:
    """Yield a pass that changes the module, or those that it consists of.

    Args:
        outer: The recipe's step.
    """
    run = runs[number - 1]
    inside = [place for place, each in enumerate(runs, start=1) if each.parent == number]
    if inside and _leads(runs, number, inside):
        for place in inside:
            each = runs[place - 1]
            if each.after is not None and not is_same(each.before, each.after):
                yield from _passes(runs, place, outer)
        return

    def module() -> tvm.IRModule:
        assert run.after is not None
        return run.after

    yield Item(
        stage="pass",
        name=outer.name,
        title=_("step {number} ({name})", number=run.step, name=outer.name)
        if run is outer
        else _(
            "{inner} in step {number} ({name})", inner=run.name, number=run.step, name=outer.name
        ),
        step=run.step,
        module=module,
        moment=Moment(section="passes", index=number),
    )


def _leads(runs: Sequence[PassRun], number: int, inside: Sequence[int]) -> bool:
    """Return whether the passes inside of one lead from its input module to its result."""
    last: Any = runs[number - 1].before
    for place in inside:
        each = runs[place - 1]
        if each.after is None or not is_same(last, each.before):
            return False
        last = each.after
    after = runs[number - 1].after
    return after is not None and is_same(last, after)


def _primitives(
    run: PassRun,
    number: int,
    applied: Sequence[Applied],
    stages: Stages,
    replays: Replays,
    progress: Progress,
) -> Iterator[Item]:
    """Yield the primitives that a scheduling step applies to one function after the other."""
    functions = prim_funcs_of(run.before)
    done: dict[str, Any] = {}
    for each in applied:
        name, primitives = each.schedule.function, each.schedule.primitives
        states = replays.replay(name, functions[name], stages.target, primitives, progress.check)
        for place in range(1, len(states)):
            step = states[place].steps[place - 1]
            if step.status != "done":
                continue

            so_far = {**done, name: states[place].function}
            by_hand = Moment(section="schedule", index=place, function=name)
            yield Item(
                stage="schedule",
                name=primitives[place - 1].name,
                title=_(
                    "{primitive} in the schedule of {function}", primitive=step.title, function=name
                ),
                step=run.step,
                module=partial(with_functions, run.before, so_far),
                moment=by_hand
                if run.name == APPLY_SCHEDULES
                else Moment(section="passes", index=number),
                function=name,
                primitives=primitives[:place],
            )
        done[name] = states[-1].function


class Unclear(Exception):
    """The modules between one that is right and one that differs cannot be built or run."""

    def __init__(self, items: Sequence[Item]) -> None:
        super().__init__()
        self.items = tuple(items)


class Search:
    """Binary search of the first of some steps after which the module differs.

    Each module is built once. The last one is known to differ, and nothing before the first step
    can.

    Args:
        last: The run of the module after all steps.
        first: Builds the module after the first.
    """

    def __init__(
        self,
        prober: Prober,
        items: Sequence[Item],
        last: Probe,
        first: Callable[[], RecordedBuild],
        progress: Progress,
    ) -> None:
        self.builds = 1
        self.items = items
        self._prober, self._progress, self._first = prober, progress, first
        self._probes: dict[int, Probe | LowerscopeError] = {len(items): last}

    def find(self) -> Item:
        """Return the step: the module before it is right, and the one after it differs.

        Raises an `Unclear` if there are several, of whose modules none can be judged.
        """
        right, wrong = 0, len(self.items)
        while True:
            unknown = [each for each in range(right + 1, wrong) if each not in self._probes]
            if not unknown:
                break
            middle = (right + wrong) // 2
            number = min(unknown, key=lambda each: (abs(each - middle), each))
            found = self._probe(number)
            if isinstance(found, LowerscopeError):
                continue
            if found.differs:
                wrong = number
            elif found.is_right:
                right = number
        if wrong - right > 1:
            raise Unclear(self.items[right:wrong])
        return self.items[wrong - 1]

    def probe_of(self, item: Item) -> Probe:
        """Return the run of the module after a step that was found."""
        found = self._probes[self.items.index(item) + 1]
        assert isinstance(found, Probe)
        return found

    def _probe(self, number: int) -> Probe | LowerscopeError:
        item = self.items[number - 1]
        self._progress.report(
            _("Build {count}: the module after {step}", count=self.builds + 1, step=item.title)
        )
        self.builds += 1
        try:
            build = self._first() if number == 1 else self._prober.build(item.module())
            found: Probe | LowerscopeError = self._prober.run(build)
        except LowerscopeError as error:
            found = error
        self._probes[number] = found
        return found

    @property
    def probed(self) -> tuple[ProbedModule, ...]:
        """The modules that were built, in the order of the steps."""
        return tuple(
            _probed(self.items[number - 1].title, each)
            for number, each in sorted(self._probes.items())
        )


def _probed(title: str, found: Probe | LowerscopeError) -> ProbedModule:
    if isinstance(found, LowerscopeError):
        return ProbedModule(after=title, verdict="failed", reason=found.problem.what)
    return ProbedModule(after=title, verdict=found.verdict.verdict, reason=found.verdict.reason)


def last_probe(
    stages: Stages, recipe: Recipe, progress: Progress
) -> tuple[Prober, Probe, Probe | None]:
    """Run the final module at each size up to one that differs, and there once more.

    Returns:
        The prober of that size, its run, and the second run; ``None`` if none differs.

    Raises a `LowerscopeError` if the module cannot be built or run.
    """
    check_callable(stages)
    progress.report(_("Build {count}: the module after all steps", count=1))
    probers = [Prober(stages, recipe, progress, index) for index in range(len(runs_of(recipe)))]
    worst: tuple[Prober, Probe] | None = None
    for prober in probers:
        found = prober.run(stages.recorded)
        if found.differs:
            return prober, found, prober.run(stages.recorded)
        if worst is None or worst[1].verdict.verdict in RIGHT:
            worst = prober, found
    assert worst is not None
    return *worst, None


def is_reproducible(prober: Prober, one: Probe, again: Probe) -> bool:
    """Return whether two runs of one module, and of the reference, compute the same."""
    expected, second = prober.expected, prober.expected_again()
    if expected is None or second is None:
        return False
    first, other = ([value for _name, value in each] for each in (expected, second))
    same = computes_same(one.outputs, again.outputs) and computes_same(first, other)
    return again.differs and same


def computes_same(one: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> bool:
    """Return whether two runs have the same outputs, within the usual tolerance."""
    pairs = zip(one, other, strict=False)
    return len(one) == len(other) and all(difference(*each, Tolerances()).matches for each in pairs)


def with_steps(recipe: Recipe, count: int) -> Recipe:
    """Return a recipe of the first steps; without any, it is that of the translation."""
    schedules = recipe.schedules if count else ()
    return msgspec.structs.replace(recipe, steps=recipe.steps[:count], schedules=schedules)
