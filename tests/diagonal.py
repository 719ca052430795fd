"""Reduction of a product of parameters to its diagonal, and counts that can be raised.

A test that is parametrized over several axes and marked ``diagonal`` runs once for each value of
its longest axis; the other axes go round with it, so that each of their values is met. With names
of parameters, ``diagonal("sample", "lowering")``, only their axes are tied, and the others
multiply. Parameters marked ``at_length`` are left out.

``LOWERSCOPE_SOAK=N`` runs every combination, and what `many` counts N times.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest

SOAK = int(os.environ.get("LOWERSCOPE_SOAK", "0"))


def many(count: int) -> int:
    """Return how many of something a test draws."""
    return count * max(SOAK, 1)


def at_length(*values: Any) -> list[Any]:
    """Return parameters that run with ``LOWERSCOPE_SOAK`` alone."""
    return [pytest.param(each, marks=pytest.mark.at_length) for each in values]


def rows_at_length(*rows: Iterable[Any]) -> list[Any]:
    """Return rows of several parameters that run with ``LOWERSCOPE_SOAK`` alone."""
    return [pytest.param(*each, marks=pytest.mark.at_length) for each in rows]


def off_diagonal(items: Sequence[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield the tests that are left out. Of the diagonal, one that was chosen alone is not."""
    alike: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("at_length"):
            yield item
        elif item.get_closest_marker("diagonal"):
            alike[item.nodeid.partition("[")[0]].append(item)
    for group in alike.values():
        if len(group) > 1:
            yield from _off_diagonal(group)


def _off_diagonal(items: Sequence[Any]) -> Iterator[pytest.Item]:
    tied = items[0].get_closest_marker("diagonal").args
    axes = [names for names in _axes(items[0]) if not tied or set(names) & set(tied)]
    columns = [_indices([_values(item, names) for item in items]) for names in axes]
    sizes = [max(column) + 1 for column in columns]
    longest = sizes.index(max(sizes))
    for item, place in zip(items, zip(*columns, strict=True), strict=True):
        if place != tuple(place[longest] % size for size in sizes):
            yield item


def _axes(item: pytest.Item) -> list[list[str]]:
    """Return the names of the parameters of each ``parametrize``."""
    found = (mark.args[0] for mark in item.iter_markers("parametrize"))
    return [
        [name.strip() for name in (names.split(",") if isinstance(names, str) else names)]
        for names in found
    ]


def _values(item: Any, names: Sequence[str]) -> tuple[int, ...]:
    return tuple(id(item.callspec.params[name]) for name in names)


def _indices(values: Sequence[tuple[int, ...]]) -> list[int]:
    """Return the place of each value among those that differ, in the order of the first ones."""
    places = {value: place for place, value in enumerate(dict.fromkeys(values))}
    return [places[value] for value in values]
