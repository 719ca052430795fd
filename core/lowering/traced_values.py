"""Whether what a rule made is what torch computed."""

from __future__ import annotations

from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder
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


def _text(shape: tuple[int | str, ...], dtype: str) -> str:
    return f"{'×'.join(map(str, shape)) or 'scalar'} {dtype}"
