"""Random operators, and the outputs that depend on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.core.lowering.calling_models import Calls

X = torch.rand(4, 4)


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
    assert any("is random; runs in torch" in note.text for note in lowered.notes)


def test_an_output_names_all_that_it_depends_on(bench: Any) -> None:
    def compute(x: torch.Tensor) -> Any:
        parts = torch.stack([F.dropout(x, 0.5), torch.rand_like(x)]).split(1)
        y = x * 2
        y.add_(torch.randn(x.shape))
        return {"parts": parts, "y": y, "x": x}

    _, lowered = bench.lower(Calls(compute), (X,), "fx", "te")
    both = ("dropout", "rand_like")
    assert lowered.random == (both, both, ("randn",), ())
