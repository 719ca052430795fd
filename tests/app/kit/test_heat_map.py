"""The heat map: colours, places, the cursor, and what is in view."""

from __future__ import annotations

import itertools
import math

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from lowerscope.app.kit import theme
from lowerscope.app.kit.charts.images import HeatMap, HeatPiece, HeatScale
from lowerscope.app.kit.theme import DARK, LIGHT, Theme
from tests.app.kit.pointing import turn_wheel

ROWS, COLUMNS = 6, 8
VALUES = [float(row * COLUMNS + column - 20) for row in range(ROWS) for column in range(COLUMNS)]
SCALE = HeatScale(-30.0, 30.0, diverging=True)


def piece_of(values: list[float], marked: set[int] = frozenset()) -> HeatPiece:  # type: ignore[assignment]
    marks = bytes(place in marked for place in range(len(values)))
    return HeatPiece(tuple(range(ROWS + 1)), tuple(range(COLUMNS + 1)), values, marks)


@pytest.fixture
def heat_map(qtbot: QtBot) -> HeatMap:
    widget = HeatMap("Heat map")
    qtbot.addWidget(widget)
    widget.resize(420, 300)
    widget.set_extent(ROWS, COLUMNS)
    widget.set_piece(piece_of(VALUES), SCALE)
    widget.show()
    return widget


def colour_at(widget: HeatMap, row: int, column: int) -> QColor:
    """The colour of an element, as it is painted, beside the mark in its middle."""
    place = widget.element_rect(row, column).topLeft() + QPointF(4, 4)
    return QColor(widget.grab().toImage().pixel(place.toPoint()))


@pytest.mark.parametrize("look", [LIGHT, DARK])
def test_colours_part_at_zero_and_what_is_not_finite_has_its_own(look: Theme) -> None:
    ground = QColor(look.ground).getRgb()[:3]

    def colours(scale: HeatScale, *values: float) -> list[tuple[int, ...]]:
        return [tuple(each) for each in scale.colours(values, look).tolist()]

    assert colours(SCALE, 0.0) == [ground]
    # The further from zero, the further from its colour, and each side in a way of its own.
    for values in ((5.0, 15.0, 30.0), (-5.0, -15.0, -30.0)):
        gone = [math.dist(each, ground) for each in colours(SCALE, *values)]
        assert gone == sorted(gone)
    assert math.dist(*colours(SCALE, 30.0, -30.0)) > 128
    wrong = QColor(look.wrong).getRgb()[:3]
    assert colours(SCALE, math.nan, math.inf, -math.inf) == [wrong] * 3
    assert colours(SCALE, 99.0) == colours(SCALE, 30.0)
    # The other scale gets lighter all the way: it can be read without colours.
    plain = colours(HeatScale(0.0, 1.0), *(step / 254 for step in range(255)))
    grey = [0.2126 * red + 0.7152 * green + 0.0722 * blue for red, green, blue in plain]
    assert all(before <= after + 0.5 for before, after in itertools.pairwise(grey))


def test_an_element_has_the_colour_of_its_value_where_it_stands(heat_map: HeatMap) -> None:
    for row, column in ((0, 7), (3, 2), (5, 4)):
        value = VALUES[row * COLUMNS + column]
        colour = SCALE.colours([value], theme.current())[0].tolist()
        assert colour_at(heat_map, row, column).getRgb()[:3] == tuple(colour)
        assert heat_map.element_at(heat_map.element_rect(row, column).center()) == (row, column)
    assert heat_map.element_at(QPointF(410, 290)) is None


def test_the_cursor_goes_by_keys_and_the_mouse_points(qtbot: QtBot, heat_map: HeatMap) -> None:
    pointed: list[tuple[int, int]] = []
    heat_map.pointed.connect(lambda *at: pointed.append(at))
    heat_map.setFocus()
    qtbot.keyClick(heat_map, Qt.Key.Key_Right)
    qtbot.keyClick(heat_map, Qt.Key.Key_Down)
    qtbot.keyClick(heat_map, Qt.Key.Key_End)
    assert pointed == [(0, 1), (1, 1), (1, 7)]
    qtbot.keyClick(heat_map, Qt.Key.Key_Down, Qt.KeyboardModifier.ControlModifier)
    assert heat_map.at() == (ROWS - 1, 7)
    at = heat_map.element_rect(2, 3).center().toPoint()
    qtbot.mouseMove(heat_map, at)
    assert heat_map.at() == (2, 3)
    qtbot.mouseClick(heat_map, Qt.MouseButton.LeftButton, pos=at)
    QApplication.sendEvent(heat_map, QEvent(QEvent.Type.Leave))
    assert heat_map.at() == (2, 3)


def test_the_wheel_zooms_round_the_mouse_and_a_drag_moves(qtbot: QtBot, heat_map: HeatMap) -> None:
    heat_map.set_extent(400, 400)
    heat_map.set_piece(
        HeatPiece(tuple(range(0, 401, 2)), tuple(range(0, 401, 2)), [0.0] * 200 * 200), SCALE
    )
    place = heat_map.element_rect(100, 300).center()
    wanted: list[tuple[int, int, int, int]] = []
    heat_map.view_changed.connect(lambda: wanted.append(heat_map.shown_range()))
    for _ in range(6):
        turn_wheel(heat_map, place, 1)
    top, left, rows, columns = wanted[-1]
    assert rows < 120
    assert columns < 120
    assert heat_map.element_at(place) == (100, 300)
    assert top <= 100 < top + rows
    assert left <= 300 < left + columns
    start = place.toPoint()
    qtbot.mousePress(heat_map, Qt.MouseButton.LeftButton, pos=start)
    qtbot.mouseMove(heat_map, start + QPoint(40, 0))
    qtbot.mouseRelease(heat_map, Qt.MouseButton.LeftButton, pos=start + QPoint(40, 0))
    assert wanted[-1][1] < left
    heat_map.setFocus()
    qtbot.keyClicks(heat_map, "0")
    assert wanted[-1] == (0, 0, 400, 400)
    # What the cursor is put on comes into view.
    for _ in range(10):
        qtbot.keyClicks(heat_map, "+")
    heat_map.set_cursor(399, 399)
    assert heat_map.shown_range()[0] + heat_map.shown_range()[2] == 400


def test_values_are_written_in_elements_with_room(heat_map: HeatMap) -> None:
    values = list(VALUES)
    values[3 * COLUMNS + 4] = math.nan
    heat_map.set_piece(piece_of(values, {3 * COLUMNS + 4}), SCALE)

    def written() -> list[str]:
        return [each.text() for each in heat_map._texts if hasattr(each, "text")]

    assert "✕ nan" in written()
    assert "-20" in written()
    assert len(written()) == ROWS * COLUMNS + 2
    # What is too small for its value is crossed out.
    heat_map.resize(180, 200)
    assert len(written()) == 2
    other = HeatMap("Another")
    other.set_extent(ROWS, COLUMNS)
    heat_map.zoom_by(2)
    heat_map.set_cursor(2, 3)
    other.follow(heat_map)
    assert (other.at(), other.shown_range()) == ((2, 3), heat_map.shown_range())
