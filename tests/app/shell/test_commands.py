"""The registry of commands, and the palette that reads it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import permutations

import pytest
from PySide6.QtCore import QKeyCombination, QObject, Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QPlainTextEdit, QWidget
from pytestqt.qtbot import QtBot

from lowerscope.app.document.settings import Settings
from lowerscope.app.kit.canvas.graph_canvas import PLAIN, WALK
from lowerscope.app.kit.code.code_editor import KEYS
from lowerscope.app.kit.commands import Command, Commands, keys_of, plain
from lowerscope.app.shell.palette import Palette, PaletteEntry
from lowerscope.app.shell.shortcuts_page import ShortcutsPage
from lowerscope.app.shell.window import MainWindow


def test_a_command_is_run_by_its_action(qapp: QObject) -> None:
    commands, done, is_possible = Commands(qapp), [], [True]
    commands.add(Command("one", "&One", lambda: done.append(1), "Ctrl+1"))
    commands.add(Command("two", "&Two", lambda: done.append(2), enabled=lambda: is_possible[0]))
    commands.action("two").trigger()
    commands.action("one").trigger()
    assert done == [2, 1]
    two = commands.action("two")
    assert two.isEnabled()
    is_possible[0] = False
    commands.refresh_later()
    # The turn in which it would be greyed has not come yet.
    assert two.isEnabled()
    two.trigger()
    assert done == [2, 1]
    assert not two.isEnabled()


def test_predicates_are_evaluated_once_a_turn_or_when_a_command_is_read(qtbot: QtBot) -> None:
    parent = QObject()
    commands, counts = Commands(parent), Counter[str]()
    on = False

    def counted(name: str) -> bool:
        counts[name] += 1
        return on

    for key in ("a", "b"):
        commands.add(
            Command(
                key,
                key,
                lambda: None,
                enabled=partial(counted, f"{key} enabled"),
                reason=lambda: "It is off",
                checked=partial(counted, f"{key} checked"),
            )
        )
    a = commands.action("a")
    assert (a.isEnabled(), a.isChecked(), a.toolTip()) == (False, False, "It is off")
    counts.clear()
    on = True
    for _ in range(5):
        commands.refresh_later()
    assert not counts
    qtbot.waitUntil(a.isEnabled)
    assert (a.isChecked(), a.toolTip()) == (True, "a")
    assert set(counts.values()) == {1}
    assert len(counts) == 4
    # Nothing has changed since.
    QTest.qWait(20)
    commands.action("b")
    assert set(counts.values()) == {1}


def test_choices_of_a_group_exclude_each_other(qapp: QObject) -> None:
    commands, chosen = Commands(qapp), ["a"]
    for key in ("a", "b"):
        commands.add(
            Command(
                key,
                key,
                partial(chosen.__setitem__, 0, key),
                checked=lambda key=key: chosen == [key],
                group="g",
            )
        )
    assert commands.action("a").isChecked()
    for _ in range(2):
        # The second time it is chosen already, and stays so.
        commands.action("b").trigger()
        assert [commands.action(key).isChecked() for key in ("a", "b")] == [False, True]


def test_the_key_of_a_disabled_command_says_why(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    commands = Commands(window)
    commands.add(
        Command(
            "a", "&Go…", lambda: None, "F9; F2", enabled=lambda: False, reason=lambda: "run first"
        )
    )
    commands.add(Command("b", "Stay", lambda: None, "F3", enabled=lambda: False))
    commands.take_keys(window)
    window.show()
    for key in (Qt.Key.Key_F9, Qt.Key.Key_F2):
        with qtbot.waitSignal(commands.refused) as heard:
            QTest.keyClick(window, key)
        assert heard.args == ["Go: run first"]
    with qtbot.assertNotEmitted(commands.refused):
        QTest.keyClick(window, Qt.Key.Key_F3)


def complete_window() -> MainWindow:
    window = MainWindow()
    window._complete()
    window.show()
    return window


@pytest.fixture(scope="module")
def window(qapp: object) -> Iterator[MainWindow]:
    """Return a window that several tests look at."""
    window = complete_window()
    yield window
    window.close()
    window.deleteLater()


WINDOW_SYSTEM = re.compile(
    # Of GNOME, KDE and Xfce; Ctrl+Alt is AltGr on other systems.
    r"Meta|Ctrl\+Alt|Alt\+(F\d+|Tab|Shift\+Tab|Esc|Space|Shift\+Esc)$|Ctrl\+(Esc|F([1-4]|\d0))$"
    r"|Ctrl\+F(7|9|12)$|Print|Alt\+`"
)

EDITING = (
    *("Undo", "Redo", "Cut", "Copy", "Paste", "SelectAll", "Delete", "Backspace"),
    *("DeleteCompleteLine", "DeleteEndOfLine", "DeleteEndOfWord", "DeleteStartOfWord"),
    *("MoveToNextWord", "MoveToPreviousWord", "MoveToStartOfLine", "MoveToEndOfLine"),
    *("MoveToStartOfDocument", "MoveToEndOfDocument", "SelectNextWord", "SelectPreviousWord"),
    *("SelectStartOfLine", "SelectEndOfLine", "SelectStartOfBlock", "SelectEndOfBlock"),
    *("SelectStartOfDocument", "SelectEndOfDocument", "SelectNextChar", "SelectPreviousChar"),
)
"""Qt's standard keys that a text field has a use for."""

