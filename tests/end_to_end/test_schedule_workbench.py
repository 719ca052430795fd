"""A new user schedules functions by mouse: the walk of the matmul, and the convolution."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from lowerscope.core.model.recipe import Recipe, Source
from tests.end_to_end.scheduling import Bench

RECIPE = Recipe(source=Source(spec="sample:matmul_relu"), lowering="te")


@pytest.fixture(autouse=True)
def _begin(bench: Bench) -> None:
    bench.begin(RECIPE)


def test_all_parts_are_in_view_and_nothing_is_cut(bench: Bench) -> None:
    bench.window.resize(1366, 768)
    bench.open("te_matmul")
    view, tree = bench.view, bench.view.tree
    parts = (tree, view.moves, view.figures, view.code, view.history, view.variants, view.roofline)
    assert all(part.isVisible() for part in parts)
    for place, text in ((1, "65.5 kB"), (2, "global · output")):
        assert tree.fontMetrics().horizontalAdvance(text) + 16 <= tree.columnWidth(place)
    bench.select("j")
    bench.choose("split")
    assert view.form.isVisible()
    # In a narrow window, the form takes the place of the primitives.
    bench.window.resize(1000, 600)
    bench.wait(lambda: not view.middle.isVisible())
    assert view.form.isVisible()
    assert not view.moves.isVisible()
    bench.key(view.form, Qt.Key.Key_Escape)
    assert view.moves.isVisible()
    bench.window.resize(1440, 900)
    bench.wait(view.figures.isVisible)
    assert view.roofline.isVisible()
