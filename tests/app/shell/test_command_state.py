"""The state of commands: evaluated once a turn of the event loop, and true for keys and menus."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.recipe import Recipe, Source
from tests.app.plain_values import snapshot
from tests.app.shell.conftest import OpenPlainWindow, sent

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)


RECIPE = Recipe(source=Source(spec="sample:fashion_mlp"), lowering="te")


@pytest.fixture
def window(qtbot: QtBot, open_plain_window: OpenPlainWindow) -> MainWindow:
    window = open_plain_window(RECIPE)
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    return window


def lower_by_key(window: MainWindow, focus: QWidget) -> None:
    """Select a node and lower it by a key, all in one turn of the event loop."""
    assert not window.commands.action("selection-high-level").isEnabled()
    window.document.select(("fx:dense",))
    QTest.keyClick(focus, Qt.Key.Key_1, Qt.KeyboardModifier.AltModifier)
    wanted = window.document.wanted
    assert wanted is not None
    assert len(wanted.overrides) == 1


@pytest.mark.x
def test_a_key_finds_the_state_of_its_own_turn_in_every_window(
    qtbot: QtBot, window: MainWindow
) -> None:
    lower_by_key(window, QApplication.focusWidget() or window)
    sent(window).answer(snapshot("dense", "relu"))
    # And one that is no longer possible is not run.
    window.document.select(())
    before = window.document.wanted
    QTest.keyClick(window, Qt.Key.Key_0, Qt.KeyboardModifier.AltModifier)
    assert window.document.wanted == before
    window.commands.action("undo").trigger()
    sent(window).answer(snapshot("dense", "relu"))
    window.document.select(())
    pane = window.panes.fx
    window.panes.switch_window("fx")
    window.pane_commands.enter(pane)
    qtbot.waitUntil(pane.isActiveWindow)
    focus = QApplication.focusWidget()
    assert focus is not None
    assert focus.window() is pane.window() is not window
    lower_by_key(window, focus)
    sent(window).answer(snapshot("dense", "relu"))
