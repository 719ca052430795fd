"""Exporting from the window: the dialog, and what the menus of the panes offer."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import networkx
import pytest
import tvm
import tvm_ffi

from lowerscope.core.model.module_steps import Moment
from tests.end_to_end.driving import OpenWindow, wait_until

CHOSEN = "lowerscope.app.panes.export.commands.QFileDialog"


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
