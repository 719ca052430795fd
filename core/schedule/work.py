"""The work of one call of a TensorIR function, and its number of calls in a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import tvm
from tvm import ir, relax, s_tir, tirx

from lowerscope.core.ir.relax import bound_in, callee_of, entity_of, relax_functions
from lowerscope.core.model.schedule_records import Work
from lowerscope.core.schedule.parameters import parameters_of
from lowerscope.core.views.programs.expression_text import dtype_of, operator_name


def work_of(function: tirx.PrimFunc, calls: int, at: str = "") -> Work:
    """Return the work of one call of a function.

    `function`: before it is scheduled: a schedule may compute something twice, or elsewhere. `at`:
    the size, of a function with symbolic extents.
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


_ONE_EACH = (tirx.Add, tirx.Sub, tirx.Mul, tirx.Div, tirx.FloorDiv, tirx.Mod, tirx.FloorMod)
_BETWEEN_TWO = (*_ONE_EACH, tirx.Min, tirx.Max)
_COMPARISONS = (tirx.EQ, tirx.NE, tirx.LT, tirx.LE, tirx.GT, tirx.GE)
_LOGIC = (tirx.And, tirx.Or)

_FREE_CALLS = frozenset(
    (
        *("reinterpret", "large_uint_imm", "infinity", "min_value", "max_value"),
        *("likely", "assume", "undef", "ret"),
    )
)
"""Operators that compute nothing."""

_CODE_OUTSIDE = frozenset(
    (
        *("call_extern", "call_pure_extern", "call_packed", "tvm_call_packed", "tvm_call_cpacked"),
        *("call_llvm_intrin", "call_llvm_pure_intrin", "call_ffi_kernel"),
    )
)
"""Calls of code outside of the function, whose operations are not known."""


class _Unknown(Exception):
    """The number of operations depends on values that are known at run time alone."""


def flops_of(function: Any) -> float | None:
    """Return the operations on floating-point numbers that one call of a function does.

    Each addition, multiplication, division, minimum, maximum and comparison is one, as is each
    mathematical function, such as ``exp``; a fused multiply-add is two. Conversions, moves and the
    arithmetic of indices are none. Of two branches, the longer one counts. The initialisation of a
    block is counted once per reduction.

    ``None`` where an extent is symbolic, or the function calls code outside of it.
    """
    try:
        return _in_statement(function.body)
    except _Unknown:
        return None


def _in_statement(statement: Any) -> float:
    count = _STATEMENTS.get(type(statement))
    if count is None:
        raise _Unknown
    return count(statement)


def _in_loop(loop: Any) -> float:
    each = _in_statement(loop.body)
    # A loop that computes nothing may have an unknown extent.
    return each * _constant(loop.extent) if each else 0.0


def _in_realize(realize: Any) -> float:
    block = realize.block
    total = _in_expression(realize.predicate) + _in_statement(block.body)
    if block.init is not None:
        reductions = 1.0
        for axis in block.iter_vars:
            if axis.iter_type == tirx.IterVar.CommReduce:
                reductions *= _constant(axis.dom.extent)
        start = _in_statement(block.init)
        total += start / reductions if start else 0.0
    return total


def _in_branches(choice: Any) -> float:
    otherwise = 0.0 if choice.else_case is None else _in_statement(choice.else_case)
    return _in_expression(choice.condition) + max(_in_statement(choice.then_case), otherwise)


_STATEMENTS: dict[type, Callable[[Any], float]] = {
    tirx.SeqStmt: lambda each: sum(map(_in_statement, each.seq)),
    tirx.For: _in_loop,
    s_tir.SBlockRealize: _in_realize,
    tirx.BufferStore: lambda each: _in_expression(each.value),
    tirx.IfThenElse: _in_branches,
    tirx.Bind: lambda each: _in_expression(each.value),
    tirx.AllocBuffer: lambda _: 0.0,
    tirx.DeclBuffer: lambda _: 0.0,
    tirx.Evaluate: lambda each: _in_expression(each.value),
    tirx.AttrStmt: lambda each: _in_statement(each.body),
    tirx.AssertStmt: lambda each: _in_expression(each.condition),
}


def _in_expression(expression: Any) -> float:
    kind = type(expression)
    if kind in _BETWEEN_TWO:
        inner = _in_expression(expression.a) + _in_expression(expression.b)
        return inner + _lanes(expression)
    if kind in _COMPARISONS or kind in _LOGIC:
        inner = _in_expression(expression.a) + _in_expression(expression.b)
        return inner + (_lanes(expression.a) if kind in _COMPARISONS else 0.0)
    if kind is tirx.Select:
        branches = (expression.true_value, expression.false_value)
        return _in_expression(expression.condition) + max(map(_in_expression, branches))
    if kind in (tirx.Cast, tirx.Broadcast):
        return _in_expression(expression.value)
    if kind is tirx.Not:
        return _in_expression(expression.a)
    if kind is tirx.Let:
        return _in_expression(expression.value) + _in_expression(expression.body)
    if isinstance(expression, ir.Call):
        return _in_call(expression)
    return 0.0


def _in_call(call: Any) -> float:
    name = operator_name(call)
    if name in _CODE_OUTSIDE:
        raise _Unknown
    if name == "if_then_else":
        condition, *branches = call.args
        return _in_expression(condition) + max(map(_in_expression, branches))
    inner = sum(map(_in_expression, call.args))
    if name in _FREE_CALLS:
        return inner
    return inner + _lanes(call) * (2 if name == "fma" else 1)


def _lanes(expression: Any) -> float:
    """Return the number of floating-point values in an expression; 0 for other types."""
    dtype = dtype_of(expression)
    if not dtype.startswith(("float", "bfloat")):
        return 0.0
    lanes = dtype.rpartition("x")[2]
    return float(lanes) if "x" in dtype and lanes.isdigit() else 1.0


def _constant(extent: Any) -> float:
    if not isinstance(extent, tirx.IntImm):
        raise _Unknown
    return float(int(extent.value))