X11 = ("Ctrl+E", "Ctrl+U")
"""Those of them that are only there on X11, which the tests are not. Ctrl+K is the palette's."""


def test_no_shortcut_is_one_of_the_window_system(window: MainWindow) -> None:
    for taken in ("Alt+F4", "Ctrl+Alt+T", "Alt+Tab", "Meta+D", "Ctrl+F1", "Ctrl+Alt+Left"):
        assert WINDOW_SYSTEM.search(taken), taken
    for _, action in window.commands:
        keys = action.shortcut().toString()
        assert not WINDOW_SYSTEM.search(keys), keys


@pytest.mark.x
def test_a_text_field_keeps_its_keys(qtbot: QtBot) -> None:
    window = complete_window()
    qtbot.addWidget(window)
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    ran: list[str] = []
    for command, action in window.commands:
        action.setEnabled(True)
        action.triggered.disconnect()
        action.triggered.connect(lambda *_, key=command.id: ran.append(key))
    keys = {QKeySequence(each) for each in X11}
    for name in EDITING:
        keys |= set(QKeySequence.keyBindings(QKeySequence.StandardKey[name]))
    keys.discard(QKeySequence("Ctrl+K"))
    shared = [action.shortcut() for _, action in window.commands if action.shortcut() in keys]
    # Undo and redo, at least: the field's own while it has the focus, the window's elsewhere.
    assert QKeySequence("Ctrl+Z") in shared
    for field in (QLineEdit(window), QPlainTextEdit(window)):
        field.show()
        field.setFocus()
        for each in keys:
            if each.count() == 1 and each[0].key() < Qt.Key.Key_Back:
                QTest.keySequence(field, each)
        assert ran == [], (type(field).__name__, ran)
        field.hide()
    window.welcome.setFocus()
    QTest.keySequence(window.welcome, QKeySequence("Ctrl+Z"))
    assert ran == ["undo"]


def test_the_letters_of_a_menu_are_different_and_its_keys_are_shown(window: MainWindow) -> None:
    bar = window.menuBar().actions()
    for title in bar:
        shown = title.menu().actions()
        letters = [found[1].upper() for each in shown if (found := MNEMONIC.search(each.text()))]
        assert len(letters) > 2
        assert len(set(letters)) == len(letters), (title.text(), sorted(letters))
        for each in shown:
            assert each.isShortcutVisibleInContextMenu()
    shown = [each for each in bar if each.isVisible()]
    # Hidden ones count: the bar takes their letters as well.
    titles = [found[1].upper() for each in bar if (found := MNEMONIC.search(each.text()))]
    assert len(set(titles)) == len(titles) == len(shown) == 6


MNEMONIC = re.compile(r"&(\w)")


def test_no_shortcut_is_given_twice(window: MainWindow) -> None:
    sequences = [each for _, action in window.commands for each in action.shortcuts()]
    assert len(sequences) > 60
    for one, other in permutations(sequences, 2):
        # Nor does one begin another, which would hide that.
        assert one.matches(other) == QKeySequence.SequenceMatch.NoMatch, one.toString()


