"""Graphs of boxes: from what they say to where they stand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lowerscope.core.records import Box, Edge, GraphRecord
from lowerscope.core.rendering.layout import NodeSize, layout
from lowerscope.core.rendering.metrics import TextMetrics

HEIGHT = 36.0
"""Of every box, in pixels: two lines of text."""

_LEAST_WIDTH = 136.0
_WIDEST_SUBTITLE = 240.0
_LEFT = 14.0
_RIGHT = 12.0
_STRATEGY = 32.0


@dataclass(frozen=True, slots=True)
class BoxText:
    """A box before it has a place; the fields are those of `records.Box`."""

    id: str
    title: str
    subtitle: str
    kind: str
    strategy: str = ""


@dataclass(frozen=True, slots=True)
class Flow:
    """A value that flows from box to box, by their ids."""

    source: str
    target: str
    label: str = ""


def graph_record(
    boxes: Sequence[BoxText],
    flows: Sequence[Flow],
    metrics: TextMetrics,
    check: Callable[[], None],
) -> GraphRecord:
    """Lay out boxes and the values that flow between them.

    Subtitles that are very long are cut, and end in ``…``. Two boxes have one edge at most.

    Parameters
    ----------
    boxes, flows
        The graph; the order has no meaning, but is kept.
    metrics
        Widths of text in the fonts of the graph.
    check
        Called often; may raise to give up.
    """
    boxes = [_cut(box, metrics) for box in boxes]
    flows = list({(flow.source, flow.target): flow for flow in flows}.values())
    placed = layout(
        [NodeSize(box.id, _width(box, metrics), HEIGHT) for box in boxes],
        [(flow.source, flow.target, metrics.quiet_width(flow.label)) for flow in flows],
        check,
    )
    return GraphRecord(
        boxes=tuple(
            Box(
                id=box.id,
                title=box.title,
                subtitle=box.subtitle,
                kind=box.kind,
                strategy=box.strategy,
                x=placed.corners[box.id][0],
                y=placed.corners[box.id][1],
                width=_width(box, metrics),
                height=HEIGHT,
            )
            for box in boxes
        ),
        edges=tuple(
            Edge(
                source=flow.source,
                target=flow.target,
                label=flow.label,
                points=path.points,
                label_at=path.label_at,
            )
            for flow, path in zip(flows, placed.edges, strict=True)
        ),
        width=placed.width,
        height=placed.height,
    )


def _cut(box: BoxText, metrics: TextMetrics) -> BoxText:
    subtitle = box.subtitle
    if metrics.quiet_width(subtitle) <= _WIDEST_SUBTITLE:
        return box
    while metrics.quiet_width(subtitle + "…") > _WIDEST_SUBTITLE:
        subtitle = subtitle[:-1]
    return BoxText(box.id, box.title, subtitle.rstrip(" ,·") + "…", box.kind, box.strategy)


def _width(box: BoxText, metrics: TextMetrics) -> float:
    text = max(metrics.title_width(box.title), metrics.quiet_width(box.subtitle))
    wanted = _LEFT + text + (_STRATEGY if box.strategy else _RIGHT)
    # An even number of pixels, so that the middle, where edges meet the box, is a whole one.
    return max(_LEAST_WIDTH, 2.0 * math.ceil(wanted / 2))
