"""The registry of commands, read by menus, keys, buttons, the palette and the page of shortcuts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from PySide6.QtCore import QEvent, QObject, QPoint, QTimer, Signal, SignalInstance
from PySide6.QtGui import QAction, QActionGroup, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QMenu, QWidget

from lowerscope.core.model.texts import labelled


@dataclass(frozen=True)
class Command:
    """A command that the user can run."""

    id: str  # Name in the code.
    title: str  # Text in the menu, with an ampersand before the mnemonic.
    run: Callable[..., object]  # Called to run it.
    keys: str = ""  # In Qt's portable notation, alternatives with ``; `` between; empty for none.
    key_there: str = ""  # A key that a focused view handles itself; displayed, not bound.
    # Predicate of availability; ``None`` for a command that is always available.
    enabled: Callable[[], bool] | None = None
    reason: Callable[[], str] | None = None  # Tool tip while it is not available.
    # State of a switch or of a choice; ``None`` for a command without one.
    checked: Callable[[], bool] | None = None
    group: str = ""  # Commands of one group are exclusive choices.
    # Keys, often single letters, that hold in Explore only; those of `keys` hold everywhere.
    explore_keys: str = ""


def available(enabled: Callable[[], bool], *commands: Command) -> Iterator[Command]:
    """Yield commands that are available while a predicate holds."""
    return (replace(each, enabled=enabled) for each in commands)


def keys_of(command: Command) -> str:
    """Return the keys of a command as displayed text."""
    native = QKeySequence.SequenceFormat.NativeText
    return "  ·  ".join(
        each
        for each in (
            *(keys.toString(native) for keys in _shortcuts(command, "explore")),
            QKeySequence(command.key_there).toString(native),
        )
        if each
    )


def _shortcuts(command: Command, mode: str) -> list[QKeySequence]:
    """Return the keys of a command in a mode."""
    own = command.explore_keys if mode == "explore" else ""
    text = "; ".join(filter(None, (own, command.keys)))
    return QKeySequence.listFromString(text) if text else []


def choose_from(
    menu: QMenu, place: QPoint, actions: Mapping[QAction, Callable[[], object]]
) -> None:
    """Open a menu at a screen position, and run the chosen action once the menu is gone.

    An action may replace what the menu is about.
    """
    chosen = menu.exec(place)
    menu.deleteLater()
    if chosen in actions:
        actions[chosen]()


def add_choices(
    menu: QMenu, choices: Mapping[Any, str], choose: Callable[[QAction], object]
) -> QActionGroup:
    """Add exclusive choices to a menu; each action has its key in `choices` as data."""
    group = QActionGroup(menu)
    for key, title in choices.items():
        action = QAction(title, group, checkable=True)
        action.setData(key)
        menu.addAction(action)
    group.triggered.connect(choose)
    return group


MARKED_LETTER = re.compile(r"\(&(\w)\)")
"""Mnemonic that is no letter of the name, as in Chinese: ``打开(&O)…``."""


def plain(text: str) -> str:
    """Return the name of a command, or of a menu, without the mnemonic's ampersand."""
    name = text.partition("\t")[0].rstrip("…")
    return MARKED_LETTER.sub("", name).replace("&", "")


