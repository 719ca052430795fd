"""The bindings of Relax functions, and what becomes of them in a pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import tvm
from tvm import relax


def relax_functions(module: tvm.IRModule) -> Iterator[tuple[str, relax.Function]]:
    """Yield name and function of each Relax function of `module`."""
    for variable, function in module.functions_items():
        if isinstance(function, relax.Function):
            yield variable.name_hint, function


def bindings_of(function: relax.Function) -> Iterator[relax.Binding]:
    """Yield the bindings of `function` in order, those of nested branches included."""
    yield from _bindings_in(function.body)


def _bindings_in(expression: relax.Expr) -> Iterator[relax.Binding]:
    if isinstance(expression, relax.If):
        yield from _bindings_in(expression.true_branch)
        yield from _bindings_in(expression.false_branch)
    if not isinstance(expression, relax.SeqExpr):
        return
    for block in expression.blocks:
        for binding in block.bindings:
            yield binding
            if isinstance(binding, relax.VarBinding):
                yield from _bindings_in(binding.value)


def match_bindings(before: tvm.IRModule, after: tvm.IRModule) -> Mapping[str, tuple[str, ...]]:
    """Say which bindings of `after` each binding of `before` became.

    A pass that rewrites values in place, such as ``LegalizeOps``, keeps each variable and its
    place, and puts what it needs besides right before it. So both lists are walked together, and
    a new binding belongs to the next one that was there before.

    Returns
    -------
    Mapping[str, tuple[str, ...]]
        From ``relax:FUNCTION/VARIABLE`` of `before` to such ids of `after`.
    """
    matches: dict[str, tuple[str, ...]] = {}
    functions = dict(relax_functions(after))
    for name, function in relax_functions(before):
        if name not in functions:
            continue
        old = [f"relax:{name}/{binding.var.name}" for binding in bindings_of(function)]
        new = [f"relax:{name}/{binding.var.name}" for binding in bindings_of(functions[name])]
        position = 0
        waiting: list[str] = []
        for entity in new:
            waiting.append(entity)
            if entity in old[position:]:
                position = old.index(entity, position) + 1
                matches[entity] = tuple(waiting)
                waiting = []
    return matches
