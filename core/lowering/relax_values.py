"""Accessors of Relax values: shape, dtype, and constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from tvm import ir, relax, sym, tirx

Value = Any
"""A value during translation: a Relax expression, a Python value, or a nest of both."""

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


HALF = ("float16", "bfloat16")
"""Half-precision dtypes."""

_COMPLEX = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
_BYTES = frozenset(
    str(getattr(torch, name)).removeprefix("torch.")
    for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
)


@dataclass(frozen=True)
class Held:
    """A tensor of a dtype that TVM lacks, encoded in another one.

    Attributes
    ----------
    value
        A Relax tensor: real and imaginary parts along a last axis of 2, or the bytes.
    dtype
        Torch's dtype, as ``"complex64"``.
    """

    value: Value
    dtype: str


def held_type(shape: tuple[Any, ...], dtype: str) -> tuple[tuple[Any, ...], str] | None:
    """Return shape and dtype of the encoding of a tensor; ``None`` if there is none."""
    if dtype in _TORCH_DTYPES:
        return shape, dtype
    if dtype in _COMPLEX:
        return (*shape, 2), _COMPLEX[dtype]
    return (shape, "uint8") if dtype in _BYTES else None


def held_as(tensor: torch.Tensor, dtype: str) -> torch.Tensor:
    """Return the encoding of `tensor`, a view of it."""
    if dtype in _COMPLEX:
        return torch.view_as_complex(tensor)
    return tensor.view(getattr(torch, dtype))


def held_from(tensor: torch.Tensor) -> torch.Tensor:
    """Return `tensor`, or its encoding if TVM lacks its dtype."""
    name = str(tensor.dtype).removeprefix("torch.")
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    tensor = tensor.resolve_conj().resolve_neg()
    if name in _COMPLEX:
        return torch.view_as_real(tensor)
    return tensor.view(torch.uint8) if name in _BYTES else tensor


def is_size(value: Value) -> bool:
    """Return whether `value` is a symbolic size: an extent of a named dimension."""
    return isinstance(value, ir.Expr) and isinstance(value.ty, ir.PrimType)


def is_tensor(value: Value) -> bool:
    """Return whether `value` is a Relax expression for one tensor."""
    return isinstance(value, ir.Expr) and isinstance(value.ty, relax.TensorType)


def is_scalar_constant(value: Value) -> bool:
    """Return whether `value` is a constant tensor of rank 0."""
    return isinstance(value, ir.GenericConst) and is_tensor(value) and rank_of(value) == 0


def shape_of(value: Value) -> tuple[Any, ...]:
    """Return the extents of a tensor: ints, and expressions over the named dimensions.

    If an expression is compared or converted to a number, TVM raises ``ValueError`` or
    ``TypeError``, which rejects the node; only ``==`` works, as identity.
    """
    return extents_of(value.ty.shape)


@lru_cache(maxsize=1024)
def extents_of(shape: Any) -> tuple[Any, ...]:
    """Return the extents of a Relax shape, as `shape_of` does for a tensor.

    They are cached: rules query them often, and iterating over a shape is slow.
    """
    return tuple(size_of(extent) for extent in shape)


@lru_cache(maxsize=1024)
def numbers_of(shape: Any) -> tuple[int, ...] | None:
    """Return the extents of a Relax shape if all are numbers; ``None`` otherwise."""
    if not isinstance(shape, relax.ShapeExpr):
        return None
    extents = extents_of(shape)
    return extents if all(isinstance(each, int) for each in extents) else None


def size_of(extent: Any) -> Any:
    """Return an extent as an int, or as an expression if it is dynamic."""
    if isinstance(extent, tirx.IntImm):
        return int(extent)
    return extent if isinstance(extent, ir.Expr) else int(extent)


def simplified(extent: Any) -> Any:
    """Return a size simplified."""
    return size_of(sym.Analyzer().simplify(extent)) if isinstance(extent, ir.Expr) else extent


def same_sizes(first: Sequence[Any], second: Sequence[Any]) -> bool:
    """Return whether two shapes are equal for all sizes, as far as that can be proved."""
    return len(first) == len(second) and all(
        a == b if isinstance(a, int) and isinstance(b, int) else _proved_equal(a, b)
        for a, b in zip(first, second, strict=True)
    )


def _proved_equal(first: Any, second: Any) -> bool:
    numbers = (
        tirx.IntImm("int64", each) if isinstance(each, int) else each for each in (first, second)
    )
    return bool(sym.Analyzer().can_prove_equal(*numbers))


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
    """Return whether `dtype` is a floating-point type."""
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
