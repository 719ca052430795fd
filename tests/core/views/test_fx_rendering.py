"""The FX graph as records, as a table and as a picture."""

from __future__ import annotations

import pydoc
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import fx, nn

from lowerscope.core.model.graph import DEFAULT, FAMILY_NAMES, WHOLE, GraphRecord
from lowerscope.core.model.snapshot import FxNode, SourceLine
from lowerscope.core.tracing.tracing import TracedModel, trace
from lowerscope.core.views.graph.boxes import family_of, weightiest
from lowerscope.core.views.graph.fx_graph import fx_graph, label_of
from lowerscope.core.views.graph.hierarchy import Opening
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


def records_of(traced: TracedModel, lowered: Mapping[str, Lowering]) -> tuple[FxNode, ...]:
    return fx_nodes(traced.graph_module, traced.values, traced.lines, traced.modules, lowered)


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
        family="dense",
        line=line,
        strategy="te",
        rule="te_linear",
        bindings=("relax:main/lv",),
        functions=("tir:dense",),
    )
    assert nodes["relu"].label == "ReLU"
    assert nodes["relu"].strategy == ""


@pytest.mark.diagonal
@pytest.mark.parametrize("name", ["mlp", "resnet", "attention"])
@pytest.mark.parametrize("tracer", ["fx", "export"])
def test_table_says_what_print_tabular_says_but_for_functions(
    example: Example, name: str, tracer: str
) -> None:
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
        assert cells[0] == node.op
        assert cells[1] == node.name
        if isinstance(node.target, str) or hasattr(node.target, "_schema"):
            assert cells[2] == str(node.target)
        else:
            assert pydoc.locate(cells[2]) is node.target
        assert cells[3] == str(node.args)
        assert cells[4] == str(node.kwargs)
        value = traced.values[node.name]
        if value.shape is not None:
            assert cells[5:] == ["×".join(map(str, value.shape)), value.dtype]
    assert "0x" not in "\n".join(rows)


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


class Flatten(nn.Module):
    """A module of the user's own, with the name of one of torch's."""


class Wide(nn.MaxPool2d):
    """A module of torch's under another name."""


@pytest.mark.parametrize(
    ("module", "label"),
    [
        (nn.Flatten(), "Flatten · 1 … -1"),
        (Flatten(), "Flatten"),
        (Wide(3, stride=2), "Wide · 3×3, stride 2"),
    ],
)
def test_a_module_is_described_by_its_class_in_torch(module: nn.Module, label: str) -> None:
    graph = fx.Graph()
    called = graph.call_module("part", (graph.placeholder("x"),))
    assert str(label_of(called, fx.GraphModule({"part": module}, graph), {})) == label


def test_a_module_that_takes_its_weight_has_the_shape_of_it() -> None:
    graph = fx.Graph()
    called = graph.call_module("part", (graph.placeholder("x"), graph.get_attr("weight")))
    root = {"part": Flatten(), "weight": torch.ones(4, 3)}
    values: Any = {"weight": SimpleNamespace(shape=(4, 3))}
    assert str(label_of(called, fx.GraphModule(root, graph), values)) == "Flatten · 4×3"


class Layer(nn.Module):
    """A layer with what torch.export writes and nobody wants to read."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.linear(x.to(torch.float32))
        return torch.cat((x[:, 1:], x[:, :1].half().float()), 1).relu()


class Stack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(Layer(), Layer(), Layer())
        self.last = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.layers(x))


def test_repeated_layers_are_one_box_and_nodes_without_effect_have_none() -> None:
    traced = trace(Stack(), (torch.ones(2, 8),), "export")
    nodes = records_of(traced, {})
    slices = [node for node in nodes if node.operator == "slice"]
    assert {node.label for node in slices} == {"slice · dim 1, 1:", "slice · dim 1, :1"}
    end = str(2**63 - 1)
    assert not any(end in node.args for node in nodes)
    assert end not in fx_code(traced.graph_module).text

    def drawn(opening: Opening) -> GraphRecord:
        kinds = {name: type(each).__name__ for name, each in Stack().named_modules()}
        values = traced.values
        return fx_graph(traced.graph_module, nodes, values, DEFAULT, lambda: None, kinds, opening)

    folded = drawn(Opening(expanded=()))
    assert [box.operator for box in folded.boxes if box.kind == "group"] == ["Layer ×3"]
    opened = drawn(Opening(expanded=("module:layers",)))
    groups = [box for box in opened.boxes if box.kind == "group"]
    assert [(box.title, box.operator) for box in groups] == [(each, "Layer") for each in "012"]
    whole = drawn(Opening(fits=WHOLE))
    # The conversions that change the dtype have boxes.
    assert sum(box.operator == "to" for box in whole.boxes) == 6
    held = {each for box in whole.boxes for each in (box.id, *box.members)}
    assert held == {node.id for node in nodes}
    ends = {edge.source for edge in whole.edges} | {edge.target for edge in whole.edges}
    assert ends <= {box.id for box in whole.boxes}


# Families of operators, for all the names that torch and TVM give them


NAMES = {
    "dense": "Conv2d ConvTranspose1d Linear LSTM GRUCell aten::convolution addmm R.nn.conv2d",
    "attention": "MultiheadAttention scaled_dot_product_attention R.nn.attention",
    "activation": "ReLU GELU LogSoftmax relu_ _softmax R.nn.relu te_relu leaky_relu ReLU6 SiLU",
    "normalisation": "BatchNorm2d LayerNorm RMSNorm _native_batch_norm_legit_no_training "
    "group_norm",
    "pooling": "MaxPool2d AdaptiveAvgPool2d max_pool2d_with_indices R.nn.avg_pool2d",
    "elementwise": "add mul_ truediv R.multiply call_tir+divide1 masked_fill not_equal expm1",
    "reduction": "sum mean amax argmax R.sum cumsum logsumexp max",
    "shape": "Embedding Flatten reshape permute R.permute_dims cat getitem contiguous R.astype",
    "": "MyOperator call+helper R.call_py_func x",
}


@pytest.mark.parametrize("family", NAMES)
def test_an_operator_has_the_family_of_what_it_does(family: str) -> None:
    assert family in FAMILY_NAMES
    for name in NAMES[family].split():
        assert family_of(name.replace("+", " ")) == family, name


def test_the_weightiest_operator_stands_for_a_fused_function() -> None:
    assert family_of("call_tir fused_reshape1_dense2_add_relu") == "dense"
    assert family_of("call_tir fused_add_multiply1") == "elementwise"
    assert family_of("fused_softmax_layer_norm") == "normalisation"
    assert weightiest(["", "shape", "activation"]) == "activation"
    assert weightiest([]) == ""
