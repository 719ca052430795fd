"""What is recorded of each node, and the names that the module's text shows."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn


class Course(nn.Module):
    """The course's two models in one, with a conv net's layers behind them."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        self.linear = nn.Linear(8, 16)
        self.relu = nn.ReLU()
        self.conv = nn.Conv2d(1, 2, 3)
        self.norm = nn.LayerNorm(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(torch.matmul(x, self.weight))
        x = self.norm(x)
        x = self.relu(self.linear(x))
        x = F.dropout(x, training=False)
        x = x.view(1, 1, x.shape[0], 16)
        return F.max_pool2d(self.conv(x), 2)


MODEL = Course().eval()
INPUTS = (torch.randn(8, 8),)


def lowered(bench: Any, strategy: str) -> Any:
    return bench.check(MODEL, INPUTS, "fx", strategy).lowered


def test_te_shows_the_names_of_the_course(bench: Any) -> None:
    model = lowered(bench, "te")
    names = {variable.name_hint for variable in model.module.get_global_vars()}
    assert {"te_matmul", "te_relu", "dense", "add", "conv2d", "max_pool2d"} <= names
    text = model.module.script()
    assert "R.call_tir(cls.te_matmul, (input_0" in text
    assert "def te_relu(" in text


def test_high_level_shows_relax_operators(bench: Any) -> None:
    model = lowered(bench, "high-level")
    assert [variable.name_hint for variable in model.module.get_global_vars()] == ["main"]
    text = model.module.script()
    for operator in ("R.matmul", "R.add", "R.nn.relu", "R.nn.conv2d", "R.nn.layer_norm"):
        assert operator in text


@pytest.mark.parametrize(
    ("node", "strategy", "rule", "bindings", "functions"),
    [
        ("matmul", "te", "matmul: te_matmul", 1, ("te_matmul",)),
        ("relu", "te", "relu: te_relu", 1, ("te_relu",)),
        ("norm", "te", "layer_norm: legalised R.nn.layer_norm", 1, ("layer_norm",)),
        ("linear", "te", "linear: topi.nn.dense, topi.add", 2, ("dense", "add")),
        ("max_pool2d", "te", "max_pool2d: legalised R.nn.max_pool2d", 1, ("max_pool2d",)),
        ("linear", "high-level", "linear: R.permute_dims, R.matmul, R.add", 3, ()),
        ("relu", "high-level", "relu: R.nn.relu", 1, ()),
    ],
)
def test_a_node_knows_its_rule_bindings_and_functions(
    bench: Any, node: str, strategy: str, rule: str, bindings: int, functions: tuple[str, ...]
) -> None:
    found = lowered(bench, strategy).nodes[node]
    assert found.strategy == strategy
    assert found.rule == rule
    assert len(found.bindings) == bindings
    assert found.functions == functions


def test_functions_are_shared_where_they_are_equal(bench: Any) -> None:
    twice = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU()).eval()
    model = bench.check(twice, INPUTS, "fx", "te").lowered
    assert model.nodes["_0"].functions == model.nodes["_2"].functions == ("dense", "add")
    assert model.nodes["_0"].bindings != model.nodes["_2"].bindings
    assert len(model.module.get_global_vars()) == 4


@pytest.mark.parametrize("view", ["transposed", "unaligned", "empty"])
def test_constants_of_tensors_that_tvm_cannot_read_as_they_lie(view: str) -> None:
    from lowerscope.core.lowering.builder import Constants

    whole = torch.randn(9, 7)
    tensor = {"transposed": whole.t(), "unaligned": whole[1:], "empty": whole[:0]}[view]
    assert (Constants().constant(tensor).value.numpy() == tensor.numpy()).all()
