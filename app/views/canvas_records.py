"""Graph records, as the canvas takes them."""

from __future__ import annotations

from lowerscope.app.views.descriptions import name_of
from lowerscope.app.views.formats import STATUS_MARKS
from lowerscope.app.widgets.canvas.graph_canvas import (
    CanvasEdge,
    CanvasGraph,
    CanvasNode,
    CanvasPort,
    CanvasRegion,
)
from lowerscope.core.records.graph import GraphRecord
from lowerscope.core.strategy_names import STRATEGY_LETTERS

_BADGES = STRATEGY_LETTERS | STATUS_MARKS


def canvas_graph(record: GraphRecord) -> CanvasGraph:
    """Return `record` as a graph for the canvas."""
    return CanvasGraph(
        nodes=tuple(
            CanvasNode(
                id=box.id,
                title=box.title,
                subtitle=box.subtitle,
                badge=_BADGES.get(box.strategy, ""),
                role=box.kind,
                strategy=box.strategy,
                x=box.x,
                y=box.y,
                width=box.width,
                height=box.height,
                members=tuple(name_of(each) for each in box.members),
            )
            for box in record.boxes
        ),
        edges=tuple(
            CanvasEdge(
                source=edge.source,
                target=edge.target,
                label=edge.label,
                points=edge.points,
                label_at=edge.label_at,
            )
            for edge in record.edges
        ),
        width=record.width,
        height=record.height,
        regions=tuple(
            CanvasRegion(region.title, region.x, region.y, region.width, region.height, region.id)
            for region in record.regions
        ),
        ports=tuple(
            CanvasPort(
                node=port.box,
                others=port.others,
                label=port.label,
                side=port.side,
                x=port.x,
                y=port.y,
                width=port.width,
                height=port.height,
            )
            for port in record.ports
        ),
    )
