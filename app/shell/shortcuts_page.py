"""The page with all shortcuts: those of the menus, from the registry, and those of panes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QTreeWidgetItem, QWidget

from lowerscope.app.kit.commands import Commands, keys_of, plain
from lowerscope.app.kit.dialogs import Finder
from lowerscope.app.kit.help_key import offer_help
from lowerscope.app.kit.typefaces import ui_font
from lowerscope.core.model.texts import _

# --- Shortcuts of focused panes that are not in the menus, as text ---

Keys = tuple[str, str]
"""An action, and its keys."""


def pane_keys() -> Sequence[tuple[str, Sequence[Keys]]]:
    """Return the places with shortcuts of their own, each with these."""
    return (
        (
            _("Everywhere"),
            (
                (_("Next and previous field, list or text"), "Tab  ·  Shift+Tab"),
                (_("Menu of the focused item"), "Menu  ·  Shift+F10"),
                (_("Switch tabs, or the choice of a switch"), "Left  ·  Right"),
                (_("Press a button, check a box"), "Space"),
                (_("Move the splitter between two parts"), "Left … Down  ·  Home  ·  End"),
            ),
        ),
        (
            _("Graphs"),
            (
                (_("Show the card of the node"), "Shift+F1"),
                (_("Move along the edges"), "Up  ·  Down  ·  Left  ·  Right"),
                (_("Move, and add to the selection"), "Shift+Up … Shift+Right"),
                (_("Move the graph"), "Ctrl+Up … Ctrl+Right"),
                (_("First and last node"), "Home  ·  End"),
                (_("Select the node, or expand the module"), "Return"),
                (_("Expand or collapse the module"), "Space  ·  +  ·  -"),
                (_("Zoom in, zoom out, actual size"), "+  ·  -  ·  0"),
                (_("Fit the graph; zoom to the selection"), "F  ·  Z"),
                (_("Find a node; the next, the previous"), "/  ·  F3  ·  Shift+F3"),
                (_("Toggle breakpoint"), "B"),
                (_("Values beside edges, overview, colours"), "L  ·  M  ·  C"),
            ),
        ),
        (
            _("Code"),
            (
                (_("Select the owner of the name or line"), "Return"),
                (_("Find; the next, the previous"), "Ctrl+F  ·  F3  ·  Shift+F3"),
                (_("Go to a line"), "Ctrl+G"),
                (_("Meaning of the name at the caret"), "Shift+F1"),
                (_("Fold and unfold"), "Ctrl+Shift+[  ·  Ctrl+Shift+]"),
                (_("Copy; select all"), "Ctrl+C  ·  Ctrl+A"),
                (_("Close the bar, or the card"), "Escape"),
            ),
        ),
        (
            _("Differences"),
            (
                (_("Next or previous row, page; first, last"), "Up  ·  Down  ·  PgUp  ·  PgDown"),
                (_("Select rows; of the old side, of the new"), "Shift+Down  ·  Shift+Left"),
                (_("Next and previous change"), "N  ·  P"),
                (_("Unfold unchanged lines"), "Return"),
                (_("Side by side, or unified"), "T"),
                (_("Find; the next, the previous"), "Ctrl+F  ·  F3  ·  Shift+F3"),
            ),
        ),
        (
            _("Timeline"),
            (
                (_("Next and previous step"), "Right  ·  Left"),
                (_("Ten steps forward or back"), "PgDown  ·  PgUp"),
                (_("First and last step"), "Home  ·  End"),
            ),
        ),
        (
            _("Tables and trees"),
            (
                (_("Next or previous row; several rows"), "Up  ·  Down  ·  Shift+Down"),
                (_("Open a row"), "Return"),
                (_("Copy the rows"), "Ctrl+C"),
                (_("Expand or collapse a part of a tree"), "Right  ·  Left"),
                (_("Rename a variant; delete it"), "F2  ·  Del"),
            ),
        ),
        (
            _("Pipeline"),
            (
                (_("Play or pause; filter"), "Space  ·  /"),
                (_("First and last step"), "Home  ·  End"),
                (_("Previous step"), "Shift+F10"),
                (_("Switch the step on or off"), "Shift+Space"),
                (_("Delete the step"), "Del"),
            ),
        ),
        (
            _("Loops of the schedule"),
            (
                (_("Primitives of the selection"), "Return"),
                (_("Split, reorder"), "S  ·  R"),
                (_("Parallel, vectorize, unroll"), "P  ·  V  ·  U"),
            ),
        ),
        (
            _("History of the schedule"),
            (
                (_("Edit the step; switch it on or off"), "Return  ·  Space"),
                (_("Insert before the step; delete it"), "Insert  ·  Del"),
                (_("Move the step"), "Ctrl+Left  ·  Ctrl+Right"),
            ),
        ),
        (
            _("Values and curves"),
            (
                (_("Next or previous element, trial or bar"), "Up  ·  Down  ·  Left  ·  Right"),
                (_("First and last"), "Home  ·  End"),
                (_("Longer or shorter time range; all"), "+  ·  -  ·  0"),
            ),
        ),
    )


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
        self.setWindowTitle(_("Keyboard shortcuts"))
        self.line.setPlaceholderText(_("Type part of a name, or keys"))
        self.line.setAccessibleName(_("Find shortcuts"))
        self.rows.setAccessibleName(_("Shortcuts"))
        self.rows.setIndentation(12)
        self.empty.set_text(_("No such name or keys"), "")
        self.hint.setText(
            _(
                "A command without keys: Alt and the underlined letter of its menu, then the "
                "underlined letter of the command. Alt+V, C, D is View → Colours → Dark."
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
