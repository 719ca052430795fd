"""Commands on tuning."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject

from lowerscope.app.document.document import Document
from lowerscope.app.kit.commands import Command, Host
from lowerscope.app.panes.tuning.model import Tuning
from lowerscope.app.panes.tuning.tune_dialog import ask_tuning
from lowerscope.core.model.texts import _


class TuneCommands(QObject):
    """The commands, and their dialog and page.

    Args:
        scheduled: Returns the function at the workbench; empty for none.
        show_page: Shows the progress of tuning.
    """

    def __init__(
        self,
        host: Host,
        document: Document,
        tuning: Tuning,
        scheduled: Callable[[], str],
        show_page: Callable[[], None],
    ) -> None:
        super().__init__(host.widget)
        self._host = host
        self._document, self._tuning = document, tuning
        self._scheduled = scheduled
        self.show_page = show_page

    def commands(self) -> tuple[Command, ...]:
        """Return the commands."""
        tuning, document = self._tuning, self._document

        return (
            Command(
                "tune",
                _("Tune…"),
                self.ask,
                "Ctrl+Shift+Y",
                enabled=lambda: document.is_open() and not tuning.under_way,
            ),
            Command(
                "tune-page",
                _("Show the tuning"),
                self.show_page,
                "Ctrl+Shift+T",
                enabled=document.is_open,
            ),
            Command(
                "tune-pause",
                _("Pause the &tuning"),
                tuning.pause,
                enabled=lambda: tuning.phase == "tuning",
            ),
            Command(
                "tune-resume",
                _("Resume t&he tuning"),
                tuning.resume,
                enabled=lambda: tuning.phase in ("pausing", "paused"),
            ),
            Command(
                "tune-stop",
                _("Stop the tunin&g"),
                tuning.stop,
                enabled=lambda: tuning.under_way and tuning.phase != "stopping",
            ),
            Command(
                "tune-more",
                _("Continue tuning with as man&y trials again"),
                self.go_on,
                enabled=lambda: tuning.can_go_on,
            ),
        )

    def ask(self) -> None:
        """Show the dialog that starts a tuning; the page shows the progress."""
        dialog = ask_tuning(self._document, self._scheduled(), self._tuning, self._host.widget)
        dialog.accepted.connect(self.show_page)

    def go_on(self) -> None:
        """Tune the same functions for the same number of trials again."""
        self.show_page()
        self._tuning.go_on()
