"""Guards of layouts: uses that TVM would accept, and that are wrong."""

from __future__ import annotations

from typing import Any

from tvm import tirx

from lowerscope.core.scheduling.entry import Call
from lowerscope.core.scheduling.failures import StepFailed
from lowerscope.core.scheduling.index_maps import accessed
from lowerscope.core.scheduling.references import function_of


def transform_layout(call: Call) -> None:
    """Reject the layout of an argument of the function: the model would call another function."""
    block = call.sch.get(call.values["block"])
    buffer = accessed(block, call.values["buffer"])
    if any(buffer.same_as(param) for param in function_of(call.sch).params):
        raise StepFailed(
            f"{buffer.name} comes from the caller, which has it in its layout; "
            "make a copy with cache_read or cache_write, and lay that out"
        )


def pad_value(call: Call) -> Any:
    """Return the padding value of a new layout, in the dtype of the buffer."""
    given = call.values["pad_value"]
    if given is None:
        return None
    block = call.sch.get(call.values["block"])
    dtype = str(accessed(block, call.values["buffer"]).ty.dtype)
    if dtype.startswith(("float", "bfloat")):
        return tirx.FloatImm(dtype, float(given))
    if int(given) != given:
        raise StepFailed(f"the padding of {dtype} is a whole number")
    return tirx.IntImm(dtype, int(given))
