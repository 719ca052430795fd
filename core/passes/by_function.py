"""A pass that fails on a module, applied without the TensorIR functions that it fails on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tvm
from tvm import tirx
from tvm.s_tir import SBlock, SBlockRealize

from lowerscope.core.errors import TVM_ERRORS, last_line

LeaveOut = Callable[[str, str], None]
"""Told the name of a function that a pass leaves as it is, and why."""


def apply_without(
    made: Any,
    module: tvm.IRModule,
    error: Exception,
    leave_out: LeaveOut,
    check: Callable[[], None],
    begins: Callable[[], None],
) -> tvm.IRModule:
    """Return the module after a pass that has failed on it, with some functions as they were.

    The pass is tried on each TensorIR function alone, and then applied to a module of the others.

    Parameters
    ----------
    made
        The pass.
    error
        Why it failed on the whole module; raised again where it fails on no function alone, or on
        the others together as well.
    leave_out
        Told which functions are left out, and why.
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
        return _with_roots(made, module, error, leave_out, begins)
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
    """Return the module after a pass that reads functions where they are called.

    Those without a root block have one while the pass runs, and lose it where it stays unchanged.
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


def _root(body: Any) -> SBlockRealize:
    return SBlockRealize([], True, SBlock([], [], [], "root", body))
