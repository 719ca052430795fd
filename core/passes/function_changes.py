"""Changes of functions: what a pass has changed is what reads differently, or has other constants.

The count of changed functions, the marked lines of a step and its difference all come from this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tvm_ffi
from tvm import relax


def function_script(function: Any, name: str) -> str:
    """Return the script from the first decorator on, without the remark on omitted metadata."""
    lines = function.script(name=name).split("\n")
    begin = next((index for index, line in enumerate(lines) if line.startswith("@")), 0)
    end = len(lines)
    while end > begin + 1 and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
        end -= 1
    return "\n".join(lines[begin:end])


def is_same(one: Any, other: Any, script: Callable[[Any], str]) -> bool:
    """Return whether two functions of one name read the same, and have the same constants.

    Parameters
    ----------
    script
        Returns the script of either: it is asked where the structures differ, since a structure
        may differ in what is not printed.
    """
    if one.same_as(other):
        return True
    if tvm_ffi.structural_equal(one, other, skip_tensor_content=True):
        return not isinstance(one, relax.Function) or tvm_ffi.structural_equal(one, other)
    return script(one) == script(other)
