"""Every dialog by keys alone: Tab goes through it as it is read, Enter and Escape do what they say.

The dialogs stand over a window whose engine has not started: none of them needs it to be walked
through.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
from PySide6.QtCore import QPoint, QRect, QSettings, QSize, Qt
from PySide6.QtGui import QAccessible, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QDialog,
    QDialogButtonBox,
    QLabel,
    QPushButton,
    QRadioButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from lowerscope.app.kit import theme
from lowerscope.app.kit.dialogs import Dialog
from lowerscope.app.kit.layouts import FRAME
from lowerscope.app.panes.export.commands import ExportDialog
from lowerscope.app.panes.inputs.inputs_dialog import InputsDialog
from lowerscope.app.panes.relax.extensions import ExtensionsDialog
from lowerscope.app.panes.remote.commands import RemoteDialog, TargetDialog
from lowerscope.app.panes.run.commands import MeasuringDialog, TolerancesDialog
from lowerscope.app.panes.schedule.commands import RulesDialog
from lowerscope.app.panes.sessions.opening import EntryDialog
from lowerscope.app.panes.sessions.trust import RunCodeDialog
from lowerscope.app.panes.steps.pass_dialog import FusionDialog, PassDialog
from lowerscope.app.panes.tuning.commands import TuneDialog
from lowerscope.app.shell.about import AboutDialog
from lowerscope.app.shell.palette import Palette
from lowerscope.app.shell.sandbox_commands import NoSandboxDialog
from lowerscope.app.shell.settings_dialog import SettingsDialog
from lowerscope.app.shell.shortcuts_page import ShortcutsPage
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.recipe import Recipe, Source

TAB = Qt.FocusPolicy.TabFocus
MNEMONIC = re.compile(r"&(\w)")

Make = Callable[[MainWindow], Dialog]

DIALOGS: dict[str, Make] = {
    "about": lambda window: AboutDialog(window.preferences, window),
    "entry": lambda window: EntryDialog("net.py", ("Net", "Other"), window),
    "export": lambda window: ExportDialog(window.document, window.features.queries, "", window),
    "extensions": lambda window: ExtensionsDialog(window.document, window),
    "fusion": lambda window: FusionDialog(window.document, window.features.queries, "", "", window),
    "inputs": lambda window: InputsDialog(["x", "y"], (), (), 0, parent=window),
    "measuring": lambda window: MeasuringDialog(window.document, window.features.runs, window),
    "palette": lambda window: Palette(window.palette_entries(), window.features.queries, window),
    "no sandbox": lambda window: NoSandboxDialog("The system makes no sandbox (why).", window),
    "pass": lambda window: PassDialog(None, window),
    "remote": lambda window: RemoteDialog(window.document, window.targets.targets, window),
    "rules": lambda window: RulesDialog(
        window.document,
        window.features.stepping,
        window.features.variants,
        window.features.runs.run,
        window,
    ),
    "run code": lambda window: RunCodeDialog([__file__], (), "It may write.", window),
    "settings": lambda window: SettingsDialog(window.preferences, window),
    "shortcuts": lambda window: ShortcutsPage(window.commands, window),
    "target": lambda window: TargetDialog(window.document, window.targets.targets, window),
    "tolerances": lambda window: TolerancesDialog(window.document, window),
    "tune": lambda window: TuneDialog(window.document, "", window.features.tuning, window),
}

STARTS = {"export", "tune", "remote"}
"""Their Enter begins something; it is pressed where that is tested."""


@pytest.fixture(scope="module")
def window(qapp: QApplication, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MainWindow]:
    settings = str(tmp_path_factory.mktemp("settings"))
    QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, settings)
    theme.start(qapp, "light")
    window = MainWindow()
    window._complete()
    window.document.set(recipe=Recipe(source=Source(spec="sample:matmul_relu")))
    window.show()
    flash = QApplication.cursorFlashTime()
    # A caret that blinks would be a difference by itself.
    QApplication.setCursorFlashTime(0)
    yield window
    QApplication.setCursorFlashTime(flash)
    window.features.stop()
    window.close()


def test_there_is_no_other_dialog(window: MainWindow) -> None:
    def kinds(kind: type[QDialog]) -> set[type[QDialog]]:
        return {kind}.union(*map(kinds, kind.__subclasses__()))

    here = {
        each
        for each in kinds(Dialog)
        if each.__module__.startswith(("lowerscope.app.panes", "lowerscope.app.shell"))
    }
    made = [make(window) for make in DIALOGS.values()]
    assert {type(each) for each in made} == here
    for each in made:
        each.deleteLater()


def described(widget: QWidget) -> str:
    text = widget.text() if isinstance(widget, QAbstractButton) else ""
    return f"{type(widget).__name__} {widget.accessibleName() or text}"


def focusable(window: QWidget) -> list[QWidget]:
    return [
        each
        for each in window.findChildren(QWidget)
        if each.isVisible()
        and each.isEnabled()
        and each.focusPolicy() & TAB == TAB
        and each.window() is window
        # The line of a field that counts is a part of it; of choices, the one that is on.
        and each.focusProxy() is None
        and (not isinstance(each, QRadioButton) or each.isChecked())
    ]


def walk(dialog: QDialog, key: Qt.Key) -> list[QWidget]:
    """Press a key until the focus is where it was; return where it was in between."""
    seen: list[QWidget] = []
    while (here := dialog.focusWidget()) not in seen:
        assert here is not None
        seen.append(here)
        QTest.keyClick(here, key)
    assert here is seen[0], f"a trap: {[described(each) for each in seen[seen.index(here) :]]}"
    return seen


def area(widget: QWidget) -> QRect:
    return QRect(widget.mapTo(widget.window(), QPoint(0, 0)), widget.size())


def is_read_after(one: QRect, other: QRect) -> bool:
    """Return whether one stands behind or below another, or at the top of the next column."""
    same_row = one.top() <= other.center().y() and other.top() <= one.center().y()
    return (
        one.left() > other.left()
        if same_row
        else one.top() > other.top() or (one.left() > other.right())
    )


def looks(widget: QWidget) -> QImage:
    return widget.window().grab(area(widget).adjusted(-3, -3, 3, 3)).toImage()


def letters(dialog: QDialog) -> list[str]:
    """Return the letters that Alt takes to something, lower case."""
    said = [
        each.text()
        for each in dialog.findChildren(QWidget)
        if each.isVisible()
        and (isinstance(each, QAbstractButton) or (isinstance(each, QLabel) and each.buddy()))
    ]
    return [found[1].lower() for text in said if (found := MNEMONIC.search(text))]


@pytest.mark.x
@pytest.mark.parametrize("name", DIALOGS)
@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
def test_a_dialog_by_keys(qtbot: QtBot, window: MainWindow, name: str) -> None:
    dialog = DIALOGS[name](window)
    dialog.open()
    qtbot.waitUntil(dialog.isActiveWindow)
    first = dialog.focusWidget()
    assert first is not None, "nothing has the focus"
    before = window.document.wanted, window.preferences.current()

    # All of it is reached, in the order in which it is read, and back again.
    there = walk(dialog, Qt.Key.Key_Tab)
    missed = set(focusable(dialog)) - set(there)
    assert not missed, f"not reached: {[described(each) for each in missed]}"
    assert walk(dialog, Qt.Key.Key_Backtab) == [there[0], *reversed(there[1:])]
    begin = there.index(min(there, key=lambda each: (area(each).top(), area(each).left())))
    read = [*there[begin:], *there[:begin]]
    for one, other in pairwise(read):
        assert is_read_after(area(other), area(one)), f"{described(one)}, then {described(other)}"

    # Each shows that it has the focus, and has a name.
    for each in there:
        dialog.setFocus()
        other = there[there.index(each) - 1]
        other.setFocus(Qt.FocusReason.TabFocusReason)
        without = looks(each)
        each.setFocus(Qt.FocusReason.TabFocusReason)
        assert looks(each) != without or len(there) == 1, f"no ring: {described(each)}"
        seen = QAccessible.queryAccessibleInterface(each)
        assert seen.text(QAccessible.Text.Name), f"no name: {described(each)}"
    used = letters(dialog)
    assert len(used) == len(set(used)), used

    # Escape changes nothing.
    first.setFocus()
    QTest.keyClick(first, Qt.Key.Key_Escape)
    assert not dialog.isVisible()
    assert dialog.result() == QDialog.DialogCode.Rejected
    dialog.deleteLater()
    assert (window.document.wanted, window.preferences.current()) == before

    # Enter presses the button that is drawn as the one that it presses.
    dialog = DIALOGS[name](window)
    dialog.open()
    qtbot.waitUntil(dialog.isActiveWindow)
    buttons = [each for each in dialog.findChildren(QPushButton) if not each.isHidden()]
    primary = [each for each in buttons if each.property("primary")]
    default = [each for each in buttons if each.isDefault()]
    assert len(default) <= 1
    assert default == (primary or default)
    if default and default[0].isEnabled() and name not in STARTS:
        field = dialog.focusWidget()
        assert field is not None
        pressed: list[bool] = []
        default[0].clicked.connect(lambda: pressed.append(True))
        # A list takes Enter for its row, as the button does.
        dialog.accepted.connect(lambda: pressed.append(True))
        QTest.keyClick(field, Qt.Key.Key_Return)
        assert pressed
        assert (window.document.wanted, window.preferences.current()) == before
    dialog.close()
    dialog.deleteLater()


SMALL = QSize(1280, 720) / 2
"""The smallest screen at the largest scaling, in logical pixels."""


@pytest.mark.parametrize("name", DIALOGS)
def test_no_words_are_cut_on_a_small_screen_at_200_percent(
    name: str, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = SMALL - FRAME
    monkeypatch.setattr(Dialog, "_room", lambda _: room)
    dialog = DIALOGS[name](window)
    dialog.show()
    QApplication.processEvents()
    assert dialog.size().boundedTo(room) == dialog.size()
    for label in dialog.findChildren(QLabel):
        if label.isVisible() and label.wordWrap():
            assert label.height() >= label.heightForWidth(label.width()), label.text()
        elif label.isVisible():
            assert label.width() >= label.sizeHint().width(), label.text()
    for button in dialog.findChildren(QAbstractButton):
        if button.isVisible() and button.text():
            assert button.size().expandedTo(button.minimumSizeHint()) == button.size(), (
                button.text()
            )
    for box in dialog.findChildren(QDialogButtonBox):
        assert dialog.rect().contains(area(box))
    dialog.reject()
