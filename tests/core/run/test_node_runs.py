"""Runs of each node, against torch's modules and builds of their own, made here."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from lowerscope.core.build.build import build, register_library
from lowerscope.core.build.targets import make_target
from lowerscope.core.files.pipelines_and_schedules import find_pipeline
from lowerscope.core.lowering.translator import lower
from lowerscope.core.model.queries import RunQuery
from lowerscope.core.model.recipe import Extension, Override, Recipe, Source, Step, Strategy
from lowerscope.core.model.run_records import NodeRun, RunRecord
from lowerscope.core.passes.transforming import transform
from lowerscope.core.run.execution import Execution
from lowerscope.core.stages import Pipeline
from lowerscope.core.tracing.tracing import trace
from tests.diagonal import at_length, rows_at_length

LLVM = make_target("llvm", 0)
LAYERS = {
    "conv_net": ("conv", "relu", "pool", "flatten", "linear0", "relu_1", "linear1"),
    "fashion_mlp": ("linear0", "relu", "linear1"),
}

WRONG = """
import torch
from tvm import relax

from lowerscope.core.rules import rule


@rule(torch.nn.ReLU)
def shifted(builder, node, x):
    return relax.op.add(relax.op.nn.relu(x), relax.const(1.0, "float32"))
"""

ODD = """
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        once = x * 2
        once.relu_()
        halves = torch.split(once, 1)
        noise = torch.rand_like(x)
        torch.rand_like(x)
        wide = torch.broadcast_tensors(noise, once)[0] * torch.empty_like(x).fill_(2)
        return halves[0] - halves[1], noise + once, torch.randn_like(x) * 2, wide

def example_inputs():
    return (torch.randn(2, 3),)
"""


NORMED = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm2d(2)
        self.norm.running_mean.fill_(0.5)

    def forward(self, x):
        return self.norm(x * 3).relu()

def example_inputs():
    return (torch.randn(1, 2, 4, 4),)
"""

TWICE = """
import tvm
from tvm import relax


def six(value):
    return relax.op.multiply(value.args[0], relax.const(6.0, "float32"))


@tvm.transform.module_pass(opt_level=0)
def twice(module, context):
    function = module["main"]
    first, second, *rest = function.body.blocks[0].bindings
    made = relax.DataflowVar(first.var.name, first.var.ty)
    half = relax.DataflowVar("half", first.var.ty)
    batch_norm = relax.Call(
        second.value.op, [half, *second.value.args[1:]], second.value.attrs)
    block = relax.DataflowBlock([
        relax.VarBinding(made, six(first.value)),
        relax.VarBinding(half, relax.op.multiply(made, relax.const(0.5, "float32"))),
        relax.VarBinding(second.var, batch_norm),
        *rest,
    ])
    body = relax.SeqExpr([block], function.body.body)
    changed = relax.Function(function.params, body, function.ret_ty, attrs=function.attrs)
    return relax.transform.Normalize()(tvm.IRModule({"main": changed}))
"""


def fx_nodes(record: RunRecord) -> dict[str, NodeRun]:
    """Return the records of the FX nodes by name."""
    return {each.id.removeprefix("fx:"): each for each in record.nodes if each.id.startswith("fx:")}


def own_error(prefix: nn.Module, x: torch.Tensor, lowering: Strategy, steps: str) -> float:
    """Build the first layers alone; return how far what they give is from torch."""
    traced = trace(prefix, (x,), "fx")
    lowered = lower(traced, [("x", tuple(x.shape), "float32")], lowering)
    module = transform(lowered.module, find_pipeline(steps).steps, target=LLVM).module
    register_library(lowered.library)
    (actual,) = Execution(build(module, LLVM).executable, "main", (x,)).outputs()
    with torch.inference_mode():
        expected = prefix(x)
    assert actual.shape == expected.shape
    return float((actual.double() - expected.double()).abs().max())


