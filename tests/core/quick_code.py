"""Machine code for tests of results, made in a fifth of the time.

Each compiled function checks its arguments, which is most of the machine code of a small one. What
checks them has tests of its own; those of results need no such code. Nor do they need it fast: LLVM
makes it as it does without optimisation. By ``opt-level`` alone, it optimises what is made when the
functions are called first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import tvm
from tvm.ir.transform import PassContext

UNCHECKED = {"tirx.disable_assert": True}

LEFT_OUT = (
    *("block-placement", "branch-fold", "cgp", "constant-hoisting", "copyprop", "early-taildup"),
    *("lsr", "machine-cse", "machine-licm", "machine-sink", "peephole", "postra-machine-licm"),
    *("ssc", "tail-duplicate"),
)
"""Passes of LLVM's code generator."""

UNOPTIMISED = {
    "opt-level": 0,
    "cl-opt": [
        *("-fast-isel:bool=1", "-enable-misched:bool=0"),
        *(f"-disable-{name}:bool=1" for name in LEFT_OUT),
    ],
}


def unoptimised(target: tvm.target.Target | str) -> tvm.target.Target:
    """Return a target for which machine code is made in a third of the time."""
    return tvm.target.Target({**tvm.target.Target(target).export(), **UNOPTIMISED})


def quick_code(module: tvm.IRModule, target: tvm.target.Target) -> Any:
    """Compile a module without optimisation, into functions that do not check their arguments."""
    with PassContext(config=UNCHECKED):
        return tvm.compile(module, unoptimised(target))


@contextmanager
def quick_builds(*, are_optimised: bool = False) -> Iterator[None]:
    """Let functions that are built in this process not check their arguments, nor be optimised."""
    made, compile_ = PassContext.__init__, tvm.compile

    def init(self: Any, *given: Any, config: Any = None, **options: Any) -> None:
        made(self, *given, config={**UNCHECKED, **(config or {})}, **options)

    def compile_unoptimised(module: tvm.IRModule, target: tvm.target.Target | str) -> Any:
        return compile_(module, unoptimised(target))

    with pytest.MonkeyPatch.context() as patch, PassContext(config=UNCHECKED):
        patch.setattr(PassContext, "__init__", init)
        if not are_optimised:
            patch.setattr(tvm, "compile", compile_unoptimised)
        yield
