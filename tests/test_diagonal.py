"""Tests that are marked ``diagonal`` meet each value of each parameter."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from tests.diagonal import off_diagonal


def items(sizes: tuple[int, ...], marker: Any) -> list[Any]:
    """Return the items of a test with axes of these sizes, called a, b, and so on."""
    marks = [SimpleNamespace(args=(name,)) for name, _ in zip("abc", sizes, strict=False)]
    return [
        SimpleNamespace(
            nodeid=f"test_it.py::test[{place}]",
            get_closest_marker=lambda _: marker,
            iter_markers=lambda _: marks,
            callspec=SimpleNamespace(params=dict(zip("abc", place, strict=False))),
        )
        for place in product(*map(range, sizes))
    ]


def places(found: list[Any]) -> list[tuple[int, ...]]:
    left_out = list(off_diagonal(found))
    return [tuple(each.callspec.params.values()) for each in found if each not in left_out]


@pytest.mark.parametrize(
    ("sizes", "names", "wanted"),
    [
        ((2, 3), (), [(0, 0), (0, 2), (1, 1)]),
        ((3, 3), (), [(0, 0), (1, 1), (2, 2)]),
        ((3, 2, 2), ("a", "b"), [(0, 0, 0), (0, 0, 1), (1, 1, 0), (1, 1, 1), (2, 0, 0), (2, 0, 1)]),
        ((1, 1), (), [(0, 0)]),
    ],
)
def test_each_value_of_the_axes_is_met(
    sizes: tuple[int, ...], names: tuple[str, ...], wanted: list[tuple[int, ...]]
) -> None:
    assert places(items(sizes, SimpleNamespace(args=names))) == wanted


def test_what_is_not_marked_or_chosen_alone_runs() -> None:
    assert len(places(items((2, 3), None))) == 6
    alone = items((2, 3), SimpleNamespace(args=()))[1:2]
    assert places(alone) == [(0, 1)]
