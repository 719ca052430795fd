"""Common behaviour of charts: late import of pyqtgraph, themes, tool tips, the empty text."""

from __future__ import annotations

import subprocess
import sys

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QColor, QHelpEvent
from PySide6.QtWidgets import QApplication, QToolTip
from pytestqt.qtbot import QtBot

from lowerscope.app.kit import theme
from lowerscope.app.kit.charts.plots import BestCurve, CurvePoint, Histogram
from lowerscope.app.kit.theme import DARK, LIGHT

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
