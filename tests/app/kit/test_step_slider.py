"""The slider over the steps of a list, by mouse and by keyboard."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, Qt
from PySide6.QtGui import QAccessible, QPaintEvent, QRegion
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from lowerscope.app.kit.step_slider import Dot, StepSlider
from lowerscope.app.kit.tables.step_list import StepList, StepRow

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def slider(qtbot: QtBot) -> StepSlider:
    slider = StepSlider("Step")
    qtbot.addWidget(slider)
    slider.resize(800, slider.height())
    slider.show()
    slider.set_dots([Dot(key, big=key % 3 == 0, tooltip=f"step {key}") for key in range(10)])
    return slider


def place_of(slider: StepSlider, key: int) -> QPoint:
    return slider.dot_centre(key).toPoint()


def test_dragging_goes_through_the_dots(qtbot: QtBot, slider: StepSlider) -> None:
    seen: list[int] = []
    slider.chosen.connect(seen.append)
    slider.chosen.connect(slider.set_current)
    qtbot.mousePress(slider, LEFT, pos=place_of(slider, 1))
    for key in (2, 3, 3, 5):
        qtbot.mouseMove(slider, place_of(slider, key))
    qtbot.mouseRelease(slider, LEFT, pos=place_of(slider, 5))
    qtbot.mouseMove(slider, place_of(slider, 9))
    assert seen == [1, 2, 3, 5]


def test_keys_step_and_go_to_the_ends(qtbot: QtBot, slider: StepSlider) -> None:
    steps: list[int] = []
    ends: list[int] = []
    slider.stepped.connect(steps.append)
    slider.chosen.connect(ends.append)
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Left, Qt.Key.Key_PageDown, Qt.Key.Key_PageUp):
        qtbot.keyClick(slider, key)
    qtbot.keyClick(slider, Qt.Key.Key_End)
    qtbot.keyClick(slider, Qt.Key.Key_Home)
    assert steps == [1, -1, 10, -10]
    assert ends == [9, 0]


def test_a_screen_reader_sees_a_slider_with_its_value(slider: StepSlider) -> None:
    slider.set_current(6)
    seen = QAccessible.queryAccessibleInterface(slider)
    assert seen.role() == QAccessible.Role.Slider
    assert seen.text(QAccessible.Text.Name) == "Step"
    assert seen.text(QAccessible.Text.Description) == "step 6"
    assert seen.valueInterface().currentValue() == 6
    assert seen.valueInterface().maximumValue() == 9


def test_thousands_of_dots_are_all_within_reach(qtbot: QtBot, slider: StepSlider) -> None:
    slider.set_dots([Dot(key, big=key % 50 == 0) for key in range(5000)])
    seen: list[int] = []
    slider.chosen.connect(seen.append)
    for x in (0, 400, 799):
        qtbot.mouseClick(slider, LEFT, pos=QPoint(x, 17))
    assert seen[0] == 0
    assert 2400 < seen[1] < 2600
    assert seen[2] == 4999
    # Inside of the ring, if the slider has the focus since it was shown.
    picture = slider.grab().toImage()
    assert picture.pixelColor(400, 2) == picture.pixelColor(10, 2)


# The list of steps, when it changes under the mouse


def rows(count: int) -> list[StepRow]:
    return [
        StepRow(key=f"s{each}", number=str(each), title="fuse", place=each) for each in range(count)
    ]


@pytest.mark.x
def test_rows_that_go_while_one_is_dragged(qtbot: QtBot) -> None:
    steps, moved = StepList("Steps"), []
    qtbot.addWidget(steps)
    steps.resize(400, 300)
    steps.moved.connect(lambda *places: moved.append(places))
    steps.set_rows(rows(4))
    steps.show()
    view = steps.viewport()
    places = [QPoint(200, round(steps.row_rect(f"s{each}").center().y())) for each in range(4)]

    def drag() -> None:
        QTest.mousePress(view, LEFT, Qt.KeyboardModifier.NoModifier, places[3])
        for place in reversed(places[:3]):
            QTest.mouseMove(view, place)

    for count in (4, 2, 0):
        steps.set_rows(rows(4))
        drag()
        steps.set_rows(rows(count))
        steps.repaint()
        QTest.mouseMove(view, places[0])
        QTest.mouseRelease(view, LEFT, Qt.KeyboardModifier.NoModifier, places[0])
    assert moved == [(3, 0)]


def test_the_selection_follows_a_step_into_a_fold_and_not_its_place(qtbot: QtBot) -> None:
    steps = StepList("Steps")
    qtbot.addWidget(steps)
    steps.set_rows([StepRow("s0", "1", "fuse"), StepRow("s1", "2", "legalise")])
    steps.select("s0")
    fold = StepRow("fold", "1", "1 unchanged", "fold")
    steps.set_rows([fold, StepRow("s0", "1", "fuse", parent="fold")])
    assert steps.current_key() == "s0"
    shown = steps.row("fold")
    assert shown is not None
    # What the fold shows, it says, and a click folds it.
    assert shown.unfolded
    with qtbot.waitSignal(steps.folded) as heard:
        steps.toggle_fold("fold")
    assert heard.args == ["fold", False]
    steps.set_rows([fold, StepRow("s0", "1", "simplify", parent="fold")])
    assert steps.current_key() == ""
    shown = steps.row("fold")
    assert shown is not None
    assert not shown.unfolded


def test_a_header_at_the_bottom_shows_its_newest_words(qtbot: QtBot) -> None:
    steps = StepList("Steps")
    qtbot.addWidget(steps)
    steps.resize(400, 300)
    steps.set_pinned(["build"])

    def with_words(words: str) -> list[StepRow]:
        build = StepRow("build", "", "Build", "section", ((words, ""),))
        return [*rows(20), build]

    steps.set_rows(with_words("not built"))
    with qtbot.waitExposed(steps):
        steps.show()
    QApplication.processEvents()
    (place,) = (each.toRect() for each in steps.stuck().values())
    painted = QRegion()

    class Painted(QObject):
        def eventFilter(self, watched: QObject, event: QEvent) -> bool:
            nonlocal painted
            if isinstance(event, QPaintEvent):
                painted = painted.united(event.region())
            return False

    watch = Painted()
    steps.viewport().installEventFilter(watch)
    steps.set_rows(with_words("80 passes"))
    QApplication.processEvents()
    assert painted.contains(place.center())


def test_the_focus_alone_selects_no_row(qtbot: QtBot) -> None:
    steps = StepList("Steps")
    qtbot.addWidget(steps)
    steps.set_rows([StepRow("passes", "", "Passes", "section"), *rows(3)])
    steps.show()
    steps.setFocus()
    qtbot.waitUntil(steps.hasFocus)
    assert steps.current_key() == ""
    qtbot.keyClick(steps, Qt.Key.Key_Down)
    assert steps.current_key() != ""
