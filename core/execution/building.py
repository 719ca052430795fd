"""The build stage: compiles a module for the virtual machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import relax, tirx
from tvm.ir.instrument import PassInstrument

from lowerscope.core.cancellations import with_cancellations
from lowerscope.core.errors import TVM_ERRORS, LowerscopeError, last_line


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

    Parameters
    ----------
    instruments
        Notified of each pass.

    Raises
    ------
    LowerscopeError
        If TVM fails.
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
