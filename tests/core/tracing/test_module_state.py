"""State that a model changes as it runs, its own, inputs, random numbers: all is left as it was."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lowerscope.core.model.recipe import TracerName
from lowerscope.core.run.execution import Reference
from lowerscope.core.tracing.tracing import trace
from tests.problems import problem_of

X = torch.randn(2, 4)


def line_with(text: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return 1 + next(index for index, line in enumerate(lines) if text in line)


def test_tracing_changes_neither_inputs_nor_the_random_state() -> None:
    class Noisy(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.relu(x, inplace=True) + torch.rand_like(x)

    x = X.clone()
    state = torch.random.get_rng_state()
    trace(Noisy(), (x,), "fx")
    assert torch.equal(x, X)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_in_place_changes_are_written_down() -> None:
    class Residual(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x + 1
            same = y
            y += x
            return same * y

    traced = trace(Residual(), (X,), "fx")
    assert traced.mutations == {"iadd": ("add",)}


class Counting(nn.Module):
    n: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("n", torch.zeros(4))
        self.plain = torch.zeros(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.n.add_(1)  # the count
        return x * self.n


class CountingInAView(Counting):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.n[1:] += 1  # the view
        return x * self.n


class CountingBehindTheVersion(Counting):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch.add(self.n, 1, out=self.n.data)  # the data
        return x * self.n


class CountingWithoutABuffer(Counting):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.plain.fill_(2)  # the plain
        return x * self.plain


@pytest.mark.parametrize(
    ("model", "line", "words", "todo"),
    [
        (
            Counting(),
            "# the count",
            "it changes its buffer n in place",
            "Try another tracer: --tracer export",
        ),
        (
            CountingInAView(),
            "# the view",
            "it changes its buffer n in place",
            "Try another tracer: --tracer export",
        ),
        # torch.export fails as well.
        (CountingBehindTheVersion(), "# the data", "it changes its buffer n in place", "Let"),
        (CountingWithoutABuffer(), "# the plain", "it changes its own tensor in place", "Try"),
    ],
)
def test_a_change_of_state_is_left_to_the_export_tracer(
    model: Counting, line: str, words: str, todo: str
) -> None:
    problem = problem_of(trace, model, (X,), "fx")
    assert words in problem.what
    assert problem.where == f"{__file__}:{line_with(line)}"
    assert problem.todo.startswith(todo)
    assert torch.equal(model.n, torch.zeros(4))
    assert torch.equal(model.plain, torch.zeros(4))


class CountingInABranch(Counting):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            self.n.add_(1)
        return x * self.n


class Assigning(Counting):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.n = x.mean(0)
        return x / self.n if x.sum() > 0 else x


@pytest.mark.parametrize("model", [CountingBehindTheVersion(), CountingInABranch(), Assigning()])
def test_a_change_of_state_that_no_tracer_takes_is_undone_at_each_call(model: Counting) -> None:
    expected = model(X.abs())
    model.n = torch.zeros(4)
    traced = trace(model, (X.abs(),), "auto")
    for _turn in range(2):
        assert torch.equal(traced.graph_module(X.abs()), expected)
    assert torch.equal(model.n, torch.zeros(4))


class Training(nn.Module):
    """Trains itself in ``forward``."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.optimizer = torch.optim.SGD(self.layer.parameters(), 0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            loss = self.layer(x).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss.detach()


def test_a_model_that_trains_itself_keeps_its_parameters_and_a_note_says_so() -> None:
    model = Training()
    before = copy.deepcopy(model.state_dict())
    traced = trace(model, (X,), "auto")
    assert any("changes its parameters layer.weight" in each.text for each in traced.notes)
    reference = Reference(model, (X,), 0)
    loss = reference.call()
    assert reference.call() < loss
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])
    torch.testing.assert_close(traced.graph_module(X), loss)


class Decaying(nn.Module):
    """Changes its parameter in ``forward``, by one of the ways to do so."""

    def __init__(self, change: Callable[[nn.Parameter], object]) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.change = change

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.change(self.layer.weight)
        return self.layer(x)


def replaced(weight: nn.Parameter) -> None:
    weight.data = weight.data * 0.9


def written(weight: nn.Parameter) -> None:
    with torch.no_grad():
        weight[:, 1:].mul_(0.9)


def written_as_data(weight: nn.Parameter) -> None:
    weight.data.mul_(0.9)


def written_as_output(weight: nn.Parameter) -> None:
    data = weight.data
    torch.mul(data, 0.9, out=data)


def written_in_a_list(weight: nn.Parameter) -> None:
    torch._foreach_mul_([weight.data], 0.9)


@pytest.mark.parametrize(
    "change", [replaced, written, written_as_data, written_as_output, written_in_a_list]
)
def test_a_model_that_changes_its_parameters_is_judged_from_those_that_were_opened(
    change: Callable[[nn.Parameter], object],
) -> None:
    model = Decaying(change)
    weight, content = model.layer.weight.data, model.layer.weight.detach().clone()
    first = copy.deepcopy(model).requires_grad_(False)(X)
    traced = trace(model, (X,), "auto")
    assert any("changes its parameters layer.weight" in each.text for each in traced.notes)
    assert traced.agrees
    reference = Reference(model, (X,), 0)
    for _turn in range(2):
        (output,) = reference.outputs()
        torch.testing.assert_close(output, first)
        reference.call()
    assert model.layer.weight.data_ptr() == weight.data_ptr()
    assert torch.equal(model.layer.weight, content)
    with torch.no_grad():
        torch.testing.assert_close(traced.graph_module(X), first)


def test_torchs_run_begins_with_the_buffers_that_were_opened() -> None:
    reference = Reference(Counting(), (X,), 0)
    (first,) = reference.outputs()
    assert torch.equal(reference.outputs()[0], first)


class SettingModes(nn.Module):
    """Sets the modes of its layers itself."""

    def __init__(self, by_value: bool) -> None:
        super().__init__()
        self.drop = nn.Dropout(1.0)
        self.by_value = by_value

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.drop.train()
        y = self.drop(x)
        if self.by_value:
            for row in x:
                if row.sum() > 0:
                    y = y + self.drop(row)
        self.drop.eval()
        return y + self.drop(x)


@pytest.mark.parametrize("by_value", [False, True])
def test_layers_have_the_modes_that_forward_sets(by_value: bool) -> None:
    model = SettingModes(by_value).eval()
    tracer: TracerName = "auto" if by_value else "fx"
    traced = trace(model, (X,), tracer)
    assert torch.equal(traced.graph_module(X + 2), X + 2)
    assert not model.drop.training
