"""What becomes of the bindings of Relax functions in a pass."""

from __future__ import annotations

from collections.abc import Mapping

import tvm

from lowerscope.core.relax_bindings import bound_in, relax_functions


def match_bindings(before: tvm.IRModule, after: tvm.IRModule) -> Mapping[str, tuple[str, ...]]:
    """Say which bindings of `after` each binding of `before` became.

    A pass that rewrites values in place, such as ``LegalizeOps``, keeps each variable and its
    place, and puts what it needs besides right before it. So both lists are walked together, and
    a new binding belongs to the next one that was there before.

    Returns
    -------
    Mapping[str, tuple[str, ...]]
        From ids of bindings of `before` to those of `after`, ``relax:FUNCTION/VARIABLE``.
    """
    matches: dict[str, tuple[str, ...]] = {}
    functions = dict(relax_functions(after))
    for name, function in relax_functions(before):
        if name not in functions:
            continue
        old: dict[str, list[str]] = {}
        for bound in bound_in(name, function):
            old.setdefault(bound.binding.var.name, []).append(bound.id)
        waiting: list[str] = []
        for bound in bound_in(name, functions[name]):
            waiting.append(bound.id)
            same = old.get(bound.binding.var.name)
            if same:
                matches[same.pop(0)] = tuple(waiting)
                waiting = []
    return matches
