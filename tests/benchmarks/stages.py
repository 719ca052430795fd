"""Benchmarks of the stages in process: against TVM, torch and the raw calls, by turns."""

from __future__ import annotations

import copy
import itertools
import statistics
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace

import torch
import tvm
from torch import fx
from torch.fx.passes.shape_prop import ShapeProp
from tvm import relax
from tvm.relax.frontend.torch import from_fx

from lowerscope.core.build.build import build, recorded_build
from lowerscope.core.build.targets import use_threads
from lowerscope.core.files.pipelines_and_schedules import find_pipeline, with_pipeline
from lowerscope.core.ir.script import function_text
from lowerscope.core.lowering.translator import lower
from lowerscope.core.model.graph import DEFAULT
from lowerscope.core.model.line_difference import FunctionText, function_differences
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.progress import SILENT
from lowerscope.core.model.queries import (
    BuildStepsQuery,
    FunctionsQuery,
    RunQuery,
    SnapshotQuery,
    TextQuery,
)
from lowerscope.core.model.recipe import Dimension, InputSpec, Recipe, Source, with_tuned
from lowerscope.core.passes.recording import pass_records
from lowerscope.core.passes.transforming import transform
from lowerscope.core.run.execution import Execution
from lowerscope.core.run.implementations import reference_of
from lowerscope.core.run.node_runs import node_runs
from lowerscope.core.sources.opened_model import LoadedModel
from lowerscope.core.stages import Pipeline, Stages
from tests.benchmarks.figures import Figure, against, benchmark, milliseconds, within

FUSE = find_pipeline("fuse").steps
SPEED_GOALS = {
    "resnet18": (1.5, 1.0),
    "fashion_mlp": (1.0, 0.8),
    "conv_net": (1.0, 0.8),
    "transformer_block": (1.2, 1.0),
    "depthwise_net": (1.0, 0.8),
}
"""By model: the ratio to torch that the rules alone should reach, and that tuning should."""


def sample(name: str, **fields: object) -> Recipe:
    """Return the recipe of a sample."""
    return Recipe(source=Source(spec=f"sample:{name}"), **fields)  # type: ignore[arg-type]


def shapes_of(loaded: LoadedModel) -> list[tuple[tuple[int, ...], str]]:
    """Return the shapes and dtypes of inputs as TVM's importer takes them."""
    values = [each.value for each in loaded.inputs]
    return [(tuple(each.shape), str(each.dtype).removeprefix("torch.")) for each in values]


@benchmark("open")
def opening() -> Iterator[Figure]:
    """Measure from the loaded model to its records, against the raw calls that this takes."""
    warnings.simplefilter("ignore")
    for name in ("fashion_mlp", "resnet18", "transformer_block"):
        recipe = sample(name)
        loaded = Pipeline().stages(recipe).loaded
        assert loaded.model is not None
        values = tuple(each.value for each in loaded.inputs)
        fresh = [Pipeline() for _ in range(10)]
        assert all(each.stages(recipe).loaded for each in fresh)

        def ours(recipe: Recipe = recipe, fresh: list[Pipeline] = fresh) -> object:
            return fresh.pop().answer(SnapshotQuery(recipe, DEFAULT))

        def theirs(loaded: LoadedModel = loaded, values: tuple[torch.Tensor, ...] = values) -> None:
            assert loaded.model is not None
            graph = fx.symbolic_trace(loaded.model)
            with torch.no_grad():
                ShapeProp(graph).propagate(*values)
            relax.transform.LegalizeOps()(from_fx(graph, shapes_of(loaded))).script()

        yield against(f"open {name}", ours, theirs, "the raw calls", pairs=9, goal=1.3)


@benchmark("lower")
def lowering() -> Iterator[Figure]:
    """Measure the translation into Relax, against TVM's own ``from_fx``."""
    warnings.simplefilter("ignore")
    for name in ("matmul_relu", "fashion_mlp", "conv_net", "transformer_block", "resnet18"):
        stages = Pipeline().stages(sample(name, tracer="fx"))
        loaded, traced = stages.loaded, stages.traced
        assert traced is not None
        shapes = shapes_of(loaded)
        inputs = [(each.name, *kind) for each, kind in zip(loaded.inputs, shapes, strict=True)]
        graph = fx.symbolic_trace(copy.deepcopy(loaded.model))
        yield against(
            f"lower {name}",
            lambda traced=traced, inputs=inputs: lower(traced, inputs, "high-level"),
            lambda graph=graph, shapes=shapes: from_fx(graph, shapes),
            "from_fx",
            pairs=15,
            goal=1.2,
        )


