"""The commands for runs that come to a bad end, and for the memory that they may take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from lowerscope.app.actions import Command

if TYPE_CHECKING:
    from lowerscope.app.window import MainWindow


class FaultCommands(QObject):
    """What can be done about faults."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._workspace = window.workspace
        for news in (
            self._workspace.faults.changed,
            self._workspace.run_changed,
            self._workspace.snapshot_changed,
        ):
            news.connect(self._enable)

    def commands(self) -> tuple[Command, ...]:
        """Return the commands of the menu."""
        tr, faults = self._window.tr, self._workspace.faults
        menu = tr("&Run")
        return (
            Command("go-back", menu, tr("&Back to what worked"), faults.go_back, separated=True),
            Command("guarded-run", menu, tr("Run with &guarded memory"), faults.look),
        )

    def _enable(self) -> None:
        """Let the commands be available where they can be carried out."""
        workspace, commands = self._workspace, self._window.commands
        commands.enable("go-back", workspace.faults.can_go_back)
        commands.enable("guarded-run", workspace.snapshot is not None and not workspace.running)
