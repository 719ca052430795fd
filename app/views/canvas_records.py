"""Graph records, as the canvas takes them."""

from __future__ import annotations

from lowerscope.app.views.formats import STRATEGY_LETTERS
from lowerscope.app.widgets.graph_canvas import (
    CanvasEdge,
    CanvasGraph,
    CanvasNode,
    CanvasRegion,
)
from lowerscope.core.graph_records import GraphRecord


def canvas_graph(record: GraphRecord) -> CanvasGraph:
    """Return `record` as a graph for the canvas."""
    return CanvasGraph(
        nodes=tuple(
            CanvasNode(
                id=box.id,
                title=box.title,
                subtitle=box.subtitle,
                badge=STRATEGY_LETTERS.get(box.strategy, ""),
                role=box.kind,
                strategy=box.strategy,
                x=box.x,
                y=box.y,
                width=box.width,
                height=box.height,
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
            CanvasRegion(region.title, region.x, region.y, region.width, region.height)
            for region in record.regions
        ),
    )
