"""Nodes that run in torch, chosen or not covered by anything else: always with torch's meaning."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lowerscope.core.build.build import build, register_library
from lowerscope.core.build.targets import make_target
from lowerscope.core.lowering.library_nodes import ModuleCall, tensors_of
from lowerscope.core.run.execution import Execution
from tests.core.lowering.calling_models import Calls

IMAGE = torch.randn(2, 4, 8, 8)
SQUARE = torch.randn(4, 4)


class Inside(nn.Module):
    """Calls a module, which is a leaf of the trace then."""

    def __init__(self, module: nn.Module, **options: Any) -> None:
        super().__init__()
        self.module = module
        self.options = options

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.module(*inputs, **self.options)


def lowering_of(outcome: Any, node: str) -> Any:
    return outcome.lowered.nodes[node]


FALLBACKS: list[tuple[Callable[..., Any], torch.Tensor, str, str]] = [
    (lambda x: torch.special.i0(x), SQUARE, "special_i0", "no relax operator for"),
    (lambda x: F.interpolate(x, scale_factor=1.3), IMAGE, "interpolate", "scale factor"),
    (lambda x: torch.where(x > 0), SQUARE, "where", "shape depends on the data"),
    (lambda x: torch.sub(x, 1, out=x.clone()), SQUARE, "sub", "keyword"),
]
"""A few of the operator table's, which has no notes."""


@pytest.mark.diagonal
@pytest.mark.parametrize("strategy", ["high-level", "te"])
@pytest.mark.parametrize(("function", "x", "node", "reason"), FALLBACKS)
def test_what_nothing_else_covers_runs_in_torch_with_its_reason(
    bench: Any, function: Callable[..., Any], x: torch.Tensor, node: str, reason: str, strategy: str
) -> None:
    outcome = bench.check(Calls(function), (x,), "fx", strategy)
    found = lowering_of(outcome, node)
    assert found.strategy == "library"
    assert reason in found.reason
    assert found.reason.endswith("; runs in torch")
    assert re.fullmatch(r"\w+: torch\.\w+", found.rule)
    notes = [note for note in outcome.lowered.notes if reason in note.text]
    assert f"(node {node})" in notes[0].text
    assert notes[0].where.startswith(__file__)


def test_a_module_in_training_mode_keeps_its_buffers(bench: Any) -> None:
    model = Inside(nn.BatchNorm2d(4)).train()
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    _, lowered = bench.lower(model, (IMAGE,), "fx", "te")
    assert lowered.nodes["module"].reason.startswith("batch_norm: it is in training mode")
    register_library(lowered.library)
    executable = build(lowered.module, make_target("llvm", 1)).executable
    execution = Execution(executable, "main", (IMAGE,))
    first, second = execution.outputs(), execution.outputs()
    for name, buffer in model.named_buffers():
        assert torch.equal(buffer, before[name])
    assert torch.equal(first[0], second[0])
    torch.testing.assert_close(first[0], F.batch_norm(IMAGE, None, None, training=True))


@pytest.mark.filterwarnings("ignore:.*weight_norm:FutureWarning")
def test_a_weight_that_a_hook_makes() -> None:
    """It has a gradient's history, and torch copies no such tensor."""
    module = nn.utils.weight_norm(nn.Linear(4, 3))
    x = torch.randn(2, 4)
    call = ModuleCall(module)
    torch.testing.assert_close(call(tensors_of(module), x), module(x))


