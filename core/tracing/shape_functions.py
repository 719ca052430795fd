"""Shape computation with symbolic sizes for functions that torch computes on integer sizes.

Torch's own code of these functions reads the sizes of tensors as integers, which specialises a
symbolic size to the traced one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class SymbolicSizes(TorchFunctionMode):
    """Mode that replaces torch's functions by those of this module, which compute no values."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        return _FUNCTIONS.get(func, func)(*args, **(kwargs or {}))


def _kron(input: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    rank = max(input.dim(), other.dim())
    first, second = ((1,) * (rank - each.dim()) + each.shape for each in (input, other))
    shape = [a * b for a, b in zip(first, second, strict=True)]
    return input.new_empty(shape, dtype=torch.result_type(input, other))


def _take_along_dim(
    input: torch.Tensor, indices: torch.Tensor, dim: int | None = None
) -> torch.Tensor:
    if dim is None:
        return torch.empty_like(indices.flatten(), dtype=input.dtype)
    # All axes but the indexed one are broadcast.
    shapes = [list(each.shape) for each in (input, indices)]
    for shape in shapes:
        shape[dim] = 1
    whole = list(torch.broadcast_shapes(*shapes))  # type: ignore[no-untyped-call]
    whole[dim] = indices.shape[dim]
    return input.new_empty(whole)


def _multi_dot(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    return functools.reduce(torch.matmul, tensors)


def _chain_matmul(*matrices: torch.Tensor) -> torch.Tensor:
    return _multi_dot(matrices)


def _lstm(input: torch.Tensor, states: Any, *options: Any) -> tuple[torch.Tensor, ...]:
    return *_recurrent(input, states[0], *options), torch.empty_like(states[1])


def _recurrent(input: torch.Tensor, state: torch.Tensor, *options: Any) -> tuple[torch.Tensor, ...]:
    _parameters, has_biases, _layers, _dropout, _train, is_bidirectional, _batch_first = options
    if not isinstance(has_biases, bool):
        raise NotImplementedError("the sequences are packed")
    features = state.shape[-1] * (2 if is_bidirectional else 1)
    return input.new_empty((*input.shape[:-1], features)), torch.empty_like(state)


_FUNCTIONS: Mapping[Any, Callable[..., Any]] = {
    torch.kron: _kron,
    torch.Tensor.kron: _kron,
    torch.take_along_dim: _take_along_dim,
    torch.Tensor.take_along_dim: _take_along_dim,
    torch.linalg.multi_dot: _multi_dot,
    torch.chain_matmul: _chain_matmul,
    torch.lstm: _lstm,
    torch.gru: _recurrent,
    torch.rnn_tanh: _recurrent,
    torch.rnn_relu: _recurrent,
}
