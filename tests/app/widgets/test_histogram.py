"""The histogram: bars that say what they count."""

import math

import pytest
from PySide6.QtGui import QColor
from pytestqt.qtbot import QtBot

from lowerscope.app import theme
from lowerscope.app.widgets.histogram import Histogram


def test_bars_are_as_high_as_their_counts(qtbot: QtBot) -> None:
    histogram = Histogram("Values")
    qtbot.addWidget(histogram)
    histogram.resize(240, 88)
    histogram.show()
    histogram.set_counts((-1, 0, 1, 2, 3), (10, 20, 0, 1))
    heights = [histogram.bar_rect(index).height() for index in range(4)]
    assert heights[0] == heights[1] / 2
    assert (heights[2], heights[3] >= 1) == (0, True)
    assert histogram.accessibleName() == "Values: 31 values from -1 to 3"
    second = histogram.bar_rect(1)
    assert histogram.words_at(second.center().x()) == "0 … 1: 20"
    assert histogram.words_at(0) == ""
    accent = QColor(theme.current().accent)
    picture = histogram.grab().toImage()
    assert picture.pixelColor(second.center().toPoint()) == accent
    above = histogram.bar_rect(0)
    assert picture.pixelColor(int(above.center().x()), int(above.top()) - 4) != accent


def test_no_counts_show_nothing(qtbot: QtBot) -> None:
    histogram = Histogram("Values")
    qtbot.addWidget(histogram)
    histogram.set_counts((), ())
    assert histogram.words_at(50) == ""
    assert histogram.accessibleName() == "Values"
    histogram.set_counts((1.5, 2.5), (4,))
    histogram.grab()
    assert histogram.counts() == (4,)


def test_few_values_can_be_seen_beside_many_on_a_logarithmic_one(qtbot: QtBot) -> None:
    histogram = Histogram("Values", logarithmic=True)
    qtbot.addWidget(histogram)
    histogram.resize(240, 188)
    histogram.set_counts((0, 1, 2, 3), (1, 1_000_000, 0))
    few, many, none = (histogram.bar_rect(index).height() for index in range(3))
    assert none == 0
    assert many / few == pytest.approx(math.log(1_000_001) / math.log(2))
