"""Graphs of boxes, from texts to a layout."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace

from lowerscope.core.model.graph import CHEVRON, GROUPS, Box, Edge, GraphRecord, Region
from lowerscope.core.model.text_metrics import TextMetrics, cut_to
from lowerscope.core.rendering.graph_layout.compound import LayoutItem, Subgraph
from lowerscope.core.rendering.graph_layout.layout import layout
from lowerscope.core.rendering.graph_layout.route import NodeSize
from lowerscope.core.rendering.graphs.box_texts import BoxText, Flow
from lowerscope.core.rendering.graphs.collapsing import (
    Collapsed,
    Frame,
    FrameItem,
    collapse,
    level_that_fits,
)
from lowerscope.core.rendering.graphs.hierarchy import (
    FITTING,
    Blocks,
    Item,
    Modules,
    Opening,
    groups_in,
    hierarchy,
)
from lowerscope.core.rendering.graphs.stubs import Stubs, with_stubs

HEIGHT = 36.0
"""Height of every box, in pixels: two lines of text."""

_LEAST_WIDTH = 136.0
_WIDEST_SUBTITLE = 300.0
_WIDEST_TITLE = 420.0
_LEFT = 14.0
_RIGHT = 12.0
_STRATEGY = 32.0
_BESIDE = 12.0


@contextmanager
def _garbage_collection_paused() -> Iterator[None]:
    """Pause the cyclic garbage collector, which takes a quarter of the time of a large layout."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@_garbage_collection_paused()
def graph_record(
    boxes: Sequence[BoxText],
    flows: Sequence[Flow],
    metrics: TextMetrics,
    check: Callable[[], None],
    blocks: Blocks | None = None,
    modules: Modules | None = None,
) -> GraphRecord:
    """Lay out boxes and the values that flow between them.

    Subtitles that are very long are cut, and end in ``…``; titles are kept, and have to be cut to
    the width of the box where they are drawn. Two boxes have one edge at most. Where
    a value is used in many places far from it, stubs at both ends take the place of edges.

    Parameters
    ----------
    boxes, flows
        The graph, every box after those that it reads.
    metrics
        Widths of text in the fonts of the graph.
    check
        Called often; may raise to cancel.
    blocks
        The vertical order of boxes, and the boxes with a frame.
    modules
        The modules that boxes can be collapsed into.
    """
    boxes = [_cut(box, metrics) for box in boxes]
    if modules is None:
        modules = Modules([""] * len(boxes), {}, FITTING)
    items = hierarchy(modules.paths, blocks, modules.calls)
    calls = {call.id: _cut(call, metrics) for call in modules.calls.values()}
    expanded = _expanded(boxes, flows, items, modules.opening)
    left = collapse(boxes, flows, items, expanded, modules.kinds, modules.unit, calls)
    widths = {box.id: _width(box, metrics) for box in left.boxes}
    stubs = with_stubs(left.boxes, left.flows, metrics.quiet_width)
    # Thousands of edges have few labels.
    label_widths = {label: metrics.quiet_width(label) for label in {f.label for f in stubs.flows}}
    placed = layout(
        [_size(box, widths[box.id], stubs) for box in left.boxes],
        [(flow.source, flow.target, label_widths[flow.label]) for flow in stubs.flows],
        check,
        [_layout_item(item, metrics) for item in left.items],
        None if blocks is None else _bands_of(left, blocks),
    )
    groups = dict(_groups_of(left.items))
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
            origins=box.origins,
            operator=box.operator,
            shape=box.shape,
            dtype=box.dtype,
            group=groups[index],
        )
        for index, box in enumerate(left.boxes)
    )
    edges = tuple(
        Edge(
            source=flow.source,
            target=flow.target,
            label=flow.label,
            points=path.points,
            label_at=path.label_at,
        )
        for flow, path in zip(stubs.flows, placed.edges, strict=True)
    )
    regions = tuple(
        Region(
            title=frame.title,
            x=x,
            y=y,
            width=width,
            height=height,
            id=frame.id,
            origins=(calls[frame.id].origins or ()) if frame.id in calls else (),
        )
        for frame, (x, y, width, height) in zip(_frames_in(left.items), placed.frames, strict=True)
    )
    return GraphRecord(
        boxes=drawn,
        edges=edges,
        width=placed.width,
        height=placed.height,
        regions=regions,
        ports=tuple(
            port
            for box in drawn
            for port in stubs.ports(box.id, box.x, box.y, box.width, box.height)
        ),
        expanded=tuple(region.id for region in regions if region.id),
        collapsible=any(box.kind == "fused" for box in boxes)
        or any(True for _ in groups_in(items)),
    )


def _expanded(
    boxes: Sequence[BoxText], flows: Sequence[Flow], items: Sequence[Item], opening: Opening
) -> Set[str]:
    """Return the ids of the expanded groups."""
    if opening.is_whole:
        return {group.id for group in groups_in(items)}
    if opening.expanded is None:
        return level_that_fits(boxes, flows, items, opening.fits)
    return frozenset(opening.expanded)


def _size(box: BoxText, width: float, stubs: Stubs) -> NodeSize:
    left, right, above = stubs.room(box.id, width)
    return NodeSize(box.id, width, HEIGHT, left, right, above, box.kind == "constant")


def _layout_item(item: FrameItem, metrics: TextMetrics) -> LayoutItem:
    if isinstance(item, int):
        return item
    inside = tuple(_layout_item(each, metrics) for each in item.items)
    width = (
        min(metrics.quiet_width(item.title), _WIDEST_TITLE)
        + 2 * _BESIDE
        + (CHEVRON if item.id else 0.0)
    )
    return Subgraph(width, inside, bar=bool(item.id))


def _frames_in(items: Sequence[FrameItem]) -> Iterator[Frame]:
    """Yield all frames, outer ones before those inside of them."""
    for item in items:
        if isinstance(item, Frame):
            yield item
            yield from _frames_in(item.items)


def _groups_of(items: Sequence[FrameItem], group: str = "") -> Iterator[tuple[int, str]]:
    """Yield each box by number, with the id or the title of the innermost frame around it."""
    for item in items:
        if isinstance(item, Frame):
            yield from _groups_of(item.items, item.id or item.title)
        else:
            yield item, group


def _bands_of(left: Collapsed, blocks: Blocks) -> list[int]:
    """Return the band of each outermost item: all of an item is in one band."""
    band = {box: blocks.bands[whole] for whole, box in enumerate(left.of)}

    def first(item: FrameItem) -> int:
        return item if isinstance(item, int) else first(item.items[0])

    return [band[first(item)] for item in left.items]


def _cut(box: BoxText, metrics: TextMetrics) -> BoxText:
    subtitle = cut_to(box.subtitle, _WIDEST_SUBTITLE, metrics.quiet_width)
    if subtitle == box.subtitle:
        return box
    return replace(box, subtitle=subtitle.removesuffix("…").rstrip(" ,·") + "…")


def _width(box: BoxText, metrics: TextMetrics) -> float:
    title = min(metrics.title_width(box.title), _WIDEST_TITLE)
    text = max(title, metrics.quiet_width(box.subtitle))
    wanted = _LEFT + text + (_STRATEGY if box.strategy else _RIGHT)
    wanted += CHEVRON if box.kind in GROUPS else 0.0
    # An even number of pixels, so that the middle, where edges meet the box, is a whole one.
    return max(_LEAST_WIDTH, 2.0 * math.ceil(wanted / 2))
