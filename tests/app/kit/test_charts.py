"""Common behaviour of charts: late import of pyqtgraph, themes, tool tips, the empty text."""

from __future__ import annotations

import subprocess
import sys

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QHelpEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QGraphicsSimpleTextItem, QGraphicsView, QToolTip
from pytestqt.qtbot import QtBot

from lowerscope.app.kit import theme
from lowerscope.app.kit.charts.bars import Bar, Bars
from lowerscope.app.kit.charts.plots import (
    BestCurve,
    CurvePoint,
    Histogram,
    Level,
    Mark,
    Piece,
    Roofline,
    Roofs,
    RunChart,
    Span,
)
from lowerscope.app.kit.charts.step_strip import StepCell, StepStrip
from lowerscope.app.kit.theme import DARK, LIGHT
from tests.app.kit.pointing import turn_wheel

SHOWING = """
import sys
from PySide6.QtWidgets import QApplication
application = QApplication([])
from lowerscope.app.kit.charts.plots import Histogram
from lowerscope.app.kit.charts.images import HeatMap
from lowerscope.app.kit.charts.plots import Roofline
from lowerscope.app.kit.charts.plots import RunChart
heavy = lambda: sorted({"numpy", "pyqtgraph"} & set(sys.modules))
chart = Histogram("Values")
chart.show()
print(heavy())
chart.hide()
chart.set_counts((0, 1), (1,))
print(heavy())
chart.show()
print(heavy())
"""


def test_pyqtgraph_is_imported_when_the_first_chart_has_something_to_show() -> None:
    result = subprocess.run(
        [sys.executable, "-c", SHOWING], capture_output=True, text=True, check=False
    )
    assert result.stdout.splitlines() == ["[]", "[]", "['numpy', 'pyqtgraph']"], result.stderr


@pytest.fixture
def histogram(qtbot: QtBot) -> Histogram:
    histogram = Histogram("Values")
    qtbot.addWidget(histogram)
    histogram.resize(240, 88)
    histogram.set_counts((0, 1, 2), (10, 20))
    histogram.show()
    return histogram


def colour_in(histogram: Histogram, number: int) -> QColor:
    place = histogram.place_of(number).toPoint() + QPoint(0, 5)
    return histogram.grab().toImage().pixelColor(place)


def test_another_theme_draws_it_in_other_colours(histogram: Histogram) -> None:
    assert colour_in(histogram, 1) == QColor(LIGHT.accent)
    theme.set_scheme("dark")
    assert colour_in(histogram, 1) == QColor(DARK.accent)
    histogram.hide()
    theme.set_scheme("light")
    histogram.show()
    assert colour_in(histogram, 1) == QColor(LIGHT.accent)


def test_a_tool_tip_has_the_value_under_the_mouse(
    histogram: Histogram, monkeypatch: pytest.MonkeyPatch
) -> None:
    tips: list[str] = []
    monkeypatch.setattr(QToolTip, "showText", lambda _place, text, _widget: tips.append(text))
    place = histogram.place_of(1).toPoint()
    asked = QHelpEvent(QEvent.Type.ToolTip, place, histogram.mapToGlobal(place))
    QApplication.sendEvent(histogram, asked)
    assert tips == ["1 … 2: 20"]


def test_keys_open_a_menu_at_the_current_value(qtbot: QtBot, histogram: Histogram) -> None:
    qtbot.keyClick(histogram, Qt.Key.Key_End)
    found = histogram.inputMethodQuery(Qt.InputMethodQuery.ImCursorRectangle)
    assert found.topLeft() == histogram.place_of(1).toPoint()  # type: ignore[attr-defined]


def test_an_empty_chart_has_its_text_instead(qtbot: QtBot) -> None:
    curve = BestCurve("Best", str)
    qtbot.addWidget(curve)
    curve.resize(300, 200)
    curve.set_empty("Nothing measured")
    curve.show()
    written = curve.grab().toImage()
    assert curve.accessibleDescription() == "Nothing measured"
    curve.set_empty("")
    assert curve.grab().toImage() != written
    curve.set_empty("Nothing measured")
    curve.set_curve((CurvePoint(1, 0.5),), (), 1, 2)
    assert curve.accessibleDescription() == "best 0.5 after 1 of 2 trials"
    curve.set_curve((), (), 0, 2)
    assert curve.grab().toImage() == written


