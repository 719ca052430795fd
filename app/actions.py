"""One registry of commands: the menus, the shortcuts and the palette read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction, QActionGroup, QKeySequence


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
        In Qt's portable notation; empty for none.
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
    return ", ".join(
        each
        for each in (QKeySequence(command.shortcut).toString(native), command.key_there)
        if each
    )


class Commands(QObject):
    """The registry: each command with its action, in the order of the menus."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._commands: dict[str, Command] = {}
        self._actions: dict[str, QAction] = {}
        self._groups: dict[str, QActionGroup] = {}

    def add(self, command: Command) -> QAction:
        """Register a command and return its action."""
        assert command.key not in self._commands, command.key
        said = f"\t{keys_of(command)}" if command.key_there else ""
        action = QAction(command.text + said, self)
        action.setObjectName(command.key)
        if command.shortcut:
            action.setShortcut(QKeySequence(command.shortcut))
        action.setCheckable(bool(command.group) or command.checkable)
        if command.group:
            group = self._groups.setdefault(command.group, QActionGroup(self))
            group.addAction(action)
        action.triggered.connect(self._run_sender)
        self._commands[command.key] = command
        self._actions[command.key] = action
        return action

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
