"""Texts in the boxes of a Relax function, and beside the edges between them."""

from __future__ import annotations

import re
from typing import Any

from tvm import ir, relax, tirx

from lowerscope.core.relax_bindings import callee_of
from lowerscope.core.rendering.shapes import tensor_label

_INT_LITERAL = re.compile(r"T\.int(?:32|64)\((-?\d+)\)")


def constant_text(constant: Any) -> str:
    """Return the shape of a constant, or the value of a scalar."""
    shape = type_label(constant.ty, with_dtype=False)
    if shape:
        return shape
    number = constant.value.numpy()
    return f"{number.item():g}" if number.dtype.kind == "f" else str(number.item())


def type_label(value_type: Any, with_dtype: bool = True) -> str:
    """Return ``1×784 f32`` for the type of a tensor with a known rank; empty for other types."""
    return tensor_label(shape_of(value_type), dtype_of(value_type) if with_dtype else "")


def shape_of(value_type: Any) -> tuple[int | str, ...] | None:
    """Return the shape of a tensor with a known rank; ``None`` for other types."""
    shape = getattr(value_type, "shape", None)
    if not isinstance(value_type, relax.TensorType) or not isinstance(shape, relax.ShapeExpr):
        return None
    return tuple(_extent(extent) for extent in shape.values)


def _extent(extent: Any) -> int | str:
    if isinstance(extent, tirx.IntImm):
        return int(extent)
    return _INT_LITERAL.sub(r"\1", str(extent)).replace(" ", "")


def dtype_of(value_type: Any) -> str:
    return str(value_type.dtype) if isinstance(value_type, relax.TensorType) else ""


def call_text(binding: Any, value: Any) -> str:
    """Describe a binding's value: ``call_tir dense``, ``R.nn.relu``, ``tup[0]``."""
    if isinstance(binding, relax.MatchCast):
        return "match_cast"
    if isinstance(value, relax.If):
        return f"if {getattr(value.cond, 'name', '…')}"
    if isinstance(value, relax.TupleGetItem):
        return f"{getattr(value.tuple_value, 'name', 'tuple')}[{value.index}]"
    if isinstance(value, relax.Call):
        callee = callee_of(value)
        called = getattr(callee, "name_hint", None) or getattr(callee, "global_symbol", "")
        if not isinstance(value.op, ir.Op):
            return f"call {called or getattr(value.op, 'name', '')}".rstrip()
        operator = str(value.op.name).removeprefix("relax.")
        return f"{operator} {called}" if called else f"R.{operator}"
    if isinstance(value, relax.Var):
        return f"= {value.name}"
    return type(value).__name__.lower()


def used_in(value: Any) -> tuple[list[Any], list[Any]]:
    """Return the variables and the constants in an expression, each once, in order."""
    variables: dict[Any, None] = {}
    constants: dict[Any, None] = {}

    def visit(expression: Any) -> None:
        if isinstance(expression, relax.Var):
            variables[expression] = None
        elif isinstance(expression, ir.GenericConst) and isinstance(
            expression.ty, relax.TensorType
        ):
            # Dtypes and texts, as in the calls that allocate memory, are constants as well.
            constants[expression] = None

    if value is not None:
        relax.analysis.post_order_visit(value, visit)
    return list(variables), list(constants)
