"""Activations and softmax against torch, as functions and as modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
INPUTS = (torch.randn(2, 4, 6) * 4,)


CASES: dict[str, Callable[..., Any]] = {
    "relu": lambda x: (F.relu(x), torch.relu(x), x.relu(), F.relu(x + 1, inplace=True)),
    "arguments by position": lambda x: (
        F.relu(x + 1, True),
        F.elu(x + 1, 0.5, False),
        F.leaky_relu(x, 0.1, False),
        F.hardtanh(x, -1.0, 2.0, False),
        F.dropout(x, 0.5, False, False),
        torch.softmax(x, 1, torch.float64),
    ),
    "ReLU": nn.ReLU(),
    "relu6": lambda x: F.relu6(x),
    "ReLU6": nn.ReLU6(),
    "leaky_relu": lambda x: (
        F.leaky_relu(x),
        F.leaky_relu(x, 0.2),
        F.leaky_relu(x, negative_slope=0.3),
    ),
    "LeakyReLU": nn.LeakyReLU(0.1),
    "elu": lambda x: (F.elu(x), F.elu(x, alpha=0.5)),
    "ELU": nn.ELU(1.5),
    "celu": lambda x: (F.celu(x), F.celu(x, 2.0)),
    "CELU": nn.CELU(0.7),
    "selu": lambda x: F.selu(x),
    "SELU": nn.SELU(),
    "gelu": lambda x: (F.gelu(x), F.gelu(x, approximate="tanh")),
    "GELU": nn.GELU(),
    "GELU by tanh": nn.GELU(approximate="tanh"),
    "silu": lambda x: F.silu(x),
    "SiLU": nn.SiLU(),
    "mish": lambda x: F.mish(x),
    "Mish": nn.Mish(),
    "softplus": lambda x: (F.softplus(x), F.softplus(x * 10, beta=2, threshold=5)),
    "Softplus": nn.Softplus(0.5, 3),
    "softsign": lambda x: F.softsign(x),
    "Softsign": nn.Softsign(),
    "logsigmoid": lambda x: F.logsigmoid(x),
    "LogSigmoid": nn.LogSigmoid(),
    "hardtanh": lambda x: (F.hardtanh(x), F.hardtanh(x, -0.5, 2.0)),
    "Hardtanh": nn.Hardtanh(-2, 0.5),
    "hardsigmoid": lambda x: F.hardsigmoid(x),
    "Hardsigmoid": nn.Hardsigmoid(),
    "hardswish": lambda x: F.hardswish(x),
    "Hardswish": nn.Hardswish(),
    "hardshrink": lambda x: F.hardshrink(x, 1.0),
    "Hardshrink": nn.Hardshrink(),
    "softshrink": lambda x: F.softshrink(x, 0.7),
    "Softshrink": nn.Softshrink(),
    "Tanhshrink": nn.Tanhshrink(),
    "threshold": lambda x: F.threshold(x, 0.5, -1.0),
    "Threshold": nn.Threshold(0.1, 20),
    "Sigmoid": nn.Sigmoid(),
    "Tanh": nn.Tanh(),
    "PReLU": nn.PReLU(init=0.3),
    "PReLU by channel": nn.PReLU(4),
    "glu": lambda x: (F.glu(x), F.glu(x, 1)),
    "GLU": nn.GLU(dim=1),
    "softmax": lambda x: (F.softmax(x, dim=-1), torch.softmax(x, 1), x.softmax(0)),
    "softmax in another dtype": lambda x: F.softmax(x, dim=1, dtype=torch.float64),
    "Softmax": nn.Softmax(dim=1),
    "log_softmax": lambda x: (F.log_softmax(x, dim=-1), x.log_softmax(1)),
    "LogSoftmax": nn.LogSoftmax(dim=-1),
    "Softmin": nn.Softmin(dim=1),
    "dropout outside training": lambda x: F.dropout(x, 0.5, False) + F.dropout(x, training=False),
    "Dropout": nn.Sequential(nn.Dropout(0.5), nn.Identity()),
}


@pytest.mark.parametrize(
    ("tracer", "strategy"),
    [("fx", "high-level"), ("fx", "te"), ("export", "te"), ("fx", "library")],
)
@pytest.mark.parametrize("name", CASES)
def test_activation_gives_what_torch_does(
    bench: Any, name: str, tracer: str, strategy: str
) -> None:
    bench.check_case(CASES, name, INPUTS, tracer, strategy)
