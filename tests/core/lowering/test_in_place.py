"""In-place changes, by both tracers: what is read later is the changed value, or an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lowerscope.core.model.problems import LowerscopeError
from tests.problems import problem_of

INPUTS = (torch.randn(3, 4),)


def _add_into(x: torch.Tensor, out: torch.Tensor) -> None:
    out.add_(x)


class Changes(nn.Module):
    def __init__(self, function: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.function = function
        self.relu = nn.ReLU(inplace=True)
        self.bias = nn.Parameter(torch.randn(4))

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x * 2)


def relu_in_place(x: torch.Tensor) -> Any:
    y = x.relu_()
    return x, y


def relu_by_argument(x: torch.Tensor) -> Any:
    F.relu(x, inplace=True)
    return x + 1


def added_to(x: torch.Tensor) -> Any:
    before = x + 0
    x += before
    return x, before


def added_under_another_name(x: torch.Tensor) -> Any:
    same = x
    x += 1
    return same, x * 2


def twice(x: torch.Tensor) -> Any:
    x *= 2
    x -= 1
    x /= 4
    return x


def integers_into_floats(x: torch.Tensor) -> Any:
    x += torch.arange(4)
    return x


def a_view_that_is_not_read(x: torch.Tensor) -> Any:
    row = x[0] + 1
    x.mul_(3)
    return x, row


def filled(x: torch.Tensor) -> Any:
    y = x.clone()
    y.fill_(2.0)
    return x + y, x.masked_fill_(x > 0, 0.0)


CHANGES = [
    relu_in_place,
    relu_by_argument,
    added_to,
    added_under_another_name,
    twice,
    integers_into_floats,
    a_view_that_is_not_read,
    filled,
]


@pytest.mark.diagonal("function", "strategy")
@pytest.mark.parametrize("strategy", ["high-level", "te", "library"])
@pytest.mark.parametrize("tracer", ["fx", "export"])
@pytest.mark.parametrize("function", CHANGES, ids=lambda function: function.__name__)
def test_what_is_read_later_is_the_changed_value(
    bench: Any, function: Callable[..., Any], tracer: str, strategy: str
) -> None:
    bench.check(Changes(function), INPUTS, tracer, strategy)


def test_an_operator_that_returns_nothing_is_read_through_what_it_changes(bench: Any) -> None:
    library = torch.library.Library("changes", "FRAGMENT")
    library.define("add_into(Tensor x, Tensor(a!) out) -> ()")
    library.impl("add_into", _add_into, "CompositeExplicitAutograd")

    def function(x: torch.Tensor) -> Any:
        total = torch.zeros_like(x)
        torch.ops.changes.add_into(x, total)
        once = total * 2
        torch.ops.changes.add_into(once, total)
        return total.relu() + once

    bench.check(Changes(function), INPUTS, "fx", "high-level")


def test_a_module_that_changes_its_input(bench: Any) -> None:
    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.relu = nn.ReLU(inplace=True)

        def forward(self, x: torch.Tensor) -> Any:
            y = x - 1
            z = self.relu(y)
            return y + z

    bench.check(Residual(), INPUTS, "fx", "te")


def change_under_a_view(x: torch.Tensor) -> Any:
    row = x[0]
    x += 1
    return row


def change_through_a_view(x: torch.Tensor) -> Any:
    x[0].mul_(2)
    return x


def change_through_strides(x: torch.Tensor) -> Any:
    x.as_strided([3], [5])[1:].mul_(2)
    return x


def write_into(x: torch.Tensor) -> Any:
    x[:, 0] = 1.0
    return x


@pytest.mark.parametrize(
    "function", [change_under_a_view, change_through_a_view, change_through_strides]
)
def test_a_view_that_is_read_later_is_an_error_of_the_fx_tracer(
    bench: Any, function: Callable[..., Any]
) -> None:
    problem = problem_of(bench.lower, Changes(function), INPUTS, "fx", "te")
    assert "in place" in problem.what
    assert problem.code == "try-export"


@pytest.mark.diagonal
@pytest.mark.parametrize("strategy", ["high-level", "te", "library"])
@pytest.mark.parametrize(
    "function", [change_under_a_view, change_through_a_view, change_through_strides, write_into]
)
def test_and_works_with_the_export_tracer(
    bench: Any, function: Callable[..., Any], strategy: str
) -> None:
    bench.check(Changes(function), INPUTS, "export", strategy)


def test_neither_inputs_nor_parameters_are_changed_by_tracing(bench: Any) -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.zeros(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.total += x[0]
            return x.add_(self.total)

    x = torch.ones(3, 4)
    model = Counter()
    with pytest.raises(LowerscopeError, match="assigns to its buffer total"):
        bench.lower(model, (x,), "fx", "te")
    traced, _ = bench.lower(model, (x,), "export", "te")
    assert "changes its buffer total" in traced.notes[0].text
    assert (x == 1).all()
    assert (model.total == 0).all()
    assert set(model.state_dict()) == {"total"}


class Cache(nn.Module):
    """Keeps what it has seen, as a decoder keeps keys and values."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(5, 4))
        self.register_buffer("last", torch.zeros(3, 4))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.seen[1:4] = x
        self.last.copy_(x * 2)
        return self.seen[:4] + 1, self.last - 1


@pytest.mark.parametrize("tracer", ["auto", "export"])
def test_what_is_written_into_a_part_of_a_buffer_is_read_from_it(bench: Any, tracer: str) -> None:
    bench.check(Cache(), (torch.randn(3, 4),), tracer, "high-level")


def test_a_parameter_that_is_changed_in_place_is_refused(bench: Any) -> None:
    class Drift(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(4), requires_grad=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.weight.mul_(2)

    with pytest.raises(LowerscopeError, match="parameter or buffer"):
        bench.lower(Drift(), INPUTS, "fx", "te")


def statistics_of_itself(x: torch.Tensor) -> Any:
    mean, variance = x[0, :, 0, 0], torch.ones(3)
    return F.batch_norm(x, mean, variance, training=True), x


def out_into_a_part_that_is_read(x: torch.Tensor) -> Any:
    return torch.cumsum(x[:, 0, 0], 0, out=x[0, :, 0, 0][:2])


def into_a_part_of_the_same_memory(x: torch.Tensor) -> Any:
    row = x[0]
    return row.index_add_(0, torch.tensor([0, 1]), x[:, 0])


PICTURES = (torch.randn(2, 3, 3, 3),)


@pytest.mark.parametrize(
    "function",
    [statistics_of_itself, out_into_a_part_that_is_read, into_a_part_of_the_same_memory],
    ids=lambda function: function.__name__,
)
def test_a_call_that_writes_where_it_reads_is_refused(bench: Any, function: Any) -> None:
    problem = problem_of(bench.lower, Changes(function), PICTURES, "fx", "te")
    assert "changes a tensor in place" in problem.what
    assert "shares the memory" in problem.what
    assert problem.where.startswith(__file__)


def statistics_of_their_own(x: torch.Tensor) -> Any:
    mean, variance = x.mean((0, 2, 3)) * 1, torch.ones(3)
    return F.batch_norm(x, mean, variance, training=True), mean


def test_statistics_that_are_written_by_the_export_tracer(bench: Any) -> None:
    bench.check(Changes(statistics_of_their_own), PICTURES, "export", "te")
    for tracer in ("export", "auto"):
        # Its own functional form forgets what is written through a view.
        with pytest.raises(LowerscopeError, match="batch_norm changes a tensor in place"):
            bench.lower(Changes(statistics_of_itself), PICTURES, tracer, "te")
