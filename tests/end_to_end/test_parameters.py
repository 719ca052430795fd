"""Parameters in the window: as inputs, bound again, looked at, saved; scripts with metadata."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from pytestqt.qtbot import QtBot

from tests.end_to_end.driving import PATIENCE, OpenWindow, run_and_wait, wait_for_records

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
    assert shown["first values"].startswith(f"{array[0, 0]:.6g}, ")

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
