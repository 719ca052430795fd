"""Three strategies for each node: a default, and overrides by node, module and operator."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lowerscope.core.model.recipe import Override, Strategy


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
