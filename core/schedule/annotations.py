"""Primitives of annotations: what later passes read of loops and blocks."""

from __future__ import annotations

from collections.abc import Iterator

from lowerscope.core.schedule.failures import StepFailed
from lowerscope.core.schedule.parameters import known
from lowerscope.core.schedule.primitive import (
    Arguments,
    Call,
    FunctionSelection,
    PrimitiveSpec,
    field,
)

_AUTO_UNROLL = "pragma_auto_unroll_max_step"
LAYOUT_REWRITE = "meta_schedule.layout_rewrite_preproc"
"""Annotation of a block that ``SplitLayoutRewritePreproc`` makes a function of its own."""

_NUMBERS: dict[str, int] = {
    # The build of many more steps takes minutes, and never ends at 2**30.
    _AUTO_UNROLL: 1024,
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


def _annotates(call: Call) -> None:
    """Reject pragmas that the build does not know, or takes minutes for."""
    key, value = call.values["ann_key"], call.values["ann_val"]
    if key in call.stmt("block_or_loop").annotations:
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


def _unannotates(call: Call) -> None:
    """Reject the removal of an annotation that does not exist."""
    keys = [str(key) for key in call.stmt("block_or_loop").annotations]
    if call.values["ann_key"] not in keys:
        raise StepFailed(
            f"it has no annotation {call.values['ann_key']}; it has {', '.join(keys)}"
            if keys
            else "it has no annotations"
        )


def _annotate(site: FunctionSelection) -> Iterator[Arguments]:
    if site.only is not None:
        on: Arguments = {"block_or_loop": site.named[site.only]}
        packs: Arguments = {"ann_key": LAYOUT_REWRITE, "ann_val": True}
        yield on | packs if site.found[site.only].is_block else on


def _unannotate(site: FunctionSelection) -> Iterator[Arguments]:
    if site.only is not None:
        keys = [str(key) for key in site.stmt(site.only).annotations]
        for key in keys or [_AUTO_UNROLL]:
            yield {"block_or_loop": site.named[site.only], "ann_key": key}


_ON = field("block_or_loop", "On", "loop or block", "A loop or a block.")
_KEY = field(
    "ann_key",
    "Name",
    "text",
    "pragma_auto_unroll_max_step unrolls loops below that many steps.",
    default=_AUTO_UNROLL,
)
_VALUE = field("ann_val", "Value", "value", "A number, a text, or several.", default=16)

ENTRIES = (
    PrimitiveSpec(
        name="annotate",
        group="Annotations",
        title="annotate {block_or_loop} with {ann_key} = {ann_val}",
        offer="annotate",
        parameters=(_ON, _KEY, _VALUE),
        candidates=_annotate,
        guard=_annotates,
    ),
    PrimitiveSpec(
        name="unannotate",
        group="Annotations",
        title="take {ann_key} off {block_or_loop}",
        offer="take an annotation off",
        parameters=(_ON, _KEY),
        choices={"ann_key": lambda _, stmt: tuple(map(str, stmt.annotations))},
        candidates=_unannotate,
        guard=_unannotates,
    ),
)
