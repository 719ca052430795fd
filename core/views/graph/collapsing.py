"""A part of a graph's layout: the inside of a module, or the neighbours of a node."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from lowerscope.core.model.graph import Box, Edge, GraphRecord, Port, Region

T = TypeVar("T", Box, Region, Port)

_MARGIN = 24.0
"""Margin around the boxes of a part, for arrows and labels, in pixels."""


def openings_to(name: str) -> tuple[str, ...]:
    """Return the ids of the modules to expand to see one: itself and those around it."""
    parts = name.split(".")
    return tuple(f"module:{'.'.join(parts[: count + 1])}" for count in range(len(parts)))


def part_of(graph: GraphRecord, name: str) -> GraphRecord | None:
    """Return a part of a graph, with the places that its boxes have in the whole.

    Parameters
    ----------
    name
        Of a module that is expanded, for its frame and what is inside; or of a node, for it and
        the nodes that give it values or take its own.
    """
    region = next((each for each in graph.regions if each.id == f"module:{name}"), None)
    if region is not None:
        inside = [each for each in graph.boxes if _is_in(each, region)]
        return _cut(graph, inside, region)
    ids = {name, f"fx:{name}", f"relax:main/{name}", f"module:{name}"}
    box = next((each for each in graph.boxes if each.id in ids), None)
    if box is None:
        return None
    ends = {end for edge in graph.edges for end in _ends(edge.source, edge.target, box.id)}
    for port in graph.ports:
        ends |= {end for other in port.others for end in _ends(port.box, other, box.id)}
    return _cut(graph, [each for each in graph.boxes if each is box or each.id in ends], None)


def _ends(one: str, other: str, middle: str) -> set[str]:
    return {one, other} if middle in (one, other) else set()


def _is_in(box: Box, region: Region) -> bool:
    x, y = box.x + box.width / 2, box.y + box.height / 2
    return region.x <= x <= region.x + region.width and region.y <= y <= region.y + region.height


def _cut(graph: GraphRecord, boxes: list[Box], frame: Region | None) -> GraphRecord:
    kept = {each.id for each in boxes}
    shown: Iterable[Box | Region] = (*boxes, *([frame] if frame else []))
    places = [(each.x, each.y, each.x + each.width, each.y + each.height) for each in shown]
    left, top = min(each[0] for each in places), min(each[1] for each in places)
    right, bottom = max(each[2] for each in places), max(each[3] for each in places)
    x, y = left - _MARGIN, top - _MARGIN
    edges = (each for each in graph.edges if each.source in kept and each.target in kept)
    regions = (
        each
        for each in graph.regions
        if each is frame or (frame is not None and _holds(frame, each))
    )
    ports = (each for each in graph.ports if each.box in kept)
    return msgspec.structs.replace(
        graph,
        boxes=tuple(_moved(each, x, y) for each in boxes),
        edges=tuple(_moved_edge(each, x, y) for each in edges),
        regions=tuple(_moved(each, x, y) for each in regions),
        ports=tuple(_moved(each, x, y) for each in ports),
        width=right - left + 2 * _MARGIN,
        height=bottom - top + 2 * _MARGIN,
    )


def _holds(outer: Region, inner: Region) -> bool:
    return (
        outer.x <= inner.x
        and outer.y <= inner.y
        and inner.x + inner.width <= outer.x + outer.width
        and inner.y + inner.height <= outer.y + outer.height
    )


def _moved(each: T, x: float, y: float) -> T:
    return msgspec.structs.replace(each, x=each.x - x, y=each.y - y)


def _moved_edge(edge: Edge, x: float, y: float) -> Edge:
    at = edge.label_at
    return msgspec.structs.replace(
        edge,
        points=tuple((right - x, below - y) for right, below in edge.points),
        label_at=None if at is None else (at[0] - x, at[1] - y),
    )
