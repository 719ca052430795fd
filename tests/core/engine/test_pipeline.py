"""Results that are kept from one request to the next, and those that are made anew."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from lowerscope.core import stages
from lowerscope.core.engine.protocol import Failure
from lowerscope.core.engine.server import CANCELLED, Context, Job, Jobs, NotCached
from lowerscope.core.files.idle_tensors import Block
from lowerscope.core.files.in_memory import pack
from lowerscope.core.files.pipelines_and_schedules import find_pipeline
from lowerscope.core.files.sources import parse_input
from lowerscope.core.model.encoding import to_bytes
from lowerscope.core.model.graph import DEFAULT
from lowerscope.core.model.module_steps import ComparedModule, Moment
from lowerscope.core.model.queries import (
    ANSWERING,
    QUERIES,
    CoachQuery,
    DifferenceQuery,
    FunctionsQuery,
    FunctionTextsQuery,
    GraphDifferenceQuery,
    GraphQuery,
    LoweredQuery,
    MovesQuery,
    Query,
    RunEstimateQuery,
    RunQuery,
    ScheduleQuery,
    SnapshotQuery,
    TextQuery,
    TranslationQuery,
    ValuesQuery,
    WorkQuery,
)
from lowerscope.core.model.recipe import InputSpec, Override, Recipe, Source
from lowerscope.core.model.snapshot import Snapshot
from lowerscope.core.stages import Pipeline

MLP = Recipe(source=Source(spec="sample:fashion_mlp"))


def snapshot(pipeline: Pipeline, recipe: Recipe) -> Snapshot:
    return pipeline.answer(SnapshotQuery(recipe, DEFAULT))


def changed(recipe: Recipe, **fields: object) -> Recipe:
    return msgspec.structs.replace(recipe, **fields)


def test_a_change_runs_its_stage_and_those_after_it() -> None:
    pipeline = Pipeline()
    everything = {"open", "load", "trace", "lower", "passes", "records"}
    assert set(snapshot(pipeline, MLP).milliseconds) == everything
    assert set(snapshot(pipeline, MLP).milliseconds) == set()
    te = changed(MLP, lowering="te")
    assert set(snapshot(pipeline, te).milliseconds) == {"lower", "passes", "records"}
    mixed = changed(te, overrides=(Override(pattern="relu", strategy="library"),))
    assert set(snapshot(pipeline, mixed).milliseconds) == {"lower", "passes", "records"}
    # Passes are applied for a target.
    native = changed(te, target="native")
    assert set(snapshot(pipeline, native).milliseconds) == {"passes", "records"}
    # It says how many cores there are.
    assert set(snapshot(pipeline, changed(te, threads=1)).milliseconds) == {"passes", "records"}
    # What concerns the run alone changes nothing here.
    assert set(snapshot(pipeline, MLP).milliseconds) == set()
    assert set(snapshot(pipeline, changed(MLP, tracer="export")).milliseconds) == (
        everything - {"open", "load"}
    )
    assert set(snapshot(pipeline, changed(MLP, seed=1)).milliseconds) == everything


def test_a_changed_file_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    text = (
        "import torch\n"
        "class Net(torch.nn.Linear):\n"
        "    def __init__(self):\n"
        "        super().__init__(4, 3)\n"
        "def example_inputs():\n"
        "    return (torch.ones(1, 4),)\n"
    )
    path.write_text(text)
    pipeline, recipe = Pipeline(), Recipe(source=Source(spec=str(path)))
    assert snapshot(pipeline, recipe).fx[-1].shape == (1, 3)
    path.write_text(text.replace("4, 3", "4, 30"))
    assert snapshot(pipeline, recipe).fx[-1].shape == (1, 30)


@pytest.mark.diagonal
@pytest.mark.parametrize("sample", ["fashion_mlp", "conv_net", "transformer_block"])
@pytest.mark.parametrize("lowering", ["high-level", "te", "library"])
def test_every_binding_and_every_function_is_linked(sample: str, lowering: str) -> None:
    recipe = Recipe(source=Source(spec=f"sample:{sample}"), lowering=lowering)  # type: ignore[arg-type]
    record = snapshot(Pipeline(), recipe)
    made_by: dict[str, list[str]] = {}
    for node in record.fx:
        for binding in node.bindings:
            made_by.setdefault(binding, []).append(node.id)
    shown = {span.entity for span in record.relax.spans if "/" in span.entity}
    assert shown == set(made_by)
    assert all(len(nodes) == 1 for nodes in made_by.values())
    links = {(first, other) for first, *others in record.links for other in others}
    for function in record.functions:
        if function.kind in ("tensorir", "external"):
            assert function.calls, function
            assert all((binding, function.id) in links for binding in function.calls)
            nodes = {made_by[binding][0] for binding in function.calls}
            assert all((node, function.id) in links for node in nodes)


def test_a_file_that_is_read_by_a_computed_path_is_looked_at_again(tmp_path: Path) -> None:
    model = tmp_path / "net.py"
    model.write_text(
        "import pathlib, torch\n"
        "size = int((pathlib.Path(__file__).parent / ('si' + 'ze')).read_text())\n"
        "class Net(torch.nn.Module):\n"
        "    def forward(self, x):\n        return x.relu()\n"
        "def example_inputs():\n    return (torch.ones(size),)\n"
    )
    (tmp_path / "size").write_text("3")
    recipe = Recipe(source=Source(spec=str(model)))
    pipeline = Pipeline()
    assert snapshot(pipeline, recipe).model.inputs[0].shape == (3,)
    assert snapshot(pipeline, recipe).milliseconds == {}
    (tmp_path / "size").write_text("15")
    assert snapshot(pipeline, recipe).model.inputs[0].shape == (15,)
    (tmp_path / "size").write_text("3")
    assert snapshot(pipeline, recipe).model.inputs[0].shape == (3,)


def test_a_model_that_fits_is_opened_once(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(
        "import torch\n"
        "class Net(torch.nn.Linear):\n"
        "    def __init__(self):\n"
        "        super().__init__(2048, 2048)\n"
        "def example_inputs():\n"
        "    return torch.ones(1, 2048)\n"
    )
    # 17 MB of weights, which the constants share, and what is made of them.
    pipeline, recipe = Pipeline(limit=30 << 20), Recipe(source=Source(spec=str(path)))
    for lowering in ("high-level", "te"):
        snapshot(pipeline, changed(recipe, lowering=lowering))
        pipeline.answer(TextQuery(changed(recipe, lowering=lowering), "add", "script"))
    assert "load" not in snapshot(pipeline, changed(recipe, lowering="library")).milliseconds


def test_another_value_of_an_input_is_run_by_what_is_built(tmp_path: Path) -> None:
    """By the records of the stages: no stage but that of the inputs runs again."""
    pipeline = Pipeline()
    first = pipeline.answer(RunQuery(MLP))
    stages = pipeline.stages(MLP)
    build, executable = (stages.loaded, stages.build_key)[1], stages.built.executable
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (10, 28, 28), dtype=np.uint8)
    np.savez(tmp_path / "set.npz", x=pixels, y=np.arange(10))
    Image.fromarray(pixels[3]).save(tmp_path / "picture.png")
    float_pixels = pixels[3].reshape(1, 784).astype(np.float32) / 255
    np.save(tmp_path / "value.npy", float_pixels)
    pictures = (
        InputSpec(name="x", file=str(tmp_path / "picture.png")),
        InputSpec(name="x", file=str(tmp_path / "value.npy")),
        parse_input(f"x={tmp_path / 'set.npz'}#3"),
    )
    others = [InputSpec(name="x", shape=(1, 784), dtype="float32", seed=seed) for seed in (1, 2)]
    shown = []
    for spec in (*pictures, *others):
        recipe = changed(MLP, inputs=(spec,))
        stages = pipeline.stages(recipe)
        value = stages.loaded.inputs[0].value
        if spec in pictures:
            assert np.allclose(value.numpy(), float_pixels, atol=1e-7), spec
        record = snapshot(pipeline, recipe)
        assert stages.build_key == build
        assert stages.built.executable is executable
        assert set(stages.milliseconds) == {"load"}, spec
        assert stages.run_key == record.key
        run = pipeline.answer(RunQuery(recipe))
        assert run.verdict == "match"
        expected = stages.loaded.model(value)  # type: ignore[misc]
        assert run.prediction is not None
        assert run.prediction.torch == stages.loaded.classes[int(expected.argmax())]
        shown.append(record.model.inputs[0].picture)
    assert shown[0] == shown[2] != snapshot(pipeline, MLP).model.inputs[0].picture
    assert first.key == snapshot(pipeline, MLP).key != record.key
    # Another form is another program.
    wide = changed(MLP, inputs=(InputSpec(name="x", shape=(2, 784)),))
    stages = pipeline.stages(wide)
    assert stages.loaded
    assert stages.build_key != build


# Stages of several requests at once: their threads do not mix anything up


class Deep(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        layers = (nn.Sequential(nn.Linear(8, 8), nn.ReLU()) for _ in range(30))
        self.layers, self.number = nn.ModuleList(layers), number

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x * self.number


def test_models_are_traced_lowered_and_transformed_in_several_threads() -> None:
    inputs = torch.ones(2, 8)
    # They are known as long as they are kept.
    parcels = [pack(Deep(number), inputs, f"Deep{number}") for number in range(6)]
    recipes = [
        Recipe(
            source=Source(spec=parcel.spec),
            lowering=("te", "high-level", "library")[number % 3],
            steps=find_pipeline("fuse" if number % 2 else "none").steps,
        )
        for number, parcel in enumerate(parcels)
    ]

    def script(pipeline: Pipeline, recipe: Recipe) -> str:
        return str(pipeline.stages(recipe).completed.script())

    together = Pipeline()
    with ThreadPoolExecutor(len(recipes)) as threads:
        found = list(threads.map(lambda recipe: script(together, recipe), recipes))
    assert found == [script(Pipeline(), recipe) for recipe in recipes]


# Queries and the code that answers them, without a child


OTHER = Recipe(source=Source(spec="sample:fashion_mlp"), lowering="te")
LAST = Moment(section="passes", index=1)
SIDES = ComparedModule(recipe=MLP), ComparedModule(recipe=OTHER)

CACHED_FIRST: tuple[Query[Any], ...] = (
    TextQuery(MLP, "matmul"),
    GraphQuery(MLP, DEFAULT, moment=LAST),
    FunctionsQuery(MLP, LAST),
    FunctionTextsQuery(MLP, ("matmul",)),
    DifferenceQuery(*SIDES),
    GraphDifferenceQuery(*SIDES, DEFAULT),
    ValuesQuery(MLP, "param:linear1.weight"),
    TranslationQuery(MLP, "linear1"),
    ScheduleQuery(MLP, "matmul"),
    CoachQuery(MLP, "matmul"),
    MovesQuery(MLP, "matmul"),
    WorkQuery(MLP, "matmul"),
    LoweredQuery(MLP, DEFAULT),
    RunEstimateQuery(MLP),
)


def test_all_queries_are_answered() -> None:
    Pipeline()
    own = {name for name, kind in QUERIES.items() if kind.__module__.startswith("lowerscope.")}
    assert own == ANSWERING.keys() & own
    assert {type(each).__name__ for each in CACHED_FIRST} == {
        name for name in own if QUERIES[name].cached_first
    }


def test_answers_are_computed_in_the_light_lane_only_where_they_are_cached() -> None:
    pipeline = Pipeline()
    assert not any(pipeline.is_cached(each) for each in CACHED_FIRST)
    computed = [to_bytes(pipeline.answer(each)) for each in CACHED_FIRST]
    assert all(pipeline.is_cached(each) for each in CACHED_FIRST)
    assert [to_bytes(pipeline.answer(each)) for each in CACHED_FIRST] == computed
    # Compiled in passing, it would keep a run waiting.
    assert not pipeline.is_cached(TextQuery(MLP, "main", "bytecode"))


def test_tensors_of_a_large_model_are_moved_while_nothing_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moved: list[Block] = []
    monkeypatch.setattr(stages, "move_to_files", lambda blocks, _is_wanted: moved.extend(blocks))
    recipe = msgspec.structs.replace(MLP, steps=find_pipeline("optimise-cpu").steps)
    pipeline = Pipeline()
    assert pipeline.stages(recipe).transformed.problem is None
    pipeline.rest(lambda: False)
    assert not moved
    monkeypatch.setattr(stages, "LARGE_MODEL", 0)
    pipeline.rest(lambda: False)
    opened = pipeline.stages(recipe).loaded.model
    assert opened is not None
    parameters = {(each.data_ptr(), each.nbytes) for each in opened.parameters()}
    assert parameters < set(moved)
    # Those that passes have packed.
    weight = opened.get_parameter("linear0.weight")
    assert sum(size == weight.nbytes for _address, size in set(moved)) == 2


class CancelledBetweenLanes:
    """Cancels a job when it has left the light lane, where a run's calls are taken down."""

    jobs: Jobs

    def at_part(self, _part: str) -> None:
        self.jobs.cancel(1)


def test_a_query_that_is_cancelled_between_the_lanes_does_not_wait_again() -> None:
    def answer(_query: Query[Any], _context: Context) -> None:
        raise NotCached

    sent: list[Any] = []
    calls = CancelledBetweenLanes()
    calls.jobs = jobs = Jobs(sent.append, calls)  # type: ignore[arg-type]
    job = Job(1, TextQuery(MLP, "matmul"))
    jobs.add(job)
    assert jobs.run(job, answer)
    jobs.cancel(1)
    assert jobs.run(job, answer)
    assert sent == [Failure(1, CANCELLED)]
