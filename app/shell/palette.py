"""Searches for commands: the palette, with nodes and lines too, and the page of shortcuts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QColor, QFont
from PySide6.QtWidgets import QTreeWidgetItem
from shiboken6 import isValid

from lowerscope.app.kit import theme
from lowerscope.app.kit.commands import keys_of, plain
from lowerscope.app.kit.dialogs import Finder
from lowerscope.app.kit.plain_text import markup
from lowerscope.app.kit.typefaces import ui_font
from lowerscope.app.panes.common.help_key import offer_help
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.pass_records import PassType
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import CatalogueQuery

if TYPE_CHECKING:
    from lowerscope.app.kit.code.code_view import CodeView
    from lowerscope.app.shell.window import MainWindow


# Entries of the palette: commands, nodes, functions, passes and lines of the visible texts.

Kind = Literal["command", "node", "function", "pass", "line"]

PREFIXES: dict[str, Kind] = {">": "command", "@": "node", "#": "function", "%": "pass", ":": "line"}
"""Prefixes that restrict the search to one kind."""

MOST = 60
"""Maximum number of entries shown of a kind."""

NEAR = 0.7
"""Minimum similarity, by `difflib`, at which a mistyped word matches one of a command."""

LEAST_FOR_LINES = 3
"""Minimum number of characters typed before lines are searched without their prefix."""

_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class PaletteEntry:
    """An entry of the palette."""

    kind: Kind  # Kind of entry.
    title: str  # Text that is searched, together with `where`.
    where: str  # Location or description.
    act: Callable[[], object]  # Goes to the entry, or runs it.
    keys: str = ""  # Keyboard shortcut.
    enabled: bool = True  # Whether it can be run now.
    searched: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "searched", f"{self.title} {self.where}".lower())

    def rank(self, words: Sequence[str]) -> int | None:
        """Return how well it matches the typed words, 0 for best; ``None`` for no match."""
        if not all(word in self.searched for word in words):
            return None
        if not words or self.searched.startswith(words[0]):
            return 0
        return 1 if re.search(rf"\b{re.escape(words[0])}", self.searched) else 2


class PaletteEntries:
    """All entries of a window, as of the moment the palette was opened."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window
        self._kinds: dict[Kind, tuple[PaletteEntry, ...]] = {}
        self._types: tuple[PassType, ...] = ()

    def add_pass_types(self, types: tuple[PassType, ...]) -> None:
        """Add the catalogue of passes, as entries that append them."""
        self._types = types
        self._kinds.pop("pass", None)

    def find(self, typed: str) -> list[PaletteEntry]:
        """Return the matching entries, the best of each kind first."""
        kind = PREFIXES.get(typed[:1])
        text = (typed[1:] if kind else typed).strip().lower()
        if kind == "line" and _NUMBER.fullmatch(text):
            # No text has that many lines, and Python rejects numbers with thousands of digits.
            return list(self._places(int(text[:12])))
        words = text.split()
        found = self._fitting(kind, words)
        if not found and kind in (None, "command"):
            found = self._fitting("command", self._meant(words))
        return found

    def _fitting(self, kind: Kind | None, words: Sequence[str]) -> list[PaletteEntry]:
        kinds = [kind] if kind else list(PREFIXES.values())
        text, found = " ".join(words), list[PaletteEntry]()
        for each in kinds:
            if not kind and (
                (each != "command" and not text) or (each == "line" and len(text) < LEAST_FOR_LINES)
            ):
                continue
            found += _best(self._of(each), words)
        return found

    def _meant(self, words: Sequence[str]) -> list[str]:
        """Return words that may be mistyped, replaced by similar words of commands."""
        searched = (re.findall(r"\w+", entry.searched) for entry in self._of("command"))
        known = list(dict.fromkeys(word for each in searched for word in each))
        return [next(iter(get_close_matches(word, known, 1, NEAR)), word) for word in words]

    def _of(self, kind: Kind) -> tuple[PaletteEntry, ...]:
        if kind not in self._kinds:
            make = {
                "command": self._commands,
                "node": self._nodes,
                "function": self._functions,
                "pass": self._passes,
                "line": self._lines,
            }
            self._kinds[kind] = tuple(make[kind]())
        return self._kinds[kind]

    def _commands(self) -> Iterator[PaletteEntry]:
        for command, action in self._window.commands:
            yield PaletteEntry(
                kind="command",
                title=plain(action.text()),
                where=plain(command.menu),
                act=action.trigger,
                keys=keys_of(command),
                enabled=action.isEnabled(),
            )

    def _nodes(self) -> Iterator[PaletteEntry]:
        snapshot, tr = self._window.document.snapshot, self._window.tr
        for node in () if snapshot is None else snapshot.fx:
            what = node.label or node.opcode
            yield PaletteEntry(
                "node", node.title, tr("node · {0}").format(what), self._selecting(node.id)
            )

    def _functions(self) -> Iterator[PaletteEntry]:
        snapshot, tr = self._window.document.snapshot, self._window.tr
        kinds = {"relax": "Relax", "tensorir": "TensorIR", "external": tr("library")}
        for each in () if snapshot is None else snapshot.functions:
            what = tr("{0} function").format(kinds[each.kind])
            yield PaletteEntry("function", each.name, what, self._selecting(each.id))

    def _selecting(self, entity: str) -> Callable[[], None]:
        return partial(_select, self._window, entity)

    def _passes(self) -> Iterator[PaletteEntry]:
        stepping, tr = self._window.features.stepping, self._window.tr
        for line in stepping.lines("passes"):
            place = tr("pass · step {0}").format(line.label or line.number)
            moment = Moment(section="passes", index=line.number)
            yield PaletteEntry("pass", line.title, place, partial(_go, self._window, moment))
        for each in self._types:
            add = partial(_add_pass, self._window, each.name)
            yield PaletteEntry("pass", each.name, tr("pass · add it…"), add)

    def _texts(self) -> Iterator[CodeView]:
        from lowerscope.app.kit.code.code_view import CodeView

        panes = self._window.made_panes
        for view in () if panes is None else panes.findChildren(CodeView):
            if view.editor.isVisible() and view.text():
                yield view

    def _lines(self) -> Iterator[PaletteEntry]:
        for view in self._texts():
            for number, line in enumerate(view.editor.lines(), 1):
                if line.strip():
                    yield self._line(view, number, line.strip())

    def _places(self, number: int) -> Iterator[PaletteEntry]:
        """Yield the line of this number in the texts, the most recently used one first."""
        last = self._window.code_commands.text()
        for view in sorted(self._texts(), key=lambda view: view is not last):
            lines = view.editor.lines()
            if 1 <= number <= len(lines):
                yield self._line(view, number, lines[number - 1].strip())

    def _line(self, view: CodeView, number: int, text: str) -> PaletteEntry:
        where = f"{view.accessibleName()} {number}"
        return PaletteEntry("line", text, where, partial(_go_to_line, view, number))


