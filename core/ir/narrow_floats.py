"""Arithmetic of bfloat16 in float32, where a function binds values.

TVM's build computes in float32 itself, but skips the values that a ``Let`` binds, and duplicates
each ``Let`` whose value it rounds. It fails where a bfloat16 is the same in all lanes of a vector.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import tirx


def with_wide_bfloat16(module: tvm.IRModule) -> tvm.IRModule:
    """Return `module` with bfloat16 in float32 in the functions that bind values.

    So are their own buffers, as in TVM's build: only arguments are read and rounded as bfloat16.
    Those whose bits an instruction reads keep these, as integers. Loops with the same
    bfloat16 in all lanes have no vectors: LLVM makes them.
    """
    # Exported programs hold the text of this function alone.

    import tvm_ffi

    def is_narrow(value: Any) -> bool:
        return isinstance(value.ty, tvm.ir.PrimType) and str(value.ty.dtype) == "bfloat16"

    def takes_bits(call: Any) -> bool:
        return getattr(call.op, "name", "") == "tirx.reinterpret"

    def gives_pairs(call: Any) -> bool:
        """Return whether a call takes pairs of bfloat16 as integers of 32 bits."""
        if not takes_bits(call):
            return False
        narrow, wide = str(call.args[0].ty.dtype), str(call.ty.dtype)
        return narrow.startswith("bfloat16x") and wide.startswith("int32")

    def own_buffers(function: Any) -> list[Any]:
        blocks = found(function, tvm.s_tir.SBlock)
        own = (buffer for block in blocks for buffer in block.alloc_buffers)
        return [each for each in own if str(each.dtype) == "bfloat16"]

    def found(outer: Any, kind: Any) -> list[Any]:
        return found_in(outer.body, kind)

    def found_in(part: Any, kind: Any) -> list[Any]:
        values: list[Any] = []
        tvm_ffi.structural_walk(part, (kind, values.append))
        return values

    def without_equal_lanes(loop: Any) -> Any:
        if loop.kind != tirx.ForKind.VECTORIZED:
            return loop
        place = {
            axis.var: value
            for realized in found(loop, tvm.s_tir.SBlockRealize)
            for axis, value in zip(realized.block.iter_vars, realized.iter_values, strict=True)
        }
        analyzer = tvm.sym.Analyzer()
        analyzer.bind(loop.loop_var, tvm.ir.Range.from_min_extent(loop.min, loop.extent))

        def is_equal(value: Any) -> bool:
            own = tvm_ffi.structural_map(value, [(tirx.Var, lambda var: place.get(var, var))])
            variables = found_in(analyzer.simplify(own), tirx.Var)
            return not any(each.same_as(loop.loop_var) for each in variables)

        stores = (each.value for each in found(loop, tirx.BufferStore) if is_narrow(each.value))
        if not any(is_equal(each) for value in stores for each in choices(value)):
            return loop
        serial = tirx.ForKind.SERIAL
        return tirx.For(loop.loop_var, loop.min, loop.extent, serial, loop.body)

    def choices(value: Any) -> list[Any]:
        """Return the values that one is chosen from, but for constants."""
        if operator_of(value) == "tirx.if_then_else":
            return [each for part in value.args[1:] for each in choices(part)]
        if isinstance(value, tirx.Select):
            return [*choices(value.true_value), *choices(value.false_value)]
        return [] if isinstance(value, tirx.FloatImm) else [value]

    def binds_narrow(function: Any) -> bool:
        has_pairs = any(map(gives_pairs, found(function, tvm.ir.Call)))
        if not found(function, tirx.Let) and not (has_pairs and own_buffers(function)):
            return False
        calls = [each for each in found(function, tvm.ir.Call) if takes_bits(each)]
        is_done = any(is_narrow(value) for each in calls for value in (each, *each.args))
        return not is_done and any(map(is_narrow, found(function, tvm.ir.Expr)))

    def number(value: int) -> Any:
        return tirx.const(value, "uint32")

    def operator_of(value: Any) -> str:
        return str(getattr(getattr(value, "op", None), "name", ""))

    def bits_of(value: Any) -> Any:
        """Return the bits of what is a bfloat16 already, or a choice of such; ``None`` if not."""
        if isinstance(value, tirx.FloatImm) and str(value.value) == "0.0":
            return tirx.const(0, "uint16")
        if operator_of(value) == "tirx.if_then_else":
            condition, *given = value.args
            parts = [bits_of(each) for each in given]
            missing = any(each is None for each in parts)
            return None if missing else tirx.if_then_else(condition, *parts)
        shifted: Any = value.args[0] if operator_of(value) == "tirx.reinterpret" else None
        if operator_of(shifted) != "tirx.shift_left" or not isinstance(shifted.args[0], tirx.Cast):
            return None
        bits, places = shifted.args[0].value, shifted.args[1]
        is_whole = isinstance(places, tirx.IntImm) and int(places) == 16
        return bits if is_whole and str(bits.ty.dtype) == "uint16" else None

    def rounded(value: Any) -> Any:
        """Return the nearest bfloat16, of two the even one."""
        kept = bits_of(value)
        if kept is not None:
            return tirx.reinterpret("bfloat16", kept)
        bits = tirx.Var("bits", "uint32")
        # Each NaN of an operation, or of a bfloat16, stays one.
        up = bits + ((bits >> number(16)) & number(1)) + number(0x7FFF)
        made = tirx.reinterpret("bfloat16", tirx.Cast("uint16", up >> number(16)))
        return tirx.Let(bits, tirx.reinterpret("uint32", value), made)

    def pair(call: Any) -> Any:
        if not gives_pairs(call):
            return call
        (load,) = call.args
        bits = as_integers(load.source)
        return tirx.reinterpret(call.ty.dtype, tirx.BufferLoad(bits, load.indices))

    def as_integers(buffer: Any) -> Any:
        made = tirx.decl_buffer(
            buffer.shape,
            "uint16",
            str(buffer.name),
            elem_offset=buffer.elem_offset,
            scope=str(buffer.scope()),
            offset_factor=int(buffer.offset_factor),
        )
        return integers.setdefault(buffer, made)

    def as_given(load: Any) -> Any:
        buffer = next((own for own, bits in arguments.items() if bits.same_as(load.source)), None)
        return load if buffer is None else tirx.BufferLoad(buffer, load.indices)

    def variable(var: Any) -> Any:
        if is_narrow(var):
            wide.setdefault(var, tirx.Var(var.name, "float32"))
        return wide.get(var, var)

    def loaded(load: Any) -> Any:
        if not is_narrow(load):
            return load
        load = tirx.BufferLoad(load.source, load.indices)
        if str(load.ty.dtype) == "float32":
            return load
        given = load if str(load.ty.dtype) == "uint16" else tirx.reinterpret("uint16", load)
        return tirx.reinterpret("float32", tirx.Cast("uint32", given) << number(16))

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
        is_bits = any(store.buffer.same_as(each) for each in integers.values())
        value = rounded(store.value) if is_given or is_bits else store.value
        value = tirx.reinterpret("uint16", value) if is_bits else value
        return tirx.BufferStore(store.buffer, value, store.indices)

    computing = (
        *(tirx.Add, tirx.Sub, tirx.Mul, tirx.Div, tirx.Mod, tirx.Min, tirx.Max),
        *(tirx.FloatImm, tirx.Select, tirx.Let, tvm.ir.Call),
    )
    changed = {}
    for gvar, function in module.functions_items():
        if not isinstance(function, tirx.PrimFunc):
            continue
        body = tvm_ffi.structural_map(function.body, [(tirx.For, without_equal_lanes)])
        if not body.same_as(function.body):
            changed[gvar] = function = function.with_body(body)
        if binds_narrow(function):
            wide: dict[Any, Any] = {}
            integers: dict[Any, Any] = {}
            body = tvm_ffi.structural_map(function.body, [(tvm.ir.Call, pair)])
            owned = own_buffers(function)
            parts = [
                each
                for block in found(function, tvm.s_tir.SBlock)
                for each in block.match_buffers
                if each.source.source in owned
            ]
            for part in parts:
                wide[part.buffer] = as_integers(part.buffer)
                wide[part.source.source] = as_integers(part.source.source)
            for own in owned:
                name, scope = str(own.name), str(own.scope())
                float32 = tirx.decl_buffer(own.shape, "float32", name, scope=scope)
                wide.setdefault(own, float32)
            body = tvm_ffi.structural_map(
                body,
                [
                    (tirx.Var, variable),
                    (tvm.ir.expr.TensorLoad, loaded),
                    (tirx.Cast, cast),
                    (computing, computed),
                    (tirx.BufferStore, stored),
                ],
            )
            arguments = {each: bits for each, bits in integers.items() if each not in wide}
            body = tvm_ffi.structural_map(body, [(tvm.ir.expr.TensorLoad, as_given)])
            changed[gvar] = function.with_body(body)
    if not changed:
        return module
    return tvm.IRModule({**dict(module.functions_items()), **changed}, attrs=module.attrs)
