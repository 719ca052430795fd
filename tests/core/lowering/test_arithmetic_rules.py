"""Arithmetic against torch, with its rules for mixed dtypes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

torch.manual_seed(0)
INPUTS = (
    torch.randn(3, 5),
    torch.randn(3, 5).abs() + 0.5,
    torch.randint(-7, 8, (3, 5)),
    torch.randint(1, 5, (5,), dtype=torch.int32),
    torch.randn(4, 3, 2),
    torch.randn(4, 2, 5),
)
"""Floats, positive floats, integers, positive integers, two stacks of matrices."""


CASES: dict[str, Callable[..., Any]] = {
    "add": lambda x, y, n, k, a, b: x + y,
    "add a number": lambda x, y, n, k, a, b: (x + 1, 2.5 + x, n + 1),
    "add with alpha": lambda x, y, n, k, a, b: (torch.add(x, y, alpha=2), x.add(y, alpha=0.5)),
    "add integers and floats": lambda x, y, n, k, a, b: (n + x, k + n, n + 0.5),
    "add to a scalar tensor": lambda x, y, n, k, a, b: x + y.sum(),
    "add float64 scalar tensor": lambda x, y, n, k, a, b: (
        x + torch.tensor(0.5, dtype=torch.float64)
    ),
    "add bools": lambda x, y, n, k, a, b: (x > 0) + (y > 1),
    "sub": lambda x, y, n, k, a, b: (x - y, 1 - x, x - 1, torch.sub(x, y, alpha=3)),
    "rsub": lambda x, y, n, k, a, b: torch.rsub(x, y),
    "mul": lambda x, y, n, k, a, b: (x * y, 2 * x, n * 0.5, n * k),
    "mul by a mask": lambda x, y, n, k, a, b: x * (y > 1),
    "div": lambda x, y, n, k, a, b: (x / y, 1 / y, x / 3),
    "div integers": lambda x, y, n, k, a, b: (n / 2, n / k, torch.div(n, 3)),
    "div rounding down": lambda x, y, n, k, a, b: torch.div(n, k, rounding_mode="floor"),
    "div rounding to zero": lambda x, y, n, k, a, b: torch.div(n, k, rounding_mode="trunc"),
    "div floats rounding to zero": lambda x, y, n, k, a, b: torch.div(x, y, rounding_mode="trunc"),
    "floor_divide": lambda x, y, n, k, a, b: (n // k, x // y, n // 3, torch.floor_divide(x, 0.3)),
    "remainder": lambda x, y, n, k, a, b: (n % k, x % y, torch.remainder(n, 3), n % -4),
    "fmod": lambda x, y, n, k, a, b: (torch.fmod(x, y), torch.fmod(n, 3), torch.fmod(x, 0.7)),
    "pow": lambda x, y, n, k, a, b: (x**2, x**3, y**0.5, y**x, torch.pow(y, -1.5)),
    "pow of negatives": lambda x, y, n, k, a, b: (x**4, x**5, x**-2),
    "pow of integers": lambda x, y, n, k, a, b: (n**2, n**3, n**0),
    "pow of a number": lambda x, y, n, k, a, b: (2**x, torch.pow(2.0, x)),
    "maximum": lambda x, y, n, k, a, b: (torch.maximum(x, y), torch.max(x, y), n.maximum(k)),
    "minimum": lambda x, y, n, k, a, b: (torch.minimum(x, y), x.min(y)),
    "atan2": lambda x, y, n, k, a, b: torch.atan2(x, y),
    "addcmul": lambda x, y, n, k, a, b: torch.addcmul(x, y, y, value=0.5),
    "addcdiv": lambda x, y, n, k, a, b: torch.addcdiv(x, x, y, value=2),
    "lerp": lambda x, y, n, k, a, b: (torch.lerp(x, y, 0.3), x.lerp(y, x)),
    "broadcasting": lambda x, y, n, k, a, b: a.unsqueeze(-1) * a.unsqueeze(-2),
    "matmul": lambda x, y, n, k, a, b: (torch.matmul(x, y.t()), x @ y.T, torch.mm(x, y.t())),
    "matmul of stacks": lambda x, y, n, k, a, b: (a @ b, torch.bmm(a, b), torch.matmul(a, b[0])),
    "matmul with a vector": lambda x, y, n, k, a, b: (
        x @ y[0],
        torch.mv(x, y[1]),
        torch.dot(x[0], y[0]),
    ),
    "matmul in float64": lambda x, y, n, k, a, b: x.double() @ y.double().t(),
    "matmul of integers": lambda x, y, n, k, a, b: n @ n.t(),
    "addmm": lambda x, y, n, k, a, b: torch.addmm(x[0, :3], x, y.t(), beta=2, alpha=0.5),
    "baddbmm": lambda x, y, n, k, a, b: torch.baddbmm(x, a, b),
    "outer": lambda x, y, n, k, a, b: torch.outer(x[0], y[1]),
    "einsum": lambda x, y, n, k, a, b: torch.einsum("bij,bjk->bik", a, b),
    "einsum with an ellipsis": lambda x, y, n, k, a, b: torch.einsum("...ij,...jk->...ik", a, b),
    "einsum without an arrow": lambda x, y, n, k, a, b: torch.einsum("ij,kj", x, y),
    "einsum of a diagonal": lambda x, y, n, k, a, b: torch.einsum("bii->bi", a[:, :2]),
    "einsum of a list": lambda x, y, n, k, a, b: torch.einsum("ij,kj->ik", [x, y]),
    "linear": lambda x, y, n, k, a, b: F.linear(x, y, y[:, 0]),
    "linear of a stack": lambda x, y, n, k, a, b: F.linear(b, x, bias=x[:, 0]),
    "linear without bias": lambda x, y, n, k, a, b: F.linear(x, y),
    "operator.add": lambda x, y, n, k, a, b: operator.add(x, y),
    "arithmetic on extents": lambda x, y, n, k, a, b: x.reshape(x.shape[0] * x.size(1) // 5, -1),
    "a root of an extent": lambda x, y, n, k, a, b: x / math.sqrt(x.size(-1)),
    "addition in place": lambda x, y, n, k, a, b: (x + 0).add_(y),
    "multiplication in place": lambda x, y, n, k, a, b: (x + 0).mul_(2),
}


@pytest.mark.parametrize(
    ("tracer", "strategy"),
    [("fx", "high-level"), ("fx", "te"), ("export", "te"), ("fx", "library")],
)
@pytest.mark.parametrize("name", CASES)
def test_arithmetic_gives_what_torch_does(
    bench: Any, name: str, tracer: str, strategy: str
) -> None:
    bench.check_case(CASES, name, INPUTS, tracer, strategy)
