"""External functions that a module calls by name, and checks that they are registered."""

from __future__ import annotations

from collections.abc import Collection

import tvm
from tvm import relax

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.relax_bindings import bound_in, own_function, relax_functions

MISSING = "missing-function"
"""Problem code of a function that is not registered."""


def external_functions(module: tvm.IRModule) -> dict[str, tuple[str, ...]]:
    """Return the callers of each external function of `module` by name: ``lv1 in main``.

    It may be called by a binding, or be anywhere in one, such as in a branch.
    """
    found: dict[str, dict[str, None]] = {}

    def note(expression: relax.Expr, place: str) -> None:
        if isinstance(expression, relax.ExternFunc):
            found.setdefault(str(expression.global_symbol), {})[place] = None

    for name, function in relax_functions(module):
        if not _calls_outside(function):
            continue
        for bound in bound_in(name, function):
            value = getattr(bound.binding, "value", None)
            # Branches and inner functions have bindings of their own.
            if value is not None and not isinstance(value, (relax.If, relax.Function)):
                place = f"{bound.name} in {name}"
                relax.analysis.post_order_visit(value, lambda each, at=place: note(each, at))
        # The body's last value, and expressions outside bindings.
        relax.analysis.post_order_visit(
            function, lambda each, at=name: None if _noted(each, found) else note(each, at)
        )
    return {name: tuple(places) for name, places in sorted(found.items())}


def missing_functions(
    module: tvm.IRModule, known: Collection[str] = ()
) -> dict[str, tuple[str, ...]]:
    """Return the functions that `module` calls and that are not registered, with the callers.

    It may call its own TensorIR functions by name, as well as external ones.

    Parameters
    ----------
    known
        Names of functions that are going to be registered before the run.
    """
    return {
        name: callers
        for name, callers in external_functions(module).items()
        if name not in known and not is_registered(name) and own_function(module, name) is None
    }


def is_registered(name: str) -> bool:
    """Return whether the virtual machine finds a function of this name."""
    return name.startswith("vm.builtin.") or (
        tvm.get_global_func(name, allow_missing=True) is not None
    )


def missing_text(missing: dict[str, tuple[str, ...]]) -> str:
    """Format missing functions: ``env.relu is not registered; called by lv1 in main``."""
    return "; ".join(
        f"{name} is not registered; called by {', '.join(callers)}"
        for name, callers in missing.items()
    )


def load_text(missing: dict[str, tuple[str, ...]]) -> str:
    """Return the remedy for missing functions."""
    them = "it" if len(missing) == 1 else "them"
    return f"load the file that registers {them} with --library"


def check_registered(module: tvm.IRModule, known: Collection[str] = ()) -> None:
    """Raise unless every function that `module` calls by name is registered, or `known`.

    Raises
    ------
    LowerscopeError
        With the code `MISSING` and the names.
    """
    missing = missing_functions(module, known)
    if missing:
        raise LowerscopeError(
            missing_text(missing), todo=load_text(missing), code=MISSING, choices=tuple(missing)
        )


def _calls_outside(function: relax.Function) -> bool:
    kinds: set[type] = set()
    relax.analysis.post_order_visit(function, lambda each: kinds.add(type(each)))
    return relax.ExternFunc in kinds


def _noted(expression: relax.Expr, found: dict[str, dict[str, None]]) -> bool:
    return isinstance(expression, relax.ExternFunc) and str(expression.global_symbol) in found
