"""Stubs in the place of long edges from a value with many distant uses.

A mask, a table of positions or a scalar that every layer reads would be a bundle of edges along the
whole graph. Each distant use has a stub with the value's name instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lowerscope.core.model.graph import Port
from lowerscope.core.model.text_metrics import cut_to
from lowerscope.core.rendering.graphs.box_texts import BoxText, Flow

_MANY = 3
"""Least number of distant uses of a value with stubs."""

_FAR = 4
"""Least distance of a use with a stub, in layers."""

HEIGHT = 16.0
"""Height of a stub, in pixels."""

GAP = 6.0
"""Gap between a stub and its box, and between two stubs, in pixels."""

_BESIDE = 10.0
_INSET = 12.0
_STEP = 16.0
_PAD = 6.0
_WIDEST = 120.0


@dataclass(frozen=True, slots=True)
class Stub:
    """A stub, the ids of the boxes at the other end, and its width in pixels."""

    label: str
    others: tuple[str, ...]
    width: float


@dataclass(slots=True)
class Stubs:
    """The edges of a graph, and its stubs.

    Attributes
    ----------
    flows
        The flows drawn as edges.
    ins, outs
        The stubs above each box, and below it.
    lines
        Number of edges that end at each box.
    """

    flows: list[Flow]
    ins: dict[str, list[Stub]] = field(default_factory=dict)
    outs: dict[str, Stub] = field(default_factory=dict)
    lines: Counter[str] = field(default_factory=Counter)

    def room(self, box: str, width: float) -> tuple[float, float, float]:
        """Return the extents of a box's stubs to the left and right of its middle, and above it."""
        above = self.ins.get(box, ())
        start = self._start(box, width)
        right = start + self._wide(box) if above else 0.0
        left = -start if above else 0.0
        if box in self.outs:
            left = max(left, _BESIDE + self.outs[box].width)
        return left, right, HEIGHT + GAP if above else 0.0

    def ports(self, box: str, x: float, y: float, width: float, height: float) -> list[Port]:
        """Return the stubs of a box at these coordinates."""
        ports: list[Port] = []
        at = x + width / 2 + self._start(box, width)
        for stub in self.ins.get(box, ()):
            ports.append(
                Port(
                    box=box,
                    others=stub.others,
                    label=stub.label,
                    side="in",
                    x=at,
                    y=y - GAP - HEIGHT,
                    width=stub.width,
                    height=HEIGHT,
                )
            )
            at += stub.width + GAP
        if box in self.outs:
            out = self.outs[box]
            ports.append(
                Port(
                    box=box,
                    others=out.others,
                    label=out.label,
                    side="out",
                    x=x + width / 2 - _BESIDE - out.width,
                    y=y + height + GAP,
                    width=out.width,
                    height=HEIGHT,
                )
            )
        return ports

    def _wide(self, box: str) -> float:
        above = self.ins[box]
        return sum(stub.width for stub in above) + GAP * (len(above) - 1)

    def _start(self, box: str, width: float) -> float:
        """Return the start of the stubs above a box, from its middle: right of the edges."""
        if box not in self.ins:
            return 0.0
        if self.lines[box] == 0:
            return -self._wide(box) / 2
        return _BESIDE + min(_STEP * (self.lines[box] - 1), width / 2 - _INSET)


def with_stubs(
    boxes: Sequence[BoxText], flows: Sequence[Flow], text_width: Callable[[str], float]
) -> Stubs:
    """Select the flows that are drawn as stubs; the nearest use of a value keeps its edge.

    Parameters
    ----------
    boxes
        In topological order.
    """
    row = _rows(boxes, flows)
    leaving: dict[str, list[Flow]] = {}
    for flow in flows:
        leaving.setdefault(flow.source, []).append(flow)
    titles = {box.id: box.title for box in boxes}
    hidden: set[tuple[str, str]] = set()
    stubs = Stubs([])
    for source, uses in leaving.items():
        nearest = min(uses, key=lambda flow: row[flow.target])
        far = [
            flow.target
            for flow in uses
            if flow is not nearest and row[flow.target] - row[source] >= _FAR
        ]
        if len(far) < _MANY:
            continue
        hidden.update((source, target) for target in far)
        out = f"{len(far)} more uses"
        stubs.outs[source] = Stub(out, tuple(far), text_width(out) + 2 * _PAD)
        label = cut_to(titles[source], _WIDEST, text_width)
        for target in far:
            stub = Stub(label, (source,), text_width(label) + 2 * _PAD)
            stubs.ins.setdefault(target, []).append(stub)
    stubs.flows = [flow for flow in flows if (flow.source, flow.target) not in hidden]
    stubs.lines = Counter(flow.target for flow in stubs.flows)
    return stubs


def _rows(boxes: Sequence[BoxText], flows: Sequence[Flow]) -> dict[str, int]:
    """Return the longest-path layer of each box; sources are next to their first use."""
    row = dict.fromkeys((box.id for box in boxes), 0)
    targets: dict[str, list[str]] = {}
    reading: set[str] = set()
    for flow in flows:
        targets.setdefault(flow.source, []).append(flow.target)
        reading.add(flow.target)
    for box in boxes:
        below = row[box.id] + 1
        for target in targets.get(box.id, ()):
            row[target] = max(row[target], below)
    for box in boxes:
        if box.id not in reading and box.id in targets:
            row[box.id] = min(row[target] for target in targets[box.id]) - 1
    return row
