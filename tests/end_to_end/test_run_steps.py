"""Stepping through the calls of a run in the window, by mouse and keyboard."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.recipe import Step
from tests.end_to_end.driving import (
    PATIENCE,
    OpenWindow,
    run_and_wait,
    wait_for_problem,
    wait_for_records,
)
from tests.end_to_end.test_graphs import choose
from tests.faulty_functions import CRASHES, faulty_relu

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
LEFT = Qt.MouseButton.LeftButton
FUSED = tuple(
    Step(name=each) for each in ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps", "FuseTIR")
)


def click_section(qtbot: QtBot, window: MainWindow, key: str = "run") -> None:
    """Click a section of the timeline."""
    sections = window.panes.timeline.sections
    qtbot.mouseClick(sections, LEFT, pos=sections.segment_rect(key).center().toPoint())
    assert window.features.stepping.section == key


def marked_lines(window: MainWindow) -> list[str]:
    """Return the lines of the Relax script that are marked."""
    code = window.panes.relax.script.code
    marks = code.editor.marks
    lines = code.text().split("\n")
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


def test_breaks_stay_where_the_node_still_is(qtbot: QtBot, ran: MainWindow) -> None:
    timeline, document = ran.panes.timeline, ran.document
    ran.features.run_steps.toggle(("fx:linear1",))
    assert [dot.key for dot in timeline.slider.dots() if dot.is_break] == [4, 5]
    ran.document.change_fields(lowering="high-level", steps=FUSED)
    wait_for_records(qtbot, ran)
    assert timeline.facts.whole() == "not run yet: Run (F5)"
    assert ran.panes.fx.graph.canvas.marks().flags == {"fx:linear1"}
    run_and_wait(qtbot, ran)
    record = document.run_record
    assert record is not None
    stops = [number for number, call in enumerate(record.calls, 1) if "fx:linear1" in call.nodes]
    assert [dot.key for dot in timeline.slider.dots() if dot.is_break] == stops
    ran.commands.action("next-break").trigger()
    # A fused call is all that was fused.
    call = record.calls[stops[0] - 1]
    assert set(document.selection.chosen) == set(call.bindings)
    assert set(call.nodes) <= document.selection.linked
    ran.commands.action("undo").trigger()
    wait_for_records(qtbot, ran)
    assert [dot.key for dot in timeline.slider.dots() if dot.is_break] == [4, 5]
    ran.commands.action("clear-breaks").trigger()
    assert not any(dot.is_break for dot in timeline.slider.dots())
    assert not ran.panes.fx.graph.canvas.marks().flags


def test_the_bytecode_is_pointed_at_where_a_function_is_called_again(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:mlp_tvmscript")
    run_and_wait(qtbot, window)
    click_section(qtbot, window)
    timeline, relax = window.panes.timeline, window.panes.relax
    relax.set_current("bytecode")
    code = relax.bytecode.script.code
    qtbot.waitUntil(lambda: code.text().startswith("@main:"), timeout=PATIENCE)
    lines = code.text().split("\n")
    calls = [number for number, line in enumerate(lines) if line.split()[1:2] == ["linear0"]]

    def marked() -> list[int]:
        return [each for each in range(len(lines)) if code.editor.marks.is_selected(each)]

    seen = []
    for _ in range(3):
        qtbot.keyClick(timeline.slider, Qt.Key.Key_Right)
        seen.append((timeline.title.text(), marked()))
    assert [title for title, _ in seen] == ["1 linear0", "2 env.relu", "3 linear0"]
    assert [places for title, places in seen if "linear0" in title] == [[each] for each in calls]
    assert code.editor.marks.is_here(calls[1])
    # All panes mark the call, and not what else its function computes.
    assert window.document.selection.chosen == ("relax:main/out",)
    window.commands.action("leave-steps").trigger()
    assert not any(code.editor.marks.is_here(each) for each in range(len(lines)))


def test_a_step_is_looked_at_again_after_the_next_run(qtbot: QtBot, ran: MainWindow) -> None:
    timeline = ran.panes.timeline
    qtbot.mouseClick(timeline.slider, LEFT, pos=timeline.slider.dot_centre(3).toPoint())
    assert timeline.title.text() == "3 te_relu"
    run_and_wait(qtbot, ran)
    assert timeline.title.text() == "3 te_relu"
    assert ran.features.run_steps.call is not None
    assert ran.features.run_steps.call.function == "te_relu"


def test_a_run_that_fails_ends_at_the_call_that_it_failed_in(
    qtbot: QtBot, ran: MainWindow, tmp_path: Path
) -> None:
    timeline, document = ran.panes.timeline, ran.document
    for body, said in (
        ("raise ValueError('no')", "the run failed: no"),
        (CRASHES, "The worker crashed with SIGSEGV while running, in call 3 of 5, env.faulty"),
    ):
        ran.document.change_fields(extensions=faulty_relu(tmp_path, body))
        wait_for_records(qtbot, ran)
        ran.commands.action("run").trigger()
        wait_for_problem(qtbot, ran)
        assert [(dot.key, dot.state) for dot in timeline.slider.dots()] == [
            *((0, "start"), (1, ""), (2, ""), (3, "wrong"))
        ]
        assert timeline.title.text() == "✕ 3 env.faulty failed"
        assert said in timeline.facts.whole()
        assert document.selection.chosen == ("fx:relu",)
        assert ran.panes.call.title.whole() == "env.faulty"
        qtbot.keyClick(timeline.slider, Qt.Key.Key_Left)
        assert timeline.title.text() == "2 add"
        assert timeline.facts.whole() == "linear0"
        ran.commands.action("leave-steps").trigger()
        assert timeline.facts.whole() == "the run came to a bad end in call 3"
        # What was run before that is there again with its recipe.
        ran.commands.action("undo").trigger()
        wait_for_records(qtbot, ran)
        assert timeline.facts.whole() == "5 calls; ▸ goes through them"
