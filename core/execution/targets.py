"""Targets: what the user calls them, and what TVM makes of that."""

from __future__ import annotations

from functools import lru_cache

import tvm

from lowerscope.core.errors import TVM_ERRORS, LowerscopeError, last_line
from lowerscope.core.execution.environment import MACHINE


@lru_cache(maxsize=16)
def make_target(text: str, threads: int) -> tvm.target.Target:
    """Make the target that a recipe names.

    Parameters
    ----------
    text
        ``"llvm"`` for any processor of this kind, ``"native"`` for this machine's own, or what
        ``tvm.target.Target`` takes: a kind, a tag, or JSON.
    threads
        Number of cores to compile for; 0 for all that this process may use.

    Raises
    ------
    LowerscopeError
        If TVM does not know the target, or it is not a processor that can run the result here.
    """
    description: object = text
    if text == "native":
        processor = tvm.get_global_func("target.llvm_get_system_cpu")()
        cores = min(threads or MACHINE, MACHINE)
        description = {"kind": "llvm", "mcpu": processor, "num-cores": cores}
    try:
        target = tvm.target.Target(description)
    except TVM_ERRORS as error:
        raise LowerscopeError(
            f"TVM does not know the target {text!r}: {last_line(error)}",
            where="--target",
            todo='Write llvm, native, or JSON such as {"kind": "llvm", "mcpu": "skylake"}',
        ) from error
    if target.kind.name != "llvm":
        raise LowerscopeError(
            f"the target {text!r} is of kind {target.kind.name}, and what is built is run here",
            where="--target",
            todo="Choose a target of kind llvm",
        )
    return target
