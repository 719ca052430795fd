"""The command palette: commands, nodes, functions, passes, files, lines and terms."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QTreeWidgetItem, QWidget
from shiboken6 import isValid

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.document.stepping import Stepping
from lowerscope.app.kit import theme
from lowerscope.app.kit.commands import Commands, Host, keys_of, plain
from lowerscope.app.kit.dialogs import Finder
from lowerscope.app.kit.glossary import open_term, terms
from lowerscope.app.kit.help_key import offer_help
from lowerscope.app.kit.plain_text import markup
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import CatalogueQuery
from lowerscope.core.model.snapshot import PassType
from lowerscope.core.model.texts import _, english, language

if TYPE_CHECKING:
    from lowerscope.app.kit.code.code_view import CodeView


# Entries of the palette: commands, nodes, functions, passes, files, lines of the visible texts,
# and terms of the glossary.

_T = TypeVar("_T")

Kind = Literal["command", "node", "function", "pass", "file", "line", "term"]

PREFIXES: dict[str, Kind] = {
    ">": "command",
    "@": "node",
    "#": "function",
    "%": "pass",
    "~": "file",
    ":": "line",
    "?": "term",
}
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
    enabled: Callable[[], bool] = lambda: True  # Whether it can be run now.
    english: str = ""  # Its title in English, by which it is found in any language.
    searched: str = field(init=False)

    def __post_init__(self) -> None:
        also = self.english if self.english != self.title else ""
        searched = f"{self.title} {self.where} {also}".lower().rstrip()
        object.__setattr__(self, "searched", searched)

    def rank(self, words: Sequence[str]) -> int | None:
        """Return how well it matches the typed words, 0 for best; ``None`` for no match."""
        if not all(word in self.searched for word in words):
            return None
        if not words or self.searched.startswith(words[0]):
            return 0
        return 1 if re.search(rf"\b{re.escape(words[0])}", self.searched) else 2


class PaletteEntries:
    """All entries of a window, as of the moment the palette was opened.

    Args:
        texts: Returns the visible texts, the most recently used one first.
        add_pass: Appends a pass to the pipeline, by name.
        files: The sources that can be opened: the kind of each, its name, its place, and what opens
            it.
    """

    def __init__(
        self,
        host: Host,
        document: Document,
        stepping: Stepping,
        commands: Commands,
        texts: Callable[[], Sequence[CodeView]],
        add_pass: Callable[[str], None],
        files: Callable[[], Iterable[tuple[str, str, str, Callable[[], object]]]],
    ) -> None:
        self._host = host
        self.document = document
        self._stepping = stepping
        self._registry = commands
        self._texts = texts
        self._add_pass = add_pass
        self._sources = files
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
                "file": self._files,
                "line": self._lines,
                "term": self._terms,
            }
            self._kinds[kind] = tuple(make[kind]())
        return self._kinds[kind]

    def _commands(self) -> Iterator[PaletteEntry]:
        from lowerscope.app.shell.menus import paths

        places = paths()
        for command, action in self._registry:
            yield PaletteEntry(
                kind="command",
                title=plain(action.text()),
                where=" → ".join(places[command.id]),
                act=action.trigger,
                keys=keys_of(command),
                enabled=action.isEnabled,
                english=plain(english(command.title)),
            )

    def _files(self) -> Iterator[PaletteEntry]:
        for kind, name, place, act in self._sources():
            where = f"{kind} · {place}" if place else kind
            yield PaletteEntry("file", name, where, act)

    def _nodes(self) -> Iterator[PaletteEntry]:
        snapshot = self.document.snapshot
        for node in () if snapshot is None else snapshot.fx:
            what = node.label or node.opcode
            yield PaletteEntry(
                "node", node.title, _("node · {what}", what=what), self._selecting(node.id)
            )

    def _functions(self) -> Iterator[PaletteEntry]:
        snapshot = self.document.snapshot
        kinds = {"relax": "Relax", "tensorir": "TensorIR", "external": _("library")}
        for each in () if snapshot is None else snapshot.functions:
            what = _("{kind} function", kind=kinds[each.kind])
            yield PaletteEntry("function", each.name, what, self._selecting(each.id))

    def _selecting(self, entity: str) -> Callable[[], None]:
        return partial(self._show, self.document.select, (entity,))

    def _passes(self) -> Iterator[PaletteEntry]:
        stepping = self._stepping
        for line in stepping.lines("passes"):
            place = _("pass · step {label}", label=line.label or line.number)
            moment = Moment(section="passes", index=line.number)
            yield PaletteEntry(
                "pass", line.title, place, partial(self._show, self._stepping.go, moment)
            )
        for each in self._types:
            add = partial(self._show, self._add_pass, each.name)
            yield PaletteEntry("pass", each.name, _("pass · add it…"), add)

    def _show(self, act: Callable[[_T], object], value: _T) -> None:
        self._host.show_panes()
        act(value)

    def _lines(self) -> Iterator[PaletteEntry]:
        for view in self._texts():
            for number, line in view.numbered_lines():
                if line.strip():
                    yield self._line(view, number, line.strip())

    def _places(self, number: int) -> Iterator[PaletteEntry]:
        """Yield the line of this number in the texts, the most recently used one first."""
        for view in self._texts():
            content = view.editor.content
            if 1 <= number <= content.count:
                line = content.lines[content.numbered(number)]
                yield self._line(view, number, line.strip())

    def _terms(self) -> Iterator[PaletteEntry]:
        for term in terms(language()):
            act = partial(open_term, self._host.widget, term)
            yield PaletteEntry("term", term.name, _("glossary"), act)

    def _line(self, view: CodeView, number: int, text: str) -> PaletteEntry:
        where = f"{view.accessibleName()} {number}"
        return PaletteEntry("line", text, where, partial(_go_to_line, view, number))


def _best(entries: Iterable[PaletteEntry], words: Sequence[str]) -> list[PaletteEntry]:
    ranked = ((entry.rank(words), entry) for entry in entries)
    fitting = [(rank, entry) for rank, entry in ranked if rank is not None]
    fitting.sort(key=lambda pair: pair[0])
    # With nothing typed everything matches, and can be browsed.
    return [entry for _, entry in (fitting[:MOST] if words else fitting)]


def _go_to_line(view: CodeView, number: int) -> None:
    view.go_to_line(number)
    view.editor.setFocus(Qt.FocusReason.ShortcutFocusReason)


def _shortened(where: str) -> str:
    """Return a location that leaves the title its room."""
    return where if len(where) <= MOST_OF_PLACE else f"{where[:MOST_OF_PLACE].rstrip()}…"


MOST_OF_PLACE = 56
"""Maximum number of characters of a location."""

SIZE = (720, 480)


def open_palette(entries: PaletteEntries, queries: Queries, parent: QWidget) -> None:
    """Open the palette over the window."""
    palette = Palette(entries, queries, parent)
    palette.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    palette.open()


class Palette(Finder):
    """A search field above the matching entries."""

    def __init__(self, entries: PaletteEntries, queries: Queries, parent: QWidget) -> None:
        super().__init__(3, parent)
        self.setWindowTitle(_("All commands"))
        self._entries = entries
        self._shown: list[PaletteEntry] = []
        self.line.setPlaceholderText(_("Type part of a name"))
        self.line.setAccessibleName(_("Find a command, node, function, pass, file, line or term"))
        self.rows.setAccessibleName(_("Matches"))
        self.rows.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.empty.set_text(
            _("No match"),
            _("Try part of the word. Lines are searched in visible text only."),
        )
        self.hint.setText(
            markup(
                _(
                    "<b>&gt;</b> commands{gap}<b>@</b> nodes{gap}<b>#</b> functions{gap}<b>%</b> "
                    "passes{gap}<b>~</b> samples and recent files{gap}<b>:</b> lines in view, "
                    "<b>:120</b> by number{gap}<b>?</b> terms"
                ),
                gap="\N{NO-BREAK SPACE}" * 5,
            )
        )
        self.line.textChanged.connect(self._filter)
        self.line.returnPressed.connect(self._run)
        self.rows.itemActivated.connect(self._run)
        offer_help(self, "window#without-a-mouse")
        self.resize(*SIZE)
        self._filter("")
        recipe = entries.document.recipe
        if recipe is not None:
            query = CatalogueQuery(recipe)
            queries.ask(query, self._take_passes, self._go_without_passes)

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
        items = [
            QTreeWidgetItem([each.title, _shortened(each.where), each.keys]) for each in self._shown
        ]
        for item, entry in zip(items, self._shown, strict=True):
            enabled, colours = entry.enabled(), theme.current()
            item.setDisabled(not enabled)
            item.setToolTip(0, entry.title)
            item.setToolTip(1, entry.where)
            for column in range(3):
                if column or not enabled:
                    shade = colours.quiet if enabled else colours.faint
                    item.setForeground(column, QColor(shade))
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
