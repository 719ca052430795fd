"""The forms of primitives by mouse and keyboard: wrong, unsafe, kept as drafts, and right."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from lowerscope.core.model.recipe import Recipe, Source
from tests.end_to_end.scheduling import LEFT, Bench

RECIPE = Recipe(source=Source(spec="sample:matmul_relu"), lowering="te")
ALT = Qt.KeyboardModifier.AltModifier


@pytest.fixture(autouse=True)
def _begin(bench: Bench) -> None:
    bench.begin(RECIPE)
    bench.open("te_matmul")


def state(bench: Bench) -> str:
    return bench.view.form.state.text()


def wait_for(bench: Bench, mark: str) -> None:
    """Wait until the form says what comes of it."""
    bench.wait(lambda: state(bench).startswith(mark))


def test_a_refused_step_is_kept_mended_and_an_unsafe_one_applied_anyway(bench: Bench) -> None:
    bench.select("k")
    bench.choose("vectorize")
    wait_for(bench, "✕")
    form, code = bench.view.form, bench.code
    assert not form.apply.isEnabled()
    # TVM's own text stands in the place of the script, with the lines that it is about.
    assert code.current() == "preview"
    assert code.preview.currentWidget() is code.rejected
    error = bench.scheduling.trying.preview.error  # type: ignore[union-attr]
    assert error is not None
    assert error.lines
    marked = [line for line in error.lines if code.rejected.editor.marks.is_changed(line - 1)]
    assert marked == list(error.lines)
    assert 'T.sblock("matmul")' in bench.script.split("\n")[marked[0] - 1]
    QTest.mouseClick(form.keep, LEFT)
    bench.steps(1)
    assert bench.statuses() == ["failed"]
    assert code.line.whole().startswith("✕ vectorize k: ")

    QTest.mouseClick(bench.code.edit, LEFT)
    bench.wait(lambda: bench.scheduling.trying.draft is not None)
    assert form.apply.text() == "Change"
    assert form.editors["loop"].name.text() == "k"  # type: ignore[attr-defined]
    bench.select("j")
    take = form.editors["loop"].take  # type: ignore[attr-defined]
    QTest.mouseClick(take, LEFT)
    wait_for(bench, "✓")
    bench.press_apply()
    bench.wait(lambda: bench.statuses() == ["done"])
    bench.settle()
    assert bench.record.steps[0].title == "vectorize j"
    assert "T.vectorized(" in bench.script

    # What may compute something else is applied on demand alone, and checked at once.
    bench.select("k")
    bench.choose("loop_partition")
    wait_for(bench, "⚠")
    assert not form.apply.isEnabled()
    QTest.mouseClick(form.force, LEFT)
    bench.steps(2)
    assert bench.scheduling.primitives[1].forced
    steps = bench.view.history.strip
    bench.wait(lambda: steps.cells()[2].mark == "✕ differs")
    assert bench.view.standing.verdict.text().startswith("✕ differs")
