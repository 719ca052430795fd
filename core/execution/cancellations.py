"""Differences and comparisons of floats, as TVM's simplifier would take them to be of integers.

TVM's build makes 0 of ``x - x``, which is NaN where x is infinite, y of ``(x + y) - x``, which
loses what rounding leaves over, and true of ``x == x``, which is false for NaN. It does so where a
fused function has both sides in one expression. torch computes them as they are written.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import tirx


def with_cancellations(module: tvm.IRModule) -> tvm.IRModule:
    """Return `module` so that the simplifier does not see that two sides have a float in common.

    One side is reinterpreted as an integer and back, which costs no instruction.
    """
    # Exported programs hold the text of this function alone.
    import tvm_ffi

    def is_float(value: Any) -> bool:
        # A buffer is a variable as well.
        names = ("float16", "float32", "float64", "bfloat16")
        return isinstance(value.ty, tvm.ir.PrimType) and str(value.ty.dtype) in names

    def floats(value: Any) -> list[Any]:
        found: list[Any] = []
        tvm_ffi.structural_walk(value, ((tvm.ir.expr.TensorLoad, tirx.Var), found.append))
        return [each for each in found if is_float(each)]

    def hidden(value: Any) -> Any:
        dtype = str(value.ty.dtype)
        wide = "float32" if dtype == "bfloat16" else dtype
        bits = wide.replace("float", "int")
        return tirx.reinterpret(wide, tirx.reinterpret(bits, value.astype(wide))).astype(dtype)

    def is_hidden(value: Any) -> bool:
        op = getattr(getattr(value, "value", value), "op", None)
        return getattr(op, "name", "") == "tirx.reinterpret"

    def apart(node: Any) -> Any:
        others = floats(node.b) if is_float(node.a) and not is_hidden(node.b) else []
        if others and any(
            tvm_ffi.structural_equal(one, other) for one in floats(node.a) for other in others
        ):
            return type(node)(node.a, hidden(node.b))
        return node

    kinds = (tirx.Add, tirx.Sub, tirx.EQ, tirx.NE, tirx.LE, tirx.GE)
    changed = {}
    for variable, function in module.functions_items():
        if isinstance(function, tirx.PrimFunc):
            body = tvm_ffi.structural_map(function.body, (kinds, apart))
            if not body.same_as(function.body):
                changed[variable] = function.with_body(body)
    if not changed:
        return module
    return tvm.IRModule({**dict(module.functions_items()), **changed}, attrs=module.attrs)
