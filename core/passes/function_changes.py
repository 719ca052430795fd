"""Changes of functions: a function has changed if its text or its constants differ.

The number of changed functions, the marked lines of a step and its difference all use this
definition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tvm import ir, relax
from tvm_ffi import Tensor

from lowerscope.core.relax_constants import elements_of

_AT_ONCE = 1 << 20
"""Number of values compared at once, to bound the memory for a large constant."""


def is_same(one: Any, other: Any, script: Callable[[Any], str]) -> bool:
    """Return whether two functions of one name have the same text and the same constants.

    Parameters
    ----------
    script
        Returns the script of either.
    """
    if one.same_as(other):
        return True
    if script(one) != script(other):
        return False
    return not isinstance(one, relax.Function) or _has_same_constants(one, other)


def constant_tensors(function: Any) -> list[Any]:
    """Return the tensors of constants; dtypes and shapes are also constants, but are printed."""
    found: list[Any] = []

    def visit(expression: Any) -> None:
        if isinstance(expression, ir.GenericConst) and isinstance(expression.value, Tensor):
            found.append(expression.value)

    relax.analysis.post_order_visit(function, visit)
    return found


def compared_values(old: np.ndarray, new: np.ndarray) -> tuple[int, float | None]:
    """Return the number of values that differ, and the largest difference, if it is a number."""
    one, other = old.reshape(-1), new.reshape(-1)
    wide = np.complex128 if np.iscomplexobj(old) else np.float64
    different, largest = 0, None
    for start in range(0, one.size, _AT_ONCE):
        a, b = one[start : start + _AT_ONCE], other[start : start + _AT_ONCE]
        if a.tobytes() == b.tobytes():
            continue
        a, b = a.astype(wide), b.astype(wide)
        apart = (a != b) & ~(np.isnan(a) & np.isnan(b))
        different += int(np.count_nonzero(apart))
        with np.errstate(invalid="ignore"):
            distances = np.abs(a[apart] - b[apart])
        finite = distances[np.isfinite(distances)]
        if finite.size:
            largest = max(largest or 0.0, float(finite.max()))
    return different, largest


def paired_constants(one: Sequence[Any], other: Sequence[Any]) -> list[tuple[int, Any, Any]]:
    """Return the number, from 1, and both tensors of constants that may have other values.

    They are paired in order, as the script numbers them. Those over the same memory are the same;
    those of another shape or dtype cannot be compared, and change the text of their users.
    """
    found: list[tuple[int, Any, Any]] = []
    for number, (a, b) in enumerate(zip(one, other, strict=False), start=1):
        olds, news = elements_of(a), elements_of(b)
        if olds != news and olds[1:] == news[1:]:
            found.append((number, a, b))
    return found


def _has_same_constants(one: Any, other: Any) -> bool:
    pairs = paired_constants(constant_tensors(one), constant_tensors(other))
    return not any(compared_values(a.numpy(), b.numpy())[0] for _, a, b in pairs)