class Commands(QObject):
    """The registry: each command with its action.

    A change arms `refresh_later`, which evaluates all predicates once, in the next turn of the
    event loop. Whatever reads or runs a command before that evaluates them at once.
    """

    refused = Signal(str)  # The key of a disabled command was pressed; the argument says why.

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._commands: dict[str, Command] = {}
        self._actions: dict[str, QAction] = {}
        self._groups: dict[str, QActionGroup] = {}
        self._states: dict[str, tuple[bool, str]] = {}  # Whether enabled; why not.
        self._pending = QTimer(self)
        self._pending.setSingleShot(True)
        self._pending.timeout.connect(self.refresh)

    def add(self, command: Command) -> None:
        """Register a command."""
        assert command.id not in self._commands, command.id
        said = f"\t{keys_of(command)}" if command.key_there else ""
        action = QAction(command.title + said, self)
        action.setObjectName(command.id)
        action.setShortcuts(_shortcuts(command, ""))
        action.setCheckable(command.checked is not None)
        if command.group:
            group = self._groups.setdefault(command.group, QActionGroup(self))
            group.addAction(action)
        action.triggered.connect(self._run_sender)
        self._commands[command.id] = command
        self._actions[command.id] = action
        self.refresh_later()

    def follow(self, *changes: SignalInstance) -> None:
        """Evaluate the predicates again after each of these signals."""
        for change in changes:
            change.connect(self.refresh_later)

    def refresh_later(self) -> None:
        """Evaluate the predicates in the next turn of the event loop, once."""
        if not self._pending.isActive():
            self._pending.start()

    def refresh(self) -> None:
        """Evaluate the predicates and update the actions."""
        self._pending.stop()
        for key, command in self._commands.items():
            action = self._actions[key]
            enabled = command.enabled is None or command.enabled()
            reason = "" if enabled or command.reason is None else command.reason()
            # Most are as they were, and Python asks faster than Qt.
            if self._states.get(key) != (enabled, reason):
                self._states[key] = enabled, reason
                action.setEnabled(enabled)
                action.setToolTip(reason)
            if command.checked is not None:
                action.setChecked(command.checked())

    def set_mode(self, mode: str) -> None:
        """Let the keys of Explore hold in that mode alone."""
        for key, command in self._commands.items():
            if command.explore_keys:
                self._actions[key].setShortcuts(_shortcuts(command, mode))

    def _settle(self) -> None:
        if self._pending.isActive():
            self.refresh()

    def take_keys(self, window: QWidget) -> None:
        """Run commands by keys that are pressed in `window`, whichever menus are visible.

        Predicates that have changed are evaluated before.
        """
        window.addActions(list(self._actions.values()))
        window.installEventFilter(self)

    def fill(self, menu: QMenu, *keys: str) -> None:
        """Add commands to a menu, and a separator for ``""``; predicates are evaluated on
        opening.
        """
        for key in keys:
            if key:
                menu.addAction(self._actions[key])
            else:
                menu.addSeparator()
        menu.aboutToShow.connect(self.refresh)

    def action(self, key: str) -> QAction:
        """Return the action of a command, in its current state."""
        self._settle()
        return self._actions[key]

    def __iter__(self) -> Iterator[tuple[Command, QAction]]:
        """Yield each command with its action, in its current state."""
        self._settle()
        for key, command in self._commands.items():
            yield command, self._actions[key]

    def _run_sender(self) -> None:
        # A slot of this object for all actions: a function that refers to the window would keep it
        # alive.
        action = self.sender()
        assert isinstance(action, QAction)
        command = self._commands[action.objectName()]
        self._settle()
        try:
            if action.isEnabled():
                command.run()
        finally:
            if command.checked is not None:
                # Qt has toggled the mark, whatever the command did.
                action.setChecked(command.checked())
            self.refresh_later()

    # Qt overrides

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ShortcutOverride:
            self._settle()
        elif event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            # No enabled command has taken it, nor has the focused view.
            self._say_why(QKeySequence(event.keyCombination()))
        return False

    def _say_why(self, keys: QKeySequence) -> None:
        for key, command in self._commands.items():
            action = self._actions[key]
            if keys in action.shortcuts() and command.reason is not None:
                reason = "" if action.isEnabled() else command.reason()
                if reason:
                    self.refused.emit(labelled(plain(action.text()), reason))


# --- The window, as the commands of features know it ---

V = TypeVar("V", bound=QWidget)


class Host(Protocol):
    """The parent of a feature's dialogs, which shows its pane."""

    @property
    def widget(self) -> QWidget:
        """The parent of dialogs, and of objects that live as long as the window."""

    def view(self, kind: type[V]) -> V:
        """Return the pane, or the page of one, of a class; the panes are made on first use."""

    def show_panes(self) -> None:
        """Show the panes in place of the welcome page."""

    def show_page(self, key: str) -> None:
        """Show a page, whichever pane and mode it belongs to."""

    def bring(self, name: str) -> None:
        """Make a pane visible, whichever mode it belongs to."""
