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
        # A variable may be bound to one value after another, or within one another, as where a
        # flipped tensor is added to itself. Each has conditions, and loads that it is computed of.
        known: dict[Any, list[tuple[list[Any], dict[Any, Any], Any]]] = {}
        stores: list[Any] = []
        conditions: list[Any] = []
        # Of the bound values that are being computed: what they read, and variables within.
        around: list[tuple[dict[Any, Any], set[Any]]] = [({}, set())]

        def is_same(made: list[Any], before: list[Any], reads: dict[Any, Any]) -> bool:
            return (
                len(made) == len(before)
                and all(each in loads and loads[each].same_as(reads[each]) for each in reads)
                and all(map(tvm_ffi.structural_equal, made, before))
            )

        def load_of(value: Any) -> tuple[dict[Any, Any], Any]:
            """Return what a bound value reads, and the load of it; store it if it is new."""
            made = [value.value, *conditions]
            for before, reads, load in known.setdefault(value.var, []):
                if is_same(made, before, reads):
                    return reads, load
            around.append(({}, set()))
            bound = guarded(unbound(value.value))
            reads, _within = around.pop()
            kind, name = value.var.ty.dtype, value.var.name
            # Of the scope that TVM keeps on the stack.
            buffers.append(tirx.decl_buffer([lanes], kind, name, scope="global"))
            load = tirx.BufferLoad(buffers[-1], [lane])
            stores.append(tirx.BufferStore(buffers[-1], bound, [lane]))
            known[value.var].append((made, reads, load))
            return reads, load

        def note(reads: dict[Any, Any]) -> None:
            of_value, within = around[-1]
            of_value.update({each: load for each, load in reads.items() if each not in within})

        def stored(value: Any) -> Any:
            while isinstance(value, tirx.Let):
                outer, within = loads.get(value.var), around[-1][1]
                reads, loads[value.var] = load_of(value)
                note(reads)
                if outer is not None:
                    # After the body, the variable is again what it was.
                    is_inner = value.var in within
                    within.add(value.var)
                    made = unbound(value.body)
                    loads[value.var] = outer
                    if not is_inner:
                        within.remove(value.var)
                    return made
                within.add(value.var)
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

            def chosen_of(value: Any, other: Any) -> Any:
                # A condition may read what is there only under those around it.
                for holds in reversed(conditions):
                    value = tirx.if_then_else(holds, value, other)
                return value

            def read(load: Any) -> Any:
                kind = str(load.ty.dtype)
                if kind == "bfloat16" or any(load.source.same_as(each) for each in buffers):
                    return load
                # Of integers 1, by which may be divided.
                other = tirx.const(0 if "float" in kind or kind == "bool" else 1, kind)
                return chosen_of(load, other)

            def bits(call: Any) -> Any:
                # TVM has no vectors of chosen bfloat16: of their bits it has.
                is_read = len(call.args) == 1 and isinstance(call.args[0], tvm.ir.expr.TensorLoad)
                if not is_read or str(call.args[0].ty.dtype) != "bfloat16":
                    return call
                return chosen_of(call, tirx.const(0, call.ty.dtype))

            pairs = [(tvm.ir.expr.TensorLoad, read), (tvm.ir.Call, bits)]
            return tvm_ffi.structural_map(value, pairs)

        def loaded(variable: Any) -> Any:
            if variable not in loads:
                return variable
            note({variable: loads[variable]})
            return loads[variable]

        def unbound(value: Any) -> Any:
            pairs = [(tirx.Let, stored), (tirx.Var, loaded), (tvm.ir.Call, chosen)]
            return tvm_ffi.structural_map(value, pairs, order="pre")

        value = unbound(store.value)
        return tirx.SeqStmt([*stores, tirx.BufferStore(store.buffer, value, store.indices)])

    def changed_block(
        block: Any, body: Any, buffers: list[Any], outer: tuple[Any, ...] = ()
    ) -> Any:
        """Return a block with another body, buffers of its own, and places of others it uses."""
        return tvm.s_tir.SBlock(
            block.iter_vars,
            [*block.reads, *outer],
            [*block.writes, *outer],
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
            buffers: list[Any] = []
            lane = loop.loop_var - loop.min
            stores = stores_of(block.body, lane, loop.extent, buffers)
            own.extend(buffers)
            place = [tvm.ir.Range.from_min_extent(lane, tirx.const(1, lane.ty.dtype))]
            regions = (tirx.BufferRegion(each, place) for each in buffers)
            return changed_block(block, stores, [], tuple(regions))

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
