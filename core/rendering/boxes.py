"""Graphs of boxes: from what they say to where they stand."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from lowerscope.core.graph_records import CHEVRON, TITLE_BAR, Box, Edge, GraphRecord, Region
from lowerscope.core.rendering.bands import Bands
from lowerscope.core.rendering.collapsing import (
    BoxText,
    Flow,
    Frame,
    FrameItem,
    collapse,
    level_that_fits,
)
from lowerscope.core.rendering.hierarchy import Modules, groups_in, hierarchy
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
    modules: Modules | None = None,
) -> GraphRecord:
    """Lay out boxes and the values that flow between them.

    Subtitles that are very long are cut, and end in ``…``. Two boxes have one edge at most.

    Parameters
    ----------
    boxes, flows
        The graph, every box after those that it reads.
    metrics
        Widths of text in the fonts of the graph.
    check
        Called often; may raise to give up.
    frames
        The bands of the boxes, and those with a frame around them.
    modules
        What the boxes can be collapsed into.
    """
    boxes = [_cut(box, metrics) for box in boxes]
    items = hierarchy([""] * len(boxes) if modules is None else modules.paths)
    expanded: Set[str] = frozenset()
    if modules is not None:
        opening = modules.opening
        expanded = (
            level_that_fits(boxes, flows, items, opening.fits)
            if opening.expanded is None
            else frozenset(opening.expanded)
        )
    left = collapse(boxes, flows, items, expanded, {} if modules is None else modules.kinds)
    widths = {box.id: _width(box, metrics) for box in left.boxes}
    placed = layout(
        [NodeSize(box.id, widths[box.id], HEIGHT) for box in left.boxes],
        [(flow.source, flow.target, metrics.quiet_width(flow.label)) for flow in left.flows],
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
            width=widths[box.id],
            height=HEIGHT,
            members=box.members,
        )
        for box in left.boxes
    )
    edges = tuple(
        Edge(
            source=flow.source,
            target=flow.target,
            label=flow.label,
            points=path.points,
            label_at=path.label_at,
        )
        for flow, path in zip(left.flows, placed.edges, strict=True)
    )
    regions = _module_regions(left.items, drawn)
    return GraphRecord(
        boxes=drawn,
        edges=edges,
        width=placed.width,
        height=placed.height,
        regions=(*regions, *(() if frames is None else _regions(drawn, edges, frames, metrics))),
        expanded=tuple(region.id for region in regions),
        collapsible=any(True for _ in groups_in(items)),
    )


def _module_regions(items: Sequence[FrameItem], boxes: Sequence[Box]) -> list[Region]:
    result: list[Region] = []
    for item in items:
        if isinstance(item, Frame):
            inside = [boxes[index] for index in _boxes_in(item)]
            x, y = min(box.x for box in inside), min(box.y for box in inside)
            right = max(box.x + box.width for box in inside)
            bottom = max(box.y + box.height for box in inside)
            result.append(
                Region(
                    title=item.title,
                    x=x - 12,
                    y=y - TITLE_BAR - 6,
                    width=right - x + 24,
                    height=bottom - y + TITLE_BAR + 18,
                    id=item.id,
                )
            )
            result.extend(_module_regions(item.items, boxes))
    return result


def _boxes_in(frame: Frame) -> Iterator[int]:
    for item in frame.items:
        if isinstance(item, Frame):
            yield from _boxes_in(item)
        else:
            yield item


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
    return replace(box, subtitle=subtitle.rstrip(" ,·") + "…")


def _width(box: BoxText, metrics: TextMetrics) -> float:
    text = max(metrics.title_width(box.title), metrics.quiet_width(box.subtitle))
    wanted = _LEFT + text + (_STRATEGY if box.strategy else _RIGHT)
    wanted += CHEVRON if box.kind == "group" else 0.0
    # An even number of pixels, so that the middle, where edges meet the box, is a whole one.
    return max(_LEAST_WIDTH, 2.0 * math.ceil(wanted / 2))
