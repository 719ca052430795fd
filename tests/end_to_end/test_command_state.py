"""The state of commands: evaluated once a turn of the event loop, and true for keys and menus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from PySide6.QtCore import QAbstractEventDispatcher, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from lowerscope.app.shell.window import MainWindow
from tests.end_to_end.driving import OpenWindow, wait_for_records

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)


@pytest.fixture
def window(qtbot: QtBot, open_window: OpenWindow) -> MainWindow:
    window = open_window("sample:fashion_mlp", lowering="te")
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    return window


def lower_by_key(window: MainWindow, focus: QWidget) -> None:
    """Select a node and lower it by a key, all in one turn of the event loop."""
    assert not window.commands.action("selection-high-level").isEnabled()
    window.document.select(("fx:linear0",))
    QTest.keyClick(focus, Qt.Key.Key_1, Qt.KeyboardModifier.AltModifier)
    wanted = window.document.wanted
    assert wanted is not None
    assert len(wanted.overrides) == 1


def test_predicates_are_evaluated_at_most_once_a_turn(qtbot: QtBot, window: MainWindow) -> None:
    commands, counts = window.commands, Counter[str]()
    turns: list[Counter[str]] = []

    def counted(name: str, predicate: Callable[[], bool] | None) -> Callable[[], bool] | None:
        if predicate is None:
            return None

        def evaluate() -> bool:
            counts[name] += 1
            return predicate()

        return evaluate

    predicates = 0
    for command, _ in list(commands):
        commands._commands[command.id] = replace(
            command,
            enabled=counted(f"{command.id} enabled", command.enabled),
            checked=counted(f"{command.id} checked", command.checked),
        )
        predicates += (command.enabled is not None) + (command.checked is not None)
    assert predicates > 100

    def end_turn() -> None:
        if counts:
            turns.append(Counter(counts))
            counts.clear()

    dispatcher = QAbstractEventDispatcher.instance()
    dispatcher.awake.connect(end_turn)
    window.document.lower_nodes(("fx:linear0",), "high-level")
    # Nothing is evaluated while the change is made.
    assert not counts
    wait_for_records(qtbot, window)
    qtbot.waitUntil(lambda: commands.action("undo").isEnabled())
    dispatcher.awake.disconnect(end_turn)
    end_turn()
    assert turns
    assert max(max(each.values()) for each in turns) == 1
    for command, action in commands:
        assert command.enabled is None or action.isEnabled() == command.enabled(), command.id
        assert command.checked is None or action.isChecked() == command.checked(), command.id


@pytest.mark.x
def test_a_key_finds_the_state_of_its_own_turn_in_a_floating_pane_as_well(
    qtbot: QtBot, window: MainWindow
) -> None:
    lower_by_key(window, QApplication.focusWidget() or window)
    wait_for_records(qtbot, window)
    # And one that is no longer possible is not run.
    window.document.select(())
    before = window.document.wanted
    QTest.keyClick(window, Qt.Key.Key_0, Qt.KeyboardModifier.AltModifier)
    assert window.document.wanted == before
    window.commands.action("undo").trigger()
    wait_for_records(qtbot, window)
    window.document.select(())
    dock = window.panes.docks["fx"]
    dock.setFloating(True)
    window.pane_commands.enter(dock)
    qtbot.waitUntil(dock.isActiveWindow)
    focus = QApplication.focusWidget()
    assert focus is not None
    assert focus.window() is dock
    lower_by_key(window, focus)
    wait_for_records(qtbot, window)
