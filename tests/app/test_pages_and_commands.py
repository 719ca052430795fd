"""What the pages call by name is there: commands of menus, pages of panes, keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QMenu

from lowerscope.app.kit.commands import plain
from lowerscope.app.shell.shortcuts_page import pane_keys
from lowerscope.app.shell.window import MainWindow

ROOT = Path(__file__).parents[2]
HELP = ROOT / "resources" / "help"
PAGES = (ROOT / "README.md", *sorted(HELP.glob("*.md")), *sorted(HELP.glob("*_*/*.md")))
TEXT = {f"{page.parent.name}/{page.name}": page.read_text("utf-8") for page in PAGES}

_PATH = re.compile(r"\*([A-Z]\w*) [→▸] ([^*]+?)\*")
_KEY = re.compile(
    r"\b((?:(?:Ctrl|Alt|Shift)\+)+(?!(?:Ctrl|Alt|Shift)\b)(?:[A-Z]\b|[A-Z]\w+|\d|[.,])|F[1-9]\b)"
)

OF_WIDGETS = {
    "Alt+Left",
    "Alt+Right",
    "Ctrl+C",
    "Shift+Enter",
    "Shift+Tab",
    "Ctrl+Space",
    "Alt+V",
    "Alt+R",
}
"""Keys of no command and no pane: of fields, trees and help, of the terminal, of the menu bar."""


@pytest.fixture(scope="module")
def window(qapp: object) -> Iterator[MainWindow]:
    window = MainWindow()
    window._complete()
    window.show_panes()
    yield window
    window.close()
    window.deleteLater()


def test_every_command_and_pane_that_a_page_names_is_there(window: MainWindow) -> None:
    named: dict[str, set[str]] = {}
    for menu in window.menuBar().findChildren(QMenu):
        titles = {plain(each.text()) for each in menu.actions()}
        named.setdefault(plain(menu.title()), set()).update(titles)
    for pane in (*window.panes.by_name.values(), window.panes.drawer):
        tabs = {pane.header.tabs.tab(key).text() for key in pane.pages()}
        named.setdefault(pane.title(), set()).update(tabs)
    for field, menu in (("Target", window.tool_bar.target._menu),):
        named[field] = {plain(each.text()).partition(" – ")[0] for each in menu.actions()}
    named["Save"] = {
        plain(each.text()) for each in window.panes.schedule.history.keep.menu().actions()
    }
    found = 0
    for page, text in TEXT.items():
        for menu, words in _PATH.findall(text):
            for wanted in map(plain, " ".join(words.split()).split(" → ")):
                assert menu in named, f"{page}: {menu} → {words}"
                there = [each for each in named[menu] if each.lower().startswith(wanted.lower())]
                assert there, f"{page}: {menu} → {words}: there is {sorted(named[menu])}"
                menu = wanted
                if menu not in named:
                    # What follows is in a dialog.
                    break
            found += 1
    assert found > 50


def test_every_key_that_a_page_names_does_something(window: MainWindow) -> None:
    said = {each for _, rows in pane_keys() for _, keys in rows for each in keys.split("  ·  ")}
    known = said | OF_WIDGETS
    for command, _ in window.commands:
        keys = f"{command.keys};{command.mode_keys};{command.key_there}"
        known |= {key.strip() for key in keys.split(";")}
    found = 0
    for page, text in TEXT.items():
        for key in _KEY.findall(text):
            assert key in known, f"{page}: {key}"
            found += 1
    assert found > 80
