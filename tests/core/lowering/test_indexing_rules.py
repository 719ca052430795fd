"""Reading and writing parts of tensors against torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

torch.manual_seed(0)
INPUTS = (
    torch.randn(3, 5, 4),
    torch.tensor([[0, 2, 1], [4, 3, 0]]),
    torch.randn(7, 6),
    torch.tensor([2, -1, 0]),
)
"""A tensor, two rows of indices, a table, indices of which one is negative."""


CASES: dict[str, Callable[..., Any]] = {
    "a number": lambda x, i, w, j: (x[1], x[0]),
    "a negative number": lambda x, i, w, j: (x[-1], x[:, -1], x[:, -2], x[..., -1]),
    "a number inside": lambda x, i, w, j: (x[:, 3], x[:, :, 2], x[:, 3, 1], x[2, 4, 3]),
    "a slice": lambda x, i, w, j: (x[1:], x[:, 1:3], x[:, :-1], x[..., -2:], x[:2, 1:, 2:]),
    "a slice with a step": lambda x, i, w, j: (x[:, ::2], x[::2, 1::3], x[:, -4:-1:2]),
    "a slice too far": lambda x, i, w, j: x[:, 2:100],
    "a slice of everything": lambda x, i, w, j: x[:] + 0,
    "an empty slice": lambda x, i, w, j: x[:, 3:3],
    "new axes": lambda x, i, w, j: (
        x[None],
        x[:, None],
        x[..., None],
        x[:, None, 1],
        x[None, ..., 0, None],
    ),
    "an ellipsis": lambda x, i, w, j: (x[..., 1:3], x[0, ...], x[..., 0, :], x[0, ..., 1]),
    "numbers and slices": lambda x, i, w, j: (
        x[0, 1:],
        x[1:, 2],
        x[:, 1:4, -1],
        x[-1, :, None, 1:2],
    ),
    "a tensor": lambda x, i, w, j: (x[:, i], w[i], w[j]),
    "a tensor on the last axis": lambda x, i, w, j: x[..., j],
    "two tensors": lambda x, i, w, j: (x[j, j], w[i, i], x[:, j, j]),
    "two tensors apart": lambda x, i, w, j: x[j, :, j],
    "tensors that broadcast": lambda x, i, w, j: w[i[:, :, None], j],
    "a tensor and a number": lambda x, i, w, j: (x[0, i], x[j, 1:3], x[:, i, 0]),
    "a list": lambda x, i, w, j: (w[[0, 3, 1]], x[:, [1, 2]]),
    "select": lambda x, i, w, j: (x.select(1, 2), torch.select(x, -1, -1)),
    "narrow": lambda x, i, w, j: (x.narrow(1, 1, 3), torch.narrow(x, -1, 0, 2)),
    "index_select": lambda x, i, w, j: (x.index_select(1, i[0]), torch.index_select(w, 0, i[1])),
    "take": lambda x, i, w, j: torch.take(w, i),
    "gather": lambda x, i, w, j: (torch.gather(w, 0, i), w.gather(1, i), x[:, 0].gather(1, i[:1])),
    "embedding": lambda x, i, w, j: F.embedding(i, w),
    "one_hot": lambda x, i, w, j: F.one_hot(i, 5),
    "scatter": lambda x, i, w, j: w.scatter(0, i, torch.ones_like(i, dtype=torch.float32)),
    "scatter a value": lambda x, i, w, j: torch.scatter(w, 1, i, 0.5),
    "scatter_add": lambda x, i, w, j: w.scatter_add(1, i, torch.ones_like(i, dtype=torch.float32)),
    "select_scatter": lambda x, i, w, j: torch.select_scatter(x, x[:, 0] * 2, 1, -1),
    "slice_scatter": lambda x, i, w, j: torch.slice_scatter(x, x[:, :2] * 2, 1, 2, 4),
    "slice_scatter with a step": lambda x, i, w, j: torch.slice_scatter(
        x, x[:, :2] * 2, 1, 0, 4, 2
    ),
    "a tuple's member": lambda x, i, w, j: x.split(2, 1)[-1] * x.max(1)[0].sum(),
    "bucketize": lambda x, i, w, j: torch.bucketize(w, torch.tensor([-1.0, 0.0, 0.5])),
    "meshgrid": lambda x, i, w, j: (
        torch.meshgrid(w[0], w[1, :3], indexing="ij"),
        torch.meshgrid(w[0], w[1, :3], indexing="xy"),
    ),
    "cross_entropy": lambda x, i, w, j: F.cross_entropy(w[:3], i[0]),
    "logaddexp": lambda x, i, w, j: torch.logaddexp(w, w + 1),
    "diagonal off the middle": lambda x, i, w, j: torch.diagonal(w, 1),
    "isin": lambda x, i, w, j: torch.isin(i, j),
}


@pytest.mark.parametrize(
    ("tracer", "strategy"),
    [("fx", "high-level"), ("fx", "te"), ("export", "te"), ("fx", "library")],
)
@pytest.mark.parametrize("name", CASES)
def test_indexing_gives_what_torch_does(bench: Any, name: str, tracer: str, strategy: str) -> None:
    bench.check_case(CASES, name, INPUTS, tracer, strategy)
