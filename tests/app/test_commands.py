"""The registry of commands, and the palette that reads it."""

from __future__ import annotations

from collections import Counter

from PySide6.QtCore import QObject, Qt
from pytestqt.qtbot import QtBot

from lowerscope.app.actions import Command, Commands
from lowerscope.app.settings import Settings
from lowerscope.app.views.palette import Palette
from lowerscope.app.window import MainWindow


def test_a_command_is_run_by_its_action(qapp: QObject) -> None:
    commands, done = Commands(qapp), []
    commands.add(Command("one", "&File", "&One", lambda: done.append(1), "Ctrl+1"))
    commands.add(Command("two", "&File", "&Two", lambda: done.append(2)))
    commands.action("two").trigger()
    commands.action("one").trigger()
    assert done == [2, 1]
    commands.enable("one", False)
    commands.action("one").trigger()
    assert done == [2, 1]


def test_choices_of_a_group_exclude_each_other(qapp: QObject) -> None:
    commands = Commands(qapp)
    for key in ("a", "b"):
        commands.add(Command(key, "&View", key, lambda: None, group="g"))
    commands.check("a")
    commands.check("b")
    assert not commands.action("a").isChecked()


def window_of(qtbot: QtBot) -> MainWindow:
    window = MainWindow()
    qtbot.addWidget(window)
    window._complete()
    window.show()
    return window


def test_no_shortcut_is_given_twice(qtbot: QtBot) -> None:
    window = window_of(qtbot)
    shortcuts = Counter(command.shortcut for command, _ in window.commands if command.shortcut)
    assert [shortcut for shortcut, count in shortcuts.items() if count > 1] == []
    titles = [action.text().replace("&", "") for action in window.menuBar().actions()]
    assert titles[:4] == ["File", "Edit", "View", "Graph"]
    assert titles[-1] == "Help"
    in_menus = {action for menu in window.menuBar().actions() for action in menu.menu().actions()}
    assert all(action in in_menus for _, action in window.commands)


def test_the_palette_finds_and_runs(qtbot: QtBot) -> None:
    window = window_of(qtbot)
    palette = Palette(window)
    qtbot.addWidget(palette)
    palette.show()
    qtbot.keyClicks(palette.line, "dark")
    shown = [item.text(0) for item in palette._items() if not item.isHidden()]
    assert shown == ["Dark"]
    qtbot.keyClick(palette.line, Qt.Key.Key_Return)
    assert not palette.isVisible()
    assert Settings().scheme() == "dark"
    window.commands.action("system").trigger()
    assert Settings().scheme() == "system"


def test_the_palette_runs_nothing_where_nothing_matches(qtbot: QtBot) -> None:
    palette = Palette(window_of(qtbot))
    qtbot.addWidget(palette)
    palette.show()
    qtbot.keyClicks(palette.line, "zzz")
    qtbot.keyClick(palette.line, Qt.Key.Key_Return)
    assert palette.isVisible()


def test_recent_sources_are_each_listed_once_the_newest_first(qtbot: QtBot) -> None:
    settings = Settings()
    for source in ("a.py", "b.py", "a.py"):
        settings.add_recent(source, f"recipe of {source}")
    assert settings.recent()[:2] == ["a.py", "b.py"]
    assert settings.recipe_of("b.py") == "recipe of b.py"
    assert settings.recipe_of("never.py") == ""
    for number in range(30):
        settings.add_recent(f"{number}.py", "")
    assert len(settings.recent()) == 10
    assert settings.recent()[0] == "29.py"