# The curve of the best so far: its steps, what it is compared with, keys, mouse and words


POINTS = (CurvePoint(1, 0.4, "2 s"), CurvePoint(4, 0.1), CurvePoint(16, 0.01))
LEVELS = (Level("torch", 0.1), Level("unscheduled", 10.0))


@pytest.fixture
def curve(qtbot: QtBot) -> BestCurve:
    curve = BestCurve("Best time", lambda value: f"{value:g} s")
    qtbot.addWidget(curve)
    curve.resize(500, 240)
    curve.set_curve(POINTS, LEVELS, 20, 40)
    curve.show()
    return curve


def test_it_falls_by_powers_of_ten_over_the_trials(curve: BestCurve) -> None:
    places = [curve.place_of(number) for number in range(3)]
    trials = [each.trials for each in POINTS]
    across = [(places[n].x() - places[0].x()) / (trials[n] - trials[0]) for n in (1, 2)]
    assert across[0] == pytest.approx(across[1])
    # The same ratio is the same height.
    down = places[2].y() - places[1].y()
    assert down == pytest.approx((places[1].y() - places[0].y()) * 1 / 0.60206, rel=1e-3)
    assert 0 < places[0].y() < places[2].y() < curve.height()


def test_keys_and_mouse_walk_the_points(qtbot: QtBot, curve: BestCurve) -> None:
    seen: list[int] = []
    curve.pointed.connect(seen.append)
    for key in (
        *(Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_End),
        *(Qt.Key.Key_Right, Qt.Key.Key_Left, Qt.Key.Key_Home),
    ):
        qtbot.keyClick(curve, key)
    assert seen == [0, 1, 2, 2, 1, 0]
    assert curve.accessibleDescription().startswith("0.4 s at trial 1 · 2 s. best 0.01 s")
    between = (curve.place_of(1).x() + curve.place_of(2).x()) / 2
    qtbot.mouseClick(curve, Qt.MouseButton.LeftButton, pos=QPoint(round(between), 40))
    assert curve.here() == 1
    # A curve that grows leaves what is looked at; another one does not.
    curve.set_curve((*POINTS, CurvePoint(22, 0.005)), LEVELS, 22, 40)
    assert curve.here() == 1
    curve.set_curve((CurvePoint(2, 3.0),), LEVELS, 2, 40)
    assert curve.here() == -1


# The plots of numbers: a roofline, and times side by side


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


NEAR = (
    Mark("now", 3, 12, "here"),
    Mark("before", 3.2, 9, "before"),
    Mark("best", 2.5, 10, "best"),
    Mark("unscheduled", 9, 9, "other"),
)
ALIKE = (
    Mark("unscheduled", 60, 2.06, "before"),
    Mark("best so far", 60, 3.11, "best"),
    Mark("current", 60, 2.12, "here"),
    Mark("torch", 60, 20.3, "other"),
)


@pytest.mark.parametrize(("marks", "width", "height"), [(NEAR, 320, 240), (ALIKE, 236, 150)])
def test_names_of_near_marks_cover_no_mark_and_no_name(
    qtbot: QtBot, marks: tuple[Mark, ...], width: int, height: int
) -> None:
    plot = roofline(qtbot)
    plot.resize(width, height)
    plot.set_plot(ROOFS, marks)
    texts = plot.findChildren(QGraphicsView)[0].items()
    names = [each for each in texts if isinstance(each, QGraphicsSimpleTextItem)]
    shown = [each for each in names if each.text().startswith(tuple(m.name for m in marks))]
    # Without the space above and below the letters.
    found = [each.sceneBoundingRect().adjusted(0, 2, 0, -2) for each in shown]
    assert len(found) == 4
    cut = [each.text() for each in names if "…" in each.text()]
    assert not cut
    for number, area in enumerate(found):
        assert not any(area.intersects(other) for other in found[number + 1 :])
        assert not any(area.contains(plot.place_of(3 + place)) for place in range(4))


