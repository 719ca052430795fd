"""Comparisons, logic, selection, sorting and order statistics."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import torch
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder, cast, differs, is_nan, to_common_dtype
from lowerscope.core.lowering.rule_table import Refused, exact, rule
from lowerscope.core.lowering.rules.arithmetic import add, mul, sub
from lowerscope.core.lowering.rules.elementwise import truth
from lowerscope.core.lowering.rules.shape import reshape_to
from lowerscope.core.lowering.selection_loops import (
    te_ahead,
    te_kth,
    te_searchsorted,
    te_sort_key,
    te_topk,
)
from lowerscope.core.lowering.values import (
    Value,
    axis_of,
    dtype_of,
    is_empty,
    is_float,
    is_tensor,
    rank_of,
    scalar,
    shape_of,
    torch_dtype,
)
from lowerscope.core.model.texts import _

aten = torch.ops.aten

_COMPARISONS: dict[str, tuple[str, Callable[..., Value]]] = {
    "eq": ("equal", op.equal),
    "ne": ("not_equal", op.not_equal),
    "lt": ("less", op.less),
    "le": ("less_equal", op.less_equal),
    "gt": ("greater", op.greater),
    "ge": ("greater_equal", op.greater_equal),
}

_LOGIC: dict[str, Callable[..., Value]] = {
    "logical_and": op.logical_and,
    "logical_or": op.logical_or,
    "logical_xor": op.logical_xor,
}

_BITWISE: dict[str, tuple[Any, Any, Callable[..., Value], Callable[..., Value]]] = {
    "and": (operator.and_, operator.iand, op.bitwise_and, op.logical_and),
    "or": (operator.or_, operator.ior, op.bitwise_or, op.logical_or),
    "xor": (operator.xor, operator.ixor, op.bitwise_xor, op.logical_xor),
}


def _comparison(relax_operator: Callable[..., Value]) -> Callable[..., Value]:
    def lower(b: NodeBuilder, input: Value, other: Value) -> Value:
        first, second = to_common_dtype(b, input, other)
        if dtype_of(first) == "bool":
            # TVM does not compare bools.
            first, second = cast(b, first, "int8"), cast(b, second, "int8")
        if relax_operator is op.not_equal:
            return differs(b, first, second)
        return b.emit(relax_operator(first, second))

    return lower


def _logic(relax_operator: Callable[..., Value]) -> Callable[..., Value]:
    def lower(b: NodeBuilder, input: Value, other: Value) -> Value:
        return b.emit(relax_operator(truth(b, input), truth(b, other)))

    return lower


def _bitwise(on_integers: Callable[..., Value], on_bools: Callable[..., Value]) -> Any:
    def lower(b: NodeBuilder, input: Value, other: Value) -> Value:
        first, second = to_common_dtype(b, input, other)
        relax_operator = on_bools if dtype_of(first) == "bool" else on_integers
        return b.emit(relax_operator(first, second))

    return lower


def _enter_all() -> None:
    for short, (long, relax_operator) in _COMPARISONS.items():
        packet = getattr(aten, short)
        keys = [getattr(torch, short), getattr(operator, short), short, f"__{short}__"]
        if long != "equal":
            # torch.equal compares whole tensors and returns a Python bool.
            keys += [getattr(torch, long), long]
        exact(*keys, packet.Tensor, packet.Scalar, name=short)(_comparison(relax_operator))
    for name, relax_operator in _LOGIC.items():
        keys = [getattr(torch, name), name, getattr(aten, name).default]
        exact(*keys, name=name)(_logic(relax_operator))
    for name, (plain, in_place, on_integers, on_bools) in _BITWISE.items():
        packet = getattr(aten, f"bitwise_{name}")
        dunder = getattr(aten, f"__{name}__")
        keys = [getattr(torch, f"bitwise_{name}"), f"bitwise_{name}", f"__{name}__"]
        keys += [plain, in_place, packet.Tensor, packet.Scalar, dunder.Tensor, dunder.Scalar]
        exact(*keys, name=f"bitwise_{name}")(_bitwise(on_integers, on_bools))


_enter_all()


@exact(torch.isin, aten.isin.Tensor_Tensor)
def isin(
    b: NodeBuilder,
    elements: Value,
    test_elements: Value,
    *,
    assume_unique: bool = False,
    invert: bool = False,
) -> Value:
    if not is_tensor(elements) or not is_tensor(test_elements):
        raise Refused(_("an argument is a number"))
    first, second = to_common_dtype(b, elements, test_elements)
    column = b.emit(op.expand_dims(first, rank_of(first)))
    same = b.emit(op.equal(column, b.emit(op.reshape(second, (-1,)))))
    found = b.emit(op.max(b.emit(op.astype(same, "int8")), -1))
    wanted = scalar(0 if invert else 1, "int8")
    return b.emit(op.equal(found, wanted))


@exact(torch.where, aten.where.self, aten.where.ScalarOther, aten.where.ScalarSelf)
def where(b: NodeBuilder, condition: Value, input: Value = None, other: Value = None) -> Value:
    if input is None or other is None:
        raise Refused(_("with one argument its shape depends on the data"))
    first, second = to_common_dtype(b, input, other)
    return b.emit(op.where(truth(b, condition), first, second))


@exact("where")
def where_method(b: NodeBuilder, input: Value, condition: Value, other: Value) -> Value:
    return where(b, condition, input, other)


@exact(
    torch.masked_fill,
    "masked_fill",
    "masked_fill_",
    aten.masked_fill.Scalar,
    aten.masked_fill.Tensor,
)
def masked_fill(b: NodeBuilder, input: Value, mask: Value, value: Value) -> Value:
    return b.emit(op.where(truth(b, mask), cast(b, value, dtype_of(input)), input))


_INSERTED = 64
"""Largest number of first elements that are found by inserting each into a list."""


_SORTED = ("float32", "float64", "int32", "int64")
"""Dtypes that TVM sorts."""


@rule(torch.topk, "topk", aten.topk.default)
def topk(
    b: NodeBuilder, input: Value, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> Value:
    axis = axis_of(dim, rank_of(input))
    if rank_of(input) and 0 < k <= _INSERTED and dtype_of(input) != "bool":
        found = b.emit_te(te_topk, input, axis, k, largest, primfunc_name_hint="topk")
        return tuple(b.emit(found[index]) for index in range(2))
    length = shape_of(input)[axis] if rank_of(input) else 0
    if dtype_of(input) in _SORTED and isinstance(length, int) and 0 < k < length:
        return _first(b, input, axis, k, largest)
    values, order = sort(b, input, axis, largest)
    if not rank_of(input):
        return values, order
    first = ([axis], [0], [k])
    return tuple(b.emit(op.strided_slice(each, *first)) for each in (values, order))


def _first(b: NodeBuilder, input: Value, axis: int, k: int, largest: bool) -> tuple[Value, Value]:
    """Return the first `k` elements along an axis in order, and their places.

    Only these are sorted, after the last of them was found.
    """
    rank = shape_of(input)[axis] - k + 1 if largest else k
    found = b.emit_te(te_kth, input, axis, rank, primfunc_name_hint="kth")
    keys, state = b.emit(found[2]), b.emit(found[3])
    ahead = b.emit_te(te_ahead, keys, state, k, largest, primfunc_name_hint="ahead")
    places = b.emit(ahead[0])
    kept = b.emit(op.gather_elements(keys, places, -1))
    order = b.emit(op.argsort(kept, -1, largest, "int64"))
    places = b.emit(op.gather_elements(places, order, -1))
    if axis != rank_of(input) - 1:
        rest = list(range(rank_of(input) - 1))
        places = b.emit(op.permute_dims(places, [*rest[:axis], len(rest), *rest[axis:]]))
    return b.emit(op.gather_elements(input, places, axis)), places


@rule(torch.argsort, "argsort", aten.argsort.default)
def argsort(
    b: NodeBuilder, input: Value, dim: int = -1, descending: bool = False, stable: bool = False
) -> Value:
    if not rank_of(input):
        return b.emit(op.zeros((), "int64"))
    if is_empty(shape_of(input)):
        return b.emit(op.zeros(shape_of(input), "int64"))
    axis = axis_of(dim, rank_of(input))
    dtype = dtype_of(input)
    if dtype not in _SORTED:
        input = b.emit(op.astype(input, "float32" if is_float(dtype) else "int32"))
    if not is_float(dtype):
        return b.emit(op.argsort(input, axis, descending, "int64"))
    # NaN has no order in TVM, and is the largest in torch.
    key = b.emit_te(te_sort_key, input, primfunc_name_hint="sort_key")
    return b.emit(op.argsort(key, axis, descending, "int64"))


@rule(torch.sort, "sort", aten.sort.default, aten.sort.stable)
def sort(
    b: NodeBuilder, input: Value, dim: int = -1, descending: bool = False, stable: bool = False
) -> Value:
    order = argsort(b, input, dim, descending)
    if not rank_of(input) or is_empty(shape_of(input)):
        return input, order
    return b.emit(op.gather_elements(input, order, axis_of(dim, rank_of(input)))), order


def _kth(b: NodeBuilder, input: Value, axis: int, rank: int | None, keepdim: bool) -> list[Value]:
    """Return the elements of a rank along an axis, and their places; see `te_kth`."""
    dtype = dtype_of(input)
    sorted_as = dtype if dtype in _SORTED else "int32"
    found = b.emit_te(te_kth, cast(b, input, sorted_as), axis, rank, primfunc_name_hint="kth")
    value, place = cast(b, b.emit(found[0]), dtype), b.emit(found[1])
    return [b.emit(op.expand_dims(each, axis)) if keepdim else each for each in (value, place)]


@rule(torch.median, "median", aten.median.default, aten.median.dim)
def median(b: NodeBuilder, input: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    whole = dim is None or not rank_of(input)
    value = b.emit(op.reshape(input, (-1,))) if whole else input
    if is_empty(shape_of(value)):
        raise Refused(_("it has no elements"))
    found = _kth(b, value, axis_of(dim or 0, rank_of(value)), None, keepdim and not whole)
    return found[0] if dim is None else tuple(found)


@rule(torch.kthvalue, "kthvalue", aten.kthvalue.default)
def kthvalue(b: NodeBuilder, input: Value, k: int, dim: int = -1, keepdim: bool = False) -> Value:
    axis = axis_of(dim, rank_of(input))
    if not rank_of(input):
        return sort(b, input, axis)
    return tuple(_kth(b, input, axis, k, keepdim))


@rule(torch.quantile, "quantile", aten.quantile.scalar)
def quantile(
    b: NodeBuilder,
    input: Value,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Value:
    if is_tensor(q) or interpolation != "linear" or (dim is None and keepdim):
        raise Refused(
            _("its q is a tensor, its interpolation is not linear, or keepdim is given without dim")
        )
    value = b.emit(op.reshape(input, (-1,))) if dim is None else input
    axis = axis_of(0 if dim is None else dim, rank_of(value))
    # As in torch, in the dtype of the values.
    place = torch.tensor(q, dtype=getattr(torch, dtype_of(value))) * (shape_of(value)[axis] - 1)
    below, above = math.floor(place), math.ceil(place)
    ordered, _other = sort(b, value, axis)
    low, high = (
        b.emit(op.strided_slice(ordered, [axis], [each], [each + 1])) for each in (below, above)
    )
    found = add(b, low, mul(b, sub(b, high, low), float(place) - below))
    missing = b.emit(op.max(cast(b, is_nan(b, value), "int32"), axis, keepdims=True))
    found = b.emit(op.where(truth(b, missing), scalar(math.nan, dtype_of(value)), found))
    return found if keepdim else b.emit(op.squeeze(found, [axis]))


@rule(torch.histc, "histc", aten.histc.default)
def histc(b: NodeBuilder, input: Value, bins: int = 100, min: float = 0, max: float = 0) -> Value:
    if not min < max:
        raise Refused(_("its range depends on the data"))
    values = reshape_to(b, input, [-1])
    dtype = dtype_of(values)
    from_start = b.emit(
        op.multiply(b.emit(op.subtract(values, scalar(min, dtype))), scalar(bins, dtype))
    )
    place = b.emit(op.floor(b.emit(op.divide(from_start, scalar(max - min, dtype)))))
    last = b.emit(op.equal(values, scalar(max, dtype)))
    place = b.emit(op.where(last, scalar(bins - 1, dtype), place))
    own = b.emit(op.expand_dims(b.constant(torch.arange(bins, dtype=torch_dtype(dtype))), 1))
    found = b.emit(op.equal(own, b.emit(op.expand_dims(place, 0))))
    return b.emit(op.sum(b.emit(op.astype(found, dtype)), 1))


@rule(torch.searchsorted, aten.searchsorted.Tensor)
def searchsorted(
    b: NodeBuilder,
    sorted_sequence: Value,
    input: Value,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Value = None,
) -> Value:
    if not is_tensor(input) or sorter is not None:
        raise Refused(_("its input is a number, or it has a sorter"))
    sequence, values = to_common_dtype(b, sorted_sequence, input)
    dtype = "int32" if out_int32 else "int64"
    if is_empty(shape_of(sequence)) or is_empty(shape_of(values)):
        return b.emit(op.zeros(shape_of(values), dtype))
    after = right or side == "right"
    found = b.emit_te(te_searchsorted, sequence, values, after, primfunc_name_hint="searchsorted")
    return cast(b, b.emit(found[0]), dtype)


@rule(torch.bucketize, aten.bucketize.Tensor)
def bucketize(
    b: NodeBuilder,
    input: Value,
    boundaries: Value,
    *,
    out_int32: bool = False,
    right: bool = False,
) -> Value:
    return searchsorted(b, boundaries, input, out_int32=out_int32, right=right)
