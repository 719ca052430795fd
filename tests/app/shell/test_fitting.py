"""Nothing in the window is cut or overlaps: at small sizes, in both themes, with scaling."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import combinations

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetricsF
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractScrollArea,
    QApplication,
    QComboBox,
    QLabel,
    QLayout,
    QLineEdit,
    QWidget,
)
from pytestqt.qtbot import QtBot

from lowerscope.app.kit import theme
from lowerscope.app.kit.bar_controls import Field, Pill, SearchField
from lowerscope.app.kit.pane import ElidedLabel
from lowerscope.app.shell.menus import ModeBar
from lowerscope.app.shell.modes import MODES
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.module_steps import Moment, PassRecord
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.model.run_records import RunTimes, SideTimes
from lowerscope.core.model.texts import language
from tests.app.plain_values import RECORD, snapshot
from tests.app.shell.conftest import OpenPlainWindow
from tests.diagonal import at_length, rows_at_length

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)

RECIPE = Recipe(source=Source(spec="sample:fashion_mlp"), lowering="te")
STEPPED = msgspec.structs.replace(
    snapshot("dense", "relu"), passes=(PassRecord(number=1, name="AttachAttrLayoutFreeBuffers"),)
)
SCALED = "QT_SCALE_FACTOR"
LANGUAGE = "LOWERSCOPE_TEST_LANGUAGE"
INSIDE = "LOWERSCOPE_TEST_INSIDE"
RUN = (sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider")
SIZES = ((1366, 768), (1280, 720)) if language() == "en" else ((1366, 768),)
SCALED_SIZES = ((1600, 1000),)

SMALLEST = (800, 500)
"""A screen of 1600 × 1000 pixels with scaling 2: the frame has to fit."""

ELIDED = (Field, Pill, SearchField, ElidedLabel)
"""Widgets that elide their text, which is in the tool tip then."""


def name_of(widget: QWidget) -> str:
    text = getattr(widget, "text", str)()
    around = widget.parentWidget()
    return f"{type(widget).__name__} {text or widget.accessibleName()!r} in {type(around).__name__}"


def visible_in(window: QWidget) -> Iterator[QWidget]:
    return (each for each in window.findChildren(QWidget) if each.isVisible())


def cut(widget: QWidget) -> str:
    """Return what of a widget's text has no room; empty if nothing."""
    room = widget.contentsRect()
    if isinstance(widget, ELIDED):
        if not isinstance(widget, ElidedLabel) and widget.width() < widget.sizeHint().width():
            return "" if widget.toolTip() else "elided without a tool tip"
    elif isinstance(widget, QLabel):
        if widget.wordWrap():
            if widget.heightForWidth(widget.width()) > widget.height() + 1:
                return f"has {widget.height()} of {widget.heightForWidth(widget.width())} pixels"
        elif widget.text() and widget.sizeHint().width() > widget.width() + 1:
            return f"has {widget.width()} of {widget.sizeHint().width()} pixels"
    elif isinstance(widget, QAbstractButton | QComboBox):
        is_icon = isinstance(widget, QAbstractButton) and not widget.text()
        if not is_icon and widget.minimumSizeHint().width() > widget.width() + 1:
            return f"has {widget.width()} of {widget.minimumSizeHint().width()} pixels"
    elif isinstance(widget, QLineEdit) and not widget.toolTip():
        words = QFontMetricsF(widget.font()).horizontalAdvance(widget.placeholderText())
        if words > room.width():
            return f"has {room.width()} of {words} pixels"
    return ""


def clipped(widget: QWidget) -> str:
    """Return by which ancestor a widget is cut off; what is scrolled is not."""
    place, above = widget.rect(), widget
    while (parent := above.parentWidget()) is not None and not above.isWindow():
        place = place.translated(above.pos())
        if isinstance(parent.parentWidget(), QAbstractScrollArea):
            return ""
        if not parent.rect().adjusted(-1, -1, 1, 1).contains(place):
            return f"at {place.getRect()} is cut off by {type(parent).__name__} {parent.size()}"
        above = parent
    return ""


def overlaps(widget: QWidget) -> Iterator[str]:
    """Yield the pairs of widgets that a widget's layouts place over one another."""
    layouts = widget.findChildren(QLayout)
    children = widget.findChildren(QWidget, options=Qt.FindChildOption.FindDirectChildrenOnly)
    placed = [
        child
        for child in children
        if child.isVisible() and any(each.indexOf(child) >= 0 for each in layouts)
    ]
    for one, other in combinations(placed, 2):
        shared = one.geometry().intersected(other.geometry())
        if shared.width() > 1 and shared.height() > 1:
            yield f"{name_of(one)} overlaps {name_of(other)}"