@pytest.mark.parametrize("gflops", [0.9, 4.5, 6.6, 8.0])
def test_a_name_covers_no_mark_where_that_of_a_roof_is_near(qtbot: QtBot, gflops: float) -> None:
    plot = roofline(qtbot)
    plot.resize(243, 154)
    marks = Mark("current", 4.2, gflops, "here"), Mark("unscheduled", 4.2, 44.5, "before")
    plot.set_plot(Roofs(gflops=109, memory=18.3, caches=98.2), marks)
    items = plot.findChildren(QGraphicsView)[0].items()
    names = [each for each in items if isinstance(each, QGraphicsSimpleTextItem)]
    shown = [each.sceneBoundingRect() for each in names if each.text().startswith("unscheduled")]
    below = plot.place_of(3)
    assert len(shown) == 1
    assert not shown[0].intersects(QRectF(below.x() - 4, below.y() - 4, 8, 8))


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


# The chart of a run: spans, amounts and pieces; zoom, keys and the mouse


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
    turn_wheel(chart, QPointF(62, 20), 4)
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
    turn_wheel(chart, QPointF(62, 20), -4)
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


# Steps side by side below the curve of their values


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
    with qtbot.waitExposed(strip):
        strip.show()
    return strip


def test_the_step_that_was_clicked_is_told_though_another_is_current_by_then(
    qtbot: QtBot,
) -> None:
    strip = strip_of(qtbot)
    told: list[str] = []
    strip.stepped.connect(told.append)
    first, last = CELLS[0].key, CELLS[-1].key
    strip.select(last)
    assert told == []
    place = strip.cell_rect(first).center().toPoint()
    QTest.mouseClick(strip.viewport(), Qt.MouseButton.LeftButton, pos=place)
    # As a time that was measured does.
    strip.select(last)
    QApplication.processEvents()
    assert told == [first]


def test_values_are_on_a_log_scale_and_the_curve_goes_past_what_is_unknown(qtbot: QtBot) -> None:
    scale = strip_of(qtbot).scale
    assert [scale.share(each) for each in (100.0, 10.0, 1.0, 0.1)] == [0.0, 1 / 3, 2 / 3, 1.0]
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


# The histogram: bars that say what they count


def test_bars_are_read_by_keys_and_by_the_mouse(qtbot: QtBot, histogram: Histogram) -> None:
    histogram.set_counts((-1, 0, 1, 2, 3), (10, 20, 0, 1))
    assert histogram.accessibleDescription() == "31 values from -1 to 3"
    said = []
    keys = Qt.Key
    for key in (keys.Key_Right, keys.Key_Right, keys.Key_End, keys.Key_Right, keys.Key_Home):
        qtbot.keyClick(histogram, key)
        said.append(histogram.accessibleDescription().partition(". ")[0])
    assert said == ["-1 … 0: 10", "0 … 1: 20", "2 … 3: 1", "2 … 3: 1", "-1 … 0: 10"]
    qtbot.mouseClick(histogram, Qt.MouseButton.LeftButton, pos=histogram.place_of(1).toPoint())
    assert histogram.here() == 1
    # In the margin there is no bar.
    qtbot.mouseClick(histogram, Qt.MouseButton.LeftButton, pos=QPoint(1, 40))
    assert histogram.here() == 1


def test_powers_of_ten_and_a_limit_are_labelled(histogram: Histogram) -> None:
    histogram.set_counts((1e-7, 1e-6, 1e-5, 1e-4), (3, 2, 1), limit=1e-5)
    written = [each.text() for each in histogram._texts if hasattr(each, "text")]
    assert written == ["1e-07", "1e-06", "1e-05", "0.0001", "tolerance"]
    assert histogram.accessibleDescription() == "6 values from 1e-07 to 0.0001"
