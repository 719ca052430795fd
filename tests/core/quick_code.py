"""Machine code for tests of results, made in a third of the time.

Each compiled function checks its arguments, which is most of the machine code of a small one. What
checks them has tests of its own; those of results need no such code.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import tvm
from tvm.ir.transform import PassContext

UNCHECKED = {"tirx.disable_assert": True}


def quick_code(module: tvm.IRModule, target: tvm.target.Target) -> Any:
    """Compile a module without optimisation, into functions that do not check their arguments."""
    plain = tvm.target.Target({**target.export(), "opt-level": 0})
    with PassContext(config=UNCHECKED):
        return tvm.compile(module, plain)


@contextmanager
def unchecked() -> Iterator[None]:
    """Let what Lowerscope builds in this process leave out the checks of arguments."""
    made = PassContext.__init__

    def init(self: Any, *given: Any, config: Any = None, **options: Any) -> None:
        made(self, *given, config={**UNCHECKED, **(config or {})}, **options)

    with pytest.MonkeyPatch.context() as patch, PassContext(config=UNCHECKED):
        patch.setattr(PassContext, "__init__", init)
        yield
