"""Bands of a graph: rows of boxes that stand above or below all others."""

from __future__ import annotations

from collections.abc import Sequence


def banded_layers(
    order: Sequence[int],
    successors: Sequence[Sequence[int]],
    predecessors: Sequence[Sequence[int]],
    bands: Sequence[int],
    span: Sequence[int],
) -> list[int]:
    """Return the layers of vertices, band by band; within one, as high as their predecessors let.

    What has nothing above it in its band stands just above the first place that uses it.

    Parameters
    ----------
    order
        All vertices, each after its predecessors.
    bands
        The band of each vertex; no edge leads to a lower one.
    span
        Through how many layers each vertex reaches.
    """
    layers = [0] * len(order)
    base = 0
    for band in sorted(set(bands)):
        members = [vertex for vertex in order if bands[vertex] == band]
        for vertex in members:
            above = [layers[each] + span[each] for each in predecessors[vertex]]
            layers[vertex] = max([base, *above])
        for vertex in reversed(members):
            inside = [each for each in successors[vertex] if bands[each] == band]
            free = not any(bands[each] == band for each in predecessors[vertex])
            if inside and free:
                lowest = min(layers[each] for each in inside) - span[vertex]
                layers[vertex] = max(layers[vertex], lowest)
        base = max(layers[vertex] + span[vertex] for vertex in members)
    return layers
