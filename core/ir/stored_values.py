"""Values that are bound within one another, kept in memory of their own.

TVM's build puts the value of each bound variable in its place in the values that are bound after
it, and takes minutes where there are many, as in the arc tangent of a logarithm. What is loaded has
no value to put in its place; LLVM keeps it in a register all the same.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import tirx


def with_stored_values(module: tvm.IRModule) -> tvm.IRModule:
    """Return `module` with local buffers for values of which many are bound in one expression.

    Those under a condition are computed without it: what they read stays under the condition.
    """
    # Exported programs hold the text of this function alone.
    import tvm_ffi

    many = 4

    def found(part: Any, kind: Any) -> list[Any]:
        values: list[Any] = []
        tvm_ffi.structural_walk(part, (kind, values.append))
        return values

    def is_choice(call: Any) -> bool:
        return str(getattr(call.op, "name", "")).endswith(".if_then_else")

    def stores_of(store: Any, lane: Any, lanes: Any, buffers: list[Any]) -> Any:
        """Return what stores the values first that a store binds; their buffers are added."""
        loads: dict[Any, Any] = {}
        known: dict[Any, list[Any]] = {}
        stores: list[Any] = []
        conditions: list[Any] = []

        def stored(value: Any) -> Any:
            while isinstance(value, tirx.Let):
                made = [value.value, *conditions]
                before = known.get(value.var, [])
                is_known = len(made) == len(before) and all(
                    map(tvm_ffi.structural_equal, made, before)
                )
                if not is_known:
                    bound = guarded(unbound(value.value))
                    kind, name = value.var.ty.dtype, value.var.name
                    # Of the scope that TVM keeps on the stack.
                    buffers.append(tirx.decl_buffer([lanes], kind, name, scope="global"))
                    loads[value.var] = tirx.BufferLoad(buffers[-1], [lane])
                    stores.append(tirx.BufferStore(buffers[-1], bound, [lane]))
                    known[value.var] = made
                value = value.body
            if isinstance(value, tvm.ir.Call):
                return chosen(value)
            return loaded(value) if isinstance(value, tirx.Var) else value

        def chosen(call: Any) -> Any:
            if not is_choice(call) or not found(call, tirx.Let):
                return call
            condition, *given = call.args
            condition = unbound(condition)
            made = []
            for holds, value in zip((condition, tirx.Not(condition)), given, strict=True):
                conditions.append(holds)
                made.append(unbound(value))
                conditions.pop()
            return tirx.if_then_else(condition, *made)

        def guarded(value: Any) -> Any:
            if not conditions:
                return value
            holds = conditions[0] if len(conditions) == 1 else tirx.all(*conditions)

            def read(load: Any) -> Any:
                kind = str(load.ty.dtype)
                if kind == "bfloat16" or any(load.source.same_as(each) for each in buffers):
                    return load
                # Of integers 1, by which may be divided.
                other = tirx.const(0 if "float" in kind or kind == "bool" else 1, kind)
                return tirx.if_then_else(holds, load, other)

            def bits(call: Any) -> Any:
                # TVM has no vectors of chosen bfloat16: of their bits it has.
                is_read = len(call.args) == 1 and isinstance(call.args[0], tvm.ir.expr.TensorLoad)
                if not is_read or str(call.args[0].ty.dtype) != "bfloat16":
                    return call
                return tirx.if_then_else(holds, call, tirx.const(0, call.ty.dtype))

            pairs = [(tvm.ir.expr.TensorLoad, read), (tvm.ir.Call, bits)]
            return tvm_ffi.structural_map(value, pairs)

        def loaded(variable: Any) -> Any:
            return loads.get(variable, variable)

        def unbound(value: Any) -> Any:
            pairs = [(tirx.Let, stored), (tirx.Var, loaded), (tvm.ir.Call, chosen)]
            return tvm_ffi.structural_map(value, pairs, order="pre")

        value = unbound(store.value)
        return tirx.SeqStmt([*stores, tirx.BufferStore(store.buffer, value, store.indices)])

    def changed_block(block: Any, body: Any, buffers: list[Any]) -> Any:
        return tvm.s_tir.SBlock(
            block.iter_vars,
            block.reads,
            block.writes,
            block.name_hint,
            body,
            block.init,
            [*block.alloc_buffers, *buffers],
            block.match_buffers,
            block.annotations,
        )

    def is_long(block: Any) -> bool:
        store = block.body
        return isinstance(store, tirx.BufferStore) and len(found(store.value, tirx.Let)) >= many

    def of_one(block: Any) -> Any:
        buffers: list[Any] = []
        if not is_long(block):
            return block
        zero, one = tirx.const(0, "int64"), tirx.const(1, "int64")
        return changed_block(block, stores_of(block.body, zero, one, buffers), buffers)

    def of_lanes(loop: Any) -> Any:
        if loop.kind != tirx.ForKind.VECTORIZED:
            return loop
        own: list[Any] = []

        def inside(block: Any) -> Any:
            if not is_long(block):
                return block
            stores = stores_of(block.body, loop.loop_var - loop.min, loop.extent, own)
            return changed_block(block, stores, [])

        body = tvm_ffi.structural_map(loop.body, [(tvm.s_tir.SBlock, inside)])
        if not own:
            return loop
        of_function.extend(own)
        # A use before the loop keeps TVM from making a buffer for each lane.
        first = [tirx.const(0, loop.loop_var.ty.dtype)]
        begin = [tirx.BufferStore(each, tirx.const(0, each.dtype), first) for each in own]
        made = tirx.For(loop.loop_var, loop.min, loop.extent, loop.kind, body)
        return tirx.SeqStmt([*begin, made])

    changed = {}
    for variable, function in module.functions_items():
        if isinstance(function, tirx.PrimFunc):
            of_function: list[Any] = []
            body = tvm_ffi.structural_map(function.body, [(tirx.For, of_lanes)])
            body = tvm_ffi.structural_map(body, [(tvm.s_tir.SBlock, of_one)])
            if of_function:
                # TVM moves them to the loops that they are used in.
                whole = changed_block(body.block, body.block.body, of_function)
                body = tvm.s_tir.SBlockRealize(body.iter_values, body.predicate, whole)
            if not body.same_as(function.body):
                changed[variable] = function.with_body(body)
    if not changed:
        return module
    return tvm.IRModule({**dict(module.functions_items()), **changed}, attrs=module.attrs)