@pytest.mark.diagonal
@pytest.mark.parametrize("sample", LAYERS)
@pytest.mark.parametrize(
    ("lowering", "steps"),
    [
        *(("high-level", "none"), ("library", "none"), ("te", "fuse")),
        *rows_at_length(("te", "none"), ("te", "cpu")),
    ],
)
def test_the_error_of_each_node_is_that_of_the_layers_so_far(
    pipeline: Pipeline, sample: str, lowering: Strategy, steps: str
) -> None:
    recipe = Recipe(
        source=Source(spec=f"sample:{sample}"),
        lowering=lowering,
        steps=find_pipeline(steps).steps,
        target="llvm",
    )
    record = pipeline.answer(RunQuery(recipe))
    nodes = fx_nodes(record)
    loaded = pipeline.stages(recipe).loaded
    assert loaded.model is not None
    model = loaded.model.eval()
    layers = [getattr(model, name.removesuffix("_1")) for name in LAYERS[sample]]
    compared = []
    for count, name in enumerate(LAYERS[sample], start=1):
        node = nodes[name]
        assert node.milliseconds is not None
        assert node.milliseconds == pytest.approx(
            sum(record.calls[index].milliseconds for index in node.calls)
        )
        assert all(node.id in record.calls[index].nodes for index in node.calls)
        if node.matches is None:
            assert node.reason.startswith("it has no value of its own: fused into fused_")
            assert node.shared_with
            continue
        compared.append(name)
        error = own_error(nn.Sequential(*layers[:count]), loaded.inputs[0].value, lowering, steps)
        assert node.max_abs_error == pytest.approx(error, rel=1e-6, abs=1e-12)
        assert node.matches
    fused = {"conv", "linear0"} if steps != "none" else set()
    assert compared == [name for name in LAYERS[sample] if name not in fused]
    assert nodes["x"].reason == "an input: its value is given"
    assert nodes["x"].milliseconds is None


@pytest.mark.parametrize("steps", ["optimise-cpu", *at_length("default-build", "cpu")])
def test_calls_of_torch_are_compared_where_the_passes_have_made_the_calls(
    pipeline: Pipeline, steps: str
) -> None:
    """The memory that a call of torch writes was taken for that of the next call."""
    in_torch = ("conv", "pool", "relu_1")
    recipe = Recipe(
        source=Source(spec="sample:conv_net"),
        overrides=tuple(Override(pattern=f"fx:{name}", strategy="library") for name in in_torch),
        steps=find_pipeline(steps).steps,
        target="llvm",
    )
    record = pipeline.answer(RunQuery(recipe))
    nodes = fx_nodes(record)
    for name in LAYERS["conv_net"]:
        each = nodes[name]
        assert each.matches or each.reason.startswith("it has no value of its own: fused"), name
        assert each.own_matches is not False, name
        assert each.milliseconds is not None
    assert all(nodes[name].matches and nodes[name].own_matches for name in in_torch)
    assert all(record.calls[nodes[name].calls[-1]].nodes == (f"fx:{name}",) for name in in_torch)


def test_values_before_a_write_in_place_and_those_that_cannot_be_compared(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    path = tmp_path / "odd.py"
    path.write_text(ODD)
    steps = (Step(name="DeadCodeElimination"),)
    record = pipeline.answer(RunQuery(Recipe(source=Source(spec=str(path)), steps=steps)))
    nodes = fx_nodes(record)
    assert all(nodes[name].matches for name in ("mul", "relu_", "split", "sub"))
    # Both sides have drawn the same numbers, up to a draw that nothing reads: it was removed.
    assert nodes["rand_like"].matches
    assert nodes["add"].matches
    assert nodes["rand_like"].milliseconds is not None
    # Called again alone, torch would draw once more; what is not initialised is anything.
    assert nodes["broadcast_tensors"].own_matches is None
    assert nodes["rand_like"].own_reason == "rand_like draws random numbers anew at each call"
    assert nodes["broadcast_tensors"].own_reason == nodes["rand_like"].own_reason
    assert nodes["empty_like"].reason == "its elements are not initialised"
    for name in ("randn_like", "mul_2"):
        assert nodes[name].matches is None
        assert nodes[name].reason.startswith("depends on randn_like, which draws random numbers")


def test_a_value_of_which_a_pass_kept_the_name_alone_is_not_compared(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    model, passes = tmp_path / "normed.py", tmp_path / "twice.py"
    model.write_text(NORMED)
    passes.write_text(TWICE)
    recipe = Recipe(
        source=Source(spec=str(model)),
        extensions=(Extension(path=str(passes), kind="passes"),),
        steps=(Step(name="twice"), Step(name="DecomposeOpsForInference")),
    )
    record = pipeline.answer(RunQuery(recipe))
    assert record.verdict == "match"
    nodes = fx_nodes(record)
    assert nodes["mul"].matches is None
    assert nodes["mul"].reason == "not comparable: changed by twice"
    # What is left of a tuple that a pass took apart has its value.
    assert nodes["norm"].matches
    assert nodes["relu"].matches
