"""Panes put elsewhere by keys: moved, joined, resized, maximised, closed; kept in the session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QByteArray, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu, QWidget
from pytestqt.qtbot import QtBot

from lowerscope.app.window import MainWindow
from tests.end_to_end.driving import OpenWindow, wait_until

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)

Press = Callable[[str], None]


@pytest.fixture
def window(qtbot: QtBot, open_window: OpenWindow) -> MainWindow:
    window = open_window("sample:matmul_relu", lowering="te")
    window.resize(1440, 900)
    window.show_panes()
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    return window


@pytest.fixture
def press(window: MainWindow) -> Press:
    """Return a function that types the keys of a command where the focus is, and waits a moment."""

    def press(key: str) -> None:
        action = window.commands.action(key)
        focus = QApplication.focusWidget() or window
        QTest.keySequence(focus, action.shortcut())
        QTest.qWait(30)

    return press


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


def test_a_pane_is_moved_by_keys_and_stays_where_it_was_put(
    qtbot: QtBot, window: MainWindow, press: Press, tmp_path: Path
) -> None:
    before = {name: place(window, name).width() for name in TOP}
    focus = enter(window, "fx")
    press("move-pane-left")
    assert order(window, *TOP) == ["fx", "model", "relax", "tensorir"]
    after = {name: place(window, name).width() for name in TOP}
    assert all(abs(after[name] - before[name]) < 40 for name in TOP), (before, after)
    assert focus.hasFocus()
    press("move-pane-left")
    # At the edge of the window it has all of that edge.
    assert place(window, "fx").left() == 0
    assert place(window, "fx").height() == window.panes.height()
    press("move-pane-left")
    assert place(window, "fx").height() == window.panes.height()
    press("move-pane-right")
    assert order(window, *TOP) == ["fx", "model", "relax", "tensorir"]
    assert place(window, "fx").top() == place(window, "model").top()
    press("move-pane-up")
    assert place(window, "fx").bottom() < place(window, "model").top()
    assert place(window, "fx").width() == window.panes.width()
    press("move-pane-down")
    press("move-pane-down")
    assert place(window, "fx").top() > window.panes.timeline.geometry().bottom()
    assert focus.hasFocus()
    # Kept in the session, and closed panes are where they would be.
    enter(window, "details")
    press("close-pane")
    assert window.panes.docks["details"].isHidden()
    path = tmp_path / "moved.lowerscope"
    window.sessions.save_as(str(path))
    assert wait_until(path.exists)
    press("reset-layout")
    qtbot.waitUntil(lambda: order(window, *TOP) == list(TOP))
    assert place(window, "details").left() > place(window, "outcome").right()
    assert len({place(window, name).top() for name in TOP}) == 1
    window.open_session(str(path))
    qtbot.waitUntil(lambda: window.panes.docks["details"].isHidden())
    # The window has the size that it was saved with, as far as the screen has it.
    fx, outcome = place(window, "fx"), place(window, "outcome")
    assert window.panes.timeline.geometry().bottom() < fx.top() < fx.bottom() < outcome.top()
    assert fx.left() == outcome.left()
    assert fx.width() == outcome.width()
    assert order(window, "model", "relax", "tensorir") == ["model", "relax", "tensorir"]


def test_tabs_room_and_the_way_back(qtbot: QtBot, window: MainWindow, press: Press) -> None:
    panes = window.panes
    enter(window, "relax")
    press("join-pane")
    menu = next(each for each in panes.findChildren(QMenu) if each.isVisible())
    words = [action.text() for action in menu.actions()]
    assert words[:2] == ["Model", "FX"]
    QTest.keyClick(menu, Qt.Key.Key_Down)
    QTest.keyClick(menu, Qt.Key.Key_Return)
    QTest.qWait(30)
    assert panes.docking.mates("fx") == ("fx", "relax")
    assert panes.docking.is_in_front("relax")
    assert not panes.docking.is_in_front("fx")
    # Ctrl+Tab comes to what is behind a tab as well.
    enter(window, "fx")
    assert panes.docking.is_in_front("fx")
    width = place(window, "fx").width()
    press("pane-wider")
    assert place(window, "fx").width() > width + 20
    height = place(window, "fx").height()
    press("pane-lower")
    assert place(window, "fx").height() < height - 20
    press("move-pane-right")
    assert panes.docking.mates("fx") == ("fx",)
    assert order(window, *TOP) == ["model", "relax", "fx", "tensorir"]
    places = {name: place(window, name) for name in TOP}
    press("maximise-pane")
    assert place(window, "fx").size() == panes.size()
    assert not panes.timeline.isVisible()
    # What is saved meanwhile is the whole.
    layout = bytes(panes.state().data())
    press("maximise-pane")
    assert {name: place(window, name) for name in TOP} == places
    assert panes.timeline.isVisible()
    assert bytes(panes.saveState().data()) == layout
    # What is asked for comes into view, whatever is maximised.
    press("maximise-pane")
    window.commands.action("numbers").trigger()
    qtbot.waitUntil(lambda: place(window, "fx").width() < panes.width())
    window.workspace.stepping.set_clock("passes")


def test_closed_reopened_and_floating(window: MainWindow, press: Press) -> None:
    panes = window.panes
    enter(window, "fx")
    left = place(window, "fx").left()
    press("close-pane")
    assert panes.docks["fx"].isHidden()
    focus = QApplication.focusWidget()
    assert focus is not None
    assert panes.docks["relax"].isAncestorOf(focus)
    press("reopen-pane")
    assert place(window, "fx").left() == left
    assert panes.docks["fx"].isAncestorOf(QApplication.focusWidget())
    press("float-pane")
    dock = panes.docks["fx"]
    assert dock.isFloating()
    corner, width = dock.pos(), dock.width()
    press("move-pane-down")
    press("pane-wider")
    assert dock.pos().y() > corner.y()
    assert dock.width() > width
    press("float-pane")
    assert not dock.isFloating()
    assert place(window, "fx").left() == left


def test_on_a_screen_of_another_size_panes_have_their_usual_room(
    qtbot: QtBot, window: MainWindow, open_window: OpenWindow
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
    again = open_window("sample:matmul_relu")
    assert again.width() == 1440

    def are_usual() -> bool:
        return all(abs(place(again, name).width() - usual[name]) < 3 for name in names)

    qtbot.waitUntil(are_usual)
