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


def click_section(qtbot: QtBot, window: MainWindow, key: str = "run") -> None:
    """Click a section of the timeline."""
    window.set_mode("step")
    sections = window.panes.timeline.sections
    qtbot.mouseClick(sections, LEFT, pos=sections.segment_rect(key).center().toPoint())
    assert window.features.stepping.section == key


def marked_lines(window: MainWindow) -> list[str]:
    """Return the lines of the Relax script that are marked."""
    code = window.panes.relax.script.code
    marks = code.editor.marks
    lines = code.editor.lines()
    return [line.strip() for number, line in enumerate(lines) if marks.is_selected(number)]


@pytest.fixture
def ran(qtbot: QtBot, open_window: OpenWindow) -> MainWindow:
    """A window on a model, run, with the section Run."""
    window = open_window("sample:fashion_mlp", lowering="te")
    click_section(qtbot, window)
    timeline = window.panes.timeline
    assert timeline.facts.whole() == "not run yet: Run (F5)"
    assert not timeline.slider.dots()
    assert not timeline.on.isEnabled()
    run_and_wait(qtbot, window)
    assert timeline.facts.whole() == "5 calls; ▸ goes through them"
    window.set_mode("explore")
    return window


def test_the_panes_follow_the_calls(qtbot: QtBot, ran: MainWindow) -> None:
    timeline, document = ran.panes.timeline, ran.document
    dots = timeline.slider.dots()
    assert [dot.tooltip.split(" · ")[0] for dot in dots[1:]] == [
        "1 dense",
        "2 add",
        "3 te_relu",
        "4 dense1",
        "5 add1",
    ]
    assert dots[1].big
    assert "calls for memory and shapes folded" in timeline.hidden.text()

    qtbot.mouseClick(timeline.on, LEFT)
    assert timeline.title.text() == "1 dense"
    assert timeline.facts.whole().endswith("linear0")
    assert document.selection.chosen == ("relax:main/lv",)
    assert {"fx:linear0", "tir:dense"} <= document.selection.linked
    (line,) = marked_lines(ran)
    assert line.startswith("lv")
    assert "cls.dense," in line
    qtbot.waitUntil(lambda: "def dense(" in ran.panes.tensorir.script.code.text(), timeout=PATIENCE)

    qtbot.keyClick(timeline.slider, Qt.Key.Key_Right)
    qtbot.keyClick(timeline.slider, Qt.Key.Key_Right)
    assert timeline.title.text() == "3 te_relu"
    assert document.selection.chosen == ("relax:main/lv2",)
    qtbot.waitUntil(
        lambda: "def te_relu(" in ran.panes.tensorir.script.code.text(), timeout=PATIENCE
    )
    # The module is looked at as a whole, and each call is that of a run of it.
    assert ran.features.stepping.moment is None
    qtbot.mouseClick(timeline.slider, LEFT, pos=timeline.slider.dot_centre(5).toPoint())
    assert timeline.title.text() == "5 add1"
    ran.commands.action("leave-steps").trigger()
    assert timeline.title.text() == ""

    click_section(qtbot, ran, "passes")
    click_section(qtbot, ran)
    assert timeline.facts.whole() == "5 calls; ▸ goes through them"


@pytest.mark.x
def test_playing_stops_at_breaks(qtbot: QtBot, ran: MainWindow) -> None:
    timeline, stepping = ran.panes.timeline, ran.features.stepping
    fx = ran.panes.fx.graph
    choose(fx, "fx:relu", "Breakpoint at its calls")
    assert ran.features.run_steps.breaks == {"fx:relu"}
    assert fx.canvas.marks().flags == {"fx:relu"}
    assert [dot.key for dot in timeline.slider.dots() if dot.is_break] == [3]
    assert "relu" in timeline.slider.dots()[3].tooltip

    qtbot.mouseClick(timeline.play, LEFT)
    assert stepping.playing
    qtbot.waitUntil(lambda: not stepping.playing, timeout=PATIENCE)
    assert timeline.title.text() == "3 te_relu"
    assert timeline.facts.whole().endswith("● break")
    qtbot.mouseClick(timeline.play, LEFT)
    qtbot.waitUntil(lambda: not stepping.playing, timeout=PATIENCE)
    assert timeline.title.text() == "5 add1"

    # By key: on the last layer, with B where the focus is, and from one break to the next.
    fx.canvas.setFocus()
    ran.document.select(("fx:linear1",))
    qtbot.keyClick(fx.canvas, Qt.Key.Key_B)
    assert fx.canvas.marks().flags == {"fx:relu", "fx:linear1"}
    ran.commands.action("previous-break").trigger()
    assert timeline.title.text() == "4 dense1"
    ran.commands.action("previous-break").trigger()
    assert timeline.title.text() == "3 te_relu"
    ran.commands.action("previous-break").trigger()
    assert timeline.title.text() == "before the first step"
    ran.commands.action("next-break").trigger()
    assert timeline.title.text() == "3 te_relu"
    # In the Relax graph, a break is of a binding alone; its node has the disc as well.
    relax = ran.panes.relax.graph
    ran.panes.relax.set_current("graph")
    qtbot.waitUntil(lambda: len(relax.canvas.graph().boxes) > 5, timeout=PATIENCE)
    assert relax.canvas.marks().flags == {f"relax:main/{each}" for each in ("lv2", "lv3", "lv4")}
    choose(relax, "relax:main/lv1", "Breakpoint at its calls")
    assert "relax:main/lv1" in relax.canvas.marks().flags
    assert fx.canvas.marks().flags == {"fx:relu", "fx:linear1", "fx:linear0"}
    assert [dot.key for dot in timeline.slider.dots() if dot.is_break] == [2, 3, 4, 5]
    choose(relax, "relax:main/lv1", "Breakpoint at its calls")
    assert [dot.key for dot in timeline.slider.dots() if dot.is_break] == [3, 4, 5]
