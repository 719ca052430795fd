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
    timeline, relax, tensorir = window.panes.timeline, window.panes.relax, window.panes.tensorir
    assert timeline.hidden.text() == "1 of 2 unchanged, hidden as small dots"
    assert "R.matmul(" in relax.script.code.text()

    qtbot.mouseClick(timeline.on, LEFT)
    wait_for_text(qtbot, window, "R.matmul(", there=False)
    assert "cls.matmul" in relax.script.code.text()
    assert timeline.title.text() == "1 LegalizeOps"
    assert timeline.facts.whole().endswith("8 functions changed")
    assert relax.script.moment.text() == "after 1 LegalizeOps"
    qtbot.waitUntil(lambda: tensorir.context() == "after 1 LegalizeOps", timeout=PATIENCE)
    qtbot.waitUntil(lambda: "def matmul" in tensorir.script.code.text(), timeout=PATIENCE)

    qtbot.keyClick(timeline.slider, Qt.Key.Key_Left)
    wait_for_text(qtbot, window, "R.matmul(")
    assert relax.script.moment.text() == "before 1 LegalizeOps"
    qtbot.waitUntil(lambda: not tensorir.script.code.text(), timeout=PATIENCE)
    assert tensorir.functions.rows()[0].cell(0).text == "main"
    assert not any("matmul" in row.cell(0).text for row in tensorir.functions.rows())

    window.commands.action("leave-steps").trigger()
    assert relax.context() == "8 bindings"
    assert timeline.title.text() == ""
    qtbot.waitUntil(lambda: "def matmul" in tensorir.script.code.text(), timeout=PATIENCE)
    assert not window.commands.action("leave-steps").isEnabled()


def test_unchanged_steps_are_passed_over_and_can_be_looked_at(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:fashion_mlp", steps=(*TWICE, Step(name="LegalizeOps", on=False)))
    timeline, stepping = window.panes.timeline, window.features.stepping
    for _ in range(3):
        qtbot.keyClick(timeline.slider, Qt.Key.Key_Right)
    assert stepping.moment == Moment(section="passes", index=1)
    qtbot.mouseClick(timeline.slider, LEFT, pos=timeline.slider.dot_centre(2).toPoint())
    assert stepping.moment == Moment(section="passes", index=2)
    assert timeline.facts.whole().endswith("nothing changed")
    window.commands.action("hide-unchanged").trigger()
    assert timeline.hidden.text() == ""
    qtbot.keyClick(timeline.slider, Qt.Key.Key_Left)
    qtbot.keyClick(timeline.slider, Qt.Key.Key_Right)
    assert stepping.moment == Moment(section="passes", index=2)


def test_scrubbing_shows_what_is_under_the_mouse(qtbot: QtBot, open_window: OpenWindow) -> None:
    window = open_window("sample:fashion_mlp", steps=TWICE)
    slider, stepping = window.panes.timeline.slider, window.features.stepping
    qtbot.mousePress(slider, LEFT, pos=slider.dot_centre(2).toPoint())
    assert stepping.moment == Moment(section="passes", index=2)
    qtbot.mouseMove(slider, slider.dot_centre(0).toPoint())
    assert stepping.moment == Moment(section="passes", index=0)
    qtbot.mouseRelease(slider, LEFT, pos=slider.dot_centre(0).toPoint())
    wait_for_text(qtbot, window, "R.matmul(")


def test_playing_ends_at_the_last_step(qtbot: QtBot, open_window: OpenWindow) -> None:
    window = open_window("sample:fashion_mlp", steps=TWICE)
    timeline, stepping = window.panes.timeline, window.features.stepping
    qtbot.mouseClick(timeline.play, LEFT)
    assert timeline.play.text() == "Pause"
    assert stepping.moment == Moment(section="passes", index=0)
    qtbot.waitUntil(lambda: not stepping.playing, timeout=PATIENCE)
    assert stepping.moment == Moment(section="passes", index=1)
    assert timeline.play.text() == "Play"


def test_a_pass_that_fails_says_so_at_its_step(qtbot: QtBot, open_window: OpenWindow) -> None:
    steps = (Step(name="LegalizeOps"), Step(name="NoSuchPass"), Step(name="LegalizeOps"))
    window = open_window("sample:fashion_mlp", steps=steps)
    timeline, stepping = window.panes.timeline, window.features.stepping
    states = [dot.state for dot in timeline.slider.dots()]
    assert states == ["start", "", "wrong", "skipped"]
    qtbot.mouseClick(timeline.slider, LEFT, pos=timeline.slider.dot_centre(2).toPoint())
    assert timeline.title.text() == "✕ 2 NoSuchPass failed"
    assert "there is no pass NoSuchPass" in timeline.facts.whole()
    # What went into it is there to see.
    assert stepping.moment == Moment(section="passes", index=1)
    wait_for_text(qtbot, window, "R.matmul(", there=False)
    assert window.panes.outcome.current() == "problems"
    qtbot.keyClick(timeline.slider, Qt.Key.Key_Right)
    assert stepping.line is not None
    assert stepping.line.number == 2


def test_the_timeline_is_closed_and_put_back(qtbot: QtBot, open_window: OpenWindow) -> None:
    window = open_window("sample:fashion_mlp")
    action = window.panes.timeline_action
    action.trigger()
    assert not window.panes.timeline.isVisible()
    action.trigger()
    assert window.panes.timeline.isVisible()


def test_scrolling_stays_from_step_to_step(qtbot: QtBot, open_window: OpenWindow) -> None:
    window = open_window("sample:resnet18", steps=TWICE)
    stepping, code = window.features.stepping, window.panes.relax.script
    window.document.select(("fx:conv1",))
    stepping.go(Moment(section="passes", index=1))
    qtbot.waitUntil(lambda: "cls.conv2d" in code.code.text(), timeout=PATIENCE)
    code.code.set_place((40, 0))
    before = code.code.text()
    stepping.go(Moment(section="passes", index=0))
    qtbot.waitUntil(lambda: code.code.text() != before, timeout=PATIENCE)
    assert code.code.place() == (40, 0)
    assert window.document.selection.chosen == ("fx:conv1",)


def test_a_pane_says_which_pass_has_left_nothing_of_the_selection(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    names = ("LegalizeOps", "FoldConstant")
    window = open_window("sample:fashion_mlp", steps=tuple(Step(name=each) for each in names))
    relax, tensorir = window.panes.relax, window.panes.tensorir
    snapshot = window.document.snapshot
    assert snapshot is not None
    (folded, *_) = snapshot.fates
    name = folded.removeprefix("relax:main/")
    said = f"nothing here for {name} (folded by FoldConstant)"

    window.document.select((folded,))
    assert tensorir.context() == said
    assert relax.context() == name
    window.features.stepping.go(Moment(section="passes", index=1))
    qtbot.waitUntil(lambda: "def transpose" in tensorir.script.code.text(), timeout=PATIENCE)
    assert "nothing here" not in relax.context() + tensorir.context()
    window.features.stepping.go(Moment(section="passes", index=2))
    qtbot.waitUntil(lambda: tensorir.context() == said, timeout=PATIENCE)
    assert relax.context() == said
    qtbot.waitUntil(lambda: not tensorir.script.code.text(), timeout=PATIENCE)
