"""The commands on tuning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from lowerscope.app.actions import Command, Commands
from lowerscope.app.views.tune_dialog import ask_tuning
from lowerscope.app.workbench.tuning import Phase

if TYPE_CHECKING:
    from lowerscope.app.panes import Panes
    from lowerscope.app.window import MainWindow


class TuneCommands(QObject):
    """The commands, kept as the state is."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._workspace, self._tuning = window.workspace, window.workspace.tuning
        self._commands: Commands | None = None
        self._shown: tuple[Phase, bool, bool] | None = None

    def commands(self) -> tuple[Command, ...]:
        """Return the commands, for the menu on schedules."""
        tr, tuning = self._window.tr, self._tuning
        menu = tr("&Schedule")
        return (
            Command("tune", menu, tr("&Tune…"), self.ask, "Ctrl+Shift+Y", separated=True),
            Command("tune-page", menu, tr("Tu&ning so far"), self._show_page, "Ctrl+Shift+T"),
            Command("tune-pause", menu, tr("Pause the tuning"), tuning.pause),
            Command("tune-resume", menu, tr("Resume the tuning"), tuning.resume),
            Command("tune-stop", menu, tr("Stop the tuning"), tuning.stop),
            Command("tune-more", menu, tr("Tune on: as many trials more"), self.go_on),
        )

    def watch(self, commands: Commands) -> None:
        """Keep the commands as the state is, from now on."""
        self._commands = commands
        self._tuning.changed.connect(self._show_state)
        self._workspace.snapshot_changed.connect(self._show_state)
        self._show_state()

    def fill(self, panes: Panes) -> None:
        """Follow what is wanted from the panes."""
        panes.tune.tune_wanted.connect(self.ask)
        panes.tune.workbench_wanted.connect(self._show_function)
        panes.schedule.tune.clicked.connect(self.ask)
        self._window.status.tuning_wanted.connect(self._show_page)

    def ask(self) -> None:
        """Ask what is to be tuned; the page shows how far it is."""
        dialog = ask_tuning(self._workspace, self._window)
        dialog.accepted.connect(self._show_page)

    def go_on(self) -> None:
        """Tune the same for as many trials more."""
        self._show_page()
        self._tuning.go_on()

    def _show_page(self) -> None:
        self._window.show_panes()
        self._window.panes.show_tuning()

    def _show_function(self, function: str) -> None:
        self._workspace.select((f"tir:{function}",))
        self._window.schedules.show()

    def _show_state(self) -> None:
        assert self._commands is not None
        tuning, commands = self._tuning, self._commands
        opened = self._workspace.recipe is not None
        state = (tuning.phase, tuning.can_go_on, opened)
        if state == self._shown:
            # It changes several times a second while it tunes.
            return
        self._shown = state
        phase = tuning.phase
        commands.enable("tune", opened and not tuning.under_way)
        commands.enable("tune-page", opened)
        commands.enable("tune-pause", phase == "tuning")
        commands.enable("tune-resume", phase in ("pausing", "paused"))
        commands.enable("tune-stop", tuning.under_way and phase != "stopping")
        commands.enable("tune-more", tuning.can_go_on)
