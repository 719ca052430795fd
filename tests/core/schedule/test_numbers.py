"""Times, rates and the machine's peaks, measured on this machine."""

from __future__ import annotations

import msgspec
import pytest
from tvm import te, tirx, topi

from lowerscope.core.files.pipelines_and_schedules import find_pipeline
from lowerscope.core.model.queries import (
    CheckQuery,
    MeasureQuery,
    PeaksQuery,
    RunEstimateQuery,
    WorkQuery,
)
from lowerscope.core.model.recipe import Dimension, InputSpec, Recipe, Source
from lowerscope.core.run import standalone
from lowerscope.core.run.function_metrics import UNSCHEDULED_RATE, kept_peaks, peaks_key, work_of
from lowerscope.core.run.standalone import REPEATS, repeated
from lowerscope.core.run.torch_interpreter import nodes_of
from lowerscope.core.stages import Pipeline

RECIPE = Recipe(source=Source(spec="sample:fashion_mlp"), lowering="te")


def test_rates_are_work_by_time_and_the_share_is_of_the_roofline(pipeline: Pipeline) -> None:
    work = pipeline.answer(WorkQuery(_derived(pipeline), "dense"))
    assert work.flops == 2 * 784 * 128
    measured = pipeline.answer(MeasureQuery(RECIPE, "dense", None))
    assert 0 < measured.low <= measured.milliseconds <= measured.high
    assert measured.gflops == pytest.approx(work.flops / measured.milliseconds / 1e6)
    moved = work.read + work.written
    assert measured.gbytes_per_second == pytest.approx(moved / measured.milliseconds / 1e6)
    peaks = pipeline.answer(PeaksQuery(RECIPE, False))
    allowed = min(peaks.gflops, work.intensity * peaks.cache_gbytes_per_second)
    assert 0 < measured.share <= 1
    assert measured.share == pytest.approx(measured.gflops / allowed)
    # The file is kept for the next process.
    assert kept_peaks(peaks_key(RECIPE.target, peaks.threads)) == peaks


def test_torch_takes_the_node_alone(pipeline: Pipeline) -> None:
    stages = pipeline.stages(_derived(pipeline))
    assert nodes_of(stages, "te_relu").names == ("relu",)
    assert not nodes_of(stages, "te_relu").does_more
    # The addition of the bias is a function of its own.
    linear = nodes_of(stages, "dense")
    assert (linear.names, linear.does_more) == (("linear0",), True)
    measured = pipeline.answer(MeasureQuery(RECIPE, "te_relu", None))
    assert measured.torch_ms > 0
    assert measured.torch_nodes == ("relu",)


def test_functions_of_any_size_are_measured_at_the_traced_one(pipeline: Pipeline) -> None:
    recipe = Recipe(
        source=Source(spec="sample:fashion_mlp"),
        inputs=(InputSpec(shape=("n", 784)),),
        dimensions=(Dimension(name="n", low=1, high=8),),
        lowering="te",
    )
    _derived(pipeline, recipe)
    work = pipeline.answer(WorkQuery(recipe, "dense"))
    assert (work.flops, work.at) == (2 * 5 * 784 * 128, "n = 5")
    assert (work.read, work.written) == (4 * 784 * (5 + 128), 4 * 5 * 128)
    measured = pipeline.answer(MeasureQuery(recipe, "dense", None))
    assert measured.gflops == pytest.approx(work.flops / measured.milliseconds / 1e6)
    assert measured.at == "n = 5"
    found = pipeline.answer(CheckQuery(recipe, "dense", None, 60))
    assert (found.verdict, found.at) == ("same", "n = 5")


def test_slow_functions_are_called_once_and_fast_ones_in_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(standalone, "BUDGET", 0.6)
    assert repeated(lambda number: 1.2, lambda: None) == [1.2]
    numbers: list[int] = []

    def fast(number: int) -> float:
        numbers.append(number)
        return 1e-6

    assert len(repeated(fast, lambda: None)) == REPEATS
    assert numbers[-1] == 2000


def _derived(pipeline: Pipeline, recipe: Recipe = RECIPE) -> Recipe:
    _ = pipeline.stages(recipe).unscheduled
    return recipe


# What functions do is what paper and pencil say


F32 = 4


