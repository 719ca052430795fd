"""The page with all shortcuts: those of the menus, from the registry, and those of panes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QTreeWidgetItem

from lowerscope.app.actions import keys_of, plain
from lowerscope.app.views.help_key import offer_help
from lowerscope.app.views.pane_keys import Keys, pane_keys
from lowerscope.app.widgets.finder import Finder
from lowerscope.app.widgets.typefaces import ui_font

if TYPE_CHECKING:
    from lowerscope.app.window import MainWindow

SIZE = (640, 720)


def open_shortcuts(window: MainWindow) -> None:
    """Show the page in a modeless window."""
    page = ShortcutsPage(window)
    page.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    page.show()


class ShortcutsPage(Finder):
    """A search field above the actions and their keys, grouped as the menus are."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(2, window)
        self.setWindowTitle(self.tr("Keyboard shortcuts"))
        self.line.setPlaceholderText(self.tr("Type a part of a name, or keys"))
        self.line.setAccessibleName(self.tr("Find shortcuts"))
        self.rows.setAccessibleName(self.tr("Shortcuts"))
        self.rows.setIndentation(12)
        self.empty.set_text(self.tr("No such name or keys"), "")
        self.hint.setText(
            self.tr(
                "A command without keys: Alt and the underlined letter of its menu, then the "
                "underlined letter of the command. Alt+V, then D, is View → Dark."
            )
        )
        for title, rows in (*_of_menus(window), *pane_keys()):
            self._add(title, rows)
        self.line.textChanged.connect(self._filter)
        self.resize(*SIZE)
        self._filter("")
        offer_help(self, "window")

    def shown(self) -> list[tuple[str, str]]:
        """Return the visible rows: actions and their keys."""
        return [
            (item.text(0), item.text(1))
            for group in self._groups()
            for item in _below(group)
            if not item.isHidden()
        ]

    def _add(self, title: str, rows: Sequence[Keys]) -> None:
        group = QTreeWidgetItem(self.rows, [title])
        group.setFont(0, ui_font(13, QFont.Weight.DemiBold))
        group.setFlags(Qt.ItemFlag.ItemIsEnabled)
        for words, keys in rows:
            QTreeWidgetItem(group, [words, keys])
        group.setExpanded(True)

    def _groups(self) -> Iterator[QTreeWidgetItem]:
        for index in range(self.rows.topLevelItemCount()):
            item = self.rows.topLevelItem(index)
            assert item is not None
            yield item

    def _filter(self, typed: str) -> None:
        words = typed.lower().split()
        for group in self._groups():
            for item in _below(group):
                text = f"{item.text(0)} {item.text(1)} {group.text(0)}".lower()
                item.setHidden(not all(word in text for word in words))
            group.setHidden(all(item.isHidden() for item in _below(group)))
        self.show_found(not all(group.isHidden() for group in self._groups()))


def _of_menus(window: MainWindow) -> list[tuple[str, list[Keys]]]:
    menus: dict[str, list[Keys]] = {}
    for command, action in window.commands:
        if keys := keys_of(command):
            menus.setdefault(plain(command.menu), []).append((plain(action.text()), keys))
    return list(menus.items())


def _below(group: QTreeWidgetItem) -> list[QTreeWidgetItem]:
    items = (group.child(index) for index in range(group.childCount()))
    return [item for item in items if item is not None]
