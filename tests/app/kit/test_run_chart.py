"""The chart of a run: spans, amounts and pieces; zoom, keys and the mouse."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from lowerscope.app.kit.charts.plots import Piece, RunChart, Span

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def chart(qtbot: QtBot) -> RunChart:
    chart = RunChart("Calls")
    qtbot.addWidget(chart)
    chart.resize(424, 120)
    spans = [Span("a", 1.0, "first", amount=10), Span("b", 3.0, "second", amount=40)]
    chart.set_run(
        [*spans, Span("c", 0.0, "nothing"), Span("d", 4.0, "last")], [Piece(0, 1)], "40 B"
    )
    chart.show()
    return chart


def wheel(chart: RunChart, x: float, steps: int) -> None:
    place = QPointF(x, 20)
    turned = QWheelEvent(
        place,
        QPointF(chart.mapToGlobal(place.toPoint())),
        QPoint(),
        QPoint(0, 120 * steps),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(chart, turned)


def test_spans_are_as_long_as_their_times(chart: RunChart) -> None:
    # In 400 pixels between two margins of 12 there are 8 ms.
    places = [round(chart.place_of(number).x()) for number in range(4)]
    assert places == [37, 137, 212, 312]
    assert chart.accessibleDescription() == "4 calls in 8 ms"


def start_of_second(chart: RunChart) -> float:
    """Return where the second span, of the times 1 to 4, begins."""
    first, last = chart.shown()
    return chart.place_of(1).x() - 1.5 * 400 / (last - first)


def test_it_zooms_about_the_mouse_and_pans(qtbot: QtBot, chart: RunChart) -> None:
    wheel(chart, 62, 4)
    first, last = chart.shown()
    assert last - first == pytest.approx(8 / 1.25**4)
    assert start_of_second(chart) == pytest.approx(62)
    qtbot.mousePress(chart, LEFT, pos=QPoint(300, 20))
    qtbot.mouseMove(chart, QPoint(250, 20))
    qtbot.mouseRelease(chart, LEFT, pos=QPoint(250, 20))
    assert start_of_second(chart) == pytest.approx(12)
    # A drag chooses nothing.
    assert chart.marked() == ""
    qtbot.mouseDClick(chart, LEFT, pos=QPoint(250, 20))
    assert chart.shown() == (0, 8)
    wheel(chart, 62, -4)
    assert chart.shown() == (0, 8)


def test_mouse_and_keys_choose(qtbot: QtBot, chart: RunChart) -> None:
    chosen: list[str] = []
    chart.chosen.connect(chosen.append)
    qtbot.mouseClick(chart, LEFT, pos=QPoint(100, 30))
    for key in (
        Qt.Key.Key_Right,
        Qt.Key.Key_End,
        Qt.Key.Key_Right,
        Qt.Key.Key_Left,
        Qt.Key.Key_Home,
    ):
        qtbot.keyClick(chart, key)
    assert chosen == ["b", "c", "d", "d", "c", "a"]
    for _ in range(12):
        qtbot.keyClick(chart, Qt.Key.Key_Plus)
    qtbot.keyClick(chart, Qt.Key.Key_End)
    # What is looked at is brought into view: where it begins, if it is too long for that.
    assert chart.shown()[0] == pytest.approx(4)
    qtbot.keyClick(chart, Qt.Key.Key_0)
    assert chart.shown() == (0, 8)
    chart.mark(["b"])
    assert chart.marked() == "b"
    chart.mark([])
    assert chart.marked() == ""
