"""Scans along an axis: cumulative sums, products, extrema and log-sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder, cast, summand
from lowerscope.core.lowering.ordered_loops import te_cumulative_extremum, te_scan
from lowerscope.core.lowering.rule_table import Refused, rule
from lowerscope.core.lowering.values import (
    Value,
    axis_of,
    dtype_of,
    is_empty,
    is_float,
    rank_of,
    shape_of,
)
from lowerscope.core.model.texts import _

aten = torch.ops.aten


@rule(torch.cumsum, "cumsum", aten.cumsum.default)
def cumsum(b: NodeBuilder, input: Value, dim: int, *, dtype: Any = None) -> Value:
    return _scan(b, summand(b, input, dtype), dim, op.cumsum)


@rule(torch.cumprod, "cumprod", aten.cumprod.default)
def cumprod(b: NodeBuilder, input: Value, dim: int, *, dtype: Any = None) -> Value:
    return _scan(b, summand(b, input, dtype), dim, op.cumprod)


def _scan(b: NodeBuilder, value: Value, dim: int, scan: Callable[..., Value]) -> Value:
    if not rank_of(value) or is_empty(shape_of(value)):
        return value
    axis, dtype = axis_of(dim, rank_of(value)), dtype_of(value)
    # As in torch, in float64.
    wide = "float64" if is_float(dtype) else dtype
    if axis == rank_of(value) - 1:
        return cast(b, b.emit(scan(value, axis, wide)), dtype)
    # TVM walks down one column after the other.
    name = scan.__name__
    return cast(b, b.emit_te(te_scan, value, axis, wide, name, primfunc_name_hint=name), dtype)


@rule(torch.cummax, "cummax", aten.cummax.default)
def cummax(b: NodeBuilder, input: Value, dim: int) -> Value:
    return _cumulative_extremum(b, input, dim, largest=True)


@rule(torch.cummin, "cummin", aten.cummin.default)
def cummin(b: NodeBuilder, input: Value, dim: int) -> Value:
    return _cumulative_extremum(b, input, dim, largest=False)


def _cumulative_extremum(b: NodeBuilder, input: Value, dim: int, *, largest: bool) -> Value:
    if not rank_of(input) or is_empty(shape_of(input)):
        return input, b.emit(op.zeros(shape_of(input), "int64"))
    dtype = dtype_of(input)
    value = cast(b, input, "int8") if dtype == "bool" else input
    found = b.emit_te(
        te_cumulative_extremum,
        value,
        axis_of(dim, rank_of(input)),
        largest,
        primfunc_name_hint="cummax" if largest else "cummin",
    )
    values, places = (b.emit(found[index]) for index in range(2))
    return cast(b, values, dtype), places


@rule(torch.logcumsumexp, "logcumsumexp", aten.logcumsumexp.default)
def logcumsumexp(b: NodeBuilder, input: Value, dim: int) -> Value:
    if not is_float(dtype_of(input)):
        raise Refused(_("its input is no float"))
    if not rank_of(input) or is_empty(shape_of(input)):
        return input
    axis = axis_of(dim, rank_of(input))
    # As in torch, in float64.
    name = "logcumsumexp"
    found = b.emit_te(te_scan, input, axis, "float64", name, primfunc_name_hint=name)
    return cast(b, found, dtype_of(input))
