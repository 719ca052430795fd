"""Loops that load under a condition at the remainder of a place, split at the period.

LLVM takes ``x[i % 4]`` under a condition, in a loop over i, for a row of consecutive elements where
it can mask loads, as with AVX-512: it checks that i itself does not overflow, and not that the
remainder starts anew. What it loads is then wrong. In a loop over whole periods there is no
remainder.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import tirx


def with_whole_periods(module: tvm.IRModule) -> tvm.IRModule:
    """Return `module` with two loops for one: over the periods, and over the places in one.

    Those of which the period is a power of two, as LLVM knows no other remainders.
    """
    # Exported programs hold the text of this function alone.
    import tvm_ffi

    def period_of(loop: Any) -> int:
        """Return the shortest period of a loop in its blocks; 0 for none."""
        blocks: list[Any] = []
        tvm_ffi.structural_walk(loop.body, (tvm.s_tir.SBlockRealize, blocks.append))
        own = [loop.loop_var]
        for realized in blocks:
            pairs = zip(realized.block.iter_vars, realized.iter_values, strict=True)
            own += [axis.var for axis, value in pairs if value.same_as(loop.loop_var)]
        remainders: list[Any] = []
        tvm_ffi.structural_walk(loop.body, (tirx.FloorMod, remainders.append))
        extent = int(loop.extent)
        found = []
        for each in remainders:
            variables: list[Any] = []
            tvm_ffi.structural_walk(each.a, (tirx.Var, variables.append))
            period = int(each.b) if isinstance(each.b, tirx.IntImm) else 0
            fits = 1 < period < extent and extent % period == 0 and not period & (period - 1)
            if fits and any(one.same_as(other) for one in variables for other in own):
                found.append(period)
        return min(found, default=0)

    def split(loop: Any) -> Any:
        plain = loop.kind == tirx.ForKind.SERIAL and isinstance(loop.extent, tirx.IntImm)
        inner: list[Any] = []
        calls: list[Any] = []
        tvm_ffi.structural_walk(loop.body, [(tirx.For, inner.append), (tvm.ir.Call, calls.append)])
        asks = any(str(getattr(each.op, "name", "")).endswith(".if_then_else") for each in calls)
        if not plain or not asks or inner or int(getattr(loop.min, "value", 1)):
            return loop
        period = period_of(loop)
        if not period:
            return loop
        var, dtype = loop.loop_var, str(loop.loop_var.ty.dtype)
        outer, place = (tirx.Var(f"{var.name}_{each}", dtype) for each in (0, 1))

        def placed(value: Any) -> Any:
            return outer * period + place if value.same_as(var) else value

        body = tvm_ffi.structural_map(loop.body, [(tirx.Var, placed)])
        count = tirx.const(int(loop.extent) // period, dtype)
        start, width = tirx.const(0, dtype), tirx.const(period, dtype)
        within = tirx.For(place, start, width, tirx.ForKind.SERIAL, body)
        return tirx.For(outer, start, count, tirx.ForKind.SERIAL, within)

    changed = {}
    for variable, function in module.functions_items():
        if isinstance(function, tirx.PrimFunc):
            body = tvm_ffi.structural_map(function.body, [(tirx.For, split)])
            if not body.same_as(function.body):
                changed[variable] = function.with_body(body)
    if not changed:
        return module
    return tvm.IRModule({**dict(module.functions_items()), **changed}, attrs=module.attrs)
