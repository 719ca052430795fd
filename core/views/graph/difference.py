"""The difference of the data flow of two Relax functions, as one drawing."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from lowerscope.core.model.graph import Box, Edge, GraphRecord, Rows, TextMetrics
from lowerscope.core.model.line_difference import matching_lines
from lowerscope.core.model.module_steps import NodeDifference, Status
from lowerscope.core.views.graph.boxes import graph_record

_CALL = re.compile(r"^(?:R\.(?:\w+\.)*|call_tir |call )(\w+?)\d*(?= |$)")

_GONE = "old:"
"""Prefix of the id of a box that the new side does not have."""


@dataclass(frozen=True)
class FunctionGraph:
    """The boxes of a function in the order of its bindings, and the flows between them.

    ``nodes`` are the names of the origins of boxes, by their ids, where both sides have the same
    origin: then boxes of different nodes are never matched.
    """

    boxes: Sequence[Box] = ()
    flows: Sequence[Edge] = ()
    nodes: Mapping[str, str] = field(default_factory=dict)


def graph_difference(
    old: FunctionGraph,
    new: FunctionGraph,
    metrics: TextMetrics,
    check: Callable[[], None],
    *,
    whole: bool = True,
) -> tuple[GraphRecord, tuple[NodeDifference, ...]]:
    """Draw both graphs as one, and list their nodes.

    An unchanged or changed node is one box, with the id of the new side; a removed one has its old
    id after ``old:``. The strategy of a box is its status, empty where nothing changed; its origins
    are those of both sides.

    Args:
        whole: Whether to draw all nodes; otherwise those that changed, with their neighbours.
    """
    boxes: list[Box] = []
    nodes: list[NodeDifference] = []
    # In one order for both sides, so that all flows lead from earlier to later boxes.
    merged: dict[str, str] = {}
    for one, other in _side_by_side(old, new):
        box, node = _joined(one, other)
        boxes.append(box)
        nodes.append(node)
        if one is not None:
            merged[_GONE + one.id] = box.id
    gone = [
        replace(flow, source=merged[_GONE + flow.source], target=merged[_GONE + flow.target])
        for flow in old.flows
    ]
    flows = [*gone, *new.flows]
    if not whole:
        changed = {box.id for box in boxes if box.strategy}
        ends = [{flow.source, flow.target} for flow in flows]
        near = changed.union(*(each for each in ends if not changed.isdisjoint(each)))
        boxes = [box for box in boxes if box.id in near]
        nodes = [node for node in nodes if node.id in near]
        flows = [flow for flow in flows if {flow.source, flow.target} <= near]
    return graph_record(boxes, flows, metrics, check), tuple(nodes)


def _side_by_side(old: FunctionGraph, new: FunctionGraph) -> list[tuple[Box | None, Box | None]]:
    """Return the matched boxes of both sides, in the order of the program."""
    types_old, types_new = _types(old), _types(new)

    def whole(box: Box, _types: Mapping[str, str]) -> str:
        return f"{box.kind}|{box.title}|{box.description}"

    def content(box: Box, types: Mapping[str, str]) -> str:
        return f"{box.kind}|{box.description}|{types.get(box.id, '')}"

    def called(box: Box, types: Mapping[str, str]) -> str:
        # An operator, and the function that it was legalised into.
        plain = _CALL.sub(r"\1", box.description)
        return f"{plain}|{types.get(box.id, '')}"

    def name(box: Box, types: Mapping[str, str]) -> str:
        # A name means the same only where the value has the same type: passes number anew.
        return f"{box.title}|{types.get(box.id, '')}"

    def origin(box: Box, types: Mapping[str, str]) -> str:
        # For boxes without origins, this says nothing.
        known = box.id in old.nodes or box.id in new.nodes
        return types.get(box.id, "") if known else f"{box.id}|{types is types_old}"

    # The surest sign first; the others for what lies between.
    pairs: list[tuple[int, int]] = []
    for key in (whole, content, called, name, origin):
        pairs = _with_matches(
            pairs,
            [f"{old.nodes.get(box.id, '')}|{key(box, types_old)}" for box in old.boxes],
            [f"{new.nodes.get(box.id, '')}|{key(box, types_new)}" for box in new.boxes],
        )
    result: list[tuple[Box | None, Box | None]] = []
    i = j = 0
    for next_i, next_j in [*pairs, (len(old.boxes), len(new.boxes))]:
        result += [(box, None) for box in old.boxes[i:next_i]]
        result += [(None, box) for box in new.boxes[j:next_j]]
        if next_i < len(old.boxes) and next_j < len(new.boxes):
            result.append((old.boxes[next_i], new.boxes[next_j]))
        i, j = next_i + 1, next_j + 1
    return result


def _with_matches(
    pairs: list[tuple[int, int]], old: Sequence[str], new: Sequence[str]
) -> list[tuple[int, int]]:
    """Return `pairs`, and between them the places where two lists are equal."""
    result: list[tuple[int, int]] = []
    i = j = 0
    for next_i, next_j in [*pairs, (len(old), len(new))]:
        for first, second, length in matching_lines(old[i:next_i], new[j:next_j]):
            result += [(i + first + step, j + second + step) for step in range(length)]
        if next_i < len(old) and next_j < len(new):
            result.append((next_i, next_j))
        i, j = next_i + 1, next_j + 1
    return result


def _types(graph: FunctionGraph) -> dict[str, str]:
    """Return the type of the value of each box."""
    return {flow.source: flow.label for flow in graph.flows}


def _joined(old: Box | None, new: Box | None) -> tuple[Box, NodeDifference]:
    """Return the box of a matched pair, and the entry of the list."""
    if old is None or new is None:
        there = new or old
        assert there is not None
        status: Status = "added" if old is None else "removed"
        entity = there.id if old is None else _GONE + there.id
        name, operator, rows = there.title, there.operator, there.rows
    else:
        there, entity = new, new.id
        status = "same" if old.description == new.description else "changed"
        name, operator = _both(old.title, new.title), _both(old.operator, new.operator)
        rows = _both_rows(old.rows, new.rows)
    sides = [box for box in (new, old) if box is not None]
    box = replace(
        there,
        members=tuple(dict.fromkeys(each for box in sides for each in box.members)),
        origins=tuple(dict.fromkeys(each for box in sides for each in box.origins or ())),
        id=entity,
        title=name,
        operator=operator,
        rows=rows,
        strategy="" if status == "same" else status,
    )
    node = NodeDifference(
        id=entity,
        status=status,
        old="" if old is None else old.id,
        new="" if new is None else new.id,
        name=name,
        before="" if old is None else old.description,
        after="" if new is None else new.description,
    )
    return box, node


def _both(old: str, new: str) -> str:
    return new if old == new else f"{old} → {new}"


def _both_rows(old: Rows, new: Rows) -> Rows:
    """Return the rows that both have, then those that are gone, and those that are new."""
    common = tuple(row for row in new if row in old)
    gone = tuple((f"− {name}", value) for name, value in old if (name, value) not in new)
    added = tuple((f"+ {name}", value) for name, value in new if (name, value) not in old)
    return (*common, *gone, *added)
