"""What is wrong with a function that TVM has scheduled, and that shows only when it is built."""

from __future__ import annotations

import tvm_ffi
from tvm import tirx
from tvm.s_tir import Schedule

from lowerscope.core.scheduling.failures import StepFailed
from lowerscope.core.scheduling.references import function_of, places


def check(before: Schedule, after: Schedule) -> None:
    """Refuse a result that cannot be built or run.

    Raises
    ------
    StepFailed
        If a loop in parallel stands in another, or a vectorized one in another; if the function
        takes something else than before.
    """
    old, new = function_of(before), function_of(after)
    if not _same_interface(old, new):
        raise StepFailed(
            "it would change what the function takes, and the model calls it as it was: "
            "work on a copy (cache_read, cache_write)"
        )
    _no_nesting(new)


def _same_interface(old: tirx.PrimFunc, new: tirx.PrimFunc) -> bool:
    return len(old.params) == len(new.params) and all(
        mine.same_as(theirs) or tvm_ffi.structural_equal(mine.ty, theirs.ty, map_free_vars=True)
        for mine, theirs in zip(old.params, new.params, strict=True)
    )


_WORDS = {
    tirx.ForKind.PARALLEL: "runs in parallel",
    tirx.ForKind.VECTORIZED: "is vectorized",
}


def _no_nesting(func: tirx.PrimFunc) -> None:
    found = places(func)
    for place in found:
        if place.is_block or place.stmt.kind not in _WORDS:
            continue
        parent = place.parent
        while parent >= 0:
            outer = found[parent]
            if not outer.is_block and outer.stmt.kind == place.stmt.kind:
                raise StepFailed(
                    f"{place.name} stands in {outer.name}, which {_WORDS[place.stmt.kind]} "
                    "already: fuse them, or take one"
                )
            parent = outer.parent
