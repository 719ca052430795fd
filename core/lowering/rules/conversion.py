"""Conversion between dtypes."""

from __future__ import annotations

from typing import Any

import torch

from lowerscope.core.lowering.builder import NodeBuilder, cast
from lowerscope.core.lowering.relax_values import Value, dtype_name, dtype_of, is_float, is_tensor
from lowerscope.core.lowering.rule_table import Refused, exact
from lowerscope.core.lowering.rules.elementwise import truth

aten = torch.ops.aten


def convert(b: NodeBuilder, value: Value, dtype: torch.dtype) -> Value:
    """Return `value` converted as in torch: to bool, nonzero is true."""
    return truth(b, value) if dtype is torch.bool else cast(b, value, dtype_name(dtype))


@exact("to")
def to(
    b: NodeBuilder,
    input: Value,
    *args: Any,
    dtype: Any = None,
    other: Value = None,
    non_blocking: bool = False,
    copy: bool = False,
) -> Value:
    for argument in (*args, other, dtype):
        if isinstance(argument, torch.dtype):
            return convert(b, input, argument)
        if is_tensor(argument):
            return cast(b, input, dtype_of(argument))
    return input


@exact("type")
def type_(b: NodeBuilder, input: Value, dtype: Any = None, non_blocking: bool = False) -> Value:
    if not isinstance(dtype, torch.dtype):
        raise Refused("it is not given a torch.dtype")
    return convert(b, input, dtype)


@exact("type_as", aten.type_as.default)
def type_as(b: NodeBuilder, input: Value, other: Value) -> Value:
    return cast(b, input, dtype_of(other))


@exact(aten._to_copy.default, aten.to.dtype, name="to")
def aten_to(
    b: NodeBuilder,
    input: Value,
    dtype: torch.dtype | None = None,
    non_blocking: bool = False,
    copy: bool = False,
) -> Value:
    return input if dtype is None else convert(b, input, dtype)


@exact(torch.is_floating_point, "is_floating_point")
def is_floating_point(b: NodeBuilder, input: Value) -> bool:
    return is_float(dtype_of(input))


def _enter(name: str, dtype: torch.dtype) -> None:
    def lower(b: NodeBuilder, input: Value) -> Value:
        return convert(b, input, dtype)

    exact(name, name=name)(lower)


_METHODS = {
    "bfloat16": torch.bfloat16,
    "bool": torch.bool,
    "byte": torch.uint8,
    "char": torch.int8,
    "double": torch.float64,
    "float": torch.float32,
    "half": torch.float16,
    "int": torch.int32,
    "long": torch.int64,
    "short": torch.int16,
}

for _name, _dtype in _METHODS.items():
    _enter(_name, _dtype)
