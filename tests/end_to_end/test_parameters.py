"""Parameters in the window: as inputs, bound again, looked at, saved; scripts with metadata."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from lowerscope.app.shell.window import MainWindow
from tests.end_to_end.driving import (
    PATIENCE,
    OpenWindow,
    drop,
    run_and_wait,
    wait_for_problem,
    wait_for_records,
)

ARGUMENT = "linear0_weight: R.Tensor((128, 784)"


def test_parameters_become_inputs_are_shown_saved_and_bound_again(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    window = open_window("sample:fashion_mlp")
    keep, bind = (window.commands.action(key) for key in ("params-as-inputs", "bind-params"))
    assert not keep.isChecked()
    assert not bind.isEnabled()
    relax = window.panes.relax
    assert ARGUMENT not in relax.script.code.text()
    # The script with its constants is fetched on demand.
    relax.set_current("metadata")
    whole = relax.metadata.script.code
    qtbot.waitUntil(lambda: "more characters" in whole.text(), timeout=PATIENCE)
    relax.set_current("script")

    keep.trigger()
    wait_for_records(qtbot, window)
    assert keep.isChecked()
    assert bind.isEnabled()
    assert ARGUMENT in relax.script.code.text()
    run_and_wait(qtbot, window)
    record = window.document.run_record
    assert record is not None
    assert record.verdict == "match"

    # One is shown and saved.
    values = window.panes.details.values
    assert not values.isVisible()
    window.document.select(("param:linear0.weight",))
    qtbot.waitUntil(lambda: bool(values.histogram.counts()), timeout=PATIENCE)
    values.save_to(str(tmp_path / "w.npy"))
    qtbot.waitUntil(lambda: "Saved as" in window.banner.message(), timeout=PATIENCE)
    array = np.load(tmp_path / "w.npy").astype(np.float64)
    assert array.shape == (128, 784)
    assert values.histogram.counts() == tuple(np.histogram(array, 48)[0])
    shown = window.panes.details.facts()
    assert shown["range"] == f"{array.min():.6g} … {array.max():.6g}"
    assert shown["mean"] == f"{array.mean():.6g}, std {array.std():.6g}"
    assert (shown["shape"], shown["size"]) == ("128×784 float32", "401 kB")
    zeros = int((array == 0).sum())
    assert shown["values"] == f"100,352: 0 NaN, 0 infinite, {zeros} zero"
    assert shown["first"].startswith(f"{array[0, 0]:.6g}, ")

    # The argument of main that it became says the same; a node says nothing of values.
    window.document.select(("relax:main/linear1_bias",))
    qtbot.waitUntil(
        lambda: window.panes.details.facts().get("values", "").startswith("10: 0 NaN"),
        timeout=PATIENCE,
    )
    window.document.select(("fx:relu",))
    assert not values.isVisible()

    bind.trigger()
    wait_for_records(qtbot, window)
    assert bind.isChecked()
    assert ARGUMENT in relax.script.code.text()
    window.commands.action("last-step").trigger()
    qtbot.waitUntil(
        lambda: (
            "def main(x: R.Tensor((1, 784), dtype" in relax.script.code.text()
            and ARGUMENT not in relax.script.code.text()
        ),
        timeout=PATIENCE,
    )
    window.commands.action("leave-steps").trigger()
    qtbot.waitUntil(lambda: ARGUMENT in relax.script.code.text(), timeout=PATIENCE)
    for _ in range(2):
        window.commands.action("undo").trigger()
        wait_for_records(qtbot, window)
    assert not keep.isChecked()
    assert ARGUMENT not in relax.script.code.text()


def test_parameters_are_loaded_and_what_is_dropped_finds_its_place(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = open_window("sample:fashion_mlp")
    load, own = (window.commands.action(key) for key in ("load-parameters", "own-parameters"))
    assert load.isEnabled()
    assert not own.isEnabled()
    random = np.random.default_rng(0)
    shapes = {"w0": (128, 784), "b0": (128,), "w1": (10, 128), "b1": (10,)}
    arrays = {key: random.standard_normal(shape).astype("f4") for key, shape in shapes.items()}
    np.savez(tmp_path / "mine.npz", **arrays)
    chosen = staticmethod(lambda *_: (str(tmp_path / "mine.npz"), ""))
    monkeypatch.setattr(QFileDialog, "getOpenFileName", chosen)
    load.trigger()
    wait_for_records(qtbot, window)
    assert "Parameters of mine.npz" in sections(window)
    window.document.select(("param:linear1.bias",))
    shown = f"{arrays['b1'].min():.6g} … {arrays['b1'].max():.6g}"
    qtbot.waitUntil(lambda: window.panes.details.facts().get("range") == shown, timeout=PATIENCE)

    # A pickle that is dropped is loaded as well; one that does not fit leaves what was there.
    for count, name in ((10, "fits.pkl"), (9, "other.pkl")):
        arrays["b1"] = np.zeros(count, "f4")
        (tmp_path / name).write_bytes(pickle.dumps(arrays))
    drop(window, tmp_path / "fits.pkl")
    wait_for_records(qtbot, window)
    assert "Parameters of fits.pkl" in sections(window)
    drop(window, tmp_path / "other.pkl")
    assert "b1 has the shape (9,)" in wait_for_problem(qtbot, window)
    assert "Parameters of fits.pkl" in sections(window)
    own.trigger()
    wait_for_records(qtbot, window)
    assert "Parameters" in sections(window)
    assert not own.isEnabled()
    for _ in range(2):
        window.commands.action("undo").trigger()
        wait_for_records(qtbot, window)
    assert "Parameters of mine.npz" in sections(window)

    # What cannot be opened says what it is, and what to do.
    (tmp_path / "net.tflite").write_bytes(b"")
    drop(window, tmp_path / "net.tflite")
    assert "a TensorFlow Lite model cannot be opened" in wait_for_problem(qtbot, window)
    assert window.panes.drawer.current() == "problems"


def sections(window: MainWindow) -> list[str]:
    tree = window.panes.model.tree
    items = (tree.topLevelItem(place) for place in range(tree.topLevelItemCount()))
    return [item.text(0) for item in items if item is not None]
