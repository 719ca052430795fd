"""NumPy function as the reference of a source without torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from lowerscope.core.nesting import mapped

WIDER = torch.float64
"""Default dtype of NumPy's computation."""


class NumpyReference(torch.nn.Module):
    """A function of arrays, called with tensors.

    Parameters
    ----------
    function
        Takes the inputs by position and returns an array, or a nest of them.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        """Return the function's results as tensors."""
        # NumPy does not have bfloat16; float32 represents all its values.
        arrays = [(x.float() if x.dtype is torch.bfloat16 else x).numpy() for x in inputs]
        return mapped(
            self._function(*arrays),
            lambda leaf: torch.from_numpy(np.array(leaf)) if _is_array(leaf) else leaf,
        )


def in_dtype_of(
    expected: Sequence[torch.Tensor], actual: Sequence[torch.Tensor]
) -> tuple[torch.Tensor, ...]:
    """Return NumPy's results rounded to the requested dtypes."""
    rounded = [
        one.to(other.dtype) if one.dtype is WIDER and other.dtype.is_floating_point else one
        for one, other in zip(expected, actual, strict=False)
    ]
    return (*rounded, *expected[len(rounded) :])


def _is_array(leaf: object) -> bool:
    return isinstance(leaf, np.ndarray | np.generic)
