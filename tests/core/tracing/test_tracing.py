"""Both tracers: one form of graph, the values, the user's lines, and clear errors."""

from __future__ import annotations

import copy
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils import _pytree as pytree

from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import TracerName
from lowerscope.core.tracing.symbolic_sizes import SymbolicSizes
from lowerscope.core.tracing.trace_errors import NamedInputs
from lowerscope.core.tracing.tracing import TracedModel, trace
from tests.problems import problem_of

X = torch.randn(2, 4)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 6), nn.ReLU())
        self.weight = nn.Parameter(torch.randn(6, 3))

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> Any:
        if mask is not None:
            x = x * mask
        y = self.body(x)
        return y @ self.weight, y.split(2, 1)


def line_with(text: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return 1 + next(index for index, line in enumerate(lines) if text in line)


def node_of(traced: TracedModel, target: Any) -> str:
    return next(n.name for n in traced.graph_module.graph.nodes if n.target == target)


def test_the_fx_tracer_knows_values_lines_and_modules() -> None:
    traced = trace(Model(), (X,), "fx")
    assert [node.op for node in traced.graph_module.graph.nodes] == [
        "placeholder",
        "call_module",
        "call_module",
        "get_attr",
        "call_function",
        "call_method",
        "output",
    ]
    assert traced.values["x"].text == "2×4 float32"
    assert traced.values["body_0"].shape == (2, 6)
    assert traced.values["body_0"].dtype == "float32"
    assert traced.values["split"].text == "(2×2 float32, 2×2 float32, 2×2 float32)"
    assert [item.shape for item in traced.values["split"].items] == [(2, 2)] * 3
    assert traced.modules["body_0"] == "body.0"
    assert traced.modules["matmul"] == ""
    line = traced.lines["body_1"]
    assert (line.file, line.line) == (__file__, line_with("y = self.body(x)"))
    assert line.text == "y = self.body(x)"
    assert traced.lines["x"].text.startswith("def forward(self, x: torch.Tensor, mask")


def test_the_export_tracer_brings_the_same_form() -> None:
    traced = trace(Model(), (X,), "export")
    operations = {node.op for node in traced.graph_module.graph.nodes}
    assert operations == {"placeholder", "get_attr", "call_function", "output"}
    relu = node_of(traced, torch.ops.aten.relu.default)
    assert traced.values[relu].text == "2×6 float32"
    assert traced.modules[relu] == "body.1"
    assert traced.lines[relu].line == line_with("y = self.body(x)")
    assert all(node.users for node in traced.graph_module.graph.nodes if node.op == "get_attr")


def test_a_program_with_a_named_dimension_is_traced_with_the_inputs_own() -> None:
    batch = torch.export.Dim("batch", min=2, max=64)
    program = torch.export.export(Model(), (X,), dynamic_shapes=({0: batch},))
    traced = trace(program.module(), (torch.randn(5, 4),), "export", program)
    assert traced.values["x"].text == "5×4 float32"
    relu = node_of(traced, torch.ops.aten.relu.default)
    assert traced.values[relu].shape == (5, 6)


def test_a_branch_on_a_value_is_an_error_with_its_line_and_the_way_out() -> None:
    class Branch(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if x.sum() > 0:  # the branch
                return x
            return -x

    problem = problem_of(trace, Branch(), (X,), "fx")
    assert problem.where == f"{__file__}:{line_with('# the branch')}"
    assert "a condition depends on a tensor or its size" in problem.what
    # torch.export cannot trace it either.
    assert problem.todo.startswith("Let the tracer be chosen: --tracer auto")
    problem = problem_of(trace, Branch(), (X,), "export")
    assert problem.todo.startswith("Let the tracer be chosen: --tracer auto")
    assert problem.where == f"{__file__}:{line_with('# the branch')}"


@pytest.mark.diagonal
@pytest.mark.parametrize("tracer", ["fx", "export"])
@pytest.mark.parametrize(
    ("inputs", "words"),
    [((torch.randn(2, 5),), "mat1 and mat2"), ((torch.randint(0, 5, (2, 4)),), "dtype")],
)
def test_inputs_that_do_not_fit_are_an_error_with_the_line(
    tracer: Any, inputs: tuple[torch.Tensor, ...], words: str
) -> None:
    problem = problem_of(trace, Model(), inputs, tracer)
    assert "the model fails on these inputs" in problem.what
    assert words in problem.what
    assert problem.where == f"{__file__}:{line_with('y = self.body(x)')}"
    assert "--input" in problem.todo
    # The window offers its form for them.
    assert (problem.code, problem.choices) == ("change-inputs", ("x",))


def keyed(x: torch.Tensor) -> Any:
    return {"hidden": x}["hiden"]


def asserted(x: torch.Tensor) -> Any:
    if not (x > 100).all():
        raise AssertionError
    return x


@pytest.mark.parametrize(
    ("function", "words"),
    [(keyed, "there is no key 'hiden'"), (asserted, "its own check fails")],
)
def test_a_mistake_in_the_code_is_said_in_words(function: Callable[..., Any], words: str) -> None:
    class Wrong(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return function(x)

    problem = problem_of(trace, Wrong(), (X,), "auto")
    assert problem.what == f"the model fails on these inputs: {words}"
    assert problem.todo.startswith("Correct this line")


@pytest.mark.parametrize("tracer", ["fx", "export"])
def test_a_model_that_ends_python_is_an_error_with_its_line(tracer: Any) -> None:
    class Ending(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise SystemExit(3)  # the end

    problem = problem_of(trace, Ending(), (X,), tracer)
    assert problem.what == "the model fails at run time: it ends Python itself (exit code 3)"
    assert problem.where == f"{__file__}:{line_with('# the end')}"


class Flow(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1 if len(x) > 1 else x  # the length


@torch.fx.wrap
def halved(x: torch.Tensor) -> torch.Tensor:
    return x.exp() / 2


@torch.fx.wrap
def as_rows(x: torch.Tensor) -> tuple[torch.Tensor, int]:
    rank = x.dim()
    return (x.unsqueeze(0) if rank == 1 else x), rank


@torch.fx.wrap
def as_before(x: torch.Tensor, rank: int) -> torch.Tensor:
    return x.squeeze(0) if rank == 1 else x


@torch.fx.wrap
def positive(x: torch.Tensor) -> torch.Tensor:
    x = x * 3
    return x if x.sum() > 0 else -x


class Wrapping(nn.Module):
    def __init__(self, chosen: bool) -> None:
        super().__init__()
        self.chosen = chosen

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = halved(x)
        if self.chosen:
            return positive(x) + 1
        x, rank = as_rows(x)
        return as_before(x + 1, rank)


def test_functions_that_are_to_be_nodes_are_traced() -> None:
    traced = trace(Wrapping(chosen=False), (X,), "auto")
    assert traced.tracer == "export"
    assert "as_rows is one node" in traced.notes[0].text
    expected = Wrapping(chosen=False)(X)
    torch.testing.assert_close(pytree.tree_leaves(traced.graph_module(X))[0], expected)
    # What its values decide stays a node.
    traced = trace(Wrapping(chosen=True), (X,), "fx")
    names = [each.name for each in traced.graph_module.graph.nodes]
    assert names == ["x", "exp", "truediv", "positive", "add", "output"]
    assert [each.text.partition(":")[0] for each in traced.notes] == ["positive is one node"]
    torch.testing.assert_close(traced.graph_module(-X), Wrapping(chosen=True)(-X))


def test_auto_takes_export_where_fx_cannot_and_says_why() -> None:
    traced = trace(Flow(), (X,), "auto")
    assert traced.tracer == "export"
    (note,) = traced.notes
    assert "torch.fx cannot trace the model: it takes the len() of a tensor" in note.text
    assert note.text.endswith("torch.export traced it")
    assert note.where == f"{__file__}:{line_with('# the length')}"


class Zeros(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.zeros(x.shape[0], 4)  # of its size


class Chosen(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * [1, 2, 3, 4][x.shape[0]]  # from a list


class Copied(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.tensor(x.shape[0])  # of an extent


class Assigns(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + 1
        x[0] = 2  # an element
        return x


class Raises(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.dtype is not torch.float32:
            raise ValueError("only float32 will do")  # in words of its own
        return x + 1


@pytest.mark.parametrize(
    ("model", "comment", "reason", "torchs"),
    [
        (Zeros(), "# of its size", "a value or a size of a tensor", "zeros()"),
        (Chosen(), "# from a list", "a value or a size of a tensor", "list indices"),
        (Copied(), "# of an extent", "a value or a size of a tensor", "TypeError"),
        (Assigns(), "# an element", "it assigns to elements of a tensor", "item assignment"),
        (
            Raises(),
            "# in words of its own",
            "it raises ValueError: only float32 will do",
            "only float32 will do",
        ),
    ],
)
def test_fx_says_in_terms_of_the_model_what_it_cannot_follow(
    model: nn.Module, comment: str, reason: str, torchs: str
) -> None:
    problem = problem_of(trace, model, (X,), "fx")
    assert reason in problem.what
    assert "roxy" not in problem.line()
    assert problem.where == f"{__file__}:{line_with(comment)}"
    assert "--tracer export" in problem.todo
    assert torchs in problem.details


class Checked(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.scaled(x)  # from here

    def scaled(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] == 3:
            raise ValueError("three rows\nand no fourth")
        return nn.functional.relu(self.missing)  # type: ignore[arg-type]  # no such attribute


@pytest.mark.parametrize("tracer", ["auto", "fx", "export"])
def test_an_error_while_tracing_has_the_users_frames(tracer: TracerName) -> None:
    problem = problem_of(trace, Checked(), (X,), tracer)
    assert "\n" not in problem.what
    *frames, last = re.findall(r'File "(.+)", line (\d+), in (\w+)', problem.details)
    assert frames[-1] == (__file__, str(line_with("# from here")), "forward")
    assert last == (__file__, str(line_with("# no such attribute")), "scaled")
    assert len(frames) == 1  # neither torch's nor the tracer's, nor those of this test
    assert "AttributeError: 'Checked' object has no attribute 'missing'" in problem.details


def test_an_error_while_tracing_keeps_its_whole_message() -> None:
    problem = problem_of(trace, Checked(), (torch.ones(3, 2),), "auto")
    assert problem.details.endswith("ValueError: three rows\nand no fourth")


class Casting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.linear(x).relu()
        return y.float() + x


def test_what_autocast_casts_is_in_the_graph() -> None:
    x = torch.randn(2, 4)
    model = Casting()
    with pytest.raises(LowerscopeError, match="autocast") as caught:
        trace(model, (x,), "fx")
    assert caught.value.problem.code == "try-export"
    traced = trace(model, (x,), "auto")
    assert traced.tracer == "export"
    assert "bfloat16" in {each.dtype for each in traced.values.values()}
    with torch.no_grad():
        assert torch.equal(traced.graph_module(x), model(x))


# Shapes of functions that torch computes on sizes as numbers, compared with torch's


x = torch.rand(3, 4)
wide = torch.rand(2, 3, 4)
indices = torch.zeros(1, 4, dtype=torch.int64)

CALLS: dict[str, Callable[[], Any]] = {
    "kron": lambda: torch.kron(x, torch.ones(2, 5, dtype=torch.int32)),
    "kron of other ranks": lambda: torch.kron(x, torch.ones(2)).kron(other=wide),
    "kron of integers": lambda: torch.kron(indices, torch.tensor(True)),
    "take_along_dim": lambda: torch.take_along_dim(x, indices.expand(5, 4), 0),
    "take_along_dim with indices broadcast": lambda: x.take_along_dim(indices[:, :1], dim=1),
    "take_along_dim with input broadcast": lambda: x[:1].take_along_dim(indices.expand(5, 4), -1),
    "take_along_dim of all": lambda: x.take_along_dim(indices),
    "multi_dot": lambda: torch.linalg.multi_dot([x, x.T, x]),
    "multi_dot of vectors": lambda: torch.linalg.multi_dot([x[0], x.T, x[:, 0]]),
    "chain_matmul": lambda: torch.chain_matmul(x, x.T, x),
    "LSTM": lambda: nn.LSTM(4, 6)(wide),
    "LSTM without a batch": lambda: nn.LSTM(4, 6, 2, bidirectional=True)(x),
    "LSTM with projection": lambda: nn.LSTM(4, 6, proj_size=2, batch_first=True)(wide),
    "GRU": lambda: nn.GRU(4, 6, 2, bidirectional=True, batch_first=True)(wide),
    "RNN": lambda: nn.RNN(4, 6)(wide),
    "RNN with relu": lambda: nn.RNN(4, 6, nonlinearity="relu")(wide),
}


@pytest.mark.filterwarnings("ignore:torch.chain_matmul", "ignore:LSTM with projections")
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_shape_and_dtype_are_those_of_torch(call: Callable[[], Any]) -> None:
    expected = pytree.tree_leaves(call())
    with SymbolicSizes():
        actual = pytree.tree_leaves(call())
    assert [(each.shape, each.dtype) for each in actual] == [
        (each.shape, each.dtype) for each in expected
    ]


class MakingSparse(nn.Module):
    """Multiplies by a sparse tensor of its inputs, which torch.export has no operator for."""

    def forward(self, x: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        starts, columns = torch.tensor([0, 1, 2]), torch.tensor([1, 0])
        return torch.sparse_csr_tensor(starts, columns, values, (2, 2)) @ x


@pytest.mark.parametrize("named", [None, NamedInputs(((2, "n"), (2,)), {"n": (2, 9)})])
def test_torch_logs_no_traceback_of_what_export_cannot_trace(named: NamedInputs | None) -> None:
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    log = logging.getLogger("torch._subclasses.fake_tensor")
    log.addHandler(handler)
    try:
        inputs = torch.ones(2, 3), torch.ones(2)
        problem_of(trace, MakingSparse(), inputs, "export", named=named)
    finally:
        log.removeHandler(handler)
    assert not records


class CopyingDeeply(nn.Module):
    """Copies a nest of a traced tensor and a traced size, and changes the copy."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = {"x": x * 2, "rows": x.shape[0]}
        copied = copy.deepcopy(kept)
        copied["x"] += copied["rows"]
        return torch.cat([kept["x"], copied["x"]])


def test_a_deep_copy_of_traced_values_is_a_copy_of_tensors() -> None:
    traced = trace(CopyingDeeply(), (X,), "fx")
    assert not traced.notes
    assert "clone" in {node.name for node in traced.graph_module.graph.nodes}
    assert torch.equal(traced.graph_module(X)[2:], X * 2 + 2)
