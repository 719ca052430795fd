"""Shapes of functions that torch computes on sizes as numbers, compared with torch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils import _pytree as pytree

from lowerscope.core.tracing.symbolic_sizes import SymbolicSizes

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


def test_packed_sequences_are_not_taken_for_whole_ones() -> None:
    packed = nn.utils.rnn.pack_padded_sequence(wide, torch.tensor([3, 2]), batch_first=True)
    with SymbolicSizes(), pytest.raises(NotImplementedError):
        nn.GRU(4, 6)(packed)
