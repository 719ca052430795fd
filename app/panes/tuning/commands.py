"""Commands on tuning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from lowerscope.app.kit.commands import Command
from lowerscope.app.panes.tuning.tune_page import ask_tuning

if TYPE_CHECKING:
    from lowerscope.app.shell.panes import Panes
    from lowerscope.app.shell.window import MainWindow


class TuneCommands(QObject):
    """The commands, and their dialog and page."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._document, self._tuning = window.document, window.features.tuning

    def commands(self) -> tuple[Command, ...]:
        """Return the commands, for the menu Schedule."""
        tr, tuning, document = self._window.tr, self._tuning, self._document
        menu = tr("&Schedule")

        return (
            Command(
                "tune",
                menu,
                tr("Tune…"),
                self.ask,
                "Ctrl+Shift+Y",
                enabled=lambda: document.is_open() and not tuning.under_way,
                separated=True,
            ),
            Command(
                "tune-page",
                menu,
                tr("Tuning so far"),
                self._show_page,
                "Ctrl+Shift+T",
                enabled=document.is_open,
            ),
            Command(
                "tune-pause",
                menu,
                tr("Pause the &tuning"),
                tuning.pause,
                enabled=lambda: tuning.phase == "tuning",
            ),
            Command(
                "tune-resume",
                menu,
                tr("Resume t&he tuning"),
                tuning.resume,
                enabled=lambda: tuning.phase in ("pausing", "paused"),
            ),
            Command(
                "tune-stop",
                menu,
                tr("Stop the tunin&g"),
                tuning.stop,
                enabled=lambda: tuning.under_way and tuning.phase != "stopping",
            ),
            Command(
                "tune-more",
                menu,
                tr("Tune on: as man&y trials more"),
                self.go_on,
                enabled=lambda: tuning.can_go_on,
            ),
        )

    def fill(self, panes: Panes) -> None:
        """Connect to the signals of the panes."""
        panes.tune.tune_wanted.connect(self.ask)
        panes.tune.workbench_wanted.connect(self._show_function)
        panes.schedule.tune.clicked.connect(self.ask)
        self._window.status.tuning_wanted.connect(self._show_page)

    def ask(self) -> None:
        """Show the dialog that starts a tuning; the page shows the progress."""
        dialog = ask_tuning(
            self._document,
            self._window.features.scheduling,
            self._window.features.tuning,
            self._window,
        )
        dialog.accepted.connect(self._show_page)

    def go_on(self) -> None:
        """Tune the same functions for the same number of trials again."""
        self._show_page()
        self._tuning.go_on()

    def _show_page(self) -> None:
        self._window.show_panes()
        self._window.panes.show_tuning()

    def _show_function(self, function: str) -> None:
        self._document.select((f"tir:{function}",))
        self._window.schedules.show()
