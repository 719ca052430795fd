"""Traces of TVM's search become histories that do the same, and name no trace."""

from __future__ import annotations

from typing import Any

import pytest
import tvm
from tvm import te, tirx, topi
from tvm.s_tir import Schedule, meta_schedule

from lowerscope.core.run.tuning.candidates import TraceSource
from lowerscope.core.schedule.applying import apply
from lowerscope.core.schedule.references import first_outputs, function_of
from tests.core.schedule.running import Runner

TARGET = tvm.target.Target({"kind": "llvm", "num-cores": 2, "mattr": ["+avx2", "+fma"]})


def product() -> tirx.PrimFunc:
    a, b = (te.placeholder((32, 32), name=name) for name in "AB")
    return te.create_prim_func([a, b, topi.nn.relu(topi.matmul(a, b))])


def convolution() -> tirx.PrimFunc:
    x, w = te.placeholder((1, 4, 8, 8), name="x"), te.placeholder((8, 4, 3, 3), name="w")
    return te.create_prim_func([x, w, topi.nn.relu(topi.nn.conv2d(x, w, 1, 1, 1, "NCHW"))])


def softmax() -> tirx.PrimFunc:
    x = te.placeholder((4, 64), name="x")
    return te.create_prim_func([x, topi.nn.softmax(x)])


@pytest.mark.parametrize("make", [product, convolution, softmax])
def test_a_history_does_what_the_trace_does(make: Any) -> None:
    function = make()
    database = meta_schedule.database.MemoryDatabase()
    source = TraceSource(function, TARGET, 2, database, 4, seed=0)
    proposals = source.propose(4)
    runner = Runner(TARGET)
    assert len(proposals) == 4
    for each in proposals:
        assert runner.difference("drawn", function, each.drawn.sch.mod["main"]) is None
        names = {primitive.name for primitive in each.primitives}
        # What the postprocessors have made of annotations is there, and what they read is not.
        assert "parallel" in names or "vectorize" in names or "unroll" in names
        keys = [str(step.arguments.get("ann_key", "")) for step in each.primitives]
        assert not any(key.startswith("meta_schedule.") for key in keys)
        replayed = Schedule(tvm.IRModule({"main": function}))
        outputs: dict[Any, Any] = dict(first_outputs(replayed))
        for step in each.primitives:
            applied = apply(replayed, step, outputs, TARGET)
            replayed, outputs = applied.sch, {**outputs, step.id: applied.outputs}
        assert runner.difference("drawn", function, function_of(replayed)) is None
        loops = [str(function_of(replayed)).count(kind) for kind in ("T.parallel", "T.vectorized")]
        drawn = str(each.drawn.sch.mod["main"])
        assert loops == [drawn.count(kind) for kind in ("T.parallel", "T.vectorized")]
    source.learn(proposals, [1e-3, 2e-3, None, 3e-3])
    assert source.propose(2)
