"""What functions do is what paper and pencil say."""

from __future__ import annotations

import pytest
from tvm import te, tirx, topi

from lowerscope.core.model.queries import WorkQuery
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.run.function_metrics import work_of
from lowerscope.core.stages import Pipeline

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


def test_symbolic_extents_make_no_number() -> None:
    x = te.placeholder((tirx.Var("n", "int64"), 4))
    work = work_of(made_of(topi.tanh(x), x), 1)
    assert (work.flops, work.read, work.written, work.intensity) == (None, None, None, None)


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
