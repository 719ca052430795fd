"""The whole window by keyboard: Tab comes everywhere, shows where it is, and keys do the rest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAccessible, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from lowerscope.app.kit import theme
from lowerscope.app.shell.modes import MODES
from lowerscope.app.shell.window import MainWindow
from tests.app.test_dialogs_by_keys import focusable
from tests.diagonal import SOAK
from tests.end_to_end.driving import OpenWindow, run_and_wait

pytestmark = pytest.mark.x

TAB = Qt.FocusPolicy.TabFocus
INSIDE = 25
"""So many links a text may have that Tab goes through before it leaves it."""
AROUND = 3
"""Pixels beside a widget that may show its focus as well."""


@pytest.fixture
def window(qtbot: QtBot, open_window: OpenWindow) -> Iterator[MainWindow]:
    """Return a window with a sample that was run and a node that is selected."""
    window = open_window("sample:fashion_mlp", lowering="te")
    window.resize(1440, 900)
    run_and_wait(qtbot, window)
    window.document.select(("fx:linear0",))
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    flash = QApplication.cursorFlashTime()
    # A caret that blinks would be a difference by itself.
    QApplication.setCursorFlashTime(0)
    yield window
    QApplication.setCursorFlashTime(flash)
    theme.set_scheme("light")


def described(widget: QWidget) -> str:
    names = []
    above: QWidget | None = widget
    while above is not None and len(names) < 4:
        names.append(f"{type(above).__name__} {above.accessibleName()}".strip())
        above = above.parentWidget()
    return " in ".join(names)


def walk(key: Qt.Key) -> set[QWidget]:
    """Press a key until the focus is where it was; return where it was in between."""
    seen: list[QWidget] = []
    stayed = 0
    while True:
        here = QApplication.focusWidget()
        if seen and here is seen[-1]:
            stayed += 1
            assert stayed < INSIDE, f"no way out of {described(here)}"
        elif here in seen:
            return set(seen)
        else:
            stayed = 0
            seen.append(here)
        QTest.keyClick(here, key)


def pages_in_turn(window: MainWindow) -> Iterator[None]:
    """Show every page of every pane, one of each at a time."""
    panes = window.panes
    window.commands.action("drawer").trigger()
    for mode in MODES:
        window.set_mode(mode.key)
        QTest.qWait(50)
        shown = [pane for pane in (*panes.by_name.values(), panes.drawer) if pane.isVisible()]
        for place in range(max(len(pane.pages()) for pane in shown)):
            for pane in shown:
                key = pane.pages()[place % len(pane.pages())]
                if pane.header.tabs.tab(key).isEnabled():
                    pane.set_current(key)
            QApplication.processEvents()
            yield
    window.set_mode("explore")


def looks(window: MainWindow, widget: QWidget) -> QImage:
    area = widget.rect().translated(widget.mapTo(window, QPoint(0, 0)))
    return window.grab(area.adjusted(-AROUND, -AROUND, AROUND, AROUND)).toImage()


@pytest.mark.qt_log_ignore("This plugin does not support")
def test_tab_comes_to_everything_and_shows_where_it_is(qtbot: QtBot, window: MainWindow) -> None:
    elsewhere = QWidget(window)
    elsewhere.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
    elsewhere.show()
    for scheme in ("light", "dark") if SOAK else ("light",):
        theme.set_scheme(scheme)
        checked: set[object] = set()
        for _ in pages_in_turn(window):
            there = focusable(window)
            if scheme == "light":
                for key in (Qt.Key.Key_Tab, Qt.Key.Key_Backtab):
                    there[0].setFocus(Qt.FocusReason.TabFocusReason)
                    missed = set(there) - walk(key)
                    assert not missed, f"{key.name} misses {[described(each) for each in missed]}"
            for widget in there:
                seen = QAccessible.queryAccessibleInterface(widget)
                assert seen.text(QAccessible.Text.Name), f"no name: {described(widget)}"
                plain = (QAccessible.Role.NoRole, QAccessible.Role.Client)
                assert seen.role() not in plain, f"no role: {described(widget)}"
                # What one of a kind in one place shows, the others show.
                kind = (type(widget), type(widget.parent()))
                which = widget if SOAK and scheme == "light" else kind
                if which in checked:
                    continue
                checked.add(which)
                widget.setFocus(Qt.FocusReason.TabFocusReason)
                focused = looks(window, widget)
                elsewhere.setFocus(Qt.FocusReason.OtherFocusReason)
                assert looks(window, widget) != focused, f"{scheme}: {described(widget)}"
    elsewhere.deleteLater()
    no_ring_for_a_click(qtbot, window)
    keys_from_pane_to_pane(window)


def no_ring_for_a_click(qtbot: QtBot, window: MainWindow) -> None:
    """Click on a page: it has the focus without a ring."""
    theme.set_scheme("light")
    window.show_page("log")
    log = window.panes.log
    log.setFocus(Qt.FocusReason.TabFocusReason)
    ringed = looks(window, log)
    window.panes.model.setFocus()
    window.tool_bar.setFocus()
    plain = looks(window, log)
    assert plain != ringed
    qtbot.mousePress(log.viewport(), Qt.MouseButton.LeftButton)
    assert log.hasFocus()
    edge = (0, log.height() // 2)
    qtbot.mouseRelease(log.viewport(), Qt.MouseButton.LeftButton)
    accent = theme.current().accent
    assert ringed.pixelColor(AROUND, AROUND + edge[1]).name() == accent
    assert looks(window, log).pixelColor(AROUND, AROUND + edge[1]).name() != accent


def keys_from_pane_to_pane(window: MainWindow) -> None:
    """Press Ctrl+Tab through all panes, and move one into a window of its own and back."""
    panes = window.panes
    seen = []
    for _ in range(8):
        QTest.keyClick(
            QApplication.focusWidget() or window,
            Qt.Key.Key_Tab,
            Qt.KeyboardModifier.ControlModifier,
        )
        focus = QApplication.focusWidget()
        places = {"drawer": panes.drawer, **panes.by_name}
        seen.append(next(name for name, each in places.items() if each.isAncestorOf(focus)))
    assert set(seen) == {"model", "fx", "relax", "tensorir", "details", "drawer"}
    assert seen[seen.index("model") :][:2] == ["model", "fx"]
    window.commands.action("next-pane").trigger()
    here = QApplication.focusWidget()
    pane = next(each for each in panes.by_name.values() if each.isAncestorOf(here))
    window.commands.action("pane-window").trigger()
    assert pane.window() is not window
    window.commands.action("pane-window").trigger()
    assert pane.window() is window
