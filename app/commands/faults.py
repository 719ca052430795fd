"""The commands for runs that come to a bad end, and for the memory that they may take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QInputDialog

from lowerscope.app.actions import Command
from lowerscope.core.running.memory_limit import bytes_text, parse_limit

if TYPE_CHECKING:
    from lowerscope.app.window import MainWindow


class FaultCommands:
    """What can be done about faults."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window
        self._workspace = window.workspace
        self._settings = window.settings
        limit = self._settings.memory_limit()
        if limit:
            self._workspace.worker.memory_limit = limit
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
            Command("memory-limit", menu, tr("&Memory limit of the worker…"), self.ask_limit),
        )

    def ask_limit(self) -> None:
        """Ask how much memory the worker may have."""
        limit = self._workspace.worker.memory_limit
        dialog = QInputDialog(self._window)
        dialog.setWindowTitle(self._window.tr("Memory limit of the worker"))
        dialog.setLabelText(
            self._window.tr(
                "The worker may have so much memory, and all that it starts together.\n"
                "A call that asks for more fails. Such as 3 GB:"
            )
        )
        dialog.setTextValue("" if limit is None else bytes_text(limit))
        dialog.textValueSelected.connect(self._set_limit)
        dialog.open()

    def _set_limit(self, text: str) -> None:
        workspace = self._workspace
        try:
            limit = parse_limit(text)
        except ValueError as error:
            workspace.announced.emit(str(error), "wrong")
            return
        self._settings.set_memory_limit(limit)
        workspace.worker.memory_limit = limit
        workspace.worker.restart()
        said = self._window.tr("The worker starts anew, and may have {0} of memory")
        workspace.announced.emit(said.format(bytes_text(limit)), "info")

    def _enable(self) -> None:
        """Let the commands be available where they can be carried out."""
        workspace, commands = self._workspace, self._window.commands
        commands.enable("go-back", workspace.faults.can_go_back)
        commands.enable("guarded-run", workspace.snapshot is not None and not workspace.running)