@benchmark("passes")
def passes() -> Iterator[Figure]:
    """Measure recorded passes against TVM's own, and the way to a step of them."""
    for name in ("fashion_mlp", "conv_net", "resnet18"):
        stages = Pipeline().stages(sample(name, steps=FUSE))

        def ours(stages: Stages = stages) -> None:
            assert pass_records(transform(stages.module, FUSE, target=stages.target).runs)

        def theirs(stages: Stages = stages) -> None:
            current = stages.module
            with tvm.transform.PassContext(opt_level=3), stages.target:
                for step in FUSE:
                    current = getattr(relax.transform, step.name)()(current)

        title, clock = f"record the passes of {name}", time.process_time
        yield against(title, ours, theirs, "TVM alone", pairs=5, goal=1.1, clock=clock)
    pipeline, recipe = Pipeline(), sample("resnet18", steps=FUSE)
    numbers = [each.number for each in pipeline.answer(SnapshotQuery(recipe, DEFAULT)).passes]

    def show(number: int) -> None:
        moment = Moment(section="passes", index=number)
        pipeline.answer(FunctionsQuery(recipe, moment))
        pipeline.answer(TextQuery(recipe, "", "script", moment))

    times = [milliseconds(lambda at=each: show(at)) for each in numbers]  # type: ignore[misc]
    yield within("show a step of the passes of resnet18", times, 100)


