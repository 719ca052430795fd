"""The work of one call of a TensorIR function, and its number of calls in a model."""

from __future__ import annotations

from collections import Counter
from typing import Any

import tvm
from tvm import relax, tirx

from lowerscope.core.records.numbers import Work
from lowerscope.core.relax_bindings import bound_in, callee_of, entity_of, relax_functions
from lowerscope.core.scheduling.operation_counts import flops_of
from lowerscope.core.scheduling.parameters import parameters_of


def work_of(function: tirx.PrimFunc, calls: int, at: str = "") -> Work:
    """Return the work of one call of a function.

    Parameters
    ----------
    function
        Before it is scheduled: a schedule may compute something twice, or elsewhere.
    calls
        Of it, in one run of the model.
    at
        The size, of a function with symbolic extents.
    """
    flops, read, written = flops_of(function), None, None
    parameters = parameters_of(function)
    if parameters is not None and all(each.size is not None for each in parameters):
        read = sum(each.read or 0 for each in parameters)
        written = sum(each.written or 0 for each in parameters)
    moved = (read or 0) + (written or 0)
    return Work(
        calls=calls,
        at=at,
        flops=flops,
        read=read,
        written=written,
        intensity=flops / moved if flops is not None and moved else None,
    )


def calls_from_main(module: tvm.IRModule) -> dict[str, int]:
    """Return the number of calls of each TensorIR function in one call of ``main``, by name.

    Of a branch, both sides count.
    """
    functions = dict(relax_functions(module))
    called = {name: _called(name, function, module) for name, function in functions.items()}
    totals: Counter[str] = Counter()

    def run(name: str, times: int, around: tuple[str, ...]) -> None:
        for entity, count in called.get(name, {}).items():
            kind, _, callee = entity.partition(":")
            if kind == "tir":
                totals[callee] += times * count
            elif kind == "relax" and callee not in around:
                run(callee, times * count, (*around, callee))

    run("main", 1, ("main",))
    return dict(totals)


def _called(name: str, function: relax.Function, module: tvm.IRModule) -> Counter[str]:
    found: Counter[str] = Counter()
    for bound in bound_in(name, function):
        callee: Any = callee_of(getattr(bound.binding, "value", None))
        if callee is not None:
            found[entity_of(callee, module)] += 1
    return found
