"""General commands: settings, language, command palette, shortcuts, help and About.

The modules of their windows are imported on first use.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject, QProcess, Signal
from PySide6.QtWidgets import QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.document.settings import Settings
from lowerscope.app.kit.commands import Command, Commands
from lowerscope.app.kit.dialogs import Question
from lowerscope.app.panes.sessions.sessions import Sessions
from lowerscope.app.shell.help_commands import Help
from lowerscope.app.shell.preferences import PreferenceStore
from lowerscope.core.files.cache import cache_size, clear_cache
from lowerscope.core.model.formatting import bytes_text
from lowerscope.core.model.texts import LANGUAGES, VARIABLE, _, language


def setting_up(store: PreferenceStore, parent: QWidget) -> Command:
    """Return the command that opens the settings."""
    return Command("settings", _("Setti&ngs…"), partial(_settings, store, parent), "Ctrl+,")


def limiting(store: PreferenceStore, parent: QWidget) -> tuple[Command, ...]:
    """Return the commands on the memory of runs."""
    return (
        Command(
            "memory-limit",
            _("&Memory limit of the worker…"),
            partial(_settings, store, parent, "memory_limit"),
        ),
        Command(
            "keep", _("Memory for the &values of a run…"), partial(_settings, store, parent, "keep")
        ),
    )


def helping(
    show_palette: Callable[[], None],
    commands: Commands,
    help: Help,
    store: PreferenceStore,
    parent: QWidget,
) -> tuple[Command, ...]:
    """Return the commands of the menu Help."""
    return (
        Command("palette", _("&All commands…"), show_palette, "Ctrl+K; Ctrl+Shift+P"),
        Command(
            "shortcuts", _("&Keyboard shortcuts"), partial(_shortcuts, commands, parent), "Ctrl+?"
        ),
        *help.commands(),
        Command("about", _("A&bout Lowerscope"), partial(_about, store, parent)),
    )


def _settings(store: PreferenceStore, parent: QWidget, field: str = "") -> None:
    from lowerscope.app.shell.settings_dialog import open_settings

    open_settings(store, parent, field)


def _shortcuts(commands: Commands, parent: QWidget) -> None:
    from lowerscope.app.shell.shortcuts_page import open_shortcuts

    open_shortcuts(commands, parent)


def _about(store: PreferenceStore, parent: QWidget) -> None:
    from lowerscope.app.shell.about import show_about

    show_about(store, parent)


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
        size = cache_size()
        if not size:
            self._document.notify(_("The caches are empty"), "info")
            return
        question = Question(
            _("Clear caches"),
            _("Clear {size} of caches?", size=bytes_text(size)),
            _("Clear"),
            _("When needed, schedules are searched for again, and this machine is measured again."),
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
        said = _("Removed {freed} of caches", freed=bytes_text(cleared.freed))
        if cleared.in_use:
            kept = _(
                "{in_use} remain: a tuning is adding to them", in_use=bytes_text(cleared.in_use)
            )
            said = _("; ").join((said, kept))
        notify(said, "info")
        self.cleared.emit()


# --- The command that clears the caches of tuning and measuring ---


def clearing(document: Document, parent: QWidget) -> Command:
    """Return the command that clears the caches."""
    return Command("clear-caches", _("&Clear caches…"), partial(ask_to_clear, document, parent))


# --- Commands that choose the language of the window, from its next start on ---


class LanguageCommands(QObject):
    """The languages, and the restart of the window in another one."""

    def __init__(self, settings: Settings, sessions: Sessions, window: QWidget) -> None:
        super().__init__(window)
        self._settings = settings
        self._sessions = sessions
        self._window = window

    def commands(self) -> tuple[Command, ...]:
        """Return a command for each language, which bears the name that it has in itself."""
        return tuple(
            Command(
                f"language-{code}",
                name,
                partial(self._choose, code),
                checked=partial(self._is_chosen, code),
                group="language",
            )
            for code, name in LANGUAGES.items()
        )

    def _is_chosen(self, code: str) -> bool:
        return (self._settings.language or language()) == code

    def _choose(self, code: str) -> None:
        self._settings.language = code
        if code == language():
            return
        question = Question(
            _("Language"),
            _("Lowerscope uses {language} from its next start on.", language=LANGUAGES[code]),
            _("Restart now"),
            self._consequences(),
            self._window,
        )
        question.cancel.setText(_("Later"))
        question.accepted.connect(partial(self._restart, code))
        question.open()

    def _consequences(self) -> str:
        if self._sessions.can_reopen():
            return _("The session is saved and reopened; a run in progress is stopped.")
        return _("The model is in the memory of another process: it is closed without being saved.")

    def _restart(self, code: str) -> None:
        self._sessions.save_now()
        program, *arguments = self._sessions.start_command()
        if self._window.close():
            # It would go before the setting.
            os.environ[VARIABLE] = code
            QProcess.startDetached(program, arguments)
