"""Switch, pill, banner, field, progress line, picture, empty state, icons."""

from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QFocusEvent
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel, QMenu, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from lowerscope.app.kit import pane_messages, theme
from lowerscope.app.kit.bar_controls import Field, Part, Pill, Segment, SegmentedSwitch
from lowerscope.app.kit.dialogs import Question, file_to_save
from lowerscope.app.kit.pane import ProgressLine
from lowerscope.app.kit.pane_messages import Banner, Toast

# Offscreen there is no window manager to put a menu or a floating pane in front.
pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def switch(qtbot: QtBot) -> SegmentedSwitch:
    widget = SegmentedSwitch(
        "Lowering",
        [
            Segment("hl", "High-level"),
            Segment("lib", "Library", "no library on this machine", enabled=False),
            Segment("te", "TE"),
        ],
    )
    qtbot.addWidget(widget)
    widget.show()
    return widget


def press(qtbot: QtBot, switch: SegmentedSwitch, key: str) -> None:
    qtbot.mouseClick(switch, LEFT, pos=switch.segment_rect(key).center().toPoint())


def test_switch_by_mouse(qtbot: QtBot, switch: SegmentedSwitch) -> None:
    with qtbot.waitSignal(switch.changed) as heard:
        press(qtbot, switch, "te")
    assert heard.args == ["te"]
    assert switch.current() == "te"
    assert switch.accessibleName() == "Lowering: TE"
    with qtbot.assertNotEmitted(switch.changed):
        press(qtbot, switch, "te")
        press(qtbot, switch, "lib")


def test_the_focus_is_shown_to_who_moved_it_by_keys_also_on_return_to_the_window(
    qtbot: QtBot, switch: SegmentedSwitch
) -> None:
    with qtbot.waitActive(switch):
        switch.activateWindow()
    seen = []
    for reason in (Qt.FocusReason.MouseFocusReason, Qt.FocusReason.TabFocusReason):
        switch.clearFocus()
        switch.setFocus(reason)
        before = switch.grab().toImage()
        back = QFocusEvent(QEvent.Type.FocusIn, Qt.FocusReason.ActiveWindowFocusReason)
        QApplication.sendEvent(switch, back)
        assert switch.grab().toImage() == before
        seen.append(before)
    assert seen[0] != seen[1]


def test_switch_by_keyboard_passes_over_what_cannot_be_chosen(
    qtbot: QtBot, switch: SegmentedSwitch
) -> None:
    qtbot.keyClick(switch, Qt.Key.Key_Right)
    assert switch.current() == "te"
    qtbot.keyClick(switch, Qt.Key.Key_Left)
    assert switch.current() == "hl"
    switch.set_segment_enabled("lib", True)
    qtbot.keyClick(switch, Qt.Key.Key_Right)
    assert switch.current() == "lib"


def test_pill_turns_only_while_it_is_busy_and_seen(qtbot: QtBot) -> None:
    pill = Pill()
    qtbot.addWidget(pill)
    pill.set_state("busy", "Running")
    assert not pill._turning.isActive()
    pill.show()
    assert pill._turning.isActive()
    pill.set_state("right", "matches torch")
    assert not pill._turning.isActive()


def test_banner_says_offers_and_goes(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    layout = QVBoxLayout(window)
    banner = Banner()
    layout.addWidget(banner)
    layout.addWidget(QLabel("below"))
    window.resize(400, 200)
    window.show()
    assert not banner.isVisible()
    done: list[str] = []
    banner.show_message(
        "The engine stopped. " * 20, "wrong", [("Show the log", lambda: done.append("log"))]
    )
    assert banner.isVisible()
    assert banner.message() == "The engine stopped. " * 20
    assert window.width() == 400
    (button,) = banner.actions_offered()
    qtbot.mouseClick(button, LEFT)
    assert done == ["log"]
    assert not banner.isVisible()
    banner.show_message("changed on disk")
    with qtbot.waitSignal(banner.dismissed):
        banner._close.click()
    assert banner.message() == ""


@pytest.mark.x
def test_a_toast_leaves_by_itself_and_with_its_mode_unless_it_is_new(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    toast = Toast(window)
    toast.show_message("Saved")
    toast.leave()
    assert toast.message() == "Saved"
    monkeypatch.setitem(pane_messages.SHOWN_MS, "info", 20)
    with qtbot.waitSignal(toast.dismissed):
        toast.show_message("Saved")
    assert toast.message() == ""
    monkeypatch.setattr(pane_messages, "NEW_MS", 0)
    toast.show_message("The cache is broken", "wrong")
    toast.leave()
    assert toast.message() == ""
    toast.show_message("It takes long", actions=[("Faster", toast.dismiss)])
    qtbot.wait(40)
    toast.leave()
    assert toast.message() == "It takes long"


def test_field_says_its_words_and_opens_its_menu(qtbot: QtBot) -> None:
    field = Field("Target")
    qtbot.addWidget(field)
    field.set_lines([Part("Target", "quiet")], [Part("this machine")])
    assert field.accessibleName() == "Target: Target this machine"
    narrow = field.sizeHint().width()
    menu = QMenu(field)
    menu.addAction("another")
    field.set_menu(menu)
    assert field.sizeHint().width() > narrow
    field.show()
    field.click()
    assert menu.isVisible()
    menu.close()


def test_a_deleted_widget_does_not_hear_of_themes(qtbot: QtBot) -> None:
    for make in (Pill, Banner, ProgressLine):
        widget = make()
        widget.deleteLater()
        del widget
    qtbot.wait(0)
    theme.set_scheme("dark")


def test_a_file_that_the_suffix_makes_is_asked_about(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    there = tmp_path / "kept.dot"
    there.write_text("kept", encoding="utf-8")
    asked: list[str] = []

    def choose(_parent: QWidget, _title: str, name: str, _kinds: str) -> tuple[str, str]:
        asked.append(name)
        # Qt asks about a file that exists under the name that was written.
        return ("", "") if len(asked) > 1 else (str(tmp_path / "kept"), "Graphviz (*.dot)")

    monkeypatch.setattr(QFileDialog, "getSaveFileName", choose)
    widget = QWidget()
    qtbot.addWidget(widget)
    kinds = "SVG (*.svg);;Graphviz (*.dot)"
    assert file_to_save(widget, "Save", "graph.svg", kinds) == ""
    assert asked == ["graph.svg", str(there)]
    asked.clear()
    there.unlink()
    assert file_to_save(widget, "Save", "graph.svg", kinds) == str(there)


def test_return_presses_the_button_that_has_the_focus(qtbot: QtBot) -> None:
    for focused, expected in ((False, 0), (True, 1)):
        question = Question("Delete?", "", "Delete")
        question.show()
        button = question.act if focused else question.cancel
        button.setFocus()
        qtbot.keyClick(button, Qt.Key.Key_Return)
        assert question.result() == expected
