"""What TVM would accept of reductions, and what is wrong with it."""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx

from lowerscope.core.scheduling.entry import Call
from lowerscope.core.scheduling.failures import StepFailed


def rfactor(call: Call) -> None:
    """Refuse a place that the buffer of the parts does not have."""
    axis = call.values["factor_axis"]
    if not -8 <= axis <= 8:
        raise StepFailed(f"the buffer of the parts has no dimension {axis}")


def epilogue(call: Call) -> None:
    """Guard an epilogue that is not linear: it would be applied at each step of the reduction."""
    block = call.sch.get(call.values["epilogue_block"])
    if not call.forced and _bends(block.body):
        raise StepFailed(
            f"{block.name_hint} is not linear, and would be applied at each step of the "
            "reduction: the result is another one",
            unsafe=True,
        )


_NOT_LINEAR = (tirx.Max, tirx.Min, tirx.Select, tvm.ir.Call)


def _bends(body: Any) -> bool:
    found: list[Any] = []
    tvm_ffi.structural_walk(body, (_NOT_LINEAR, found.append))
    return bool(found)


def pad_einsum(call: Call) -> None:
    """Refuse another number of multiples than the block has axes."""
    block = call.sch.get(call.values["block"])
    axes, padding = len(block.iter_vars), len(call.values["padding"])
    if axes != padding:
        raise StepFailed(f"{block.name_hint} has {axes} axes, and not {padding}")
