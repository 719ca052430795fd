"""Inputs are drawn, dropped, or a set of them: in the real window, against torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from lowerscope.app.panes.inputs.input_panel import DrawingPad
from lowerscope.app.panes.inputs.inputs_page import InputsPage
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.recipe import Drawing, Source, from_json, to_json
from lowerscope.core.model.run_records import RunRecord, times_as_fast
from lowerscope.resources import SAMPLES
from tests.end_to_end.driving import (
    PATIENCE,
    OpenWindow,
    drop,
    run_and_wait,
    wait_for_records,
)
from tests.opening import load


@pytest.fixture(scope="module")
def model() -> torch.nn.Module:
    found = load(Source(spec="sample:fashion_mlp"), (), 0).model
    assert found is not None
    return found


@pytest.fixture(scope="module")
def pictures() -> np.ndarray:
    with np.load(SAMPLES / "fashion_mlp.npz") as trained:
        return trained["pictures"].reshape(-1, 28, 28)


def stroke(pad: DrawingPad, places: Sequence[tuple[float, float]]) -> None:
    """Draw with the mouse from pixel to pixel."""
    first, *others = [pad.place_of(*each).toPoint() for each in places]
    QTest.mousePress(pad, Qt.MouseButton.LeftButton, pos=first)
    for each in others:
        QTest.mouseMove(pad, each)
    QTest.mouseRelease(pad, Qt.MouseButton.LeftButton, pos=(others or [first])[-1])


def wait_for_run(qtbot: QtBot, window: MainWindow) -> RunRecord:
    """Wait for the run that follows a changed input by itself."""
    document = window.document

    def ended() -> None:
        assert not document.problems, document.problems[0].line()
        assert not window.features.inputs.waits
        assert not document.running
        assert document.run_record is not None

    qtbot.waitUntil(ended, timeout=PATIENCE)
    assert document.run_record is not None
    return document.run_record


def check_against_torch(page: InputsPage, record: RunRecord, model: torch.nn.Module) -> None:
    """Both sides have run what the page shows, and the page shows what torch says of it."""
    pixels = np.frombuffer(page.one.pad.pixels(), np.uint8).reshape(1, 784)
    with torch.inference_mode():
        expected = model(torch.from_numpy(pixels.copy()).float() / 255).double().softmax(1)[0]
    assert record.verdict == "match"
    assert record.prediction is not None
    order = expected.argsort(descending=True)[:5].tolist()
    names = load(Source(spec="sample:fashion_mlp"), (), 0).classes
    shown = page.one.bars.bars()[:5]
    assert [row.name for row in shown] == [names[place] for place in order]
    for row, place in zip(shown, order, strict=True):
        assert row.values == pytest.approx((float(expected[place]),) * 2, abs=1e-4)
    assert page.one.bars.isVisible()
    assert not page.one.bars.is_faded()


def test_strokes_are_run_one_by_one_and_undone_one_by_one(
    qtbot: QtBot, open_window: OpenWindow, model: torch.nn.Module
) -> None:
    window = open_window("sample:fashion_mlp")
    document = window.document
    run_and_wait(qtbot, window)
    window.commands.action("input-page").trigger()
    page, pad = window.panes.inputs, window.panes.inputs.one.pad
    assert pad.isVisible()
    assert document.snapshot is not None
    assert pad.pixels() == document.snapshot.model.inputs[0].picture.pixels  # type: ignore[union-attr]
    qtbot.mouseClick(page.one.clear, Qt.MouseButton.LeftButton)
    record = wait_for_run(qtbot, window)
    assert pad.pixels() == bytes(784)
    check_against_torch(page, record, model)
    built = record.build_ms

    # Two legs and a belt; impatiently, one right after the other.
    page.one.brush.setFocus()
    states = [pad.pixels()]
    for places in ([(9, 6), (9, 24)], [(18, 6), (18, 24)], [(9, 5), (14, 5), (18, 5)]):
        stroke(pad, places)
        states.append(pad.pixels())
    assert states[1][10 * 28 + 9] == 255
    assert states[1][10 * 28 + 18] == 0
    assert states[2][10 * 28 + 18] == 255
    record = wait_for_run(qtbot, window)
    assert record.quick
    # One call has no spread, so nothing is claimed of it.
    assert record.times is not None
    assert [each.repeats for each in record.times.sides] == [1, 1]
    assert times_as_fast(*record.times.sides) is None
    # Nothing is built again: the executable's time is that of the first run.
    assert record.build_ms == built
    check_against_torch(page, record, model)
    assert page.verdict.text().startswith("✓ matches torch")
    assert page.origin.whole() == "x 1×784 float32 · drawn by hand"
    assert window.panes.outcome.current() == "inputs"
    recipe = document.recipe
    assert recipe is not None
    assert recipe.inputs[0].drawing == Drawing(width=28, height=28, pixels=states[3])
    assert from_json(to_json(recipe)) == recipe

    for before in reversed(states[:-1]):
        window.commands.action("undo").trigger()
        wait_for_records(qtbot, window)
        assert pad.pixels() == before
    window.commands.action("redo").trigger()
    wait_for_records(qtbot, window)
    assert pad.pixels() == states[1]
    # Runs of drawings are no variants of the model.
    assert len(window.features.runs.variants.kept) == 1


def test_a_set_is_run_and_its_worst_sample_taken(
    qtbot: QtBot,
    open_window: OpenWindow,
    model: torch.nn.Module,
    pictures: np.ndarray,
    tmp_path: Path,
) -> None:
    window = open_window("sample:fashion_mlp")
    document, page = window.document, window.panes.inputs
    sets = window.features.inputs.sets
    np.savez(tmp_path / "clothes.npz", x=pictures, y=np.arange(10))
    # It holds more than one: it is a set.
    drop(window, tmp_path / "clothes.npz")
    qtbot.waitUntil(lambda: sets.record is not None and not sets.running, timeout=PATIENCE)
    assert page.switch.current() == "set"
    text = page.sets.summary.text()
    assert "10 of 10 (100.0%) the same class as torch" in text
    assert "as labelled: TVM 10 of 10 (100.0%), torch 10 of 10 (100.0%)" in text
    assert not document.problems
    rows = page.sets.worst.rows()
    assert len(rows) == 10
    table = page.sets.worst
    place = table.visualRect(table.model().index(0, 0)).center()
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    record = wait_for_run(qtbot, window)
    assert page.switch.current() == "one"
    check_against_torch(page, record, model)
    worst = sets.record.worst[0]  # type: ignore[union-attr]
    assert record.max_abs_error == worst.max_abs_error
    assert page.one.pad.pixels() == pictures[int(worst.title.split()[-1])].tobytes()

    # A folder that is dropped is a set as well.
    many = tmp_path / "many"
    many.mkdir()
    for place, picture in enumerate(pictures[:3]):
        Image.fromarray(picture).save(many / f"{place}.png")
    drop(window, many)
    qtbot.waitUntil(lambda: not sets.running and "3 samples" in page.sets.summary.text())
    assert page.sets.error.isHidden()
