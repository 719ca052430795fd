"""The build stage: compiles a module, and checks the functions that it calls by name."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import relax, tirx
from tvm.ir.instrument import PassInstrument

from lowerscope.core.cancellations import with_cancellations
from lowerscope.core.errors import TVM_ERRORS, LowerscopeError, last_line
from lowerscope.core.relax_bindings import bound_in, own_function, relax_functions


@dataclass(frozen=True)
class BuiltModel:
    """An executable and its build time in milliseconds."""

    executable: relax.VMExecutable
    milliseconds: float


def register_library(functions: Mapping[str, Callable[..., Any]]) -> None:
    """Register functions with TVM by name, replacing existing ones.

    A virtual machine looks its functions up when it is created, and keeps them.
    """
    for name, function in functions.items():
        tvm.register_global_func(name, function, override=True)


def build(
    module: tvm.IRModule,
    target: tvm.target.Target,
    instruments: Sequence[PassInstrument] = (),
) -> BuiltModel:
    """Compile `module` with TVM's default pipeline.

    Raises a `LowerscopeError` if TVM fails.
    """
    start = time.perf_counter()
    try:
        with tvm.transform.PassContext(instruments=list(instruments)):
            executable = compiled(module, target)
    except TVM_ERRORS as error:
        raise LowerscopeError(
            f"TVM could not compile the module: {last_line(error)}",
            where="build",
            todo="Try the other lowering or the target llvm; the log has TVM's whole message",
            details=str(error),
        ) from error
    return BuiltModel(executable, (time.perf_counter() - start) * 1000)


def compiled(module: tvm.IRModule, target: tvm.target.Target) -> Any:
    """Return TVM's executable of a module; all code is compiled here, for runs and for display."""
    return tvm.compile(with_cancellations(without_kills(module)), target)


def compile_function(name: str, function: tirx.PrimFunc, target: tvm.target.Target) -> Any:
    """Return TVM's executable of a single function: the code that it has in a whole module."""
    variable = tvm.ir.GlobalVar(name)
    return compiled(tvm.IRModule({variable: function.with_attr("global_symbol", name)}), target)


def without_kills(module: tvm.IRModule) -> tvm.IRModule:
    """Return `module` without the calls that free values, which TVM's build inserts again.

    If passes have inserted them already, the build would move the shape checks of a tuple's members
    behind them.
    """

    def frees(binding: relax.Binding) -> bool:
        op = getattr(getattr(binding, "value", None), "op", None)
        return isinstance(op, tvm.ir.Op) and ".kill_" in op.name

    changed = {}
    for variable, function in module.functions_items():
        if not isinstance(function, relax.Function):
            continue
        blocks = function.body.blocks
        if any(frees(each) for block in blocks for each in block.bindings):
            kept = [
                type(block)([each for each in block.bindings if not frees(each)])
                for block in blocks
            ]
            body = relax.SeqExpr(kept, function.body.body)
            changed[variable] = relax.Function(
                function.params, body, function.ret_ty, function.is_pure, function.attrs
            )
    if not changed:
        return module
    return tvm.IRModule({**dict(module.functions_items()), **changed}, attrs=module.attrs)


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

    Raises a `LowerscopeError` with the code `MISSING` and the names.
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
