"""Type promotion as in torch, and NaN-aware comparison."""

from __future__ import annotations

from typing import Any

import torch
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder
from lowerscope.core.lowering.relax_values import (
    HALF,
    Value,
    dtype_name,
    dtype_of,
    is_float,
    is_scalar_constant,
    is_tensor,
    rank_of,
    scalar,
    torch_dtype,
)


def cast(b: NodeBuilder, value: Value, dtype: str) -> Value:
    """Return a tensor or a number as a tensor of `dtype`."""
    if not is_tensor(value):
        return scalar(value, dtype)
    if dtype_of(value) == dtype:
        return value
    if is_scalar_constant(value):
        return scalar(value.value.numpy().item(), dtype)
    if is_float(dtype_of(value)) and dtype in _BELOW_32_BITS:
        # As in C: values out of range keep their lowest bits. LLVM leaves the result undefined.
        value = b.emit(op.astype(value, "int32"))
    return b.emit(op.astype(value, dtype))


_BELOW_32_BITS = ("int8", "uint8", "int16", "uint16")


def common_dtype(*values: Value) -> str:
    """Return the dtype to which torch promotes tensors and numbers."""
    stand_ins = [_stand_in(value) for value in values]
    result = stand_ins[0]
    for each in stand_ins[1:]:
        result = _stand_in_of(torch.result_type(result, each), result, each)
    dtype = result.dtype if isinstance(result, torch.Tensor) else torch.result_type(result, result)
    return dtype_name(dtype)


def to_common_dtype(b: NodeBuilder, *values: Value) -> tuple[Value, ...]:
    """Return `values` as tensors of their common dtype."""
    dtype = common_dtype(*values)
    return tuple(cast(b, value, dtype) for value in values)


def is_nan(b: NodeBuilder, value: Value) -> Value:
    """Return whether each element is NaN; TVM's own does not support bfloat16."""
    return b.emit(op.isnan(cast(b, value, "float32") if dtype_of(value) in HALF else value))


def differs(b: NodeBuilder, first: Value, second: Value) -> Value:
    """Return whether two tensors of one dtype differ elementwise; NaN differs from everything.

    TVM's ``not_equal`` is false if either side is NaN.
    """
    if not is_float(dtype_of(first)):
        return b.emit(op.not_equal(first, second))
    return b.emit(op.logical_not(b.emit(op.equal(first, second))))


def to_float(b: NodeBuilder, value: Value) -> Value:
    """Return a floating-point tensor unchanged, otherwise as float32."""
    return value if is_float(dtype_of(value)) else cast(b, value, "float32")


def _stand_in(value: Value) -> Any:
    """Return a small tensor or number that torch promotes like `value`."""
    if not is_tensor(value):
        return value
    shape = (1,) if rank_of(value) else ()
    return torch.empty(shape, dtype=torch_dtype(dtype_of(value)), device="meta")


def _stand_in_of(dtype: torch.dtype, first: Any, second: Any) -> Any:
    ranks = [value.dim() for value in (first, second) if isinstance(value, torch.Tensor)]
    return torch.empty((1,) if any(ranks) else (), dtype=dtype, device="meta")
