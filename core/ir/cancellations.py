"""Arithmetic and comparisons of floats, kept from TVM's simplifier, which has rules for integers.

TVM's build makes 0 of ``x - x`` and ``x * 0``, which are NaN where x is infinite; y of
``(x + y) - x`` and x of ``(x + 1) - 1``, which lose what rounding leaves over; true of ``x == x``
and of ``x < y or x >= y``, which are false for NaN; and ``y <= x`` of ``not x < y``, which is true
for NaN. LLVM is given a ``!=`` that is false for NaN. Integers of tensors wrap around in torch,
where TVM concludes that ``x + 1 > x``. torch computes them all as they are written.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import tirx


def with_cancellations(module: tvm.IRModule) -> tvm.IRModule:
    """Return `module` so that the simplifier finds nothing to simplify in arithmetic of floats.

    A side is reinterpreted as an integer and back, and what a comparison gives is cast to a number
    and back: LLVM makes no instruction of either.
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

    def share(node: Any) -> bool:
        others = floats(node.b)
        return any(
            tvm_ffi.structural_equal(one, other) for one in floats(node.a) for other in others
        )

    def is_constant(value: Any) -> bool:
        return isinstance(value, tirx.FloatImm)

    def is_zero(value: Any) -> bool:
        return is_constant(value) and float(value.value) == 0

    def adds_constant(value: Any) -> bool:
        return isinstance(value, sums) and (is_constant(value.a) or is_constant(value.b))

    def loads(value: Any) -> bool:
        found: list[Any] = []
        tvm_ffi.structural_walk(value, (tvm.ir.expr.TensorLoad, found.append))
        return bool(found)

    def is_widened(node: Any) -> bool:
        """Return whether both sides of a node have been cast from numbers of half of its bits."""
        bits = int(tvm.DataType(str(node.ty.dtype)).bits)
        return all(
            isinstance(each, tirx.Cast)
            and 2 * int(tvm.DataType(str(each.value.ty.dtype)).bits) <= bits
            for each in (node.a, node.b)
        )

    def wrapping(node: Any) -> Any:
        """Return a sum, difference or product of integers that wraps around, as torch's does.

        Neither signed nor unsigned numbers wrap in what TVM gives LLVM. Those of twice as many bits
        never have to, and LLVM makes one instruction of these and the cast.
        """
        dtype = str(node.ty.dtype)
        wide = {"int32": "int64", "int64": "int128"}.get(dtype)
        if isinstance(node, tirx.Div) or wide is None or is_widened(node) or not loads(node):
            return node
        a, b = (tirx.Cast(wide, each) for each in (node.a, node.b))
        return tirx.Cast(dtype, type(node)(a, b))

    def plain(value: Any) -> Any:
        """Return what `wrapping` has made one of."""
        inner = value.value
        is_made = isinstance(inner, (*sums, tirx.Mul)) and is_widened(inner)
        if not is_made or str(value.ty.dtype) != str(inner.a.value.ty.dtype):
            return value
        return type(inner)(inner.a.value, inner.b.value)

    def indexed(node: Any) -> Any:
        """Return a load or a store whose indices do not wrap: they are within bounds."""
        indices = [tvm_ffi.structural_map(each, (tirx.Cast, plain)) for each in node.indices]
        if all(new.same_as(old) for new, old in zip(indices, node.indices, strict=True)):
            return node
        if isinstance(node, tirx.BufferStore):
            return tirx.BufferStore(node.buffer, node.value, indices)
        return tirx.BufferLoad(node.source, indices)

    def calculated(node: Any) -> Any:
        """Return a sum, difference, product or quotient with a side hidden where it matters."""
        if not is_float(node):
            return wrapping(node)
        if is_hidden(node.a) or is_hidden(node.b):
            return node
        if isinstance(node, sums):
            first = is_constant(node.a) and (is_zero(node.a) or adds_constant(node.b))
            second = is_constant(node.b) and (is_zero(node.b) or adds_constant(node.a))
            second = second or share(node)
        else:
            first = is_zero(node.a)
            second = is_zero(node.b) and isinstance(node, tirx.Mul)
        if not first and not second:
            return node
        return type(node)(hidden(node.a) if first else node.a, hidden(node.b) if second else node.b)

    def compared(node: Any) -> Any:
        """Return a comparison as a number that is not 0, of which nothing is concluded."""
        if not is_float(node.a) or is_hidden(node.b):
            return node
        differs = isinstance(node, tirx.NE)
        made = (tirx.EQ if differs else type(node))(node.a, hidden(node.b))
        number = tirx.Cast("int8", made)
        return tirx.Cast("bool", number ^ tirx.const(1, "int8") if differs else number)

    sums = (tirx.Add, tirx.Sub)
    arithmetic = (*sums, tirx.Mul, tirx.Div)
    comparisons = (tirx.EQ, tirx.NE, tirx.LT, tirx.LE, tirx.GT, tirx.GE)
    indexing = (tvm.ir.expr.TensorLoad, tirx.BufferStore)
    changed = {}
    for variable, function in module.functions_items():
        if isinstance(function, tirx.PrimFunc):
            body = tvm_ffi.structural_map(
                function.body,
                ((arithmetic, calculated), (comparisons, compared), (indexing, indexed)),
            )
            if not body.same_as(function.body):
                changed[variable] = function.with_body(body)
    if not changed:
        return module
    return tvm.IRModule({**dict(module.functions_items()), **changed}, attrs=module.attrs)
