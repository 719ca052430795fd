"""F1 opens the page of the part of the window that has the focus."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialogButtonBox, QWidget
from pytestqt.qtbot import QtBot

from lowerscope.app.shell import help_pages
from lowerscope.app.shell.help_window import Place
from lowerscope.app.shell.settings_dialog import SettingsDialog
from lowerscope.app.shell.window import MainWindow
from tests.app.panes.test_relax_model import RECIPE, records
from tests.app.shell.conftest import OpenPlainWindow

pytestmark = pytest.mark.x


def takes_focus(widget: QWidget) -> bool:
    return widget.isVisible() and widget.isEnabled() and bool(widget.focusPolicy())


def focus_inside(qtbot: QtBot, part: QWidget) -> None:
    """Give the focus to the first widget of a part that takes it, or to what stands for it."""
    inner = [each for each in (part, *part.findChildren(QWidget)) if takes_focus(each)]
    assert inner, part
    inner[0].setFocus(Qt.FocusReason.TabFocusReason)
    focus = QApplication.focusWidget()
    assert focus is not None
    assert part.isAncestorOf(focus) or focus is part


def bring_to_front(qtbot: QtBot, window: QWidget) -> None:
    """Make a window the active one, which a window system does later."""
    window.activateWindow()
    qtbot.waitUntil(lambda: QApplication.activeWindow() is window)


def page_by_f1(qtbot: QtBot, window: MainWindow) -> str:
    """Press F1 where the focus is, and return the page that is shown."""
    focus = QApplication.focusWidget()
    assert focus is not None
    QTest.keyClick(focus, Qt.Key.Key_F1)
    assert window.help.shown is not None
    assert window.help.shown.isVisible()
    page = window.help.shown.place().name
    window.help.shown.hide()
    bring_to_front(qtbot, window)
    return page


def test_f1_opens_the_page_of_each_pane(open_plain_window: OpenPlainWindow, qtbot: QtBot) -> None:
    window = open_plain_window(RECIPE, records())
    window.show_panes()
    bring_to_front(qtbot, window)
    panes = window.panes
    for name, pane in panes.by_name.items():
        if name == "schedule":
            continue
        panes.bring(name)
        for key in pane.pages():
            pane.set_current(key)
            pages = {"node-map": "translation", "call": "details", "memory": "time"}
            pages |= {"tokens": "sources", "rounding": "compare"}
            panes_pages = {"pipeline": "timeline"}
            several = name in ("outcome", "changes") or key in ("translation", "node-map")
            wanted = pages.get(key, key) if several else panes_pages.get(name, name)
            focus = pane.page(key)
            if any(takes_focus(each) for each in focus.findChildren(QWidget)):
                focus_inside(qtbot, focus)
                assert page_by_f1(qtbot, window) == wanted, (name, key)
            # A tab in the header of the pane has the focus.
            tab = pane.header.tabs.tab(key)
            if tab.isVisible():
                tab.setFocus(Qt.FocusReason.TabFocusReason)
                assert page_by_f1(qtbot, window) == wanted, (name, key)
            assert help_pages.is_page(wanted)

    # At the workbench, and in the bars.
    window.commands.action("workbench").trigger()
    schedule = panes.schedule
    window.document.select((window.features.scheduling.functions[0].id,))
    qtbot.waitUntil(schedule.variants.isVisible)
    for part, wanted in ((schedule.tree, "schedule"), (schedule.variants.table, "schedule")):
        part.setFocus(Qt.FocusReason.TabFocusReason)
        assert page_by_f1(qtbot, window) == wanted
    panes.set_mode("step")
    focus_inside(qtbot, panes.pipeline)
    assert page_by_f1(qtbot, window) == "timeline"
    focus_inside(qtbot, window.tool_bar)
    assert page_by_f1(qtbot, window) == "window"
    # At the welcome page, the tour is what helps.
    window.show_welcome()
    focus_inside(qtbot, window.welcome)
    assert page_by_f1(qtbot, window) == "tour"
    window.commands.action("help-contents").trigger()
    shown = window.help.shown
    assert shown is not None
    assert shown.place().name == help_pages.CONTENTS
    # A dialog holds the window's keys back, and has its own and a button.
    window.commands.action("settings").trigger()
    (dialog,) = window.findChildren(SettingsDialog)
    shown.hide()
    bring_to_front(qtbot, dialog)
    dialog.fields["scheme"].setFocus()
    QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_F1)
    assert shown.place() == Place("window", "settings")
    window.commands.action("help-contents").trigger()
    (buttons,) = dialog.findChildren(QDialogButtonBox)
    buttons.button(QDialogButtonBox.StandardButton.Help).click()
    assert shown.place() == Place("window", "settings")
    assert dialog.isVisible()
    dialog.reject()
    # It goes with the window.
    window.close()
    assert window.help.shown is None
