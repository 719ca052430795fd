"""The histogram: bars that say what they count."""

import pytest
from PySide6.QtCore import QPoint, Qt
from pytestqt.qtbot import QtBot

from lowerscope.app.kit.charts.plots import Histogram


@pytest.fixture
def histogram(qtbot: QtBot) -> Histogram:
    histogram = Histogram("Values")
    qtbot.addWidget(histogram)
    histogram.resize(240, 88)
    histogram.show()
    return histogram


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
