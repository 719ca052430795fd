"""Random operators, and the outputs that depend on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import fx, nn

from lowerscope.core.lowering.torch_operators import is_random

X = torch.rand(4, 4)


class Calls(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function
        self.cell = nn.GRU(4, 4)

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


RANDOM: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "rand": lambda x: torch.rand(x.shape),
    "randn": lambda x: torch.randn(x.shape),
    "rand_like": lambda x: torch.rand_like(x),
    "randn_like": lambda x: torch.randn_like(x),
    "randint": lambda x: torch.randint(0, 5, x.shape),
    "randint_like": lambda x: torch.randint_like(x, 5),
    "randperm": lambda x: torch.randperm(x.shape[0]),
    "normal": lambda x: torch.normal(x, 1.0),
    "bernoulli": lambda x: torch.bernoulli(x),
    "multinomial": lambda x: torch.multinomial(x, 2),
    "poisson": lambda x: torch.poisson(x),
    "dropout": lambda x: F.dropout(x, 0.5, True),
    "dropout2d": lambda x: F.dropout2d(x[None], 0.5, True)[0],
    "alpha_dropout": lambda x: F.alpha_dropout(x, 0.5, True),
    "rrelu": lambda x: F.rrelu(x - 0.5, training=True),
    "gumbel_softmax": lambda x: F.gumbel_softmax(x),
    "uniform_": lambda x: x.clone().uniform_(),
    "normal_": lambda x: x.clone().normal_(),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=0.5),
}


@pytest.mark.diagonal
@pytest.mark.parametrize("tracer", ["fx", "export"])
@pytest.mark.parametrize("name", RANDOM)
def test_random_operators_are_marked(bench: Any, name: str, tracer: str) -> None:
    """The operator, what is computed from it, and nothing else."""

    def compute(x: torch.Tensor) -> Any:
        drawn = RANDOM[name](x)
        return x + 1, drawn * 2, torch.zeros_like(drawn), x[: drawn.shape[0]]

    _, lowered = bench.lower(Calls(compute), (X,), tracer, "high-level")
    marked = [node for node in lowered.nodes.values() if node.random]
    assert marked
    assert all(node.strategy == "library" for node in marked)
    assert [bool(sources) for sources in lowered.random] == [False, True, False, False]
    assert any("values cannot be compared" in note.text for note in lowered.notes)


NOT_RANDOM: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "dropout outside training": lambda x: F.dropout(x, 0.5, False),
    "dropout of nothing": lambda x: F.dropout(x, 0.0, True),
    "rrelu": lambda x: F.rrelu(x - 0.5),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x),
}


@pytest.mark.diagonal
@pytest.mark.parametrize("strategy", ["high-level", "library"])
@pytest.mark.parametrize("name", NOT_RANDOM)
def test_what_draws_nothing_is_compared(bench: Any, name: str, strategy: str) -> None:
    outcome = bench.check(Calls(NOT_RANDOM[name]), (X,), "fx", strategy)
    assert outcome.lowered.random == ((),)


def test_an_output_names_all_that_it_depends_on(bench: Any) -> None:
    def compute(x: torch.Tensor) -> Any:
        parts = torch.stack([F.dropout(x, 0.5), torch.rand_like(x)]).split(1)
        y = x * 2
        y.add_(torch.randn(x.shape))
        return {"parts": parts, "y": y, "x": x}

    _, lowered = bench.lower(Calls(compute), (X,), "fx", "te")
    both = ("dropout", "rand_like")
    assert lowered.random == (both, both, ("randn",), ())


@pytest.mark.parametrize("module", [nn.Dropout(0.3), nn.RReLU(), nn.GRU(4, 4, 2, dropout=0.5)])
def test_modules_are_random_in_training_mode_only(module: nn.Module) -> None:
    graph = fx.Graph()
    node = graph.call_module("inner", (graph.placeholder("x"),))
    assert is_random(node, {"inner": module.train()})
    assert not is_random(node, {"inner": module.eval()})


def test_a_branch_that_draws_is_random(bench: Any) -> None:
    def compute(x: torch.Tensor) -> Any:
        drawn = torch.cond(x.sum() > 0, lambda x: x + torch.rand_like(x), lambda x: x - 1, (x,))
        return drawn, x

    _, lowered = bench.lower(Calls(compute), (X,), "export", "te")
    assert [bool(sources) for sources in lowered.random] == [True, False]


def test_what_is_drawn_without_the_input_is_not_compared_either(bench: Any) -> None:
    def compute(x: torch.Tensor) -> Any:
        noise = torch.randn(4, 4)
        return x + noise, x * torch.ones(4, 4), x + (noise * 2).t(), x.matmul(noise).sum()

    traced, lowered = bench.lower(Calls(compute), (X,), "fx", "te")
    assert lowered.random == (("randn",), (), ("randn",), ("randn",))
    assert "draws random numbers here" in traced.notes[0].text
