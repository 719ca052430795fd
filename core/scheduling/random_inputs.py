"""Random values for the buffers of a TensorIR function, in valid ranges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.scheduling.index_bounds import divides_by_inputs, largest_index
from lowerscope.core.scheduling.parameters import Parameter, parameters_of

_SMALL = 8
"""Maximum of integers that are not indices: products of them are exact."""


def static_parameters(function: Any) -> tuple[Parameter, ...]:
    """Return the buffers of a function, all of which have static shapes.

    Raises
    ------
    LowerscopeError
        If the function has other parameters, or an extent is symbolic: see `at_sizes`.
    """
    parameters = parameters_of(function)
    if parameters is None:
        raise LowerscopeError(
            "the function takes more than buffers, so it cannot be run alone", where="schedule"
        )
    symbolic = [each.name for each in parameters if each.shape is None]
    if symbolic:
        raise LowerscopeError(
            f"{', '.join(symbolic)} has a symbolic shape, so the function cannot be run alone",
            where="schedule",
            todo="Give the input a fixed shape",
        )
    return parameters


def draw(
    function: Any, parameters: Sequence[Parameter], seed: int, positive: bool = False
) -> tuple[torch.Tensor | None, ...]:
    """Return values for the buffers that a function reads, ``None`` for those that it only writes.

    Floating-point numbers are normally distributed, integers small and booleans uniform. Where
    integers are indices, they are drawn from 0 to the largest value with all indices in bounds;
    where it divides by them, they are positive.

    Parameters
    ----------
    positive
        Draw floating-point numbers from 0.5 to 1.5 instead, for roots and logarithms.

    Raises
    ------
    LowerscopeError
        If torch has no such dtype.
    """
    generator = torch.Generator().manual_seed(seed)
    index = largest_index(function)
    low, high = (0, index) if index is not None else (-_SMALL, _SMALL)
    if index is None and divides_by_inputs(function):
        low = 1
    return tuple(
        None if each.role == "output" else _draw_one(each, generator, (low, high), positive)
        for each in parameters
    )


def dtype_of_torch(name: str) -> torch.dtype:
    """Return torch's dtype for TVM's name.

    Raises
    ------
    LowerscopeError
        If it has none.
    """
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise LowerscopeError(f"torch has no values of the dtype {name}", where="schedule")
    return dtype


def _draw_one(
    parameter: Parameter, generator: torch.Generator, integers: tuple[int, int], positive: bool
) -> torch.Tensor:
    dtype, shape = dtype_of_torch(parameter.dtype), parameter.shape or ()
    if dtype.is_floating_point:
        if positive:
            values = torch.rand(shape, generator=generator) + 0.5
        else:
            values = torch.randn(shape, generator=generator)
        return values.to(dtype)
    if dtype is torch.bool:
        return torch.randint(0, 2, shape, generator=generator).to(dtype)
    low, high = integers
    if not dtype.is_signed:
        low = max(low, 0)
    limit = torch.iinfo(dtype).max
    return torch.randint(low, min(high, limit) + 1, shape, generator=generator).to(dtype)
