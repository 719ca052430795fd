"""Open a model, see it lowered, run it against torch: in the real window."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from lowerscope.app.panes.run.commands import TolerancesDialog
from lowerscope.app.shell.window import MainWindow
from tests.end_to_end.driving import PATIENCE, OpenWindow, run_and_wait, wait_for_records


def click_segment(qtbot: QtBot, window: MainWindow, key: str) -> None:
    """Click one side of the lowering switch."""
    switch = window.tool_bar.lowering
    place = switch.segment_rect(key).center().toPoint()
    qtbot.mouseClick(switch, Qt.MouseButton.LeftButton, pos=place)


def strategies(window: MainWindow) -> dict[str, str]:
    snapshot = window.document.snapshot
    assert snapshot is not None
    return {node.name: node.strategy for node in snapshot.fx if node.strategy}


def test_open_switch_run_and_read_the_verdict(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = open_window("sample:fashion_mlp")
    document, panes, action = window.document, window.panes, window.commands.action
    assert "R.matmul" in panes.relax.script.code.text()
    assert window.tool_bar.lowering.current() == "high-level"
    click_segment(qtbot, window, "te")
    wait_for_records(qtbot, window)
    text = panes.relax.script.code.text()
    for name in ("cls.dense", "cls.add", "cls.te_relu"):
        assert f"R.call_tir({name}" in text
    assert "R.matmul" not in text
    action("undo").trigger()
    wait_for_records(qtbot, window)
    assert "R.matmul" in panes.relax.script.code.text()
    action("redo").trigger()
    wait_for_records(qtbot, window)

    qtbot.mouseClick(window.tool_bar.run, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(
        lambda: document.run_record is not None and not document.running, timeout=PATIENCE
    )
    verdict, record = window.tool_bar.verdict, document.run_record
    assert verdict.role() == "right"
    assert record is not None
    assert record.max_abs_error is not None
    assert record.max_abs_error < 1e-4
    assert record.prediction is not None
    assert record.prediction.torch == record.prediction.tvm != ""
    assert record.prediction.tvm in panes.summary.prediction.text()
    window.set_mode("run")
    # The tolerance of the result leads to the form of tolerances; the same values are judged anew.
    panes.summary.details.linkActivated.emit("tolerances")
    (dialog,) = window.findChildren(TolerancesDialog)
    for field in (dialog.rows["float32"].rtol, dialog.rows["float32"].atol):
        field.setText("0")
    dialog.accept()
    qtbot.waitUntil(lambda: verdict.role() == "wrong", timeout=PATIENCE)
    judged = document.run_record
    assert judged is not None
    assert (judged.verdict, judged.build_ms) == ("differ", record.build_ms)
    assert judged.times == record.times
    action("undo").trigger()
    qtbot.waitUntil(lambda: document.run_record == record, timeout=PATIENCE)
    assert verdict.role() == "right"
    assert panes.summary.picture.isVisible()
    saving = "lowerscope.app.panes.export.commands.QFileDialog.getSaveFileName"
    monkeypatch.setattr(saving, lambda *_: (str(tmp_path / "run"), ""))
    window.show_page("variants")
    action("export-report").trigger()
    qtbot.waitUntil((tmp_path / "run.html").exists, timeout=PATIENCE)
    assert "– Lowerscope</title>" in (tmp_path / "run.html").read_text(encoding="utf-8")
    assert [row.key for row in panes.summary.outputs.rows()] == ["output"]

    # Three strategies in one module, chosen node by node.
    for node, strategy in (("relu", "high-level"), ("linear1", "library")):
        document.select((f"fx:{node}",))
        action(f"selection-{strategy}").trigger()
        wait_for_records(qtbot, window)
    chosen = {"linear0": "te", "relu": "high-level", "linear1": "library"}
    assert strategies(window) == chosen
    badges = {node.title: node.badge for node in panes.fx.graph.canvas.graph().boxes}
    assert [badges[name] for name in chosen] == ["TE", "HL", "LIB"]
    assert window.tool_bar.overrides.text() == "2 overrides"
    assert 'R.call_dps_packed("torch.' in panes.relax.script.code.text()
    run_and_wait(qtbot, window)
    assert verdict.role() == "right"
    action("selection-reset").trigger()
    wait_for_records(qtbot, window)
    assert strategies(window) == chosen | {"linear1": "te"}
    action("reset-overrides").trigger()
    wait_for_records(qtbot, window)
    assert set(strategies(window).values()) == {"te"}
    assert not window.tool_bar.overrides.isVisible()
    click_segment(qtbot, window, "library")
    wait_for_records(qtbot, window)
    assert set(strategies(window).values()) == {"library"}
    run_and_wait(qtbot, window)
    assert verdict.role() == "right"
