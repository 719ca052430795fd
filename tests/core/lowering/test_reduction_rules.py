"""Reductions and orders against torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

torch.manual_seed(0)
INPUTS = (
    torch.randn(3, 4, 5),
    torch.randint(-9, 9, (4, 6)),
    torch.randn(3, 4, 5) > 0.5,
    torch.randn(6),
)


CASES: dict[str, Callable[..., Any]] = {
    "sum": lambda x, n, m, v: (x.sum(), torch.sum(x, 1), x.sum((0, 2)), x.sum(-1, keepdim=True)),
    "sum of integers": lambda x, n, m, v: (n.sum(), m.sum(1), n.int().sum()),
    "sum in another dtype": lambda x, n, m, v: (
        n.sum(0, dtype=torch.float32),
        x.sum(dtype=torch.float64),
    ),
    "mean": lambda x, n, m, v: (
        x.mean(),
        x.mean(dim=1),
        torch.mean(x, (1, 2), keepdim=True),
        x.mean([-1]),
    ),
    "mean by an axis": lambda x, n, m, v: x.mean(axis=2, keepdims=True),
    "prod": lambda x, n, m, v: (torch.prod(x, 1), v.prod(), n.prod(0)),
    "var": lambda x, n, m, v: (
        x.var(),
        x.var(1),
        torch.var(x, dim=2, unbiased=False),
        x.var(-1, keepdim=True),
    ),
    "var with a correction": lambda x, n, m, v: (
        torch.var(x, 1, correction=0),
        x.var(unbiased=False),
    ),
    "std": lambda x, n, m, v: (x.std(), torch.std(x, 1), x.std(2, unbiased=False, keepdim=True)),
    "var_mean": lambda x, n, m, v: torch.var_mean(x, 1),
    "amax and amin": lambda x, n, m, v: (
        x.amax(1),
        torch.amin(x, (0, 2)),
        x.amax((1, 2), keepdim=True),
    ),
    "max": lambda x, n, m, v: (x.max(), n.max()),
    "max along an axis": lambda x, n, m, v: (torch.max(x, 1), x.max(dim=-1, keepdim=True)),
    "the values of max": lambda x, n, m, v: (x.max(1)[0], x.max(dim=2).values, x.topk(2).indices),
    "min": lambda x, n, m, v: (x.min(), torch.min(x, 2)),
    "argmax": lambda x, n, m, v: (x.argmax(), torch.argmax(x, 1), x.argmax(dim=-1, keepdim=True)),
    "argmin": lambda x, n, m, v: (torch.argmin(x, dim=0), n.argmin(1)),
    "all and any": lambda x, n, m, v: (
        m.all(),
        m.any(1),
        torch.any(m),
        torch.all(x > -2, dim=2),
        n.any(0),
    ),
    "logsumexp": lambda x, n, m, v: (torch.logsumexp(x, 1), x.logsumexp((0, 2), keepdim=True)),
    "norm": lambda x, n, m, v: (
        x.norm(),
        torch.norm(x, dim=1),
        x.norm(p=1, dim=-1, keepdim=True),
        x.norm(3, 0),
    ),
    "vector_norm": lambda x, n, m, v: (
        torch.linalg.vector_norm(x, dim=1),
        torch.linalg.vector_norm(x, math.inf),
    ),
    "cumsum": lambda x, n, m, v: (x.cumsum(1), torch.cumsum(n, -1), m.cumsum(2)),
    "cumprod": lambda x, n, m, v: torch.cumprod(x, 2),
    "topk": lambda x, n, m, v: (torch.topk(x, 2), v.topk(3, largest=False)),
    "argsort": lambda x, n, m, v: (v.argsort(), torch.argsort(x, 1, descending=True)),
    "sort": lambda x, n, m, v: (torch.sort(x, 1), v.sort(descending=True)),
    "median": lambda x, n, m, v: (v.median(), torch.median(x, 1), x.median(0, keepdim=True)),
}


@pytest.mark.parametrize(
    ("tracer", "strategy"),
    [("fx", "high-level"), ("fx", "te"), ("export", "te"), ("fx", "library")],
)
@pytest.mark.parametrize("name", CASES)
def test_reduction_gives_what_torch_does(bench: Any, name: str, tracer: str, strategy: str) -> None:
    bench.check_case(CASES, name, INPUTS, tracer, strategy)
