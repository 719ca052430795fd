"""Weights and buffers of all kinds, as constants and as arguments that are bound later."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
import tvm

from lowerscope.core.export.folder import export
from lowerscope.core.lowering.partial_module import constants_of
from lowerscope.core.model.graph import DEFAULT as METRICS
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.queries import RunQuery, SnapshotQuery
from lowerscope.core.model.recipe import (
    Recipe,
    Source,
    Step,
    TracerName,
    with_bound_params,
    with_params_as_inputs,
)
from lowerscope.core.model.run_records import RunRecord
from lowerscope.core.stages import Pipeline

FILE = Path(__file__).with_name("weighted_models.py")

ARGUMENTS = {
    "Tied": ["again"],
    "Buffers": ["lengths", "order", "mask", "plain", "step"],
    "Layouts": ["transposed", "expanded", "linear_weight", "linear_bias", "cut"],
    "Unused": ["used_weight", "used_bias", "scale"],
}


def recipe(entry: str, tracer: TracerName = "fx") -> Recipe:
    return Recipe(source=Source(spec=str(FILE), entry=entry), tracer=tracer)


def matches(record: RunRecord) -> bool:
    assert record.verdict == "match", record.reason
    assert record.max_abs_error is not None
    return record.max_abs_error < 1e-5


def arguments(module: tvm.IRModule) -> list[str]:
    return [variable.name for variable in module["main"].params]


@pytest.mark.diagonal
@pytest.mark.parametrize("tracer", ["fx", "export"])
@pytest.mark.parametrize("entry", ARGUMENTS)
def test_every_kind_of_weight_is_torchs(pipeline: Pipeline, entry: str, tracer: TracerName) -> None:
    constants = recipe(entry, tracer)
    assert matches(pipeline.answer(RunQuery(constants)))
    module = pipeline.stages(constants).module
    assert arguments(module) == ["x"]
    # The 0.5 that Buffers fills in is a number, and none of the model's tensors.
    numbers = int(entry == "Buffers")
    assert len(constants_of(module["main"])) == len(ARGUMENTS[entry]) + numbers

    inputs = with_params_as_inputs(constants, True)
    module = pipeline.stages(inputs).module
    names = arguments(module)
    assert names[0] == "x"
    assert sorted(each.removeprefix("_tensor_constant0") or "plain" for each in names[1:]) == (
        sorted(ARGUMENTS[entry])
    )
    assert len(constants_of(module["main"])) == numbers
    assert matches(pipeline.answer(RunQuery(inputs)))


@pytest.mark.parametrize("lowering", ["te", "library"])
def test_params_as_inputs_go_with_every_strategy(pipeline: Pipeline, lowering: str) -> None:
    chosen = Recipe(
        source=Source(spec="sample:conv_net"),
        lowering=lowering,  # type: ignore[arg-type]
        params_as_inputs=True,
    )
    stages = pipeline.stages(chosen)
    assert {"x", "conv_weight", "conv_bias"} <= set(arguments(stages.module))
    assert matches(pipeline.answer(RunQuery(chosen)))
    functions = {each.id for each in pipeline.answer(SnapshotQuery(chosen, METRICS)).functions}
    assert "relax:main" in functions


def test_binding_is_a_step_that_can_be_switched(pipeline: Pipeline) -> None:
    constants = recipe("Tied")
    kept = with_params_as_inputs(constants, True)
    assert kept.steps == (Step(name="BindParams", on=False), *constants.steps)
    bound = with_bound_params(kept, True)
    assert arguments(pipeline.stages(kept).transformed.module) == ["x", "again"]
    assert arguments(pipeline.stages(bound).module) == ["x", "again"]
    after = pipeline.stages(bound).transformed.module
    assert arguments(after) == ["x"]
    assert len(constants_of(after["main"])) == 1
    assert matches(pipeline.answer(RunQuery(bound)))
    assert with_params_as_inputs(bound, False) == constants


def test_exported_parameters_run_what_is_exported(pipeline: Pipeline, tmp_path: Path) -> None:
    kept = with_params_as_inputs(recipe("Tied"), True)
    written = export(pipeline, kept, tmp_path, force=False)
    assert [Path(path).name for path in written.paths] == [
        "module.py",
        "builder.py",
        "constants.npz",
        "fx.txt",
        "parameters.npz",
    ]
    module = tvm.script.from_source((tmp_path / "module.py").read_text())
    loaded = pipeline.stages(kept).loaded
    with np.load(tmp_path / "parameters.npz") as archive:
        values: Sequence[np.ndarray] = [archive[name] for name in arguments(module)[1:]]
    machine = tvm.relax.VirtualMachine(tvm.compile(module, "llvm"), tvm.cpu())
    x = loaded.inputs[0].value
    actual = machine["main"](*(tvm.runtime.tensor(each) for each in (x.numpy(), *values)))
    assert loaded.model is not None
    torch.testing.assert_close(torch.from_numpy(actual.numpy()), loaded.model(x).detach())
    with pytest.raises(LowerscopeError, match="the file already exists"):
        export(pipeline, kept, tmp_path, force=False)