def made_of(output: te.Tensor, *inputs: te.Tensor) -> tirx.PrimFunc:
    return te.create_prim_func([*inputs, output])


def matmul() -> tuple[tirx.PrimFunc, float, int, int]:
    a, b = te.placeholder((32, 48)), te.placeholder((48, 16))
    function = made_of(topi.matmul(a, b), a, b)
    return function, 2 * 32 * 48 * 16, F32 * (32 * 48 + 48 * 16), F32 * 32 * 16


def conv2d() -> tuple[tirx.PrimFunc, float, int, int]:
    x, w = te.placeholder((1, 3, 14, 14)), te.placeholder((8, 3, 3, 3))
    function = made_of(topi.nn.conv2d(x, w, 2, 1, 1), x, w)
    return function, 2 * 8 * 7 * 7 * 3 * 9, F32 * (3 * 14 * 14 + 8 * 27), F32 * 8 * 7 * 7


def softmax() -> tuple[tirx.PrimFunc, float, int, int]:
    x = te.placeholder((4, 10))
    # The largest, a difference, an exponential, a sum and a quotient.
    return made_of(topi.nn.softmax(x), x), 5 * 40, F32 * 40, F32 * 40


def max_pool() -> tuple[tirx.PrimFunc, float, int, int]:
    x = te.placeholder((1, 2, 8, 8))
    pooled = topi.nn.pool2d(x, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "max")
    return made_of(pooled, x), 2 * 4 * 4 * 4, F32 * 128, F32 * 32


def half_relu() -> tuple[tirx.PrimFunc, float, int, int]:
    x = te.placeholder((64,), "float16")
    return made_of(topi.nn.relu(x), x), 64, 2 * 64, 2 * 64


def integers() -> tuple[tirx.PrimFunc, float, int, int]:
    x = te.placeholder((64,), "int64")
    return made_of(topi.add(x, x), x), 0, 8 * 64, 8 * 64


def looked_up() -> tuple[tirx.PrimFunc, float, int, int]:
    # Of a table, what is looked up is read, and not all of it.
    table, rows = te.placeholder((5000, 8)), te.placeholder((3,), dtype="int64")
    function = made_of(topi.take(table, rows, axis=0, mode="fast"), table, rows)
    return function, 0, F32 * 3 * 8 + 8 * 3, F32 * 3 * 8


def sliced() -> tuple[tirx.PrimFunc, float, int, int]:
    x = te.placeholder((64, 8))
    return made_of(topi.strided_slice(x, [10], [14], [1], [0]), x), 0, F32 * 32, F32 * 32


@pytest.mark.parametrize(
    "make", [matmul, conv2d, softmax, max_pool, half_relu, integers, looked_up, sliced]
)
def test_operations_and_bytes_are_those_of_the_formula(make) -> None:
    function, flops, read, written = make()
    work = work_of(function, 3)
    assert (work.calls, work.flops, work.read, work.written) == (3, flops, read, written)
    assert work.intensity == pytest.approx(flops / (read + written))


def test_a_run_is_estimated_by_the_functions_without_a_schedule(pipeline: Pipeline) -> None:
    recipe = Recipe(source=Source(spec="sample:fashion_mlp"))
    found = pipeline.answer(RunEstimateQuery(recipe))
    # Two layers, of 784 × 128 and 128 × 10, at least.
    assert 2 * (784 * 128 + 128 * 10) < found.seconds * UNSCHEDULED_RATE < 3 * 784 * 128
    assert found.unscheduled == found.functions > 2
    optimised = msgspec.structs.replace(recipe, steps=find_pipeline("optimise-cpu").steps)
    assert pipeline.answer(RunEstimateQuery(optimised)).unscheduled == 0


def test_calls_are_those_of_main() -> None:
    pipeline = Pipeline()
    recipe = Recipe(source=Source(spec="sample:transformer_block"))
    stages = pipeline.stages(recipe)
    called: dict[str, int] = {}
    for block in stages.unscheduled.module["main"].body.blocks:
        for binding in block.bindings:
            if getattr(getattr(binding.value, "op", None), "name", "") == "relax.call_tir":
                name = binding.value.args[0].name_hint
                called[name] = called.get(name, 0) + 1
    assert max(called.values()) > 1
    for name, count in called.items():
        assert pipeline.answer(WorkQuery(recipe, name)).calls == count
