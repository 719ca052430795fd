"""Extents as numbers."""

from __future__ import annotations

from typing import Any

from tvm import tirx


def known(value: Any) -> int | None:
    """Return a number that TVM or a user wrote; ``None`` for one that is symbolic."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, tirx.IntImm) else None
