"""The pad that a picture is drawn on, by mouse and by keys."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from lowerscope.app.panes.inputs.input_panel import DrawingPad

CENTRE = 14 * 28 + 14


@pytest.fixture
def pad(qtbot: QtBot) -> DrawingPad:
    pad = DrawingPad("Drawing")
    qtbot.addWidget(pad)
    pad.resize(280, 280)
    pad.show()
    return pad


@pytest.mark.x
def test_a_stroke_of_the_mouse_goes_from_pixel_to_pixel(qtbot: QtBot, pad: DrawingPad) -> None:
    strokes = []
    pad.stroke_ended.connect(lambda: strokes.append(pad.pixels()))
    first, last = (pad.place_of(9, row).toPoint() for row in (6, 24))
    QTest.mousePress(pad, Qt.MouseButton.LeftButton, pos=first)
    QTest.mouseMove(pad, last)
    assert strokes == []
    QTest.mouseRelease(pad, Qt.MouseButton.LeftButton, pos=last)
    (pixels,) = strokes
    assert {pixels[row * 28 + 9] for row in range(6, 25)} == {255}
    assert pixels[10 * 28 + 18] == 0


def test_keys_draw_as_the_mouse_does(qtbot: QtBot, pad: DrawingPad) -> None:
    strokes = []
    pad.stroke_ended.connect(lambda: strokes.append(pad.pixels()))
    qtbot.keyClick(pad, Qt.Key.Key_Right)
    qtbot.keyClick(pad, Qt.Key.Key_Space)
    assert strokes[-1][CENTRE] == 255
    # A line, while Shift is down: one stroke.
    qtbot.keyPress(pad, Qt.Key.Key_Shift)
    for _ in range(6):
        # qtbot would press and let go of Shift for each.
        shift = Qt.KeyboardModifier.ShiftModifier
        event = QKeyEvent(QEvent.Type.KeyPress, Qt.Key.Key_Right, shift)
        QApplication.sendEvent(pad, event)
    assert pad.is_drawing()
    assert len(strokes) == 1
    qtbot.keyRelease(pad, Qt.Key.Key_Shift)
    assert len(strokes) == 2
    assert set(strokes[-1][CENTRE : CENTRE + 7]) == {255}
    with qtbot.waitSignal(pad.tool_changed) as chosen:
        qtbot.keyClick(pad, Qt.Key.Key_E)
    assert chosen.args == ["eraser"]
    qtbot.keyClick(pad, Qt.Key.Key_Space)
    assert strokes[-1][CENTRE + 6] == 0
    qtbot.keyClick(pad, Qt.Key.Key_Delete)
    assert strokes[-1] == bytes(28 * 28)
