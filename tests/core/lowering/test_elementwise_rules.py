"""Functions of one value and comparisons against torch, in both strategies and by both tracers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

torch.manual_seed(0)
INPUTS = (
    torch.randn(3, 5) * 3,
    torch.rand(3, 5) * 0.8 + 0.1,
    torch.randint(-5, 6, (3, 5)),
    torch.randn(3, 5) > 0,
)
"""Any floats, floats between 0 and 1, integers, bools."""


CASES: dict[str, Callable[..., Any]] = {
    "abs": lambda x, u, n, m: torch.abs(x),
    "abs of integers": lambda x, u, n, m: n.abs(),
    "acos": lambda x, u, n, m: torch.acos(u),
    "acosh": lambda x, u, n, m: torch.acosh(u + 1),
    "asin": lambda x, u, n, m: u.asin(),
    "asinh": lambda x, u, n, m: torch.asinh(x),
    "atan": lambda x, u, n, m: torch.atan(x),
    "atanh": lambda x, u, n, m: torch.atanh(u),
    "bitwise_not": lambda x, u, n, m: (~n, ~m),
    "ceil": lambda x, u, n, m: torch.ceil(x),
    "ceil of integers": lambda x, u, n, m: torch.ceil(n),
    "clamp": lambda x, u, n, m: torch.clamp(x, -1, 1.5),
    "clamp by keyword": lambda x, u, n, m: x.clamp(max=0.5),
    "clamp integers": lambda x, u, n, m: n.clamp(-2, 3),
    "clamp by tensors": lambda x, u, n, m: torch.clamp(x, min=u - 1, max=u),
    "clamp_min": lambda x, u, n, m: x.clamp_min(0.25),
    "clamp_max": lambda x, u, n, m: torch.clamp_max(x, 0.25),
    "cos": lambda x, u, n, m: x.cos(),
    "cosh": lambda x, u, n, m: torch.cosh(x),
    "erf": lambda x, u, n, m: torch.erf(x),
    "erfc": lambda x, u, n, m: torch.erfc(u),
    "exp": lambda x, u, n, m: torch.exp(x),
    "exp of integers": lambda x, u, n, m: n.exp(),
    "exp2": lambda x, u, n, m: torch.exp2(x),
    "expm1": lambda x, u, n, m: torch.expm1(x),
    "floor": lambda x, u, n, m: x.floor(),
    "isfinite": lambda x, u, n, m: torch.isfinite(x / torch.relu(x)),
    "isinf": lambda x, u, n, m: torch.isinf(x / torch.relu(x)),
    "isnan": lambda x, u, n, m: torch.isnan(torch.sqrt(x)),
    "log": lambda x, u, n, m: torch.log(u),
    "log2": lambda x, u, n, m: torch.log2(u),
    "log10": lambda x, u, n, m: u.log10(),
    "log1p": lambda x, u, n, m: torch.log1p(u),
    "logit": lambda x, u, n, m: torch.logit(u),
    "logical_not": lambda x, u, n, m: (torch.logical_not(m), n.logical_not(), x.logical_not()),
    "neg": lambda x, u, n, m: (-x, -n, torch.neg(x)),
    "reciprocal": lambda x, u, n, m: torch.reciprocal(u),
    "round": lambda x, u, n, m: torch.round(x),
    "round halves to even": lambda x, u, n, m: torch.round(n / 2),
    "rsqrt": lambda x, u, n, m: torch.rsqrt(u),
    "sigmoid": lambda x, u, n, m: (torch.sigmoid(x), x.sigmoid(), F.sigmoid(x)),
    "sign": lambda x, u, n, m: (torch.sign(x), n.sign()),
    "sin": lambda x, u, n, m: torch.sin(x),
    "sinh": lambda x, u, n, m: torch.sinh(x),
    "sqrt": lambda x, u, n, m: torch.sqrt(u),
    "sqrt of integers": lambda x, u, n, m: torch.sqrt(n * n),
    "square": lambda x, u, n, m: (torch.square(x), n.square()),
    "tan": lambda x, u, n, m: torch.tan(u),
    "tanh": lambda x, u, n, m: (torch.tanh(x), x.tanh()),
    "trunc": lambda x, u, n, m: torch.trunc(x),
    "equal to a number": lambda x, u, n, m: (n == 2, n == 2.5, n.eq(2)),
    "not equal": lambda x, u, n, m: (n != 2, n.ne(x)),
    "less": lambda x, u, n, m: (x < u, x < 0, torch.lt(n, 0.5)),
    "less or equal": lambda x, u, n, m: (x <= u, n.le(1)),
    "greater": lambda x, u, n, m: (x > u, n > x, torch.greater(x, 0)),
    "greater or equal": lambda x, u, n, m: (x >= u, n.ge(1)),
    "logical operators": lambda x, u, n, m: (torch.logical_and(n, m), n.logical_or(m)),
    "logical_xor": lambda x, u, n, m: torch.logical_xor(n, m),
    "bitwise on integers": lambda x, u, n, m: (n & 3, n | 4, n ^ 5),
    "bitwise on bools": lambda x, u, n, m: (m & (x > 0), m | (x > 0), m ^ (x > 0)),
    "where": lambda x, u, n, m: torch.where(m, x, u),
    "where by a method": lambda x, u, n, m: x.where(m, u),
    "where with a number": lambda x, u, n, m: torch.where(x > 0, x, 0.0),
    "where with integers": lambda x, u, n, m: torch.where(m, n, 0),
    "masked_fill": lambda x, u, n, m: x.masked_fill(m, -1e9),
    "masked_fill with infinity": lambda x, u, n, m: x.masked_fill(m, float("-inf")),
    "float": lambda x, u, n, m: (n.float(), m.float(), n.double()),
    "long": lambda x, u, n, m: (x.long(), m.long(), x.int()),
    "half": lambda x, u, n, m: x.half(),
    "bool": lambda x, u, n, m: (n.bool(), x.bool()),
    "to": lambda x, u, n, m: (n.to(torch.float32), n.to(x), x.to("cpu"), x.to(dtype=torch.float64)),
    "type_as": lambda x, u, n, m: n.type_as(x),
    "type": lambda x, u, n, m: n.type(torch.float32),
}


@pytest.mark.parametrize(
    ("tracer", "strategy"),
    [("fx", "high-level"), ("fx", "te"), ("export", "te"), ("fx", "library")],
)
@pytest.mark.parametrize("name", CASES)
def test_elementwise_gives_what_torch_does(
    bench: Any, name: str, tracer: str, strategy: str
) -> None:
    bench.check_case(CASES, name, INPUTS, tracer, strategy)
