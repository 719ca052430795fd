"""``SplitLayoutRewritePreproc`` of a module that has functions without weights to pack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx
from tvm.s_tir import SBlock

from lowerscope.core.scheduling.rules.packing import PREPROC

SPLIT_PACKING = "SplitLayoutRewritePreproc"


def split_packing(make: Callable[..., Any], **given: Any) -> Any:
    """Return the pass, applied to the functions with a marked block alone.

    TVM's fails on a function whose loops have no block, such as a sort's, marked or not.

    Parameters
    ----------
    make
        Makes TVM's.
    given
        Its options.
    """

    def apply(module: tvm.IRModule, context: Any) -> tvm.IRModule:
        others = {
            variable: function
            for variable, function in module.functions_items()
            if isinstance(function, tirx.PrimFunc) and not _is_marked(function)
        }
        reduced = module.clone()
        for variable in others:
            del reduced[variable]
        with tvm.transform.PassContext(opt_level=3):
            made = make(**given)(reduced)
        for variable, function in others.items():
            made[variable] = function
        return made

    return tvm.transform.module_pass(apply, opt_level=0, name=SPLIT_PACKING)


def _is_marked(function: tirx.PrimFunc) -> bool:
    blocks: list[Any] = []
    tvm_ffi.structural_walk(function.body, (SBlock, blocks.append))
    return any(PREPROC in each.annotations for each in blocks)
