"""The curve of the best so far: its steps, what it is compared with, keys, mouse and words."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from pytestqt.qtbot import QtBot

from lowerscope.app.kit.charts.plots import BestCurve, CurvePoint, Level

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
