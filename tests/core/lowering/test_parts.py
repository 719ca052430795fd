"""Nodes that no rule covers as a whole, lowered operator by operator."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lowerscope.core.lowering import decomposition
from tests.core.lowering.calling_models import Calls

X = torch.randn(2, 3, 8)


class Sequences(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.LSTM(8, 4, batch_first=True, bidirectional=True)
        self.second = nn.LSTM(8, 4, batch_first=True, bidirectional=True)

    def forward(self, x: torch.Tensor) -> Any:
        y, state = self.first(x)
        return self.second(y)[0][:, -1], state


SEQUENCES = Sequences().eval()


@pytest.mark.diagonal
@pytest.mark.parametrize("strategy", ["high-level", "te"])
@pytest.mark.parametrize("tracer", ["fx", "export"])
def test_the_bindings_of_the_parts_are_those_of_the_node(
    bench: Any, tracer: str, strategy: str
) -> None:
    outcome = bench.check(SEQUENCES, (X,), tracer, strategy)
    assert outcome.lowered.notes == ()
    nodes = [node for node in outcome.lowered.nodes.values() if node.parts]
    assert len(nodes) == 2
    for node in nodes:
        assert node.strategy == strategy
        assert node.bindings == tuple(name for part in node.parts for name in part.bindings)
        assert {name for part in node.parts for name in part.functions} == set(node.functions)
        assert "aten.linear.default" in node.rule
        assert len({part.name for part in node.parts}) == len(node.parts)
    part = next(part for part in nodes[0].parts if part.target == "aten.linear.default")
    prefix = "first_" if tracer == "export" else ""
    assert part.args == f"transpose, {prefix}weight_ih_l0, {prefix}bias_ih_l0"
    assert (part.shape, part.dtype) == ((3, 2, 16), "float32")
    assert part.rule.startswith("linear: ")


def test_what_a_rule_refuses_may_have_parts(bench: Any) -> None:
    weighted = Calls(lambda x: F.huber_loss(x, x * 2, weight=x.abs()))
    outcome = bench.check(weighted, (X,), "fx", "te")
    node = outcome.lowered.nodes["huber_loss"]
    assert (node.strategy, node.reason) == ("te", "")
    assert len(node.parts) > 1


def test_what_would_become_too_many_operators_runs_in_torch(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decomposition, "MOST", 100)
    _, lowered = bench.lower(nn.LSTM(2, 2).eval(), (torch.randn(20, 2),), "export", "te")
    assert lowered.nodes["lstm"].strategy == "library"


def inside(x: torch.Tensor) -> Any:
    y = F.normalize(x, p=3.0)
    y += 1
    return y, F.relu_(y * 2)


@pytest.mark.parametrize("strategy", ["high-level", "te", "library"])
def test_in_place_operators_of_the_undecomposed_graph(bench: Any, strategy: str) -> None:
    outcome = bench.check(Calls(inside), (X,), "export", strategy)
    targets = [str(node.target) for node in outcome.traced.graph_module.graph.nodes]
    assert {"aten.add_.Tensor", "aten.relu_.default"} <= set(targets)
    assert outcome.traced.notes == ()
