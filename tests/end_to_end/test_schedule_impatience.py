"""Wrong input and impatience at the workbench: one line that says it, and nothing is lost."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QWidget

from lowerscope.core.model.recipe import Recipe, Source
from tests.end_to_end.children import hold
from tests.end_to_end.scheduling import LEFT, NONE, Bench

RECIPE = Recipe(source=Source(spec="sample:matmul_relu"), lowering="te")
OTHER = Recipe(source=Source(spec="sample:fashion_mlp"), lowering="te")
CONTROL = Qt.KeyboardModifier.ControlModifier


@pytest.fixture(autouse=True)
def _begin(bench: Bench) -> None:
    # Nothing that the worker has to do: here, it is the engine's answers that come late.
    bench.window.features.measurements.set_automatic(False)
    bench.begin(RECIPE)
    bench.open("te_matmul")


def split(bench: Bench, loop: str, factor: int) -> None:
    count = len(bench.record.steps)
    bench.select(loop)
    bench.choose("split")
    bench.type_factors(None, factor)
    bench.press_apply()
    bench.steps(count + 1)


def point(bench: Bench, move: str) -> tuple[QWidget, QPoint]:
    """Have the mouse on a move, so that it is tried; return where that is."""
    choices = bench.view.moves.choices
    item = choices.item_of(move)
    assert item is not None
    choices.list.scrollToItem(item)
    place = choices.list.visualItemRect(item).center()
    QTest.mouseMove(choices.line)
    QTest.mouseMove(choices.list.viewport(), place)
    return choices.list.viewport(), place


def double_click(widget: QWidget, place: QPoint) -> None:
    """Click twice, as a mouse does: the second press is another kind of event."""
    QTest.mouseClick(widget, LEFT, NONE, place)
    second_click(widget, place)


def second_click(widget: QWidget, place: QPoint) -> None:
    """Press and release once more, so soon that it makes a double click."""
    QTest.mouseDClick(widget, LEFT, NONE, place)
    QTest.mouseRelease(widget, LEFT, NONE, place)


def test_a_double_click_applies_once(bench: Bench) -> None:
    bench.select("i")
    double_click(*point(bench, "unroll"))
    bench.steps(1)
    # A second click where Apply was is no click on what came in its place.
    bench.select("j")
    bench.choose("split")
    form = bench.view.form
    bench.wait(lambda: form.state.text().startswith("✓"))
    place = bench.view.moves.choices.list.viewport().rect().center()
    QTest.mouseClick(form.apply, LEFT)
    second_click(bench.view.moves.choices.list.viewport(), place)
    bench.steps(2)
    bench.select("k")
    bench.choose("split")
    bench.wait(lambda: form.state.text().startswith("✓"))
    second_click(form.apply, form.apply.rect().center())
    assert bench.scheduling.trying.draft is not None
    assert [each.title.split()[0] for each in bench.record.steps] == ["unroll", "split"]


def test_undo_and_another_model_while_a_move_is_tried(bench: Bench) -> None:
    split(bench, "j", 16)
    bench.select("j_0")
    point(bench, "unroll")
    bench.wait(lambda: bench.scheduling.trying.preview is not None)
    bench.window.commands.action("undo").trigger()
    bench.steps(0)
    assert bench.scheduling.trying.preview is None
    bench.window.commands.action("redo").trigger()
    bench.steps(1)
    bench.select("j_0")
    point(bench, "unroll")
    bench.wait(lambda: bench.scheduling.trying.preview is not None)
    document = bench.window.document
    document.open(OTHER)
    bench.wait(lambda: document.recipe == OTHER and not document.job.text)
    assert bench.scheduling.trying.preview is None
    assert not document.problems
    document.open(RECIPE)
    bench.wait(lambda: document.recipe == RECIPE and not document.job.text)


def test_a_move_is_tried_again_when_the_model_comes_anew_under_the_mouse(bench: Bench) -> None:
    bench.select("i")
    point(bench, "unroll")
    bench.wait(lambda: bench.scheduling.trying.preview is not None)
    came = bench.scheduling.moves.all
    bench.window.document.reload()
    bench.wait(lambda: bench.scheduling.moves.all is not came and bench.scheduling.moves.all)
    bench.wait(lambda: bench.scheduling.trying.preview is not None)
    assert bench.scheduling.trying.preview is not None
    assert bench.scheduling.trying.preview.primitive.name == "unroll"
    # What is chosen is not tried once more on what came of it.
    viewport, place = point(bench, "unroll")
    QTest.mouseClick(viewport, LEFT, NONE, place)
    bench.steps(1)
    assert bench.scheduling.trying.preview is None


def test_index_maps_are_read_and_never_run(bench: Bench) -> None:
    bench.select("matmul")
    form = bench.view.form
    bench.choose("transform_block_layout")
    line = form.editors["index_map"].line  # type: ignore[attr-defined]
    for text, reason in (
        ("i, j, k -> i, j", "not a bijection"),
        ("__import__('os').abort()", "begins with its axes"),
        ("i, j, k -> j, i // 0, k", "i // 0"),
        ("i, j, k -> i, j, abort()", "abort"),
    ):
        line.selectAll()
        QTest.keyClicks(line, text)
        bench.wait(lambda: form.state.text().startswith("✕"))
        assert reason in form.state.text(), form.state.text()
        assert "\n" not in form.state.text()
        assert not form.apply.isEnabled()
    line.selectAll()
    QTest.keyClicks(line, "i, j, k -> j, i, k")
    bench.wait(lambda: form.state.text().startswith("✓"))
    bench.scheduling.trying.cancel_draft()


def test_a_step_that_others_need_is_moved_and_taken_out(bench: Bench) -> None:
    split(bench, "j", 16)
    bench.select("j_0")
    bench.apply("parallel")
    split(bench, "k", 4)
    bench.click_step(2)
    steps = bench.view.history.list
    QTest.keyClick(steps, Qt.Key.Key_Up, CONTROL)
    bench.wait(lambda: [each.id for each in bench.record.steps] == ["s2", "s1", "s3"])
    bench.settle()
    assert bench.statuses()[0].startswith("✕")
    assert "the step that made this is not among those before it" in bench.view.history.why.text()
    bench.window.commands.action("undo").trigger()
    bench.wait(lambda: [each.id for each in bench.record.steps] == ["s1", "s2", "s3"])
    bench.settle()
    bench.click_step(1)
    QTest.keyClick(steps, Qt.Key.Key_Delete)
    bench.steps(2)
    assert [each.status for each in bench.record.steps] == ["failed", "done"]
    bench.window.commands.action("undo").trigger()
    bench.steps(3)
    assert [each.status for each in bench.record.steps] == ["done"] * 3


def test_a_broken_file_leaves_the_schedule_alone(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    split(bench, "j", 16)
    file = tmp_path / "broken.json"
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(file), ""))
    document = bench.window.document
    for content in (b'{"version": 1, "schedules": [{', b"\xff\xfe\x00", b"[]", b""):
        file.write_bytes(content)
        bench.window.commands.action("load-schedule").trigger()
        bench.wait(lambda: bool(document.problems))
        assert "broken.json" in document.problems[0].line()
        assert "\n" not in document.problems[0].line()
        assert [each.status for each in bench.record.steps] == ["done"]
    bench.select("j_0")
    bench.apply("parallel")


# The mouse rests on the move until its tooltip comes, which that platform cannot raise.
@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
def test_the_engine_is_killed_while_a_move_is_tried(bench: Bench) -> None:
    split(bench, "j", 32)
    bench.select("j_0")
    engine = bench.window.features.processes.engine
    assert engine.pid is not None
    hold(engine.pid)
    point(bench, "unroll")
    bench.wait(lambda: engine.state == "busy")
    os.kill(engine.pid, signal.SIGKILL)
    bench.wait(lambda: "while it tried unroll" in bench.window.banner.message())
    bench.wait(lambda: engine.state == "ready")
    bench.settle()
    assert [each.status for each in bench.record.steps] == ["done"]
    bench.apply("parallel")
