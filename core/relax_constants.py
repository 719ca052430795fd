"""Identity of constants by address: TVM re-wraps shared data."""

from __future__ import annotations

from typing import Any

Elements = tuple[int, tuple[int, ...], str]
"""Address, shape and dtype."""


def elements_of(tensor: Any) -> Elements:
    """Return a key that TVM tensors over the same elements share while one of them exists."""
    return tensor.data_ptr(), tuple(tensor.shape), str(tensor.dtype)
