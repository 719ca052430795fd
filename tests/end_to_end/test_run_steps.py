"""Stepping through the calls of a run in the window, by mouse and keyboard."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from lowerscope.app.shell.window import MainWindow
from tests.end_to_end.driving import (
    PATIENCE,
    OpenWindow,
    run_and_wait,
)
from tests.end_to_end.test_graphs import choose

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
LEFT = Qt.MouseButton.LeftButton


def words(window: MainWindow) -> str:
    """Return what the header of the section Run says."""
    row = window.panes.pipeline.list.row("section:run")
    assert row is not None
    return row.words


def current(window: MainWindow) -> str:
    """Return number and name of the current step."""
    line = window.features.stepping.line
    return "" if line is None else f"{line.label} {line.title}"


@pytest.fixture
def ran(qtbot: QtBot, open_window: OpenWindow) -> MainWindow:
    """A window on a model, run, with the section Run."""
    window = open_window("sample:fashion_mlp", lowering="te")
    window.set_mode("step")
    window.features.stepping.set_section("run")
    steps = window.panes.pipeline
    assert words(window) == "not run (F5)"
    assert not steps.slider.dots()
    assert not steps.on.isEnabled()
    run_and_wait(qtbot, window)
    assert words(window).startswith("5 calls · ")
    window.set_mode("explore")
    return window


@pytest.mark.x
def test_playing_stops_at_breaks(qtbot: QtBot, ran: MainWindow) -> None:
    steps, stepping = ran.panes.pipeline, ran.features.stepping
    fx = ran.panes.fx.graph
    choose(fx, "fx:relu", "Breakpoint at its calls")
    assert ran.features.run_steps.breaks == {"fx:relu"}
    assert fx.canvas.marks().flags == {"fx:relu"}
    assert [dot.key for dot in steps.slider.dots() if dot.is_break] == [3]
    assert "relu" in steps.slider.dots()[3].tooltip

    qtbot.mouseClick(steps.play, LEFT)
    assert stepping.playing
    qtbot.waitUntil(lambda: not stepping.playing, timeout=PATIENCE)
    assert current(ran) == "3 te_relu"
    row = steps.list.row(steps.list.marked())
    assert row is not None
    assert row.is_break
    qtbot.mouseClick(steps.play, LEFT)
    qtbot.waitUntil(lambda: not stepping.playing, timeout=PATIENCE)
    assert current(ran) == "5 add1"

    # By key: on the last layer, with B where the focus is, and from one break to the next.
    fx.canvas.setFocus()
    ran.document.select(("fx:linear1",))
    qtbot.keyClick(fx.canvas, Qt.Key.Key_B)
    assert fx.canvas.marks().flags == {"fx:relu", "fx:linear1"}
    ran.commands.action("previous-break").trigger()
    assert current(ran) == "4 dense1"
    ran.commands.action("previous-break").trigger()
    assert current(ran) == "3 te_relu"
    ran.commands.action("previous-break").trigger()
    assert stepping.run_index == 0
    ran.commands.action("next-break").trigger()
    assert current(ran) == "3 te_relu"
    # In the Relax graph, a break is of a binding alone; its node has the disc as well.
    relax = ran.panes.relax.graph
    ran.panes.relax.set_current("graph")
    qtbot.waitUntil(lambda: len(relax.canvas.graph().boxes) > 5, timeout=PATIENCE)
    assert relax.canvas.marks().flags == {f"relax:main/{each}" for each in ("lv2", "lv3", "lv4")}
    choose(relax, "relax:main/lv1", "Breakpoint at its calls")
    assert "relax:main/lv1" in relax.canvas.marks().flags
    assert fx.canvas.marks().flags == {"fx:relu", "fx:linear1", "fx:linear0"}
    assert [dot.key for dot in steps.slider.dots() if dot.is_break] == [2, 3, 4, 5]
    choose(relax, "relax:main/lv1", "Breakpoint at its calls")
    assert [dot.key for dot in steps.slider.dots() if dot.is_break] == [3, 4, 5]
