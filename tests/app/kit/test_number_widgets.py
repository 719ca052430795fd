"""The plots of numbers: a roofline, and times side by side."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from lowerscope.app.kit import theme
from lowerscope.app.kit.charts.bars import Bar, Bars
from lowerscope.app.kit.charts.plots import Mark, Roofline, Roofs

ROOFS = Roofs(gflops=200.0, memory=20.0, caches=100.0)


def roofline(qtbot: QtBot) -> Roofline:
    plot = Roofline("Roofline")
    qtbot.addWidget(plot)
    plot.resize(320, 240)
    plot.show()
    return plot


def test_places_are_on_logarithmic_scales(qtbot: QtBot) -> None:
    plot = roofline(qtbot)
    marks = [Mark("m", 10.0**power, 10.0**power, "here") for power in range(3)]
    plot.set_plot(ROOFS, marks)
    limits = 3
    once, tenfold, more = (plot.place_of(limits + number) for number in range(3))
    assert more.x() - tenfold.x() == pytest.approx(tenfold.x() - once.x())
    assert tenfold.y() - more.y() == pytest.approx(once.y() - tenfold.y())
    # The corner of memory and arithmetic is inside.
    assert plot.rect().contains(plot.place_of(1).toPoint())


def test_marks_are_read_by_keys(qtbot: QtBot) -> None:
    plot = roofline(qtbot)
    plot.set_plot(ROOFS, (Mark("here", 2.0, 30.0, "here"),))
    qtbot.keyClick(plot, Qt.Key.Key_Right)
    assert plot.accessibleDescription().startswith("peak 200 GFLOP/s. ")
    qtbot.keyClick(plot, Qt.Key.Key_End)
    assert plot.accessibleDescription().startswith("here: 30 GFLOP/s at 2 FLOP per byte. ")


def test_bars_are_as_long_as_their_times(qtbot: QtBot) -> None:
    bars = Bars("Times")
    qtbot.addWidget(bars)
    bars.resize(400, 100)
    bars.set_bars((Bar("unscheduled", (8.0,), "8 ms"), Bar("torch", (2.0,), "2 ms", "other")))
    bars.show()
    assert bars.accessibleDescription() == "unscheduled: 8 ms; torch: 2 ms"
    picture = bars.grab().toImage()
    pixels = [
        picture.pixelColor(x, y).name()
        for x in range(picture.width())
        for y in range(picture.height())
    ]
    ours, torch = pixels.count(theme.current().accent), pixels.count(theme.current().neutral)
    assert ours / torch == pytest.approx(4, rel=0.05)
