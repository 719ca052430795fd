"""Functions as rules schedule them."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax, tirx
from tvm.s_tir import Schedule

from lowerscope.core.model.schedule_records import ByRule
from lowerscope.core.schedule.applying import apply
from lowerscope.core.schedule.references import first_outputs, function_of
from lowerscope.core.schedule.rules.by_rule import by_rule

NARROW = tvm.target.Target({"kind": "llvm", "num-cores": 2})
WIDE = tvm.target.Target({"kind": "llvm", "num-cores": 2, "mattr": ["+avx2", "+fma"]})


def made(function: tirx.PrimFunc, target: tvm.target.Target) -> tuple[ByRule, tirx.PrimFunc]:
    """Return what a rule has written, and what its steps make when they are replayed."""
    ruled = by_rule(function, target)
    sch = Schedule(tvm.IRModule({"main": function}))
    outputs: dict[Any, Any] = dict(first_outputs(sch))
    for primitive in ruled.primitives:
        applied = apply(sch, primitive, outputs, target)
        sch, outputs = applied.sch, {**outputs, primitive.id: applied.outputs}
    return ruled, function_of(sch)


def legalised(operator: Any, *shapes: tuple[Any, ...], dtype: str = "float32") -> tirx.PrimFunc:
    """Return the only function of TensorIR that a call of a Relax operator becomes."""
    builder = relax.BlockBuilder()
    given = [
        relax.Var(f"x{number}", relax.TensorType(shape, dtype))
        for number, shape in enumerate(shapes)
    ]
    with builder.function("main", given):
        with builder.dataflow():
            result = builder.emit_output(builder.normalize(operator(*given)))
        builder.emit_func_output(result)
    module = relax.transform.LegalizeOps()(builder.get())
    functions = [each for each in module.functions.values() if isinstance(each, tirx.PrimFunc)]
    assert len(functions) == 1
    return functions[0]
