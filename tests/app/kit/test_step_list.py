"""The list of steps, when it changes under the mouse."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from lowerscope.app.kit.tables.trees import StepList, StepRow

LEFT = Qt.MouseButton.LeftButton


def rows(count: int) -> list[StepRow]:
    return [
        StepRow(key=f"s{each}", number=str(each), title="fuse", place=each) for each in range(count)
    ]


@pytest.mark.x
def test_rows_that_go_while_one_is_dragged(qtbot: QtBot) -> None:
    steps, moved = StepList("Steps", ("", "step", "changed", "time")), []
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