def faults(window: QWidget) -> list[str]:
    """Return everything in a window that is cut or overlaps."""
    found = []
    for widget in visible_in(window):
        found += [f"{name_of(widget)} {words}" for words in (cut(widget), clipped(widget)) if words]
        if widget.layout() is not None:
            found += list(overlaps(widget))
    return found


@pytest.fixture(scope="module", params=["light", *at_length("dark")])
def shared(request: pytest.FixtureRequest, open_shared_window: OpenPlainWindow) -> MainWindow:
    theme.set_scheme(request.param)
    window = open_shared_window(RECIPE, STEPPED)
    window.setMinimumSize(1, 1)
    return window


@pytest.fixture
def window(shared: MainWindow) -> MainWindow:
    shared.show_panes()
    return shared


@pytest.mark.parametrize("size", SCALED_SIZES if SCALED in os.environ else SIZES)
def test_everything_fits(window: MainWindow, size: tuple[int, int]) -> None:
    window.resize(*size)
    window.commands.action("reset-layout").trigger()
    window.document.select(("fx:relu",))
    window.document.set(run=RECORD)
    found: list[str] = []
    for mode in MODES:
        window.set_mode(mode.key)
        for moment in (None, Moment(section="passes", index=1)):
            if mode.key == "schedule" and moment is not None:
                continue
            window.features.stepping.go(moment) if moment else window.features.stepping.leave()
            for _ in range(3):
                QApplication.processEvents()
            assert (window.width(), window.height()) == size
            found += [f"{mode.key}: {each}" for each in faults(window)]
    assert not found, "\n".join(dict.fromkeys(found))


def test_verdict_and_time_have_room_beside_the_importer(window: MainWindow) -> None:
    window.resize(1366, 768)
    spread = dict.fromkeys(("milliseconds", "low", "high", "fastest", "slowest"), 1.0)
    names = ("TVM", "torch")
    sides = tuple(SideTimes(side=each, **spread, repeats=9, threads=2) for each in names)
    bar, disturbed = window.tool_bar, RunTimes(sides=sides, warm_up=1, disturbed=0.5)
    run = msgspec.structs.replace(RECORD, verdict="differ", max_abs_error=0.47, times=disturbed)
    imported = msgspec.structs.replace(RECIPE, translator="tvm-fx")
    window.document.set(recipe=imported, run=run)
    for _ in range(3):
        QApplication.processEvents()
    assert bar.importer.isVisible()
    assert all(each.width() >= each.sizeHint().width() for each in (bar.verdict, bar.times))
    assert bar.times.text() == "TVM ≈ 1 ms"
    window.document.set(recipe=RECIPE, run=None)


def test_all_buttons_of_the_mode_have_room_at_once(open_plain_window: OpenPlainWindow) -> None:
    window = open_plain_window(RECIPE, STEPPED)
    (buttons,) = window.findChildren(ModeBar)
    shown = buttons.currentWidget()
    QApplication.processEvents()
    assert shown.width() >= shown.sizeHint().width() > 0


def test_the_frame_fits_a_small_screen(qtbot: QtBot, window: MainWindow) -> None:
    window.document.set(run=RECORD)
    window.resize(*SMALLEST)
    window.document.say("Compiling fused_conv2d_add_relu_and_a_long_name", 0.5)
    qtbot.waitUntil(window.status.cancel.isVisible)
    for mode in MODES:
        window.set_mode(mode.key)
        window.features.stepping.go(Moment(section="passes", index=1))
        for _ in range(3):
            QApplication.processEvents()
        # Panes that have just collapsed may need a turn more.
        qtbot.waitUntil(lambda: window.status.width() == window.width() == SMALLEST[0])
        for part in (window.tool_bar, window.menuBar(), window.status):
            assert not faults(part)


def test_the_welcome_page_fits(window: MainWindow) -> None:
    window.show_welcome()
    for size in SCALED_SIZES if SCALED in os.environ else SIZES:
        window.resize(*size)
        for _ in range(3):
            QApplication.processEvents()
        assert not faults(window)


@pytest.mark.skipif(INSIDE in os.environ, reason="it runs this file")
@pytest.mark.parametrize(
    ("chosen", "environment"),
    [
        ("light and everything_fits", {LANGUAGE: "zh_CN"}),
        *rows_at_length(("light or dark", {SCALED: "2"})),
    ],
    ids=["zh_CN", "scaled"],
)
def test_everything_fits_with_scaling_and_in_chinese(
    chosen: str, environment: dict[str, str]
) -> None:
    run = subprocess.run(
        [*RUN, __file__, "-k", chosen],
        capture_output=True,
        text=True,
        env=os.environ | environment | {INSIDE: "1", "QT_QPA_PLATFORM": "offscreen"},
        check=False,
    )
    assert run.returncode == 0, run.stdout
