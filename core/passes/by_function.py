"""Application of a failing pass without the TensorIR functions that it fails on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tvm
from tvm import tirx
from tvm.s_tir import SBlock, SBlockRealize

from lowerscope.core.errors import TVM_ERRORS, last_line

LeaveOut = Callable[[str, str], None]
"""Callback with the name of a function that a pass leaves unchanged, and the reason."""


def apply_without(
    made: Any,
    module: tvm.IRModule,
    error: Exception,
    leave_out: LeaveOut,
    check: Callable[[], None],
    begins: Callable[[], None],
) -> tvm.IRModule:
    """Return the module after a pass that has failed on it, with some functions unchanged.

    The pass is tried on each TensorIR function alone, and then applied to a module of the others.

    Parameters
    ----------
    made
        The pass.
    error
        Why it failed on the whole module; raised again if it fails on no function alone, or on
        the others together as well.
    leave_out
        Called with the functions that are left out, and the reasons.
    check
        Called before each function; may raise to cancel.
    begins
        Called before the pass is applied to the others.
    """
    failing: dict[tvm.ir.GlobalVar, str] = {}
    with tvm.transform.PassContext(opt_level=3):
        for variable, function in module.functions_items():
            if isinstance(function, tirx.PrimFunc):
                check()
                try:
                    made(tvm.IRModule({variable: function}))
                except TVM_ERRORS as failed:
                    failing[variable] = last_line(failed)
    if not failing:
        try:
            return _with_roots(made, module, error, leave_out, begins)
        except TVM_ERRORS:
            return _with_hidden(made, module, error, leave_out, check, begins)
    others = module.clone()
    for variable in failing:
        del others[variable]
    begins()
    try:
        result = made(others).clone()
    except TVM_ERRORS:
        raise error from None
    names = {str(each.name_hint) for each in result.get_global_vars()}
    if any(str(each.name_hint) in names for each in failing):
        raise error
    for variable, reason in failing.items():
        result.update_func(variable, module[variable])
        leave_out(str(variable.name_hint), reason)
    return result


def _with_roots(
    made: Any,
    module: tvm.IRModule,
    error: Exception,
    leave_out: LeaveOut,
    begins: Callable[[], None],
) -> tvm.IRModule:
    """Return the module after a pass that reads functions at their calls.

    Functions without a root block get one for the pass, and lose it if they stay unchanged.
    """
    rooted = {
        variable: function.with_body(_root(function.body))
        for variable, function in module.functions_items()
        if isinstance(function, tirx.PrimFunc) and not isinstance(function.body, SBlockRealize)
    }
    if not rooted:
        raise error
    whole = module.clone()
    for variable, function in rooted.items():
        whole.update_func(variable, function)
    begins()
    try:
        result = made(whole).clone()
    except TVM_ERRORS:
        raise error from None
    kept = {str(each.name_hint): result[each] for each in result.get_global_vars()}
    for variable, function in rooted.items():
        if function.same_as(kept.get(str(variable.name_hint))):
            result.update_func(variable, module[variable])
            leave_out(str(variable.name_hint), last_line(error))
    return result


def _with_hidden(
    made: Any,
    module: tvm.IRModule,
    error: Exception,
    leave_out: LeaveOut,
    check: Callable[[], None],
    begins: Callable[[], None],
) -> tvm.IRModule:
    """Return the module after a pass that fails on some functions where they are called.

    The bodies of those functions are hidden from it. The result is refused where the pass has
    moved a hidden body.
    """
    functions = {
        variable: function
        for variable, function in module.functions_items()
        if isinstance(function, tirx.PrimFunc)
    }
    hidden = {variable: _hidden(function) for variable, function in functions.items()}
    failing: dict[tvm.ir.GlobalVar, str] = {}
    with tvm.transform.PassContext(opt_level=3):
        empty_bodies = module.clone()
        for variable, empty in hidden.items():
            empty_bodies.update_func(variable, empty)
        try:
            made(empty_bodies)
        except TVM_ERRORS:
            # No body is the cause: trying each of them would take long in vain.
            raise error from None
        for variable, function in functions.items():
            check()
            alone = module.clone()
            for other, empty in hidden.items():
                alone.update_func(other, function if other.same_as(variable) else empty)
            try:
                made(alone)
            except TVM_ERRORS as failed:
                failing[variable] = last_line(failed)
    if not failing:
        raise error
    rest = module.clone()
    for variable in failing:
        rest.update_func(variable, hidden[variable])
    begins()
    try:
        result = made(rest).clone()
    except TVM_ERRORS:
        raise error from None
    after = {str(each.name_hint): result[each] for each in result.get_global_vars()}
    for variable, reason in failing.items():
        if not hidden[variable].same_as(after.pop(str(variable.name_hint), None)):
            raise error
        result.update_func(variable, functions[variable])
        leave_out(str(variable.name_hint), reason)
    if any(_HIDDEN in str(each) for each in after.values() if isinstance(each, tirx.PrimFunc)):
        raise error
    return result


_HIDDEN = "lowerscope.hidden"
"""Name of the external function that a hidden body calls."""


def _hidden(function: tirx.PrimFunc) -> tirx.PrimFunc:
    return function.with_body(_root(tirx.Evaluate(tirx.call_extern("int32", _HIDDEN))))


def _root(body: Any) -> SBlockRealize:
    return SBlockRealize([], True, SBlock([], [], [], "root", body))
