"""Primitives of annotations: what later passes read of loops and blocks."""

from __future__ import annotations

from collections.abc import Iterator

from lowerscope.core.records.schedule import Field
from lowerscope.core.scheduling import annotation_guards
from lowerscope.core.scheduling.entry import Arguments, Entry, Site

_ON = Field(name="block_or_loop", label="On", kind="loop or block", help="A loop or a block.")
_KEY = Field(
    name="ann_key",
    label="Name",
    kind="text",
    default=annotation_guards.AUTO_UNROLL,
    help="pragma_auto_unroll_max_step unrolls loops below that many steps.",
)


def _annotate(site: Site) -> Iterator[Arguments]:
    if len(site.chosen) != 1 or not site.chosen[0].index:
        return
    chosen = site.chosen[0]
    if chosen.place.is_block:
        yield {
            "block_or_loop": chosen.reference,
            "ann_key": annotation_guards.LAYOUT_REWRITE,
            "ann_val": True,
        }
    else:
        yield {"block_or_loop": chosen.reference}


def _unannotate(site: Site) -> Iterator[Arguments]:
    if len(site.chosen) != 1 or not site.chosen[0].index:
        return
    chosen = site.chosen[0]
    keys = [str(key) for key in chosen.place.stmt.annotations]
    for key in keys or [annotation_guards.AUTO_UNROLL]:
        yield {"block_or_loop": chosen.reference, "ann_key": key}


ENTRIES = (
    Entry(
        name="annotate",
        group="Annotations",
        title="annotate {block_or_loop} with {ann_key} = {ann_val}",
        offer="annotate",
        parameters=(
            _ON,
            _KEY,
            Field(
                name="ann_val",
                label="Value",
                kind="value",
                default=16,
                help="A number, a text, or several.",
            ),
        ),
        candidates=_annotate,
        guard=annotation_guards.annotate,
    ),
    Entry(
        name="unannotate",
        group="Annotations",
        title="take {ann_key} off {block_or_loop}",
        offer="take an annotation off",
        parameters=(_ON, _KEY),
        candidates=_unannotate,
        guard=annotation_guards.unannotate,
    ),
)
