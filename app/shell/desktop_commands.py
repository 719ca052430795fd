"""General commands: settings, command palette, shortcuts, help and About.

The modules of their windows are imported on first use.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.kit.commands import Command
from lowerscope.app.kit.dialogs import Question
from lowerscope.core.files.cache import Cleared, cache_size, clear_cache
from lowerscope.core.model.formatting import bytes_text

if TYPE_CHECKING:
    from lowerscope.app.shell.window import MainWindow


def setting_up(window: MainWindow) -> Command:
    """Return the command that opens the settings, for the menu File."""
    tr = window.tr
    return Command(
        "settings",
        tr("&File"),
        tr("Setti&ngs…"),
        partial(_settings, window),
        "Ctrl+,",
        separated=True,
    )


def limiting(window: MainWindow) -> tuple[Command, ...]:
    """Return the commands on the memory of runs, for the menu Run."""
    menu, tr = window.tr("&Run"), window.tr
    return (
        Command(
            "memory-limit",
            menu,
            tr("&Memory limit of the worker…"),
            partial(_settings, window, "memory_limit"),
        ),
        Command(
            "keep", menu, tr("Memory for &values of a run…"), partial(_settings, window, "keep")
        ),
    )


def helping(window: MainWindow) -> tuple[Command, ...]:
    """Return the commands of the menu Help."""
    menu, tr = window.tr("&Help"), window.tr
    return (
        Command("palette", menu, tr("&All commands…"), partial(_palette, window), "Ctrl+Shift+P"),
        Command(
            "shortcuts", menu, tr("&Keyboard shortcuts"), partial(_shortcuts, window), "Ctrl+?"
        ),
        *window.help.commands(),
        Command("about", menu, tr("A&bout Lowerscope"), partial(_about, window)),
    )


def _settings(window: MainWindow, field: str = "") -> None:
    from lowerscope.app.shell.settings_dialog import open_settings

    open_settings(window, field)


def _palette(window: MainWindow) -> None:
    from lowerscope.app.shell.palette import open_palette

    open_palette(window)


def _shortcuts(window: MainWindow) -> None:
    from lowerscope.app.shell.palette import open_shortcuts

    open_shortcuts(window)


def _about(window: MainWindow) -> None:
    from lowerscope.app.shell.about import show_about

    show_about(window)


# --- The dialog that clears the caches of tuning and measuring ---


def ask_to_clear(document: Document, parent: QWidget) -> ClearCaches:
    """Show the size of the caches over a parent, and clear them after confirmation.

    If they are empty, a message says so.
    """
    asking = ClearCaches(document, parent)
    asking.ask()
    return asking


class ClearCaches(QObject):
    """The confirmation dialog, and the clearing."""

    cleared = Signal()  # The caches have been cleared.

    def __init__(self, document: Document, parent: QWidget) -> None:
        super().__init__(parent)
        self._document = document
        self._parent = parent

    def ask(self) -> None:
        """Show the dialog, if there is something to clear."""
        tr, size = self.tr, cache_size()
        if not size:
            self._document.notify(tr("The caches are empty"), "info")
            return
        question = Question(
            tr("Clear caches"),
            tr("Clear {0} of caches?").format(bytes_text(size)),
            tr("Clear"),
            tr(
                "Schedules that tuning has found, and what was measured of this machine, are"
                " searched for and measured again when they are needed."
            ),
            self._parent,
        )
        question.accepted.connect(self._clear)
        question.open()

    def _clear(self) -> None:
        notify = self._document.notify
        try:
            cleared = clear_cache()
        except OSError as error:
            notify(str(error), "wrong")
            return
        notify(cleared_text(self.tr, cleared), "info")
        self.cleared.emit()


def cleared_text(tr: Callable[[str], str], cleared: Cleared) -> str:
    """Return a message about what was removed, and what was not."""
    text = tr("Removed {0} of caches").format(bytes_text(cleared.freed))
    if cleared.in_use:
        kept = tr("{0} stay: a tuning adds to them").format(bytes_text(cleared.in_use))
        return f"{text}; {kept}"
    return text


# --- The command that clears the caches of tuning and measuring ---


def clearing(document: Document, parent: QWidget) -> Command:
    """Return the command that clears the caches, for the menu Run."""
    return Command(
        "clear-caches",
        parent.tr("&Run"),
        parent.tr("&Clear caches…"),
        partial(ask_to_clear, document, parent),
    )
