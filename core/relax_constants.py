"""Which constants of a module are one: TVM wraps the same elements anew."""

from __future__ import annotations

from typing import Any

Elements = tuple[int, tuple[int, ...], str]
"""Address, shape and dtype."""


def elements_of(tensor: Any) -> Elements:
    """Return what is equal for tensors of TVM over the same elements, while one of them lives."""
    return tensor.data_ptr(), tuple(tensor.shape), str(tensor.dtype)
