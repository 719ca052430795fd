"""Arithmetic of bfloat16 in float32, where a function binds values.

TVM's build computes in float32 itself, but skips the values that a ``Let`` binds, and duplicates
each ``Let`` whose value it rounds.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import tirx


def with_wide_bfloat16(module: tvm.IRModule) -> tvm.IRModule:
    """Return `module` with bfloat16 in float32 in the functions that bind values.

    So are their own buffers, as in TVM's build: only arguments are read and rounded as bfloat16.
    """
    # Exported programs hold the text of this function alone.
    import tvm_ffi

    def is_narrow(value: Any) -> bool:
        return isinstance(value.ty, tvm.ir.PrimType) and str(value.ty.dtype) == "bfloat16"

    def takes_bits(call: Any) -> bool:
        return getattr(call.op, "name", "") == "tirx.reinterpret"

    def found(function: Any, kind: Any) -> list[Any]:
        values: list[Any] = []
        tvm_ffi.structural_walk(function.body, (kind, values.append))
        return values

    def binds_narrow(function: Any) -> bool:
        if not found(function, tirx.Let):
            return False
        calls = [each for each in found(function, tvm.ir.Call) if takes_bits(each)]
        is_done = any(is_narrow(value) for each in calls for value in (each, *each.args))
        return not is_done and any(map(is_narrow, found(function, tvm.ir.Expr)))

    def number(value: int) -> Any:
        return tirx.const(value, "uint32")

    def rounded(value: Any) -> Any:
        """Return the nearest bfloat16, of two the even one."""
        bits = tirx.Var("bits", "uint32")
        # Each NaN of an operation, or of a bfloat16, stays one.
        up = bits + ((bits >> number(16)) & number(1)) + number(0x7FFF)
        made = tirx.reinterpret("bfloat16", tirx.Cast("uint16", up >> number(16)))
        return tirx.Let(bits, tirx.reinterpret("uint32", value), made)

    def variable(var: Any) -> Any:
        if is_narrow(var):
            wide.setdefault(var, tirx.Var(var.name, "float32"))
        return wide.get(var, var)

    def loaded(load: Any) -> Any:
        load = tirx.BufferLoad(load.source, load.indices) if is_narrow(load) else load
        if not is_narrow(load):
            return load
        bits = tirx.Cast("uint32", tirx.reinterpret("uint16", load))
        return tirx.reinterpret("float32", bits << number(16))

    def cast(node: Any) -> Any:
        dtype = "float32" if is_narrow(node) else str(node.ty.dtype)
        return node.value if str(node.value.ty.dtype) == dtype else tirx.Cast(dtype, node.value)

    def computed(node: Any) -> Any:
        if not is_narrow(node):
            return node
        if isinstance(node, tirx.FloatImm):
            return tirx.const(node.value, "float32")
        if isinstance(node, tirx.Select):
            return tirx.Select(node.condition, node.true_value, node.false_value)
        if isinstance(node, tirx.Let):
            return tirx.Let(node.var, node.value, node.body)
        if isinstance(node, tvm.ir.Call):
            kind = tvm.ir.PrimType("float32")
            return tvm.ir.Call(node.op, node.args, node.attrs, node.ty_args, node.span, kind)
        return type(node)(node.a, node.b)

    def stored(store: Any) -> Any:
        is_given = str(store.buffer.dtype) == "bfloat16"
        value = rounded(store.value) if is_given else store.value
        return tirx.BufferStore(store.buffer, value, store.indices)

    computing = (
        *(tirx.Add, tirx.Sub, tirx.Mul, tirx.Div, tirx.Mod, tirx.Min, tirx.Max),
        *(tirx.FloatImm, tirx.Select, tirx.Let, tvm.ir.Call),
    )
    changed = {}
    for gvar, function in module.functions_items():
        if isinstance(function, tirx.PrimFunc) and binds_narrow(function):
            wide: dict[Any, Any] = {}
            blocks = found(function, tvm.s_tir.SBlock)
            for own in (buffer for block in blocks for buffer in block.alloc_buffers):
                if str(own.dtype) == "bfloat16":
                    name, scope = str(own.name), str(own.scope())
                    wide[own] = tirx.decl_buffer(own.shape, "float32", name, scope=scope)
            body = tvm_ffi.structural_map(
                function.body,
                [
                    (tirx.Var, variable),
                    (tvm.ir.expr.TensorLoad, loaded),
                    (tirx.Cast, cast),
                    (computing, computed),
                    (tirx.BufferStore, stored),
                ],
            )
            changed[gvar] = function.with_body(body)
    if not changed:
        return module
    return tvm.IRModule({**dict(module.functions_items()), **changed}, attrs=module.attrs)
