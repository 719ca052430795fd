"""Guards of annotations: uses that TVM would accept, or crash on when it builds."""

from __future__ import annotations

from typing import Any

from lowerscope.core.scheduling.entry import Call
from lowerscope.core.scheduling.failures import StepFailed
from lowerscope.core.scheduling.sizes import known

AUTO_UNROLL = "pragma_auto_unroll_max_step"
LAYOUT_REWRITE = "meta_schedule.layout_rewrite_preproc"

MAX_STEP = 1024
"""Limit of `AUTO_UNROLL`: the build of many more takes minutes, and never ends at 2**30."""

_NUMBERS: dict[str, int] = {
    AUTO_UNROLL: MAX_STEP,
    "pragma_auto_unroll_max_depth": 64,
    "pragma_unroll_explicit": 1,
    "pragma_loop_partition_hint": 1,
}
"""The pragmas of the unroller that take numbers, and the largest."""


_OF_OTHERS = (
    "software_pipeline_",
    "double_buffer_",
    "async_",
    "buffer_dim_align",
    "explicit_",
    "layout_free_",
    "thread_extent_",
    "tir.",
    "tirx.",
    "s_tir.",
    "auto_copy",
    "irregular_loop_mark",
    "warp_execution",
)
"""Annotations that passes of other targets read, or other primitives write."""


def annotate(call: Call) -> None:
    """Reject pragmas that the build does not know, or takes minutes for."""
    key, value = call.values["ann_key"], call.values["ann_val"]
    if key in _annotations(call):
        raise StepFailed(f"it has an annotation {key} already")
    if not key or key.startswith(_OF_OTHERS):
        raise StepFailed(
            f"{key} is read by passes that this target does not have, or set by other primitives"
            if key
            else "an annotation has a name"
        )
    if not key.startswith("pragma_"):
        return
    if key not in _NUMBERS:
        raise StepFailed(f"{key} is no pragma that the build knows: {', '.join(_NUMBERS)}")
    number = known(value)
    if number is None or not 0 <= number <= _NUMBERS[key]:
        raise StepFailed(f"{key} is a number from 0 to {_NUMBERS[key]}")


def unannotate(call: Call) -> None:
    """Reject the removal of an annotation that does not exist."""
    keys = list(_annotations(call))
    if call.values["ann_key"] not in keys:
        raise StepFailed(
            f"it has no annotation {call.values['ann_key']}; it has {', '.join(keys)}"
            if keys
            else "it has no annotations"
        )


def _annotations(call: Call) -> dict[str, Any]:
    stmt = call.sch.get(call.values["block_or_loop"])
    return {str(key): value for key, value in stmt.annotations.items()}
