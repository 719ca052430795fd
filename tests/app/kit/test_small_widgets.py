"""Switch, pill, banner, field, progress line, picture, empty state, icons."""

import pytest
from PySide6.QtCore import QPoint, QSize, Qt
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QLabel, QMenu, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from lowerscope.app.kit import theme
from lowerscope.app.kit.bar_controls import Field, Part, Pill, Segment, SegmentedSwitch
from lowerscope.app.kit.buttons import icon, names
from lowerscope.app.kit.charts.images import PictureView
from lowerscope.app.kit.pane import ProgressLine
from lowerscope.app.kit.pane_messages import Banner, EmptyState
from lowerscope.resources import ICONS

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


def test_switch_from_outside_is_silent(qtbot: QtBot, switch: SegmentedSwitch) -> None:
    with qtbot.assertNotEmitted(switch.changed):
        switch.set_current("te")
    picture = switch.grab().toImage()
    corner = switch.segment_rect("te").topLeft().toPoint() + QPoint(3, 5)
    assert picture.pixelColor(corner).name() == theme.current().accent_ground


def test_pill_is_a_mark_a_word_and_a_figure(qtbot: QtBot) -> None:
    pill = Pill()
    qtbot.addWidget(pill)
    pill.set_state("right", "matches torch", "2.1e-7", "largest difference")
    assert pill.text() == "✓ matches torch · 2.1e-7"
    assert pill.accessibleName() == pill.text()
    assert pill.toolTip() == "largest difference"
    right = pill.grab().toImage().pixelColor(4, 14).name()
    pill.set_state("wrong", "differs")
    assert pill.text() == "✕ differs"
    assert pill.grab().toImage().pixelColor(4, 14).name() != right
    pill.set_state("neutral", "not run")
    assert pill.text() == "not run"
    with qtbot.waitSignal(pill.clicked):
        qtbot.mouseClick(pill, LEFT)


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
def test_field_says_its_words_and_opens_its_menu(qtbot: QtBot) -> None:
    field = Field("Target")
    qtbot.addWidget(field)
    field.set_parts([Part("Target", "quiet"), Part("this machine")])
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


def test_progress_line_says_how_far(qtbot: QtBot) -> None:
    line = ProgressLine()
    qtbot.addWidget(line)
    line.resize(200, 2)
    line.set_fraction(0.5)
    assert line.accessibleName() == "50 % done"
    picture = line.grab().toImage()
    assert picture.pixelColor(90, 0).name() == theme.current().accent
    assert picture.pixelColor(110, 0).name() == theme.current().accent_ground
    line.set_busy()
    assert line.state() == "busy"
    line.clear()
    assert line.state() == "none"
    assert line.height() == 2


def test_picture_is_enlarged_by_a_whole_number_without_blur(qtbot: QtBot) -> None:
    view = PictureView("Input")
    qtbot.addWidget(view)
    view.resize(150, 150)
    data = bytes((0, 80, 160, 255))
    view.set_picture(data, 2, 2, 1, "ankle boot")
    place = view.picture_rect()
    assert place.width() == place.height()
    assert place.width() % 2 == 0
    picture = view.grab().toImage()
    quarter = place.width() / 4
    greys = [
        picture.pixelColor(round(place.left() + x * quarter), round(place.top() + y * quarter))
        for y in (1, 3)
        for x in (1, 3)
    ]
    assert [grey.red() for grey in greys] == [0, 80, 160, 255]
    edge = round(place.left() + place.width() / 2)
    row = round(place.top() + quarter)
    assert picture.pixelColor(edge - 1, row).red() == 0
    assert picture.pixelColor(edge, row).red() == 80
    assert view.accessibleName() == "Input: ankle boot"
    view.clear()
    assert view.picture_rect().isEmpty()


def test_colour_picture_and_wrong_size(qtbot: QtBot) -> None:
    view = PictureView("Input")
    qtbot.addWidget(view)
    view.set_picture(bytes((255, 0, 0, 0, 0, 255)), 2, 1, 3)
    assert view.image().pixelColor(1, 0) == QColor("#0000ff")
    with pytest.raises(AssertionError):
        view.set_picture(b"123", 2, 2, 1)


def test_empty_state_offers_what_to_do(qtbot: QtBot) -> None:
    state = EmptyState("No model", "Open one.")
    qtbot.addWidget(state)
    done: list[bool] = []
    button = state.add_action("Open…", lambda: done.append(True), primary=True)
    qtbot.mouseClick(button, LEFT)
    assert done == [True]
    assert state.accessibleDescription() == "Open one."


def test_icons_follow_the_theme(qtbot: QtBot) -> None:
    light = {name: icon(name).pixmap(QSize(16, 16)).toImage() for name in names()}
    assert not any(each.isNull() for each in light.values())
    theme.set_scheme("dark")
    for name in names():
        assert icon(name).pixmap(QSize(16, 16)).toImage() != light[name], name


def test_application_icon_can_be_read(qtbot: QtBot) -> None:
    picture = QImage(str(ICONS / "lowerscope.png"))
    assert picture.size() == QSize(256, 256)
    assert picture.hasAlphaChannel()


def test_a_deleted_widget_does_not_hear_of_themes(qtbot: QtBot) -> None:
    for make in (Pill, Banner, ProgressLine):
        widget = make()
        widget.deleteLater()
        del widget
    qtbot.wait(0)
    theme.set_scheme("dark")
