"""Three strategies for each node: a default, and overrides by node, module and operator."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lowerscope.core.lowering import decomposition
from lowerscope.core.model.recipe import Override, Strategy
from tests.core.lowering.calling_models import Calls


class Residual(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.down: nn.Module = nn.Conv2d(inputs, outputs, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.conv2(self.relu(self.bn1(self.conv1(x))))
        out += self.down(x)
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 3, 2, 1)
        self.layer1 = nn.Sequential(Residual(4, 4, 1), Residual(4, 8, 2))
        self.layer10 = nn.ReLU()
        self.head = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.layer10(self.layer1(F.relu(self.conv1(x))))
        return self.head(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


torch.manual_seed(0)
RESNET = ResNet().eval()
IMAGE = (torch.randn(1, 3, 16, 16),)


def over(*pairs: tuple[str, Strategy]) -> tuple[Override, ...]:
    return tuple(Override(pattern=pattern, strategy=strategy) for pattern, strategy in pairs)


def strategies(bench: Any, default: Strategy, *pairs: tuple[str, Strategy]) -> dict[str, str]:
    _, lowered = bench.lower(RESNET, IMAGE, "fx", default, over(*pairs))
    assert lowered.notes == ()
    return {name: node.strategy for name, node in lowered.nodes.items() if node.strategy}


def chosen(found: dict[str, str], strategy: str) -> set[str]:
    return {name for name, each in found.items() if each == strategy}


FIRST = {f"layer1_0_{name}" for name in ("conv1", "bn1", "relu", "conv2", "down", "relu_1")}
SECOND = {f"layer1_1_{name}" for name in ("conv1", "bn1", "relu", "conv2", "down", "relu_1")}


def test_by_operator_however_it_is_written(bench: Any) -> None:
    found = strategies(bench, "high-level", ("conv2d", "library"))
    names = {name for name in found if "conv" in name or "down" in name}
    assert chosen(found, "library") == names
    assert len(names) == 7
    assert chosen(strategies(bench, "high-level", ("Conv2d", "te")), "te") == names
    relu = chosen(strategies(bench, "te", ("relu", "library")), "library")
    assert {"relu", "layer10", "layer1_0_relu", "layer1_1_relu_1"} <= relu


@pytest.mark.parametrize("pattern", ["layer1", "layer1.*"])
def test_by_module(bench: Any, pattern: str) -> None:
    found = chosen(strategies(bench, "high-level", (pattern, "library")), "library")
    assert found >= FIRST | SECOND
    # What is added in them is not in a leaf of its own.
    assert len(found - FIRST - SECOND) == 2
    assert "layer10" not in found


def test_a_later_one_wins_and_the_name_of_a_node_wins_over_all(bench: Any) -> None:
    found = strategies(bench, "high-level", ("layer1", "library"), ("conv2d", "te"))
    assert found["layer1_0_conv1"] == "te"
    assert found["layer1_0_bn1"] == "library"
    found = strategies(bench, "high-level", ("conv2d", "te"), ("layer1", "library"))
    assert found["layer1_0_conv1"] == "library"
    found = strategies(bench, "high-level", ("layer1_0_conv1", "te"), ("*", "library"))
    assert chosen(found, "te") == {"layer1_0_conv1"}
    found = strategies(bench, "te", ("fx:conv1", "library"), ("fx:conv1", "high-level"))
    assert found["conv1"] == "high-level"


def test_a_pattern_that_matches_nothing_is_a_note(bench: Any) -> None:
    overrides = over(("layer9.*", "te"), ("conv2d", "te"), ("fx:nope", "library"))
    _, lowered = bench.lower(RESNET, IMAGE, "fx", "high-level", overrides)
    assert [(note.where, note.text) for note in lowered.notes] == [
        ("--override layer9.*=te", "it matches no node"),
        ("--override fx:nope=library", "it matches no node"),
    ]


# Nodes that no rule covers as a whole, lowered operator by operator


X = torch.randn(2, 3, 8)


class Sequences(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        # With a projection, no rule covers them as a whole.
        self.first = nn.LSTM(8, 6, batch_first=True, bidirectional=True, proj_size=4)
        self.second = nn.LSTM(8, 6, batch_first=True, bidirectional=True, proj_size=4)

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
    assert (part.shape, part.dtype) == ((3, 2, 24), "float32")
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
    model = nn.LSTM(2, 3, proj_size=2).eval()
    _, lowered = bench.lower(model, (torch.randn(20, 2),), "export", "te")
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


@pytest.mark.parametrize(("points", "is_product"), [(30, True), (20, False)])
def test_distances_of_many_points_are_a_product_as_in_torch(
    bench: Any, points: int, is_product: bool
) -> None:
    inputs = torch.randn(points, 4), torch.randn(5, 4)
    outcome = bench.check(Calls(torch.cdist), inputs, "fx", "high-level")
    assert ("R.matmul" in outcome.lowered.module.script()) is is_product


@pytest.mark.parametrize(("equation", "count"), [("bij,bjk,bki->b", 2), ("bij,bjk,...->bik", 1)])
def test_products_of_several_tensors_are_those_of_two(
    bench: Any, equation: str, count: int
) -> None:
    """At once, each sum of products would be over both axes; torch multiplies two at a time too."""
    inputs = torch.randn(2, 3, 4), torch.randn(2, 4, 5), torch.randn(2, 5, 3)
    if "." in equation:
        inputs = *inputs[:2], torch.randn(())
    call = Calls(lambda *given: torch.einsum(equation, *given))
    outcome = bench.check(call, inputs, "fx", "high-level")
    assert outcome.lowered.module.script().count("R.einsum") == count


def test_windows_that_are_added_are_read_only_where_they_end(bench: Any) -> None:
    """Of 49 taps of a window, at most 9 end at an element."""

    def added(x: torch.Tensor) -> torch.Tensor:
        return F.fold(x, (11, 12), 7, stride=3, padding=3)

    outcome = bench.check(Calls(added), (torch.randn(1, 98, 16),), "fx", "high-level")
    script = outcome.lowered.module.script()
    assert re.search(r"in T.grid\(.*T.int64\(3\), T.int64\(3\)\)", script)