@pytest.mark.x
@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
def test_a_menu_opens_by_its_letter_and_runs_a_command_by_its_own(
    qtbot: QtBot, window: MainWindow
) -> None:
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    window.welcome.setFocus()
    dark = window.commands.action("dark")
    assert dark.shortcut().isEmpty()
    QTest.keyClick(window.welcome, Qt.Key.Key_V, Qt.KeyboardModifier.AltModifier)
    menu = QApplication.activePopupWidget()
    assert menu is not None
    QTest.keyClick(menu, Qt.Key.Key_C)
    colours = QApplication.activePopupWidget()
    assert colours is not None
    QTest.keyClick(colours, Qt.Key.Key_D)
    assert Settings().scheme == "dark"
    window.commands.action("system").trigger()


def test_in_another_language_a_command_is_found_by_its_english_title_too() -> None:
    entry = PaletteEntry("command", "深色", "视图", lambda: None, english="Dark")
    assert entry.rank(["深色"]) == 0
    assert entry.rank(["dark"]) == 1
    assert entry.rank(["light"]) is None


def test_the_palette_finds_and_runs(qtbot: QtBot, window: MainWindow) -> None:
    palette = Palette(window.palette_entries(), window.features.queries, window)
    qtbot.addWidget(palette)
    palette.show()
    assert len(palette.shown()) == len(list(window.commands))
    qtbot.keyClicks(palette.line, "dark")
    assert [entry.title for entry in palette.shown()] == ["Dark"]
    qtbot.keyClick(palette.line, Qt.Key.Key_Return)
    assert not palette.isVisible()
    assert Settings().scheme == "dark"
    window.commands.action("system").trigger()
    assert Settings().scheme == "system"


def test_the_palette_opens_samples_and_recent_files(qtbot: QtBot, window: MainWindow) -> None:
    Settings().add_recent("/somewhere/net.py", "")
    palette = Palette(window.palette_entries(), window.features.queries, window)
    qtbot.addWidget(palette)
    palette.show()
    qtbot.keyClicks(palette.line, "~")
    titles = [entry.title for entry in palette.shown()]
    assert {"matmul", "resnet18", "net.py"} <= set(titles)
    palette.line.setText("transformer_bl")
    assert palette.shown()[0].title == "transformer_block"
    qtbot.keyClick(palette.line, Qt.Key.Key_Return)
    assert window.document.wanted is not None
    assert window.document.wanted.source.spec == "sample:transformer_block"


def test_the_palette_runs_nothing_where_nothing_matches(qtbot: QtBot, window: MainWindow) -> None:
    palette = Palette(window.palette_entries(), window.features.queries, window)
    qtbot.addWidget(palette)
    palette.show()
    qtbot.keyClicks(palette.line, "zzz")
    qtbot.keyClick(palette.line, Qt.Key.Key_Return)
    assert palette.isVisible()
    assert palette.empty.isVisible()
    # A word that was mistyped is taken for the one that it is near to.
    meant = ((">shortcust", "Keyboard shortcuts"), ("optimize cpu", "Optimise for CPU"))
    for typed, title in meant:
        palette.line.setText(typed)
        assert any(title in entry.title for entry in palette.shown()), typed


def test_the_page_has_all_keys(qtbot: QtBot, window: MainWindow) -> None:
    page = ShortcutsPage(window.commands, window)
    qtbot.addWidget(page)
    page.show()
    for command, action in window.commands:
        if keys := keys_of(command):
            assert (plain(action.text()), keys) in page.shown(), command.id
    said = " ".join(keys for _, keys in page.shown())
    for key in (*WALK, *PLAIN):
        assert QKeySequence(key).toString() in said.split(), key
    for (key, modifiers), _ in KEYS.items():
        name = QKeySequence(QKeyCombination(modifiers, key)).toString()
        assert name.replace("{", "[").replace("}", "]") in said.split("  ·  ") + said.split(), name
    qtbot.keyClicks(page.line, "graph find")
    assert page.shown()[0] == ("Find a node", "/")
    qtbot.keyClicks(page.line, " nowhere")
    assert page.shown() == []
    assert page.empty.isVisible()
