"""FoldConstant makes what it makes by itself, and compiles calls that are alike once."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import relax

from lowerscope.core.model.problems import Cancelled
from lowerscope.core.model.recipe import Step
from lowerscope.core.passes import recording, transforming
from lowerscope.core.passes.transforming import transform

STEPS = (Step(name="LegalizeOps"), Step(name="FoldConstant"))
SHAPES = ((3, 4), (3, 4), (4, 3), (3, 4))


def layers() -> tvm.IRModule:
    """Return a sum of transposed weights of `SHAPES`, each of other values."""
    random = np.random.default_rng(0)
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1,), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            total = x
            for shape in SHAPES:
                weights = relax.const(random.standard_normal(shape, dtype=np.float32))
                turned = builder.emit(relax.op.permute_dims(weights))
                total = builder.emit(relax.op.add(total, relax.op.reshape(turned, (12,))))
            out = builder.emit_output(total)
        builder.emit_func_output(out)
    return builder.get()


def test_it_makes_what_tvm_makes() -> None:
    folded = transform(layers(), STEPS)
    folded.check()
    stock = relax.transform.FoldConstant()(relax.transform.LegalizeOps()(layers()))
    # With the values of the constants.
    tvm.ir.assert_structural_equal(folded.module, stock)


def test_calls_that_are_alike_are_compiled_once() -> None:
    compiled = [run for run in transform(layers(), STEPS).runs if run.name == "tirx.MakePackedAPI"]
    # Transposing (3, 4) and (4, 3), and making each flat.
    assert len(compiled) == 4
    assert {run.step for run in compiled} == {2}


def test_llvm_optimises_the_functions_that_reduce_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    levels = []
    stock = transforming._TVM

    def build(module: tvm.IRModule, target: tvm.target.Target) -> object:
        levels.append(target.attrs.get("opt-level"))
        return stock(module, target)

    monkeypatch.setattr(transforming, "_TVM", build)
    builder = relax.BlockBuilder()
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    with builder.function("main", []):
        with builder.dataflow():
            turned = builder.emit(relax.op.permute_dims(relax.const(values)))
            out = builder.emit_output(relax.op.sum(turned, axis=1))
        builder.emit_func_output(out)
    folded = transform(builder.get(), STEPS)
    folded.check()
    assert levels == [0, None]
    (constant,) = recording.constant_tensors(folded.module["main"])
    np.testing.assert_array_equal(constant.numpy(), values.sum(0))


def test_it_stops_between_two_calls() -> None:
    module = transform(layers(), STEPS[:1]).module
    looked = 0

    def check() -> None:
        nonlocal looked
        looked += 1
        if looked == 200:
            raise Cancelled

    with pytest.raises(Cancelled):
        transform(module, STEPS[1:], check)
