"""Bands of a graph: rows of boxes that belong together, and the frames around some of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ABOVE = 16.0
"""More room above the first row of a framed band, in pixels: between it and what is above."""


@dataclass(frozen=True, slots=True)
class Bands:
    """What stands above what, whatever flows where.

    Attributes
    ----------
    of
        The band of each vertex. All rows of a band stand below those of lower ones; no edge leads
        to a lower band.
    framed
        The bands that have a frame.
    """

    of: Sequence[int]
    framed: frozenset[int] = frozenset()

    def room_above(self, layer_of: Sequence[int]) -> Mapping[int, float]:
        """Return how much more room each layer needs above it, where it needs any."""
        first: dict[int, int] = {}
        for vertex, band in enumerate(self.of):
            first[band] = min(first.get(band, layer_of[vertex]), layer_of[vertex])
        return {first[band]: ABOVE for band in self.framed if band in first}


def banded_layers(
    order: Sequence[int],
    successors: Sequence[Sequence[int]],
    predecessors: Sequence[Sequence[int]],
    bands: Bands,
) -> list[int]:
    """Return the layers of vertices, band by band; within one, as high as their predecessors let.

    What has nothing above it in its band stands just above the first place that uses it.

    Parameters
    ----------
    order
        All vertices, each after its predecessors.
    """
    layers = [0] * len(order)
    base = 0
    for band in sorted(set(bands.of)):
        members = [vertex for vertex in order if bands.of[vertex] == band]
        for vertex in members:
            above = [layers[each] + 1 for each in predecessors[vertex]]
            layers[vertex] = max([base, *above])
        for vertex in reversed(members):
            inside = [each for each in successors[vertex] if bands.of[each] == band]
            free = not any(bands.of[each] == band for each in predecessors[vertex])
            if inside and free:
                layers[vertex] = max(layers[vertex], min(layers[each] for each in inside) - 1)
        base = max(layers[vertex] for vertex in members) + 1
    return layers
