"""Whether what a rule made is what torch computed."""

from __future__ import annotations

from typing import Any

from tvm import ir, relax, tirx
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder
from lowerscope.core.lowering.lowered import Info
from lowerscope.core.lowering.relax_values import (
    Value,
    dtype_of,
    has_static_shape,
    is_tensor,
    shape_of,
)
from lowerscope.core.lowering.rule_table import Refused


def as_traced(
    builder: NodeBuilder,
    value: Value,
    shape: tuple[int | str, ...],
    dtype: str,
    *,
    written: bool,
) -> Value:
    """Return `value`, which has the shape and dtype that torch computed.

    Parameters
    ----------
    written
        Whether it is written into a tensor of that dtype, which casts it.

    Raises
    ------
    Refused
        If it has another shape or dtype.
    """
    if not is_tensor(value) or not has_static_shape(value):
        return value
    if written and dtype_of(value) != dtype:
        value = builder.emit(op.astype(value, dtype))
    if shape_of(value) != shape or dtype_of(value) != dtype:
        made = _text(shape_of(value), dtype_of(value))
        raise Refused(f"it would be {made} where torch has {_text(shape, dtype)}")
    return value


def check_members(value: Value, info: Info) -> None:
    """Refuse a tuple with a member of another shape or dtype than torch's."""
    if isinstance(value, (tuple, list)) and len(value) == len(info.items):
        for each, item in zip(value, info.items, strict=True):
            _check(each.ty if is_tensor(each) else None, item)
    elif isinstance(value, ir.Expr) and isinstance(value.ty, relax.TupleType):
        for field, item in zip(value.ty.fields, info.items, strict=False):
            _check(field, item)


def _check(field: Any, item: Info) -> None:
    if not isinstance(field, relax.TensorType) or item.shape is None:
        return
    if not isinstance(field.shape, relax.ShapeExpr):
        return
    extents = field.shape.values
    if not all(isinstance(extent, tirx.IntImm) for extent in extents):
        return
    shape, dtype = tuple(int(extent) for extent in extents), str(field.dtype.dtype)
    if shape != item.shape or dtype != item.dtype:
        made, expected = _text(shape, dtype), _text(item.shape, item.dtype)
        raise Refused(f"a member would be {made} where torch has {expected}")


def _text(shape: tuple[int | str, ...], dtype: str) -> str:
    return f"{'×'.join(map(str, shape)) or 'scalar'} {dtype}"
