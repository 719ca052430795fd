"""Steps side by side below the curve of their values."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from lowerscope.app.kit.charts.step_strip import StepCell, StepStrip

LEFT = Qt.MouseButton.LeftButton
CONTROL = Qt.KeyboardModifier.ControlModifier
CELLS = (
    StepCell("start", "unscheduled", 100.0, "100 ms"),
    StepCell("s1", "split", None, place=0),
    StepCell("s2", "reorder", 10.0, "10 ms", place=1),
    StepCell("s3", "vectorize", 1.0, "1 ms", place=2),
)


def strip_of(qtbot: QtBot) -> StepStrip:
    strip = StepStrip("Steps")
    qtbot.addWidget(strip)
    strip.resize(600, 150)
    strip.set_cells(CELLS, ("torch 0.1 ms", 0.1))
    strip.show()
    qtbot.waitExposed(strip)
    return strip


def test_values_are_on_a_log_scale_and_the_curve_goes_past_what_is_unknown(qtbot: QtBot) -> None:
    scale = strip_of(qtbot).scale
    assert [scale.share(each) for each in (100.0, 10.0, 1.0, 0.1)] == [
        0.0,
        1 / 3,
        2 / 3,
        1.0,
    ]
    # Between the first step and the third, there is a line.
    assert scale.share_at(1) == 1 / 6
    assert scale.share_at(3.5) is None


def test_keys_go_through_steps_and_edit_them(qtbot: QtBot) -> None:
    strip = strip_of(qtbot)
    strip.select("start")
    for key, wanted in ((Qt.Key.Key_Right, "s1"), (Qt.Key.Key_End, "s3"), (Qt.Key.Key_Left, "s2")):
        QTest.keyClick(strip, key)
        assert strip.current_key() == wanted
    done: list[object] = []
    strip.row_activated.connect(lambda key: done.append(("edit", key)))
    strip.switched.connect(lambda key: done.append(("switch", key)))
    strip.removed.connect(lambda key: done.append(("remove", key)))
    strip.inserted.connect(lambda key: done.append(("insert", key)))
    strip.moved.connect(lambda place, to: done.append((place, to)))
    for key in (Qt.Key.Key_Return, Qt.Key.Key_Space, Qt.Key.Key_Delete, Qt.Key.Key_Insert):
        QTest.keyClick(strip, key)
    for key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
        QTest.keyClick(strip, key, CONTROL)
    assert done == [
        ("edit", "s2"),
        ("switch", "s2"),
        ("remove", "s2"),
        ("insert", "s2"),
        (1, 0),
        (1, 2),
    ]


def test_a_step_is_dragged_in_front_of_another(qtbot: QtBot) -> None:
    strip = strip_of(qtbot)
    moved: list[tuple[int, int]] = []
    strip.moved.connect(lambda place, to: moved.append((place, to)))
    viewport = strip.viewport()

    def drag(key: str, place: QPoint) -> None:
        QTest.mousePress(viewport, LEFT, pos=strip.cell_rect(key).center().toPoint())
        QTest.mouseMove(viewport, place)
        QTest.mouseRelease(viewport, LEFT, pos=place)

    drag("s3", strip.cell_rect("s1").topLeft().toPoint() + QPoint(3, 10))
    drag("s1", strip.cell_rect("s2").topRight().toPoint() + QPoint(-3, 10))
    # A step that is dropped where it was is not moved.
    drag("s2", strip.cell_rect("s2").topRight().toPoint() + QPoint(-3, 10))
    assert moved == [(2, 0), (0, 1)]


def test_other_cells_keep_the_current_step(qtbot: QtBot) -> None:
    strip = strip_of(qtbot)
    strip.select("s2")
    told: list[object] = []
    strip.currentItemChanged.connect(lambda *_: told.append(strip.current_key()))
    strip.set_cells(CELLS[:3])
    assert strip.current_key() == "s2"
    strip.set_cells(CELLS[:2])
    assert strip.current_key() == ""
    assert told == []
