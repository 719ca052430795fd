"""Checks of a rule's results against the traced shapes and dtypes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import ir, relax
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder
from lowerscope.core.lowering.dimensions import Dimensions
from lowerscope.core.lowering.lowered import Info
from lowerscope.core.lowering.relax_values import (
    Value,
    dtype_of,
    is_tensor,
    numbers_of,
    shape_of,
    size_of,
)
from lowerscope.core.lowering.rule_table import Refused
from lowerscope.core.model.formatting import shape_text


def as_traced(
    builder: NodeBuilder,
    value: Value,
    shape: tuple[int | str, ...],
    dtype: str,
    *,
    written: bool,
) -> Value:
    """Return `value`, checked to have the shape and dtype that torch computed.

    Parameters
    ----------
    written
        Whether it is written into a tensor of that dtype, which casts it.

    Raises
    ------
    Refused
        If it has another shape or dtype.
    """
    if is_tensor(value) and numbers_of(value.ty.shape) == shape and dtype_of(value) == dtype:
        return value
    dimensions = builder.dimensions
    traced = dimensions.shape(shape)
    if not is_tensor(value) or traced is None or not dimensions.are_known(value):
        return value
    if written and dtype_of(value) != dtype:
        value = builder.emit(op.astype(value, dtype))
    made = shape_of(value)
    if (
        dtype_of(value) != dtype
        or len(made) != len(traced)
        or any(map(dimensions.never_same, made, traced))
    ):
        text = _text(made, dtype_of(value))
        raise Refused(f"it would be {text} where torch has {_text(shape, dtype)}")
    if all(map(dimensions.same, made, traced)):
        return value
    # Checked at run time if it cannot be proved.
    return builder.match_cast(value, relax.TensorType(traced, dtype))


def check_members(value: Value, info: Info, dimensions: Dimensions) -> None:
    """Reject a tuple with a member of another shape or dtype than torch's."""
    if isinstance(value, (tuple, list)) and len(value) == len(info.items):
        for each, item in zip(value, info.items, strict=True):
            _check(each.ty if is_tensor(each) else None, item, dimensions)
    elif isinstance(value, ir.Expr) and isinstance(value.ty, relax.TupleType):
        for field, item in zip(value.ty.fields, info.items, strict=False):
            _check(field, item, dimensions)


def _check(field: Any, item: Info, dimensions: Dimensions) -> None:
    if not isinstance(field, relax.TensorType) or item.shape is None:
        return
    traced = dimensions.shape(item.shape)
    if not isinstance(field.shape, relax.ShapeExpr) or traced is None:
        return
    made, dtype = tuple(map(size_of, field.shape.values)), str(field.dtype.dtype)
    if (
        dtype != item.dtype
        or len(made) != len(traced)
        or any(map(dimensions.never_same, made, traced))
    ):
        expected = _text(item.shape, item.dtype)
        raise Refused(f"a member would be {_text(made, dtype)} where torch has {expected}")


def _text(shape: Sequence[object], dtype: str) -> str:
    return f"{shape_text(shape)} {dtype}"
