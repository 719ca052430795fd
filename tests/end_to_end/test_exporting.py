"""Exporting from the window: the dialog, and what the menus of the panes offer."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import networkx
import pytest
import tvm
import tvm_ffi
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from lowerscope.app.panes.export.export_dialog import ExportDialog
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.module_steps import Moment
from tests.end_to_end.driving import OpenWindow, wait_until

CHOSEN = "lowerscope.app.panes.export.commands.QFileDialog"


def open_dialog(window: MainWindow, folder: Path) -> ExportDialog:
    window.commands.action("export-files").trigger()
    dialog = window.exports.dialog
    assert dialog is not None
    dialog.folder.setText(str(folder))
    return dialog


def tick(dialog: ExportDialog, *names: str) -> None:
    for name, box in dialog.boxes.items():
        box.setChecked(name in names)


def test_the_dialog_exports_asks_and_says_what_it_did(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    window = open_window("sample:matmul_relu", lowering="library")
    folder = tmp_path / "out"
    dialog = open_dialog(window, folder)
    tick(dialog)
    assert not dialog.export.isEnabled()
    tick(dialog, "module", "reproduce", "fx-graph", "schedule")
    dialog.pictures["dot"].setChecked(True)
    dialog.pictures["json"].setChecked(True)
    qtbot.mouseClick(dialog.export, Qt.MouseButton.LeftButton)
    assert dialog.stop.isEnabled()
    assert wait_until(dialog.show_folder.isVisible)
    assert dialog.status.text().startswith(
        "Exported 5 files. Not written:\n✕ schedule: no function"
    )
    assert {each.name for each in folder.iterdir()} == {
        "module.py",
        "reproduce.py",
        "fx.svg",
        "fx.dot",
        "fx.json",
    }
    assert "matmul" in "".join(ET.fromstring((folder / "fx.svg").read_bytes()).itertext())
    before = (folder / "module.py").read_text()
    (folder / "module.py").write_text("mine")
    tick(dialog, "module")
    dialog.export.click()
    assert wait_until(lambda: bool(dialog.banner.message()))
    assert dialog.banner.message() == "There already: module.py"
    assert (folder / "module.py").read_text() == "mine"
    (overwrite,) = dialog.banner.actions_offered()
    overwrite.click()
    assert wait_until(dialog.show_folder.isVisible)
    assert dialog.status.text().startswith("Exported module.py")
    assert "no run was made" in dialog.status.text()
    assert (folder / "module.py").read_text() == before
    dialog.close()


def answering(monkeypatch: pytest.MonkeyPatch, path: Path) -> Callable[[Path], None]:
    """Answer each question for a file or a folder with the path that was said last."""
    answer = [path]
    monkeypatch.setattr(f"{CHOSEN}.getExistingDirectory", lambda *_: str(answer[0]))
    monkeypatch.setattr(f"{CHOSEN}.getSaveFileName", lambda *_: (str(answer[0]), "SVG (*.svg)"))

    def say(path: Path) -> None:
        answer[0] = path

    return say


def test_the_panes_export_what_they_show(
    open_window: OpenWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = open_window("sample:matmul_relu")
    say = answering(monkeypatch, tmp_path)
    banner, panes = window.banner, window.panes
    # A function, by its menu.
    panes.model.export_wanted.emit("tir:matmul")
    assert wait_until(lambda: "matmul.py" in banner.message())
    function = tvm.script.from_source((tmp_path / "functions" / "matmul.py").read_text())
    assert isinstance(function, tvm.tirx.PrimFunc)
    # The module at the step that is looked at.
    window.features.stepping.go(Moment(section="passes", index=1))
    window.commands.action("export-step").trigger()
    assert wait_until(lambda: "1-LegalizeOps.py" in banner.message())
    module = tvm.script.from_source((tmp_path / "steps" / "1-LegalizeOps.py").read_text())
    again = module["matmul"].without_attr("global_symbol")
    assert tvm_ffi.structural_equal(function.without_attr("global_symbol"), again)
    # What the step changed.
    window.commands.action("difference").trigger()
    assert wait_until(lambda: panes.difference.page.record is not None)
    say(tmp_path / "step.patch")
    panes.difference.save.click()
    assert "+++ matmul" in (tmp_path / "step.patch").read_text()
    # The graph, as a whole and what is seen of it.
    canvas = panes.fx.graph.canvas
    assert wait_until(lambda: bool(canvas.graph().boxes))
    say(tmp_path / "whole")
    panes.fx.graph.picture_wanted.emit(panes.fx.graph, False)
    say(tmp_path / "seen.svg")
    canvas.set_zoom(3.0)
    panes.fx.graph.picture_wanted.emit(panes.fx.graph, True)
    whole, seen = (
        ET.fromstring((tmp_path / name).read_bytes()) for name in ("whole.svg", "seen.svg")
    )
    assert area_of(seen) < area_of(whole)
    say(tmp_path / "graph.dot")
    panes.fx.graph.picture_wanted.emit(panes.fx.graph, False)
    assert (tmp_path / "graph.dot").read_text().startswith("digraph graph {")
    say(tmp_path / "graph.graphml")
    panes.fx.graph.picture_wanted.emit(panes.fx.graph, False)
    read = networkx.read_graphml(tmp_path / "graph.graphml")
    assert set(read) == {box.id for box in canvas.graph().boxes}
    assert {*read.edges} == {(edge.source, edge.target) for edge in canvas.graph().edges}


def area_of(root: ET.Element) -> float:
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    return width * height
