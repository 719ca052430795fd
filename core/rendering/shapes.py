"""Shapes and dtypes as graphs and labels write them: ``1×784 f32``."""

from __future__ import annotations

import re
from collections.abc import Iterable

from lowerscope.core.model.formatting import shape_text

_LONG_DTYPE = re.compile(r"\b(float|int|uint|bfloat|complex)(\d+)\b")
_LETTERS = {"float": "f", "int": "i", "uint": "u", "bfloat": "bf", "complex": "c"}


def short_dtypes(text: str) -> str:
    """Return `text` with ``float32`` as ``f32``, ``int64`` as ``i64``, and so on."""
    return _LONG_DTYPE.sub(lambda match: _LETTERS[match[1]] + match[2], text)


def tensor_label(shape: Iterable[object] | None, dtype: str) -> str:
    """Return ``1×784 f32``, or ``1×784`` without a dtype; empty for scalars and non-tensors."""
    written = shape_text(shape, "")
    return f"{written} {short_dtypes(dtype)}".strip() if written else ""