@benchmark("steps")
def steps() -> Iterator[Figure]:
    """Measure a recorded build against one without a recorder, and the way to a step of it."""
    for name, pairs in {"fashion_mlp": 15, "conv_net": 9, "resnet18": 3}.items():
        stages = Pipeline().stages(sample(name))
        module, target = stages.completed, stages.target
        yield against(
            f"record the build of {name}",
            lambda module=module, target=target: recorded_build(module, target),
            lambda module=module, target=target: build(module, target),
            "without a recorder",
            pairs=pairs,
            goal=1.1,
            clock=time.thread_time,
        )
    pipeline, recipe = Pipeline(), sample("resnet18")
    count = len(pipeline.answer(BuildStepsQuery(recipe)))
    recorded = pipeline.stages(recipe).recorded
    longest = sorted(recorded.tensorir, key=lambda name: len(recorded.module[name].script()))[-2:]

    def show(name: str, number: int) -> object:
        moment = Moment(section="build", index=number)
        return pipeline.answer(TextQuery(recipe, name, "script", moment))

    for name in ("", *longest):  # what is made once for a function, or for the build
        show(name, count)
    places = itertools.product(("", *longest), range(1, count, max(1, count // 20)))
    times = [milliseconds(lambda at=each: show(*at)) for each in places]  # type: ignore[misc]
    yield within("show a step of the build of resnet18", times, 100)


@benchmark("run")
def running() -> Iterator[Figure]:
    """Measure a comparison node by node against one run of torch and one of TVM.

    And the times of a run against those of a virtual machine that was never watched.
    """
    for strategy, name in (("te", "none"), ("high-level", "cpu")):
        recipe = sample("resnet18", lowering=strategy, steps=find_pipeline(name).steps, threads=1)
        use_threads(1)
        stages = Pipeline().stages(recipe)
        inputs = tuple(each.value for each in stages.loaded.inputs)
        with stages.running():
            execution = Execution(stages.built.executable, "main", stages.arguments(inputs))
            _, reference = reference_of(stages.loaded, inputs, recipe.seed)
            assert reference is not None
            yield against(
                f"resnet18 node by node ({strategy}, {name})",
                lambda: node_runs(stages, recipe, inputs, SILENT, repeats=1),  # noqa: B023
                lambda: (execution.call(), reference.call()),  # noqa: B023
                "one run of torch and one of TVM",
                pairs=3,
                goal=3.0,
                clock=time.process_time,
            )
    use_threads(0)
    pipeline, recipe = Pipeline(), sample("fashion_mlp", lowering="te")
    stages = pipeline.stages(recipe)
    inputs = tuple(each.value for each in stages.loaded.inputs)
    execution = Execution(stages.built.executable, "main", stages.arguments(inputs))
    said, alone = [], []
    for _ in range(3):
        said.append(pipeline.answer(RunQuery(recipe)).tvm_ms)
        execution.call()
        alone.append(statistics.median(milliseconds(execution.call) for _ in range(200)))
    yield Figure("end to end, as a run says", said, alone, "a machine never watched", 1.15)


@benchmark("speed")
def speed() -> Iterator[Figure]:
    """Measure models that are scheduled by rule, and as tuning has found so far, beside torch."""
    for name, goals in SPEED_GOALS.items():
        ruled = with_pipeline(sample(name, target="native"), find_pipeline("optimise-cpu").steps)
        for way, recipe, goal in (
            ("rules", ruled, goals[0]),
            ("tuned", with_tuned(ruled), goals[1]),
        ):
            pipeline = Pipeline()
            record = pipeline.answer(RunQuery(recipe))
            assert record.verdict == "match", record.reason
            assert record.times is not None
            spent = pipeline.stages(recipe).milliseconds
            seconds = sum(spent.get(each, 0) for each in ("passes", "schedules", "build")) / 1000
            ours, torchs, *_ = record.times.sides
            note = f"; passes, scheduling and building {seconds:.1f} s"
            untuned = len(pipeline.stages(recipe).transformed.notes)
            note += f"; {untuned} functions not tuned" if way == "tuned" else ""
            times = [ours.milliseconds], [torchs.milliseconds]
            yield Figure(f"{name}, {way}", *times, "torch", goal, note)


NAMED_SHAPES: dict[str, tuple[int | str, ...]] = {
    "transformer_block": (1, "length", 256),
    "resnet18": ("batch", 3, 224, 224),
}
"""By sample: the shape of its input with a named size."""


@benchmark("named")
def named() -> Iterator[Figure]:
    """Measure models of which one build runs at any size, beside torch at three sizes."""
    steps = find_pipeline("optimise-cpu").steps
    for name, shape in NAMED_SHAPES.items():
        size = next(each for each in shape if isinstance(each, str))
        sizes = (1, 2, 4) if size == "batch" else (1, 32, 200)
        recipe = sample(
            name,
            target="native",
            inputs=(InputSpec(name="x", shape=shape, dtype="float32"),),
            dimensions=(Dimension(name=size, low=1, high=sizes[-1], sizes=sizes),),
        )
        record = Pipeline().answer(RunQuery(with_pipeline(recipe, steps)))
        for run in record.sizes:
            assert run.verdict == "match", run.reason
            assert run.torch_ms is not None
            title = f"{name}, {size} {run.sizes[size]}"
            yield Figure(title, [run.tvm_ms], [run.torch_ms], "torch", 1.0)


Functions = dict[str, FunctionText]


@benchmark("difference")
def difference() -> Iterator[Figure]:
    """Measure differences of 20,000 lines."""
    old = long_functions(20_000)
    little = edited(old, "T.writes(", "T.writes( ")

    def joined(functions: Functions) -> Functions:
        text = "\n".join(each.text for each in functions.values())
        return {"main": FunctionText("tensorir", text)}

    for title, before, after in (
        ("some functions", old, edited(old, "T.writes(", "T.writes( ", every=20)),
        ("every function", old, little),
        ("every line", old, edited(edited(old, "    ", "     "), "v_", "w_")),
        ("one function that repeats itself", joined(old), joined(little)),
    ):
        times = [
            milliseconds(lambda a=before, b=after: function_differences(a, b))  # type: ignore[misc]
            for _ in range(9)
        ]
        yield within(f"difference of {title}", times, 100)


def long_functions(lines: int) -> Functions:
    """Return the functions of many copies of ResNet-18, with so many lines in all."""
    module = Pipeline().stages(sample("resnet18")).completed
    texts = {str(each.name_hint): "" for each in module.get_global_vars()}
    texts = {name: function_text(module, name).text for name in texts}
    functions: Functions = {}
    for copied in itertools.count():
        for name, text in texts.items():
            if lines <= 0:
                return functions
            called = f"{name}_{copied}"
            renamed = text.replace(f"def {name}(", f"def {called}(")
            functions[called] = FunctionText("tensorir", renamed)
            lines -= text.count("\n") + 1
    raise AssertionError


def edited(functions: Functions, old: str, new: str, every: int = 1) -> Functions:
    """Return functions with something replaced in every so-manieth of them."""
    return {
        name: replace(each, text=each.text.replace(old, new)) if place % every == 0 else each
        for place, (name, each) in enumerate(functions.items())
    }