def _best(entries: Iterable[PaletteEntry], words: Sequence[str]) -> list[PaletteEntry]:
    ranked = ((entry.rank(words), entry) for entry in entries)
    fitting = [(rank, entry) for rank, entry in ranked if rank is not None]
    fitting.sort(key=lambda pair: pair[0])
    # With nothing typed everything matches, and can be browsed.
    return [entry for _, entry in (fitting[:MOST] if words else fitting)]


def _select(window: MainWindow, entity: str) -> None:
    window.show_panes()
    window.document.select((entity,))


def _go(window: MainWindow, moment: Moment) -> None:
    window.show_panes()
    window.features.stepping.go(moment)


def _add_pass(window: MainWindow, name: str) -> None:
    window.show_panes()
    window.pipeline.view.add_named_pass(name)


def _go_to_line(view: CodeView, number: int) -> None:
    view.go_to_line(number)
    view.editor.setFocus(Qt.FocusReason.ShortcutFocusReason)


SIZE = (720, 480)


def open_palette(window: MainWindow) -> None:
    """Open the palette over the window."""
    Palette(window).pop_up()


class Palette(Finder):
    """A search field above the matching entries."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(3, window)
        self.setWindowTitle(self.tr("All commands"))
        self._entries = PaletteEntries(window)
        self._shown: list[PaletteEntry] = []
        self.line.setPlaceholderText(self.tr("Type a part of a name"))
        self.line.setAccessibleName(self.tr("Find a command, node, function, pass or line"))
        self.rows.setAccessibleName(self.tr("What fits"))
        self.rows.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.empty.set_text(
            self.tr("No match"),
            self.tr("Try a part of the word. Lines are those of the texts that are in view."),
        )
        self.hint.setText(
            markup(
                self.tr(
                    "<b>&gt;</b> commands{0}<b>@</b> nodes{0}<b>#</b> functions{0}<b>%</b> passes"
                    "{0}<b>:</b> lines in view, <b>:120</b> by number"
                ),
                "\N{NO-BREAK SPACE}" * 5,
            )
        )
        self.line.textChanged.connect(self._filter)
        self.line.returnPressed.connect(self._run)
        self.rows.itemActivated.connect(self._run)
        offer_help(self, "window#without-a-mouse")
        self.resize(*SIZE)
        self._filter("")
        if window.document.recipe is not None:
            query = CatalogueQuery(window.document.recipe)
            window.features.queries.ask(query, self._take_passes, self._go_without_passes)

    def shown(self) -> list[PaletteEntry]:
        """Return the matching entries, in order."""
        return list(self._shown)

    def _take_passes(self, types: tuple[PassType, ...]) -> None:
        # It may have been closed meanwhile.
        if isValid(self):
            self._entries.add_pass_types(types)
            self._filter(self.line.text())

    def _go_without_passes(self, _problem: Problem) -> None:
        """Offer the passes of the pipeline only; the dialog that adds a pass shows the problem."""

    def _filter(self, text: str) -> None:
        self._shown = self._entries.find(text)
        self.rows.clear()
        items = [QTreeWidgetItem([each.title, each.where, each.keys]) for each in self._shown]
        for item, entry in zip(items, self._shown, strict=True):
            item.setDisabled(not entry.enabled)
            item.setToolTip(0, entry.title)
            for column in (1, 2):
                item.setForeground(column, QColor(theme.current().quiet))
        self.rows.addTopLevelItems(items)
        first = next((item for item in items if not item.isDisabled()), None)
        if first is not None:
            self.rows.setCurrentItem(first)
        self.show_found(bool(items))

    def _run(self) -> None:
        item = next(iter(self.rows.selectedItems()), None)
        if item is None or item.isDisabled():
            return
        entry = self._shown[self.rows.indexOfTopLevelItem(item)]
        self.accept()
        entry.act()


if TYPE_CHECKING:
    from lowerscope.app.shell.window import MainWindow


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
            tr("Workbench"),
            (
                (tr("Moves for the loop or block, in the tree"), "S"),
                (tr("Edit the step; switch it off or on"), "Return  ·  Space"),
                (tr("Insert before the step; delete it"), "Insert  ·  Del"),
                (tr("Move the step"), "Ctrl+Up  ·  Ctrl+Down"),
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


SHORTCUTS_SIZE = (640, 720)


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
        self.resize(*SHORTCUTS_SIZE)
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
