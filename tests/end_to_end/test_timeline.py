"""Stepping through the passes in the window, by mouse and keyboard."""

from __future__ import annotations

from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.recipe import Step
from tests.end_to_end.driving import PATIENCE, OpenWindow

LEFT = Qt.MouseButton.LeftButton
TWICE = (Step(name="LegalizeOps"), Step(name="LegalizeOps"))
"""The second time, there is nothing left to do."""


def wait_for_text(qtbot: QtBot, window: MainWindow, part: str, *, there: bool = True) -> None:
    """Wait until the Relax script has a part, or has it no longer."""

    def shown() -> None:
        text = window.panes.relax.script.code.text()
        assert text
        assert (part in text) == there

    qtbot.waitUntil(shown, timeout=PATIENCE)


def test_the_panes_follow_the_steps(qtbot: QtBot, open_window: OpenWindow) -> None:
    window = open_window("sample:fashion_mlp", steps=TWICE)
    steps, relax, tensorir = window.panes.pipeline, window.panes.relax, window.panes.tensorir
    stepping = window.features.stepping
    fold = next(row for row in steps.list.rows() if row.kind == "fold")
    assert (fold.number, fold.title) == ("2", "1 unchanged")
    assert "R.matmul(" in relax.script.code.text()

    qtbot.mouseClick(steps.on, LEFT)
    wait_for_text(qtbot, window, "R.matmul(", there=False)
    assert "cls.matmul" in relax.script.code.text()
    row = steps.list.row(steps.list.marked())
    assert row is not None
    assert (row.title, row.words) == ("LegalizeOps", "8 functions +7 ~1")
    assert relax.context() == "after 1 LegalizeOps"
    code = relax.script.stepped.script.code
    lines = code.editor.lines()
    changed = [n for n in range(len(lines)) if code.editor.marks.is_changed(n)]
    words = "\n".join(lines[n] for n in changed)
    assert "R.call_tir(cls.matmul" in words
    assert "def main" not in words
    qtbot.waitUntil(lambda: tensorir.context() == "after 1 LegalizeOps", timeout=PATIENCE)
    qtbot.waitUntil(lambda: "def matmul" in tensorir.script.code.text(), timeout=PATIENCE)

    # The second time, there is nothing left to do: it is passed over, unless it is clicked.
    qtbot.keyClick(steps.slider, Qt.Key.Key_Right)
    assert stepping.moment == Moment(section="passes", index=1)
    place = steps.slider.dot_centre(2).toPoint()
    qtbot.mouseClick(steps.slider, LEFT, pos=place)
    assert stepping.moment == Moment(section="passes", index=2)
    row = steps.list.row(steps.list.marked())
    assert row is not None
    assert row.words == "nothing changed"
    qtbot.waitUntil(
        lambda: not any(code.editor.marks.is_changed(n) for n in changed), timeout=PATIENCE
    )

    # Scrubbing shows what is under the mouse.
    qtbot.mousePress(steps.slider, LEFT, pos=place)
    qtbot.mouseMove(steps.slider, steps.slider.dot_centre(0).toPoint())
    qtbot.mouseRelease(steps.slider, LEFT, pos=steps.slider.dot_centre(0).toPoint())
    assert stepping.moment == Moment(section="passes", index=0)
    wait_for_text(qtbot, window, "R.matmul(")
    assert relax.context() == "before 1 LegalizeOps"
    qtbot.waitUntil(lambda: not tensorir.script.code.text(), timeout=PATIENCE)
    assert tensorir.functions.rows()[0].cell(0).text == "main"
    assert not any("matmul" in row.cell(0).text for row in tensorir.functions.rows())

    window.commands.action("leave-steps").trigger()
    assert relax.context() == "8 bindings"
    assert steps.list.marked() == ""
    qtbot.waitUntil(lambda: "def matmul" in tensorir.script.code.text(), timeout=PATIENCE)
    assert not window.commands.action("leave-steps").isEnabled()

    # By itself, up to the last step.
    qtbot.mouseClick(steps.play, LEFT)
    assert stepping.playing
    qtbot.waitUntil(lambda: not stepping.playing, timeout=PATIENCE)
    assert stepping.moment == Moment(section="passes", index=1)
