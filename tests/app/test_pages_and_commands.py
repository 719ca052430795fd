"""Things that the pages call by name exist: commands of menus, pages of panes, keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QMenu

from lowerscope.app.engine.window_words import REMEDIES
from lowerscope.app.kit.commands import plain
from lowerscope.app.shell.menus import paths
from lowerscope.app.shell.shortcuts_page import pane_keys
from lowerscope.app.shell.window import MainWindow
from tests.catalogue import catalogues, read

ROOT = Path(__file__).parents[2]
HELP = ROOT / "resources" / "help"
PAGES = (ROOT / "README.md", *sorted(HELP.glob("**/*.md")))
TEXT = {f"{page.parent.name}/{page.name}": page.read_text("utf-8") for page in PAGES}
TEXT |= {
    f"{page.suffixes[0][1:]}/{page.name}": page.read_text("utf-8")
    for page in ROOT.glob("README.*.md")
}

_PATH = re.compile(r"\*([^\W\da-z_]\w*) [→▸] ([^*]+?)\*")
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


def without_keys(text: str) -> str:
    return plain(re.sub(r"\(&\w\)", "", text))


@pytest.mark.parametrize("language", ["", *(path.parent.parent.name for path in catalogues())])
def test_every_command_and_pane_that_a_page_names_is_there(
    window: MainWindow, language: str
) -> None:
    texts: dict[str, set[str]] = {}
    for path in catalogues():
        if path.parent.parent.name == language:
            for each in (each for each in read(path) if each.id and each.string):
                texts.setdefault(plain(str(each.id)), set()).add(without_keys(str(each.string)))

    def shown(*labels: str) -> set[str]:
        return {name for each in labels for name in texts.get(plain(each), {plain(each)})}

    named: dict[str, set[str]] = {}
    places = [
        *((menu.title(), menu.actions()) for menu in window.menuBar().findChildren(QMenu)),
        ("Target", window.tool_bar.target._menu.actions()),
        ("Save", window.panes.schedule.history.keep.menu().actions()),
    ]
    labels = [(title, [each.text() for each in actions]) for title, actions in places]
    for pane in (*window.panes.by_name.values(), window.panes.drawer):
        tabs = [pane.header.tabs.tab(key).text() for key in pane.pages()]
        labels.append((pane.title(), tabs))
    for title, inside in labels:
        for name in shown(title):
            named.setdefault(name, set()).update(shown(*inside))
    found = 0
    for page, text in TEXT.items():
        if page.startswith(f"{language}/") if language else "_" not in page.partition("/")[0]:
            for menu, words in _PATH.findall(text):
                for wanted in map(plain, " ".join(words.split()).split(" → ")):
                    assert menu in named, f"{page}: {menu} → {words}"
                    there = [x for x in named[menu] if x.lower().startswith(wanted.lower())]
                    assert there, f"{page}: {menu} → {words}: there is {sorted(named[menu])}"
                    menu = wanted
                    if menu not in named:
                        # What follows is in a dialog.
                        break
                found += 1
    assert found > (15 if language else 40)


def test_every_key_that_a_page_names_does_something(window: MainWindow) -> None:
    said = {each for _, rows in pane_keys() for _, keys in rows for each in keys.split("  ·  ")}
    known = said | OF_WIDGETS
    for command, _ in window.commands:
        keys = f"{command.keys};{command.explore_keys};{command.key_there}"
        known |= {key.strip() for key in keys.split(";")}
    found = 0
    for page, text in TEXT.items():
        for key in _KEY.findall(text):
            assert key in known, f"{page}: {key}"
            found += 1
    assert found > 80


def test_every_command_that_a_remedy_names_is_in_a_menu(window: MainWindow) -> None:
    titles = {command.id: plain(command.title) for command, _ in window.commands}
    there = {" → ".join((*path, titles[name])) for name, path in paths().items()}
    places = {plain(place) for _pattern, place in REMEDIES if "→" in place}
    assert places
    assert places <= there
