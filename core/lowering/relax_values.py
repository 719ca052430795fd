"""What is known of a Relax value: its static shape, its dtype, and constants made of it."""

from __future__ import annotations

from typing import Any

import torch
from tvm import ir, relax

Value = Any
"""A value while translating: a Relax expression, a Python value, or a nest of both."""

_TORCH_DTYPES: dict[str, torch.dtype] = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.bool,
        torch.uint8,
        torch.uint16,
        torch.uint32,
        torch.uint64,
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.float16,
        torch.bfloat16,
        torch.float32,
        torch.float64,
    )
}


def is_tensor(value: Value) -> bool:
    """Return whether `value` is a Relax expression for one tensor."""
    return isinstance(value, ir.Expr) and isinstance(value.ty, relax.TensorType)


def is_scalar_constant(value: Value) -> bool:
    """Return whether `value` is a constant tensor of rank 0."""
    return isinstance(value, ir.GenericConst) and is_tensor(value) and rank_of(value) == 0


def shape_of(value: Value) -> tuple[int, ...]:
    """Return the extents of a tensor."""
    return tuple(int(extent) for extent in value.ty.shape)


def rank_of(value: Value) -> int:
    """Return the number of dimensions of a tensor."""
    return int(value.ty.ndim)


def dtype_of(value: Value) -> str:
    """Return the dtype of a tensor, as ``"float32"``."""
    return str(value.ty.dtype.dtype)


def is_dtype(dtype: str) -> bool:
    """Return whether TVM has a dtype of this name."""
    return dtype in _TORCH_DTYPES


def is_float(dtype: str) -> bool:
    """Return whether `dtype` has a fraction."""
    return dtype.startswith(("float", "bfloat"))


def torch_dtype(dtype: str) -> torch.dtype:
    """Return torch's dtype for TVM's name of it."""
    return _TORCH_DTYPES[dtype]


def dtype_name(dtype: torch.dtype) -> str:
    """Return TVM's name for torch's dtype.

    Raises
    ------
    KeyError
        If TVM has no such dtype.
    """
    name = str(dtype).removeprefix("torch.")
    if name not in _TORCH_DTYPES:
        raise KeyError(f"{dtype} has no counterpart in TVM")
    return name


def axis_of(axis: int, rank: int) -> int:
    """Return `axis` counted from the front."""
    return axis + max(rank, 1) if axis < 0 else axis


def scalar(value: float, dtype: str) -> Value:
    """Return a constant of rank 0."""
    return relax.const(value, dtype)
