"""Extents as numbers, and the variables in them."""

from __future__ import annotations

from typing import Any

from tvm import tirx
from tvm.tirx.analysis import undefined_vars


def known(value: Any) -> int | None:
    """Return an extent as a number; ``None`` for one that is symbolic."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, tirx.IntImm) else None


def mentions(value: Any, var: Any) -> bool:
    """Return whether a variable occurs in an expression."""
    return any(var.same_as(each) for each in undefined_vars(value))
