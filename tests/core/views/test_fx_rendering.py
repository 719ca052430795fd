"""The FX graph as records, as a table and as a picture."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import fx, nn

from lowerscope.core.model.graph import DEFAULT, GraphRecord
from lowerscope.core.model.snapshot import FxNode, SourceLine
from lowerscope.core.tracing.tracing import TracedModel, trace
from lowerscope.core.views.graph.fx_graph import fx_graph
from lowerscope.core.views.graph_records import fx_code, fx_nodes
from lowerscope.core.views.tables import print_table

Example = Callable[[str], tuple[nn.Module, tuple[torch.Tensor, ...]]]


@dataclass(frozen=True)
class Lowering:
    strategy: str
    rule: str
    bindings: tuple[str, ...]
    functions: tuple[str, ...]
    reason: str = ""
    random: bool = False
    line: SourceLine | None = None
    parts: tuple[Any, ...] = ()


def never() -> None:
    pass


def records_of(traced: TracedModel, lowered: Mapping[str, Lowering]) -> tuple[FxNode, ...]:
    return fx_nodes(traced.graph_module, traced.values, traced.lines, traced.modules, lowered)


def picture_of(traced: TracedModel, lowered: Mapping[str, Lowering]) -> GraphRecord:
    nodes = records_of(traced, lowered)
    return fx_graph(traced.graph_module, nodes, traced.values, DEFAULT, never)


def test_records_of_an_mlp(example: Example) -> None:
    model, inputs = example("mlp")
    traced = trace(model, inputs, "fx")
    lowering = Lowering("te", "te_linear", ("relax:main/lv",), ("tir:dense",))
    nodes = {node.name: node for node in records_of(traced, {"linear0": lowering})}
    assert list(nodes) == ["x", "linear0", "relu", "linear1", "output"]
    line = nodes["linear0"].line
    assert isinstance(line, SourceLine)
    assert line.text == "hidden: torch.Tensor = self.linear1(self.relu(self.linear0(x)))"
    assert nodes["linear0"] == FxNode(
        id="fx:linear0",
        name="linear0",
        opcode="call_module",
        target="linear0",
        args="(x,)",
        kwargs="{}",
        shape=(1, 128),
        dtype="float32",
        type="1×128 float32",
        label="Linear · 784 → 128",
        module="linear0",
        line=line,
        strategy="te",
        rule="te_linear",
        bindings=("relax:main/lv",),
        functions=("tir:dense",),
    )
    assert nodes["relu"].label == "ReLU"
    assert nodes["relu"].strategy == ""


@pytest.mark.parametrize("name", ["mlp", "resnet", "attention"])
@pytest.mark.parametrize("tracer", ["fx", "export"])
def test_table_says_what_print_tabular_says(example: Example, name: str, tracer: str) -> None:
    model, inputs = example(name)
    traced = trace(model, inputs, "fx" if tracer == "fx" else "export")
    header, rule, *rows = print_table(records_of(traced, {})).split("\n")
    assert header.split() == ["opcode", "name", "target", "args", "kwargs", "shape", "dtype"]
    starts = [header.index(column) for column in header.split()]
    assert starts == [match.start() for match in re.finditer("-+", rule)]
    graph = traced.graph_module.graph
    for node, row in zip(graph.nodes, rows, strict=True):
        cells = [
            row[start:end].strip() for start, end in zip(starts, [*starts[1:], None], strict=True)
        ]
        target = str(node.target).partition(" at 0x")[0].removesuffix(">")
        assert cells[0] == node.op
        assert cells[1] == node.name
        assert cells[2].removesuffix(">") == target
        assert cells[3] == str(node.args)
        assert cells[4] == str(node.kwargs)
        value = traced.values[node.name]
        if value.shape is not None:
            assert cells[5:] == ["×".join(map(str, value.shape)), value.dtype]
    assert "0x" not in "\n".join(rows)


def test_constants_with_one_use_are_in_its_box(example: Example) -> None:
    model, inputs = example("attention")
    graph = picture_of(trace(model, inputs, "fx"), {})
    boxes = {box.title: box.description for box in graph.boxes}
    assert "mask" not in boxes
    assert boxes["add"] == "add · mask 16×16"
    assert boxes["reshape"] == "reshape · 1, 16, 4, 16"


class Shared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * self.scale + x * x).sum().to(torch.float64) * self.scale


def test_a_constant_with_several_uses_is_in_the_boxes_of_all() -> None:
    graph = picture_of(trace(Shared(), (torch.ones(2, 4),), "export"), {})
    assert not [box for box in graph.boxes if box.title == "scale"]
    using = [box for box in graph.boxes if "fx:scale" in box.members]
    assert [(box.title, box.description) for box in using] == [
        ("mul", "mul · scale 4"),
        ("mul_2", "mul · scale 4"),
    ]
    # x * x has one edge; the sum is a scalar, which has no label.
    squares = [edge for edge in graph.edges if edge.source == "fx:x"]
    assert len(squares) == len({edge.target for edge in squares})
    assert {edge.label for edge in graph.edges if edge.source == "fx:sum_1"} == {""}


class Returned(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, int]:
        return x.view(x.size(0) * x.size(1)), self.scale, x.size(0)


def test_scalars_are_in_the_boxes_that_use_them_and_what_is_returned_has_one() -> None:
    graph = picture_of(trace(Returned(), (torch.ones(2, 4),), "fx"), {})
    boxes = {box.title: box for box in graph.boxes}
    assert list(boxes) == ["x", "view", "scale", "size_2", "output"]
    assert boxes["view"].description == "view · mul"
    assert set(boxes["view"].members) == {"fx:mul", "fx:size", "fx:size_1"}
    assert boxes["scale"].kind == "constant"
    assert {(edge.source, edge.target) for edge in graph.edges} == {
        ("fx:x", "fx:view"),
        ("fx:x", "fx:size_2"),
        ("fx:view", "fx:output"),
        ("fx:scale", "fx:output"),
        ("fx:size_2", "fx:output"),
    }


# The code of a traced graph, with the nodes of its lines


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3, 3))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.relu(x @ self.weight)
        return y, y.sum(dim=1, keepdim=True)


def test_each_node_has_its_line() -> None:
    traced = fx.symbolic_trace(Net())
    record = fx_code(traced)
    assert record.text.startswith("def forward(self, x")
    lines = record.text.split("\n")
    shown = {span.entity: lines[span.first - 1].strip() for span in record.spans}
    assert set(shown) == {f"fx:{node.name}" for node in traced.graph.nodes if node.name != "x"}
    assert shown["fx:weight"].startswith("weight = self.weight")
    assert shown["fx:matmul"].startswith("matmul = x @ weight")
    assert shown["fx:sum_1"].startswith("sum_1 = relu.sum(dim = 1")
    assert shown["fx:output"] == "return (relu, sum_1)"
