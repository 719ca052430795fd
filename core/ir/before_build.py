"""The changes of TensorIR before each build: what TVM or LLVM compile wrongly or slowly."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import tvm

from lowerscope.core.ir.cancellations import with_cancellations
from lowerscope.core.ir.narrow_floats import with_wide_bfloat16
from lowerscope.core.ir.stored_values import with_stored_values
from lowerscope.core.ir.whole_periods import with_whole_periods

CHANGES: Mapping[str, Callable[[tvm.IRModule], tvm.IRModule]] = {
    "SplitPeriods": with_whole_periods,
    "WidenBfloat16": with_wide_bfloat16,
    "KeepCancellations": with_cancellations,
    "StoreValues": with_stored_values,
}
"""Lowerscope's own steps of a build, in order; each leaves most modules as they are."""


def before_build(module: tvm.IRModule) -> tvm.IRModule:
    """Return `module` with all `CHANGES`, for TVM to compile."""
    for change in CHANGES.values():
        module = change(module)
    return module