class Listed(nn.Module):
    """Holds its parameters in attributes of its own too."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(4)), nn.Parameter(torch.ones(4))
        self.own, self.named = [self.weight], {"bias": self.bias}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.own[0] + self.named["bias"] * self.weight


def test_parameters_in_attributes_of_the_model() -> None:
    x, call = torch.randn(2, 4), ModuleCall(Listed())
    given = {"weight": torch.full((4,), 2.0), "bias": torch.full((4,), 3.0)}
    torch.testing.assert_close(call(given, x), x * 2 + 6)


# Names


def test_one_function_for_each_operator_and_what_is_bound_to_it(bench: Any) -> None:
    model = nn.Sequential(
        nn.Conv2d(4, 4, 3), nn.ReLU(), nn.Conv2d(4, 8, 3), nn.Conv2d(8, 8, 3, stride=2), nn.ReLU()
    ).eval()
    outcome = bench.check(model, (IMAGE,), "fx", "library")
    rules = {name: node.rule for name, node in outcome.lowered.nodes.items() if node.rule}
    assert rules == {
        "_0": "conv2d: torch.conv2d",
        "_1": "relu: torch.relu",
        "_2": "conv2d: torch.conv2d",
        "_3": "conv2d: torch.conv2d_1",
        "_4": "relu: torch.relu",
    }
    assert list(outcome.lowered.library) == ["torch.conv2d", "torch.relu", "torch.conv2d_1"]
    again = bench.lower(model, (IMAGE,), "fx", "library")[1]
    assert list(again.library) == list(outcome.lowered.library)


# Memory


def test_an_input_that_is_changed_is_not_changed_for_others(bench: Any) -> None:
    def change(x: torch.Tensor) -> Any:
        before = x * 1
        return before, x.mul_(3), before + x

    x = SQUARE.clone()
    bench.check(Calls(change), (x,), "fx", "library")
    assert torch.equal(x, SQUARE)


def test_numbers_that_tvm_does_not_have_stay_inside_of_torch(bench: Any) -> None:
    class Rotated(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.turn = nn.Parameter(torch.polar(torch.ones(4), torch.arange(4.0)))

        def forward(self, x: torch.Tensor) -> Any:
            turned = torch.view_as_complex(x).asinh() * self.turn
            return torch.view_as_real(turned), turned.conj().imag, turned.abs() + 1

    outcome = bench.check(Rotated(), (torch.randn(3, 4, 2),), "fx", "high-level")
    assert lowering_of(outcome, "asinh").reason == "asinh: TVM has no complex64; runs in torch"


def test_sparse_tensors_are_dense_between_the_calls(bench: Any) -> None:
    bench.check(Calls(lambda x: x.to_sparse().to_dense() * 2), (SQUARE,), "fx", "te")


def test_a_branch_of_control_flow(bench: Any) -> None:
    class Branch(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            # What reads by index is computed only if it is chosen.
            def positive(x: torch.Tensor) -> torch.Tensor:
                return self.linear(x)[:, (x[0] > 0).long()]

            return torch.cond(x.sum() > 0, positive, lambda x: x - 1, (x,))

    for x in (torch.ones(2, 4), -torch.ones(2, 4)):
        bench.check(Branch().eval(), (x,), "export", "te")


# Calls of torch whose results have a shape that depends on data, or an odd one


def masked(x: torch.Tensor) -> Any:
    kept = x[x > 0]
    return kept * 2 + 1, kept.sum() + x.mean()


def counted(x: torch.Tensor) -> Any:
    return torch.unique(x.round(), return_counts=True)


@pytest.mark.diagonal
@pytest.mark.parametrize("strategy", ["high-level", "te", "library"])
@pytest.mark.parametrize("function", [masked, counted])
def test_shapes_that_depend_on_data(
    bench: Any, function: Callable[..., Any], strategy: str
) -> None:
    bench.check(Calls(function), (SQUARE,), "fx", strategy)
    bench.check(Calls(function), (SQUARE,), "export", strategy)


NEW_SHAPES: list[Callable[..., Any]] = [
    lambda x: x.unique(dim=0, return_inverse=True),
    lambda x: torch.unique_consecutive(x),
    lambda x: x.nonzero(as_tuple=True),
    lambda x: x.repeat_interleave(torch.tensor([1, 2, 0, 1]), 0),
    lambda x: x[torch.tensor([True, False, True, True])],
    lambda x: torch.bincount(x.long().abs().flatten()),
]


@pytest.mark.diagonal
@pytest.mark.parametrize("tracer", ["fx", "export"])
@pytest.mark.parametrize("number", range(len(NEW_SHAPES)))
def test_operators_that_make_a_shape_of_data(bench: Any, number: int, tracer: str) -> None:
    model = Calls(NEW_SHAPES[number])
    bench.check(model, (SQUARE,), tracer, "library")
    outcome = bench.check(model, (SQUARE,), tracer, "high-level")
    assert "R.call_pure_packed" in outcome.lowered.module.script()


@torch.library.custom_op("numbers::cut", mutates_args=())
def cut(x: torch.Tensor, count: int) -> tuple[torch.Tensor, int]:
    return x[:, :count].clone(), int(count)


@cut.register_fake
def _shape(x: torch.Tensor, count: int) -> tuple[torch.Tensor, int]:
    return x.new_empty((x.shape[0], count)), count


def test_a_number_beside_a_tensor_is_read_in_torch(bench: Any) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        part, count = cut(x.relu(), 2)
        return (part / count).softmax(-1)

    outcome = bench.check(Calls(function), (SQUARE,), "export", "high-level")
    assert lowering_of(outcome, "softmax").strategy == "high-level"
