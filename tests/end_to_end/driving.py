"""Actions that tests of the whole window repeat."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from PySide6.QtCore import QPoint, Qt, QTimer
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractScrollArea, QApplication, QMenu
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from lowerscope.app.document.document import Change
from lowerscope.app.shell.window import MainWindow

PATIENCE = 60_000
"""Milliseconds to wait at most for what takes seconds on a busy machine."""

OpenWindow = Callable[..., MainWindow]


def changes(*names: str) -> Callable[[Change], bool]:
    """Return a check of whether any of these fields of the document changed."""
    return lambda change: not change.fields.isdisjoint(names)


def wait_for_records(qtbot: QtBot, window: MainWindow) -> None:
    """Wait until the recipe that was asked for is shown."""
    document = window.document

    def arrived() -> None:
        # The details of an internal error are its traceback.
        assert not document.problems, document.problems[0].line() + document.problems[0].details
        assert document.snapshot is not None
        # What is derived anew from changed files has the same recipe.
        assert document.wanted == document.recipe
        assert not document.is_changing
        assert not document.job.text

    qtbot.waitUntil(arrived, timeout=PATIENCE)


def wait_until(condition: Callable[[], object], patience: int = PATIENCE) -> bool:
    """Let the windows go on until a condition holds; False if it did not within `patience` ms."""
    end = time.monotonic() + patience / 1000
    while not condition():
        if time.monotonic() > end:
            return False
        QTest.qWait(5)
    return True


def wait_for_problem(qtbot: QtBot, window: MainWindow) -> str:
    """Wait until a problem is shown; return its line."""
    qtbot.waitUntil(lambda: bool(window.document.problems), timeout=PATIENCE)
    return window.document.problems[0].line()


def run_and_wait(qtbot: QtBot, window: MainWindow) -> None:
    """Press Run and wait for the verdict."""
    document = window.document
    window.commands.action("run").trigger()
    qtbot.waitUntil(lambda: not document.running, timeout=PATIENCE)
    assert document.run_record is not None, document.problems


def choose_from_menu(view: QAbstractScrollArea, place: QPoint, *path: str) -> None:
    """Open the menu of a place with the mouse, and choose an entry of it, or of one below.

    Entries are named by their first words. The menu may have an event loop of its own: it is closed
    whatever happens, since a test that fails in that loop would never end.
    """
    closed = False

    def choose() -> None:
        nonlocal closed
        menu = QApplication.activePopupWidget()
        assert isinstance(menu, QMenu)
        try:
            _choose(menu, path)
        finally:
            if isValid(menu):
                menu.close()
            closed = True

    QTimer.singleShot(0, view, choose)
    position = view.viewport().mapToGlobal(place)
    event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, place, position)
    QApplication.sendEvent(view.viewport(), event)
    assert wait_until(lambda: closed)


def _choose(menu: QMenu, path: Sequence[str]) -> None:
    text, *below = path
    fitting = [each for each in menu.actions() if each.text().startswith(text)]
    assert fitting, (text, [each.text() for each in menu.actions()])
    action = min(fitting, key=lambda each: len(each.text()))
    menu.setActiveAction(action)
    # By keyboard: what the mouse does in menus depends on the window manager.
    QTest.keyClick(menu, Qt.Key.Key_Right if below else Qt.Key.Key_Return)
    if below:
        inner = action.menu()
        assert isinstance(inner, QMenu)
        _choose(inner, below)
