"""One registry of commands: the menus, the shortcuts, their page and the palette read it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from string import ascii_uppercase, digits

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction, QActionGroup, QKeySequence

LEADER = "Ctrl+J"
"""A command without keys of its own has this, then the letter that is underlined in the title of
its menu, then the one that is underlined in its own name. (Ctrl+K clears text fields on Linux.)"""

_MNEMONIC = re.compile(r"&(\w)")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Command:
    """One thing that the user can do.

    Attributes
    ----------
    key
        Name in the code.
    menu
        Title of the menu that it stands in.
    text
        As it is read in the menu, with an ampersand before the letter to press.
    run
        What it does.
    shortcut
        In Qt's portable notation; empty for the one that follows from `LEADER`.
    group
        Commands of one group are choices, one of which is on.
    separated
        Whether a line stands above it in the menu.
    checkable
        Whether it is a switch, which shows whether it is on.
    key_there
        A key that does the same where the focus is on what it is about; it is said, not bound.
    """

    key: str
    menu: str
    text: str
    run: Callable[..., object]
    shortcut: str = ""
    group: str = ""
    separated: bool = False
    checkable: bool = False
    key_there: str = ""


def keys_of(command: Command) -> str:
    """Return the keys of a command as they are said."""
    native = QKeySequence.SequenceFormat.NativeText
    return "  ·  ".join(
        each
        for each in (QKeySequence(command.shortcut).toString(native), command.key_there)
        if each
    )


def plain(text: str) -> str:
    """Return the name of a command, or of a menu, without the mark before a letter."""
    return text.partition("\t")[0].replace("&", "").rstrip("…")


class Commands(QObject):
    """The registry: each command with its action, in the order of the menus."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._commands: dict[str, Command] = {}
        self._actions: dict[str, QAction] = {}
        self._groups: dict[str, QActionGroup] = {}
        # By menu, the letters that follow the leader.
        self._letters: dict[str, set[str]] = {}

    def add(self, command: Command) -> QAction:
        """Register a command and return its action."""
        assert command.key not in self._commands, command.key
        if not command.shortcut:
            command = self._with_letter(command)
        said = f"\t{keys_of(command)}" if command.key_there else ""
        action = QAction(command.text + said, self)
        action.setObjectName(command.key)
        action.setShortcut(QKeySequence(command.shortcut))
        action.setCheckable(bool(command.group) or command.checkable)
        if command.group:
            group = self._groups.setdefault(command.group, QActionGroup(self))
            group.addAction(action)
        action.triggered.connect(self._run_sender)
        self._commands[command.key] = command
        self._actions[command.key] = action
        return action

    def _with_letter(self, command: Command) -> Command:
        """Return a command with its keys after the leader, and their last letter underlined.

        It is the one that is underlined already, or a free one of its name, rather that of a word,
        or one that is put behind the name.
        """
        taken = self._letters.setdefault(command.menu, set())
        marked = _MNEMONIC.search(command.text)
        name = _MNEMONIC.sub(r"\1", command.text)
        places = [] if marked is None else [marked.start()]
        # What tells names apart that begin with the same words stands at their end.
        places += [word.start() for word in reversed(list(_WORD.finditer(name)))]
        places += [place for place, letter in enumerate(name) if letter.isalnum()]
        place = next((each for each in places if name[each].upper() not in taken), None)
        if place is None:
            # As in languages whose names have no letters to press.
            free = next(each for each in ascii_uppercase + digits if each not in taken)
            head, dots, _ = name.partition("…")
            name, place = f"{head} ({free}){dots}", len(head) + 2
        letter, menu = name[place].upper(), _MNEMONIC.search(command.menu)
        assert menu is not None, command.menu
        taken.add(letter)
        return replace(
            command,
            text=f"{name[:place]}&{name[place:]}",
            shortcut=f"{LEADER}, {menu[1].upper()}, {letter}",
        )

    def part_letters(self) -> None:
        """Underline another letter where two commands of a menu have the same one, or none.

        Those that are typed after the leader stay.
        """
        for command, action in self:
            if command.shortcut.startswith(LEADER):
                continue
            taken = self._letters.setdefault(command.menu, set())
            name, tab, keys = action.text().partition("\t")
            marked = _MNEMONIC.search(name)
            bare = _MNEMONIC.sub(r"\1", name)
            places = [] if marked is None else [marked.start()]
            places += [place for place, letter in enumerate(bare) if letter.isalnum()]
            place = next((each for each in places if bare[each].upper() not in taken), None)
            if place is None:
                action.setText(bare + tab + keys)
            else:
                taken.add(bare[place].upper())
                action.setText(f"{bare[:place]}&{bare[place:]}{tab}{keys}")

    def _run_sender(self) -> None:
        # One slot of our own for all: a function that refers to the window would keep it alive.
        action = self.sender()
        if isinstance(action, QAction):
            self._commands[action.objectName()].run()

    def action(self, key: str) -> QAction:
        """Return the action of a command."""
        return self._actions[key]

    def enable(self, key: str, enabled: bool) -> None:
        """Let a command be available, or not."""
        self._actions[key].setEnabled(enabled)

    def check(self, key: str, checked: bool = True) -> None:
        """Show a switch or a choice as on, without carrying it out."""
        self._actions[key].setChecked(checked)

    def __iter__(self) -> Iterator[tuple[Command, QAction]]:
        """Yield each command with its action."""
        for key, command in self._commands.items():
            yield command, self._actions[key]
