"""The page with all shortcuts: those of the menus, from the registry, and those of panes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QTreeWidgetItem, QWidget

from lowerscope.app.kit.commands import Commands, keys_of, plain
from lowerscope.app.kit.dialogs import Finder
from lowerscope.app.kit.help_key import offer_help
from lowerscope.app.kit.typefaces import ui_font

# --- Shortcuts of focused panes that are not in the menus, as text ---

Keys = tuple[str, str]
"""An action, and its keys."""


def pane_keys() -> Sequence[tuple[str, Sequence[Keys]]]:
    """Return the places with shortcuts of their own, each with these."""
    tr = _tr
    return (
        (
            tr("Everywhere"),
            (
                (tr("Next and previous field, list or text"), "Tab  ·  Shift+Tab"),
                (tr("Menu of what the focus is on"), "Menu  ·  Shift+F10"),
                (tr("Another tab, or another choice of a switch"), "Left  ·  Right"),
                (tr("Press a button, tick a box"), "Space"),
                (tr("Move the line between two parts"), "Left … Down  ·  Home  ·  End"),
            ),
        ),
        (
            tr("Graphs"),
            (
                (tr("Walk along the edges"), "Up  ·  Down  ·  Left  ·  Right"),
                (tr("Walk, and add to the selection"), "Shift+Up … Shift+Right"),
                (tr("Move the graph"), "Ctrl+Up … Ctrl+Right"),
                (tr("First and last node"), "Home  ·  End"),
                (tr("Select the node, or open the module"), "Return"),
                (tr("Open or close the module"), "Space  ·  +  ·  -"),
                (tr("Larger, smaller, actual size"), "+  ·  -  ·  0"),
                (tr("Fit the graph; zoom to the selection"), "F  ·  Z"),
                (tr("Find a node; the next, the previous"), "/  ·  F3  ·  Shift+F3"),
                (tr("What is known of the node"), "I"),
                (tr("Toggle breakpoint"), "B"),
                (tr("Values beside edges, overview, colours"), "L  ·  M  ·  C"),
            ),
        ),
        (
            tr("Code"),
            (
                (tr("Select what the name, or the line, belongs to"), "Return"),
                (tr("Find; the next, the previous"), "Ctrl+F  ·  F3  ·  Shift+F3"),
                (tr("Go to a line"), "Ctrl+G"),
                (tr("What the name under the caret stands for"), "F2"),
                (tr("Fold and unfold"), "Ctrl+Shift+[  ·  Ctrl+Shift+]"),
                (tr("Copy; select all"), "Ctrl+C  ·  Ctrl+A"),
                (tr("Close the bar, or the card"), "Escape"),
            ),
        ),
        (
            tr("Differences"),
            (
                (tr("Another row, page, first, last"), "Up  ·  Down  ·  PgUp  ·  PgDown"),
                (tr("Select rows; of the old side, of the new"), "Shift+Down  ·  Shift+Left"),
                (tr("Next and previous change"), "N  ·  P"),
                (tr("Unfold equal lines"), "Return  ·  Space"),
                (tr("Find; the next, the previous"), "Ctrl+F  ·  F3  ·  Shift+F3"),
            ),
        ),
        (
            tr("Timeline"),
            (
                (tr("Next and previous step"), "Right  ·  Left"),
                (tr("Ten steps on or back"), "PgDown  ·  PgUp"),
                (tr("First and last step"), "Home  ·  End"),
            ),
        ),
        (
            tr("Tables and trees"),
            (
                (tr("Another row; several rows"), "Up  ·  Down  ·  Shift+Down"),
                (tr("Open a row"), "Return"),
                (tr("Copy the rows"), "Ctrl+C"),
                (tr("Open or close a part of a tree"), "Right  ·  Left"),
                (tr("Name a variant anew; forget it"), "F2  ·  Del"),
            ),
        ),
        (
            tr("Pipeline"),
            (
                (tr("Options of the step"), "Return"),
                (tr("Switch the step off or on"), "Space"),
                (tr("Delete the step"), "Del"),
            ),
        ),
        (
            tr("Loops of the schedule"),
            (
                (tr("Primitives of the selection"), "Return"),
                (tr("Split, reorder"), "S  ·  R"),
                (tr("Parallel, vectorize, unroll"), "P  ·  V  ·  U"),
            ),
        ),
        (
            tr("History of the schedule"),
            (
                (tr("Edit the step; switch it off or on"), "Return  ·  Space"),
                (tr("Insert before the step; delete it"), "Insert  ·  Del"),
                (tr("Move the step"), "Ctrl+Left  ·  Ctrl+Right"),
            ),
        ),
        (
            tr("Values and curves"),
            (
                (tr("Another element, trial or bar"), "Up  ·  Down  ·  Left  ·  Right"),
                (tr("First and last"), "Home  ·  End"),
                (tr("Longer and shorter times; all of them"), "+  ·  -  ·  0"),
            ),
        ),
        (
            tr("Drawing an input"),
            (
                (tr("Move the pen; draw a line"), "Up … Right  ·  Shift+Up … Right"),
                (tr("A dab of the pen"), "Space"),
                (tr("Pen or eraser"), "E"),
                (tr("Clear"), "Del"),
            ),
        ),
    )


def _tr(text: str) -> str:
    return QCoreApplication.translate("pane_keys", text)


SIZE = (640, 720)


def open_shortcuts(commands: Commands, parent: QWidget) -> None:
    """Show the page in a modeless window."""
    page = ShortcutsPage(commands, parent)
    page.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    page.show()


class ShortcutsPage(Finder):
    """A search field above the actions and their keys, grouped as the menus are."""

    def __init__(self, commands: Commands, parent: QWidget) -> None:
        super().__init__(2, parent)
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
        for title, rows in (*_of_menus(commands), *pane_keys()):
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


def _of_menus(commands: Commands) -> list[tuple[str, list[Keys]]]:
    from lowerscope.app.shell.menus import paths

    places = paths()
    menus: dict[str, list[Keys]] = {}
    for command, action in commands:
        if keys := keys_of(command):
            menus.setdefault(" → ".join(places[command.id]), []).append(
                (plain(action.text()), keys)
            )
    return list(menus.items())


def _below(group: QTreeWidgetItem) -> list[QTreeWidgetItem]:
    items = (group.child(index) for index in range(group.childCount()))
    return [item for item in items if item is not None]
