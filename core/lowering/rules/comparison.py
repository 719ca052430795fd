"""Comparisons, logic, and selection."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder, cast, differs, to_common_dtype
from lowerscope.core.lowering.rule_table import Refused, exact
from lowerscope.core.lowering.rules.elementwise import truth
from lowerscope.core.lowering.values import Value, dtype_of, is_tensor, rank_of, scalar

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
        raise Refused("it is given a number")
    first, second = to_common_dtype(b, elements, test_elements)
    column = b.emit(op.expand_dims(first, rank_of(first)))
    same = b.emit(op.equal(column, b.emit(op.reshape(second, (-1,)))))
    found = b.emit(op.max(b.emit(op.astype(same, "int8")), -1))
    wanted = scalar(0 if invert else 1, "int8")
    return b.emit(op.equal(found, wanted))


@exact(torch.where, aten.where.self, aten.where.ScalarOther, aten.where.ScalarSelf)
def where(b: NodeBuilder, condition: Value, input: Value = None, other: Value = None) -> Value:
    if input is None or other is None:
        raise Refused("with one argument its shape depends on the data")
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
