"""How fast models run that are scheduled by themselves, beside torch, and each of their functions.

Both sides run by turns, with the same number of threads, for this machine's own processor, and the
outputs are compared with torch's in the same run: unscheduled; by the rules alone, with the time of
scheduling and building; and tuned, with what tuning has found so far. ``torch.compile`` is a side
as well where there is a compiler for it. The time of a function is that of its calls in runs of the
whole model, which are watched; its share is of what the machine's measured peaks allow.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from lowerscope.core.model.queries import PeaksQuery

if TYPE_CHECKING:
    from lowerscope.core.model.recipe import Recipe
    from lowerscope.core.model.run_records import RunTimes, SideTimes
    from lowerscope.core.model.schedule_records import Peaks
    from lowerscope.core.run.execution import Execution, Reference
    from lowerscope.core.stages import Pipeline, Stages

GOALS: dict[str, tuple[float, float]] = {
    "resnet18": (1.5, 1.0),
    "fashion_mlp": (1.0, 0.8),
    "conv_net": (1.0, 0.8),
    "transformer_block": (1.2, 1.0),
    "depthwise_net": (1.0, 0.8),
}
"""By model: the ratio to torch that the rules alone should reach, and that tuning should."""

SECONDS = 10.0
"""What scheduling by rules and building may take."""

OPTIMISED = "optimise-cpu"
"""The pipeline that schedules by rules."""

WATCHED = 20
"""Runs that are watched for the times of functions."""


@dataclass(frozen=True)
class FunctionSpeed:
    """A function in a run of the model.

    Attributes
    ----------
    calls
        In one run.
    milliseconds
        Of one call: the median over all runs.
    gflops, gbytes_per_second
        ``None`` where it is not known what it has to do.
    share
        Of what the peaks allow, by the roofline; ``is_computing`` where multiply-adds bound it, and
        not the bandwidth.
    """

    name: str
    calls: int
    milliseconds: float
    gflops: float | None = None
    gbytes_per_second: float | None = None
    share: float | None = None
    is_computing: bool = False

    def line(self) -> str:
        """Return the function as a line."""
        rate = "–"
        if self.is_computing and self.gflops is not None:
            rate = f"{self.gflops:.1f} GFLOP/s"
        elif self.gbytes_per_second is not None:
            rate = f"{self.gbytes_per_second:.1f} GB/s"
        share = "–" if self.share is None else f"{self.share:.0%}"
        times = f"{self.calls} × {self.milliseconds * 1000:.1f} µs"
        return f"    {self.name:<56} {times:>18} {rate:>16} {share:>5}"


@dataclass(frozen=True)
class Speed:
    """A model in one way of scheduling it, beside torch.

    Attributes
    ----------
    seconds
        Of passes, scheduling and building.
    differs
        Why the outputs are not torch's; empty where they match.
    compiled
        The time of ``torch.compile``, or why there is none.
    """

    model: str
    way: str
    ours: SideTimes
    theirs: SideTimes
    threads: int
    goal: float | None
    seconds: float
    most_seconds: float | None
    differs: str
    compiled: SideTimes | str
    functions: tuple[FunctionSpeed, ...] = ()

    @property
    def ratio(self) -> float:
        """Of the medians."""
        return self.ours.milliseconds / self.theirs.milliseconds

    @property
    def reached(self) -> bool | None:
        """Whether the goal is reached, by a model that computes what torch does."""
        if self.goal is None:
            return None
        in_time = self.most_seconds is None or self.seconds <= self.most_seconds
        return self.ratio <= self.goal and in_time and not self.differs

    def as_dict(self) -> dict[str, Any]:
        """Return the figure for JSON."""
        there = not isinstance(self.compiled, str)
        return {
            "name": f"{self.model}, {self.way}",
            "ours_ms": self.ours.milliseconds,
            "ours_quarters_ms": [self.ours.low, self.ours.high],
            "against": "torch",
            "against_ms": self.theirs.milliseconds,
            "against_quarters_ms": [self.theirs.low, self.theirs.high],
            "ratio": self.ratio,
            "goal": self.goal,
            "reached": self.reached,
            "threads": self.threads,
            "repeats": self.ours.repeats,
            "matches": not self.differs,
            "differs": self.differs,
            "building_s": self.seconds,
            "compiled_ms": msgspec.to_builtins(self.compiled)["milliseconds"] if there else None,
            "compile_problem": "" if there else self.compiled,
            "functions": [vars(each) for each in self.functions],
        }

    def line(self) -> str:
        """Return the figure, and those of its functions."""
        right = f"DIFFERS: {self.differs}" if self.differs else "matches torch"
        head = (
            f"{self.model}, {self.way}: {_times(self.ours)} against {_times(self.theirs)} (torch,"
            f" {self.threads} threads, {self.ours.repeats} calls each), ratio {self.ratio:.2f}"
        )
        if self.goal is not None:
            mark = "reached" if self.reached else "NOT reached"
            within = "" if self.most_seconds is None else f" in {self.most_seconds:g} s"
            head += f", goal {self.goal:g}{within}: {mark}"
        head += f"; {right}; passes, scheduling and building {self.seconds:.1f} s"
        lines = [head]
        if isinstance(self.compiled, str):
            lines += [f"    no torch.compile: {self.compiled}"] if self.compiled else []
        else:
            beside = self.ours.milliseconds / self.compiled.milliseconds
            lines.append(f"    torch.compile: {_times(self.compiled)}, ratio {beside:.2f}")
        return "\n".join([*lines, *(each.line() for each in self.functions)])


def _times(side: SideTimes) -> str:
    return f"{side.milliseconds:.3f} ms ({side.low:.3f}–{side.high:.3f})"


def measure(models: Sequence[str] = (), *, tuned: bool = False) -> list[Speed]:
    """Measure models, all of `GOALS` if none is named."""
    return [figure for model in models or GOALS for figure in _model(model, tuned=tuned)]


def _model(model: str, *, tuned: bool) -> list[Speed]:
    from lowerscope.core.build.targets import use_threads
    from lowerscope.core.files.pipelines_and_schedules import find_pipeline
    from lowerscope.core.model.recipe import Recipe, Source, with_tuned
    from lowerscope.core.stages import Pipeline

    base = Recipe(source=Source(spec=f"sample:{model}"), target="native")
    ways = {
        "unscheduled": msgspec.structs.replace(base, steps=find_pipeline("legalise").steps),
        "rules": msgspec.structs.replace(base, steps=find_pipeline(OPTIMISED).steps),
    }
    pipeline = Pipeline()
    threads = use_threads(base.threads)
    peaks = pipeline.answer(PeaksQuery(base, True))
    by_rules, by_tuning = GOALS[model]
    plain = _Way(pipeline, "unscheduled", ways["unscheduled"], None)
    ruled = _Way(pipeline, "rules", ways["rules"], by_rules, most_seconds=SECONDS)
    scheduled = [ruled]
    if tuned:
        way = _Way(pipeline, "tuned", with_tuned(ways["rules"]), by_tuning)
        way.name += f" ({_budget(way.stages, threads)})"
        scheduled.append(way)
    # Apart: few calls of what is unscheduled would be few of all.
    figures = _by_turns(model, [plain], threads, peaks, compiled=False)
    return figures + _by_turns(model, scheduled, threads, peaks, compiled=True)


def _budget(stages: Stages, threads: int) -> str:
    """Return what tuning has measured of the functions of a model."""
    from lowerscope.core.run.tuning.database import Database

    database = Database(stages.target, threads)
    functions = stages.functions.by_name.values()
    known = [kept for each in functions if (kept := database.kept(each)) is not None]
    trials = sum(each.trials for each in known)
    return f"{trials} trials of {len(known)} of {len(functions)} functions"


class _Way:
    """A model that is built in one way."""

    def __init__(
        self,
        pipeline: Pipeline,
        name: str,
        recipe: Recipe,
        goal: float | None,
        most_seconds: float | None = None,
    ) -> None:
        from lowerscope.core.run.compare.verdicts import judge
        from lowerscope.core.run.execution import Execution
        from lowerscope.core.run.implementations import reference_of

        self.name, self.recipe, self.goal, self.most_seconds = name, recipe, goal, most_seconds
        self.stages: Stages = pipeline.stages(recipe)
        loaded = self.stages.loaded
        self.inputs = tuple(each.value for each in loaded.inputs)
        self.built = self.stages.built
        spent = self.stages.milliseconds
        self.seconds = sum(spent.get(each, 0.0) for each in ("passes", "schedules", "build")) / 1000
        self.reference: Reference | None = reference_of(loaded, self.inputs, recipe.seed)[1]
        assert self.reference is not None
        arguments = self.stages.arguments(self.inputs)
        verdict = judge(
            Execution(self.built.executable, "main", arguments).outputs(),
            self.reference.outputs(),
            recipe.tolerances,
        )
        self.differs = "" if verdict.verdict == "match" else verdict.reason or verdict.verdict
        # One that was never watched.
        self.execution: Execution = Execution(self.built.executable, "main", arguments)


def _by_turns(
    model: str, ways: Sequence[_Way], threads: int, peaks: Peaks, *, compiled: bool
) -> list[Speed]:
    from lowerscope.core.model.dimensions import runs_of
    from lowerscope.core.model.progress import SILENT
    from lowerscope.core.model.run_records import Measuring
    from lowerscope.core.run.implementations import measure_by_turns

    recipe = ways[0].recipe
    times = measure_by_turns(
        [each.stages for each in ways],
        recipe,
        runs_of(recipe)[0],
        [each.execution for each in ways],
        ways[0].reference,
        Measuring(torch_compile=compiled),
        SILENT,
    )
    return [
        Speed(
            model=model,
            way=way.name,
            ours=found.sides[0],
            theirs=found.sides[1],
            threads=threads,
            goal=way.goal,
            seconds=way.seconds,
            most_seconds=way.most_seconds,
            differs=way.differs,
            compiled=_compiled(found),
            functions=_functions(way, peaks) if way.goal is not None else (),
        )
        for way, found in zip(ways, times, strict=True)
    ]


def _compiled(times: RunTimes) -> SideTimes | str:
    there = next((each for each in times.sides if each.side == "torch.compile"), None)
    return there or times.compile_problem


def _functions(way: _Way, peaks: Peaks) -> tuple[FunctionSpeed, ...]:
    """Return the functions that a model calls, by their share of its time."""
    from lowerscope.core.run.calls import BUILTIN, CallsOf
    from lowerscope.core.run.execution import Execution
    from lowerscope.core.run.node_runs import watch

    stages = way.stages
    calls = CallsOf(stages.recorded, "main").calls
    execution = Execution(way.built.executable, "main", stages.arguments(way.inputs))
    seconds: dict[str, list[float]] = defaultdict(list)
    watch(execution, calls)
    for _ in range(WATCHED):
        for call, taken in zip(calls, watch(execution, calls), strict=True):
            if not call.callee.startswith(BUILTIN):
                seconds[call.callee].append(taken)
    found = [
        _function(stages, name, len(taken) // WATCHED, statistics.median(taken) * 1000, peaks)
        for name, taken in seconds.items()
    ]
    return tuple(sorted(found, key=lambda each: -each.calls * each.milliseconds))


def _function(
    stages: Stages, name: str, calls: int, milliseconds: float, peaks: Peaks
) -> FunctionSpeed:
    from tvm import tirx

    from lowerscope.core.run.function_metrics import work_of

    speed = FunctionSpeed(name, calls, milliseconds)
    # By what it was before it was scheduled, which a rule may have moved parts of to the build.
    names = (name, name.removesuffix("_prepacked"))
    before = dict(stages.functions.by_name)
    after = {str(each.name_hint): value for each, value in stages.completed.functions.items()}
    function = next((each[one] for each in (before, after) for one in names if one in each), None)
    if not isinstance(function, tirx.PrimFunc):
        return speed
    work = work_of(function, calls)
    if work.flops is None or work.read is None:
        return speed
    moved = work.read + (work.written or 0)
    best = peaks.best_ms(work.flops, moved)
    return replace(
        speed,
        gflops=work.flops / (milliseconds * 1e6),
        gbytes_per_second=moved / (milliseconds * 1e6),
        share=best / milliseconds,
        is_computing=best > peaks.best_ms(0.0, moved),
    )
