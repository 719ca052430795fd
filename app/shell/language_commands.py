"""Commands that choose the language of the window, from its next start on."""

from __future__ import annotations

import os
from functools import partial

from PySide6.QtCore import QObject, QProcess
from PySide6.QtWidgets import QWidget

from lowerscope.app.document.settings import Settings
from lowerscope.app.kit.commands import Command
from lowerscope.app.kit.dialogs import Question
from lowerscope.app.panes.sessions.sessions import Sessions
from lowerscope.core.model.texts import LANGUAGES, VARIABLE, _, language


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
        return (self._settings.language() or language()) == code

    def _choose(self, code: str) -> None:
        self._settings.set_language(code)
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
