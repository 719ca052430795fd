"""The plots of numbers: a roofline, and times side by side."""

from __future__ import annotations

import math

import pytest
from pytestqt.qtbot import QtBot

from lowerscope.app import theme
from lowerscope.app.widgets.roofline import Mark, Roofline, Roofs
from lowerscope.app.widgets.time_bars import Bar, TimeBars

ROOFS = Roofs(gflops=200.0, memory=20.0, caches=100.0)


def roofline(qtbot: QtBot) -> Roofline:
    plot = Roofline("Roofline")
    qtbot.addWidget(plot)
    plot.resize(320, 240)
    plot.show()
    return plot


def test_places_are_on_logarithmic_scales(qtbot: QtBot) -> None:
    plot = roofline(qtbot)
    plot.set_plot(ROOFS, (Mark("here", 2.0, 30.0, "here"),))
    once, tenfold = plot.place_of(1.0, 10.0), plot.place_of(10.0, 100.0)
    more = plot.place_of(100.0, 1000.0)
    assert more.x() - tenfold.x() == pytest.approx(tenfold.x() - once.x())
    assert tenfold.y() - more.y() == pytest.approx(once.y() - tenfold.y())
    # The corner of memory and arithmetic is inside.
    corner = plot.place_of(200.0 / 20.0, 200.0)
    assert plot.rect().contains(corner.toPoint())


def test_it_says_what_it_draws(qtbot: QtBot) -> None:
    plot = roofline(qtbot)
    marks = (Mark("unscheduled", 2.0, 1.5, "before"), Mark("here", 2.0, 30.0, "here"))
    plot.set_plot(ROOFS, marks)
    assert plot.accessibleDescription() == (
        "peak 200 GFLOP/s; memory 20 GB/s; caches 100 GB/s;"
        " unscheduled: 1.5 GFLOP/s at 2 FLOP per byte; here: 30 GFLOP/s at 2 FLOP per byte"
    )
    plot.set_plot(Roofs(), (), "It does no arithmetic")
    assert plot.is_empty()
    assert plot.accessibleDescription() == "It does no arithmetic"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marks_have_a_form_and_a_colour_each(qtbot: QtBot, scheme: str) -> None:
    theme.set_scheme(scheme)
    plot = roofline(qtbot)
    roles = {"before": "neutral", "here": "accent", "best": "accent", "other": "neutral"}
    for role, colour in roles.items():
        mark = Mark("m", 2.0, 30.0, role)
        plot.set_plot(ROOFS, (mark,))
        at = plot.place_of(mark.intensity, mark.gflops)
        picture = plot.grab().toImage()
        around = {
            picture.pixelColor(round(at.x() + dx), round(at.y() + dy)).name()
            for dx in range(-5, 6)
            for dy in range(-5, 6)
        }
        assert getattr(theme.current(), colour) in around, role
    theme.set_scheme("light")


def test_bars_are_as_long_as_their_times(qtbot: QtBot) -> None:
    bars = TimeBars("Times")
    qtbot.addWidget(bars)
    bars.resize(400, 100)
    bars.set_bars((Bar("unscheduled", 8.0, "8 ms"), Bar("torch", 2.0, "2 ms", "other")))
    bars.show()
    first, second = bars.bar_rect(0), bars.bar_rect(1)
    assert math.isclose(first.width() / second.width(), 4.0)
    assert bars.accessibleDescription() == "unscheduled: 8 ms; torch: 2 ms"
    grey = theme.current().neutral
    picture = bars.grab().toImage()
    assert picture.pixelColor(second.center().toPoint()).name() == grey


def test_a_spread_stands_across_the_end_of_its_bar(qtbot: QtBot) -> None:
    bars = TimeBars("Times")
    qtbot.addWidget(bars)
    bars.resize(400, 100)
    bars.set_bars(
        (Bar("TVM", 8.0, "8 ms", spread=(7.0, 9.0)), Bar("torch", 2.0, "2 ms", spread=(1.0, 90.0)))
    )
    bars.show()
    end, spread = bars.bar_rect(0).right(), bars.spread_rect(0)
    assert spread.left() < end < spread.right()
    assert math.isclose(end - spread.left(), spread.right() - end)
    # One that is out of all proportion is cut off, and leaves the bars their room.
    far = bars.spread_rect(1)
    assert far.right() > end
    assert far.right() < bars.width() - 40
    assert bars.bar_rect(0).width() > bars.width() / 3
