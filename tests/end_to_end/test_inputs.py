"""Inputs are dropped, or a set of them: in the real window, against torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from lowerscope.app.panes.inputs.inputs_page import InputsPage
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.recipe import Source
from lowerscope.core.model.run_records import RunRecord
from lowerscope.resources import SAMPLES
from tests.end_to_end.driving import (
    PATIENCE,
    OpenWindow,
    drop,
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


def shown_pixels(window: MainWindow) -> bytes:
    """Return the picture that the page shows."""
    assert window.document.snapshot is not None
    picture = window.document.snapshot.model.inputs[0].picture
    assert picture is not None
    return picture.pixels


def wait_for_run(qtbot: QtBot, window: MainWindow) -> RunRecord:
    """Wait for the run that follows a changed input by itself."""
    document = window.document

    def ended() -> None:
        assert not document.problems, document.problems[0].line()
        assert not document.running
        assert document.run_record is not None

    qtbot.waitUntil(ended, timeout=PATIENCE)
    assert document.run_record is not None
    return document.run_record


def check_against_torch(
    window: MainWindow, page: InputsPage, record: RunRecord, model: torch.nn.Module
) -> None:
    """Both sides have run what the page shows, and the page shows what torch says of it."""
    pixels = np.frombuffer(shown_pixels(window), np.uint8).reshape(1, 784)
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
    assert "same class as torch: 10 of 10 (100.0%)" in text
    assert "as labelled: TVM 10 of 10 (100.0%), torch 10 of 10 (100.0%)" in text
    assert not document.problems
    rows = page.sets.worst.rows()
    assert len(rows) == 10
    table = page.sets.worst
    place = table.visualRect(table.model().index(0, 0)).center()
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    record = wait_for_run(qtbot, window)
    assert page.switch.current() == "one"
    check_against_torch(window, page, record, model)
    worst = sets.record.worst[0]  # type: ignore[union-attr]
    assert record.max_abs_error == worst.max_abs_error
    assert shown_pixels(window) == pictures[int(worst.title.split()[-1])].tobytes()

    # A folder that is dropped is a set as well.
    many = tmp_path / "many"
    many.mkdir()
    for place, picture in enumerate(pictures[:3]):
        Image.fromarray(picture).save(many / f"{place}.png")
    drop(window, many)
    qtbot.waitUntil(lambda: not sets.running and "3 samples" in page.sets.summary.text())
    assert page.sets.error.isHidden()
