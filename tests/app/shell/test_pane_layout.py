"""Panes that were dragged elsewhere, maximised, closed or floated; kept in the session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QByteArray, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.recipe import Recipe, Source
from tests.app.plain_values import snapshot
from tests.app.shell.conftest import OpenPlainWindow, sent

pytestmark = [pytest.mark.x, pytest.mark.qt_log_ignore("This plugin does not support", extend=True)]

Press = Callable[[str], None]


RECIPE = Recipe(source=Source(spec="sample:matmul_relu"), lowering="te")


@pytest.fixture
def window(qtbot: QtBot, open_plain_window: OpenPlainWindow) -> MainWindow:
    window = open_plain_window(RECIPE)
    window.resize(1440, 900)
    window.show_panes()
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    return window


@pytest.fixture
def press(window: MainWindow) -> Press:
    """Return a function that types the keys of a command where the focus is."""

    def press(key: str) -> None:
        action = window.commands.action(key)
        focus = QApplication.focusWidget() or window
        QTest.keySequence(focus, action.shortcut())

    return press


def has_focus(part: QWidget) -> bool:
    focus = QApplication.focusWidget()
    return focus is not None and part.isAncestorOf(focus)


def enter(window: MainWindow, name: str) -> QWidget:
    """Give the focus to a pane with Ctrl+Tab."""
    dock = window.panes.docks[name]
    for _ in range(12):
        focus = QApplication.focusWidget()
        if focus is not None and dock.isAncestorOf(focus):
            return focus
        QTest.keySequence(focus or window, window.commands.action("next-pane").shortcut())
    raise AssertionError(f"Ctrl+Tab does not come to {name}")


def place(window: MainWindow, name: str) -> QRect:
    return window.panes.docks[name].geometry()


def order(window: MainWindow, *names: str) -> list[str]:
    return sorted(names, key=lambda name: place(window, name).left())


TOP = ("model", "fx", "relax", "tensorir")


def test_moved_panes_are_kept_in_the_session_and_reset(
    qtbot: QtBot, window: MainWindow, press: Press, tmp_path: Path
) -> None:
    panes = window.panes
    # As a user drags it, to the left edge of the window.
    panes.addDockWidget(Qt.DockWidgetArea.LeftDockWidgetArea, panes.docks["fx"])
    panes.tabifyDockWidget(panes.docks["relax"], panes.docks["tensorir"])
    qtbot.waitUntil(lambda: place(window, "fx").left() == 0)
    assert place(window, "fx").height() == panes.height()
    enter(window, "details")
    press("close-pane")
    qtbot.waitUntil(panes.docks["details"].isHidden)
    path = tmp_path / "moved.lowerscope"
    window.sessions.save_as(str(path))
    qtbot.waitUntil(path.exists)
    window.commands.action("reset-layout").trigger()
    qtbot.waitUntil(lambda: place(window, "details").left() > place(window, "outcome").right())
    assert order(window, *TOP) == list(TOP)
    assert len({place(window, name).top() for name in TOP}) == 1
    window.open_session(str(path))
    sent(window).answer(snapshot("dense", "relu"))
    qtbot.waitUntil(lambda: panes.docks["details"].isHidden())
    assert place(window, "fx").left() == 0
    assert place(window, "fx").height() == panes.height()
    assert panes.dock_layout.tabbed_with("relax") == ("relax", "tensorir")


def test_a_pane_is_maximised_closed_reopened_and_floating(
    qtbot: QtBot, window: MainWindow, press: Press
) -> None:
    # Closed, the next one has the focus; reopened, it stands where it stood.
    panes = window.panes
    dock = panes.docks["fx"]
    enter(window, "fx")
    left = place(window, "fx").left()
    press("close-pane")
    qtbot.waitUntil(lambda: dock.isHidden() and has_focus(panes.docks["relax"]))
    window.commands.action("reopen-pane").trigger()
    qtbot.waitUntil(lambda: place(window, "fx").left() == left and has_focus(dock))
    window.commands.action("float-pane").trigger()
    qtbot.waitUntil(dock.isFloating)
    window.commands.action("float-pane").trigger()
    qtbot.waitUntil(lambda: not dock.isFloating() and place(window, "fx").left() == left)

    # Ctrl+Tab comes behind tabs.
    panes.tabifyDockWidget(panes.docks["fx"], panes.docks["relax"])
    panes.docks["relax"].raise_()
    qtbot.waitUntil(lambda: not panes.dock_layout.is_in_front("fx"))
    enter(window, "tensorir")
    enter(window, "fx")
    qtbot.waitUntil(lambda: panes.dock_layout.is_in_front("fx"))
    places = {name: place(window, name) for name in TOP}
    press("maximise-pane")
    qtbot.waitUntil(lambda: place(window, "fx").size() == panes.size())
    assert not panes.timeline.isVisible()
    # What is saved meanwhile is the whole.
    layout = bytes(panes.state().data())
    press("maximise-pane")
    qtbot.waitUntil(lambda: {name: place(window, name) for name in TOP} == places)
    assert panes.timeline.isVisible()
    assert bytes(panes.saveState().data()) == layout
    # What is asked for comes into view, whatever is maximised.
    press("maximise-pane")
    window.commands.action("numbers").trigger()
    qtbot.waitUntil(lambda: place(window, "fx").width() < panes.width())
    window.features.stepping.set_section("passes")


def test_on_a_screen_of_another_size_panes_have_their_usual_room(
    qtbot: QtBot, window: MainWindow, open_plain_window: OpenPlainWindow
) -> None:
    names = (*TOP, "pipeline", "outcome")
    usual = {name: place(window, name).width() for name in names}
    window.resize(1000, 600)
    qtbot.waitUntil(lambda: place(window, "fx").width() < usual["fx"] - 50)
    window.close()
    geometry = window.settings.geometry().data()
    # Where Qt writes the width of the screen.
    width = window.screen().geometry().width()
    assert geometry[46:50] == width.to_bytes(4)
    other = geometry[:46] + (5 * width).to_bytes(4) + geometry[50:]
    window.settings.save(QByteArray(other), window.settings.layout())
    again = open_plain_window(RECIPE)
    assert again.width() == 1440

    def are_usual() -> bool:
        return all(abs(place(again, name).width() - usual[name]) < 3 for name in names)

    qtbot.waitUntil(are_usual)
