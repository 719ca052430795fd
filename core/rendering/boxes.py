"""Graphs of boxes: from what they say to where they stand."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lowerscope.core.graph_records import Box, Edge, GraphRecord, Region
from lowerscope.core.rendering.bands import Bands
from lowerscope.core.rendering.layout import NodeSize, layout
from lowerscope.core.rendering.metrics import TextMetrics

HEIGHT = 36.0
"""Of every box, in pixels: two lines of text."""

_LEAST_WIDTH = 136.0
_WIDEST_SUBTITLE = 240.0
_LEFT = 14.0
_RIGHT = 12.0
_STRATEGY = 32.0
_BESIDE = 12.0
_FRAME_ABOVE = 12.0
_FRAME_BELOW = 30.0


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


@dataclass(frozen=True, slots=True)
class Frames:
    """Which boxes belong together, and what stands above what.

    Attributes
    ----------
    bands
        The band of each box; all of a band stands below those of lower ones.
    titles
        Of the bands that have a frame.
    """

    bands: Sequence[int]
    titles: Mapping[int, str]


def graph_record(
    boxes: Sequence[BoxText],
    flows: Sequence[Flow],
    metrics: TextMetrics,
    check: Callable[[], None],
    frames: Frames | None = None,
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
    frames
        The bands of the boxes, and those with a frame around them.
    """
    boxes = [_cut(box, metrics) for box in boxes]
    flows = list({(flow.source, flow.target): flow for flow in flows}.values())
    placed = layout(
        [NodeSize(box.id, _width(box, metrics), HEIGHT) for box in boxes],
        [(flow.source, flow.target, metrics.quiet_width(flow.label)) for flow in flows],
        check,
        None if frames is None else Bands(frames.bands, frozenset(frames.titles)),
    )
    drawn = tuple(
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
    )
    edges = tuple(
        Edge(
            source=flow.source,
            target=flow.target,
            label=flow.label,
            points=path.points,
            label_at=path.label_at,
        )
        for flow, path in zip(flows, placed.edges, strict=True)
    )
    return GraphRecord(
        boxes=drawn,
        edges=edges,
        width=placed.width,
        height=placed.height,
        regions=() if frames is None else tuple(_regions(drawn, edges, frames, metrics)),
    )


def _regions(
    boxes: Sequence[Box], edges: Sequence[Edge], frames: Frames, metrics: TextMetrics
) -> Iterator[Region]:
    """Yield the frames, around the boxes and the labels below them, where the title is as well."""
    for band, title in frames.titles.items():
        inside = {box.id: box for box, of in zip(boxes, frames.bands, strict=True) if of == band}
        if not inside:
            continue
        rights = [box.x + box.width for box in inside.values()]
        rights += [
            edge.label_at[0] + metrics.quiet_width(edge.label)
            for edge in edges
            if edge.source in inside and edge.label_at is not None
        ]
        left = min(box.x for box in inside.values()) - _BESIDE
        top = min(box.y for box in inside.values()) - _FRAME_ABOVE
        bottom = max(box.y + box.height for box in inside.values()) + _FRAME_BELOW
        wanted = metrics.quiet_width(title) + 2 * _BESIDE
        width = max(max(rights) + _BESIDE - left, wanted)
        yield Region(title=title, x=left, y=top, width=width, height=bottom - top)


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
