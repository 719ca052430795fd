"""The command that says how much of a run's values is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QInputDialog

from lowerscope.app.actions import Command
from lowerscope.core.running.memory_limit import bytes_text, parse_bytes

if TYPE_CHECKING:
    from lowerscope.app.window import MainWindow


class KeepCommand:
    """Asks how much memory the values of a run may take, and remembers it."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window
        window.workspace.runs.keep = window.settings.keep()

    def command(self) -> Command:
        """Return the command of the menu."""
        tr = self._window.tr
        return Command("keep", tr("&Run"), tr("Memory for &values of a run…"), self.ask)

    def ask(self) -> None:
        """Ask how much may be kept."""
        tr = self._window.tr
        dialog = QInputDialog(self._window)
        dialog.setWindowTitle(tr("Memory for values of a run"))
        dialog.setLabelText(
            tr(
                "What the calls of a run read and write is kept in the worker until the next run,\n"
                "as far as this reaches. Of the rest there are figures only. Such as 1 GB:"
            )
        )
        dialog.setTextValue(bytes_text(self._window.workspace.runs.keep))
        dialog.textValueSelected.connect(self._set)
        dialog.open()

    def _set(self, text: str) -> None:
        workspace = self._window.workspace
        try:
            keep = parse_bytes(text)
        except ValueError as error:
            workspace.announced.emit(str(error), "wrong")
            return
        self._window.settings.set_keep(keep)
        workspace.runs.keep = keep
        said = self._window.tr("From the next run on, {0} of its values are kept")
        workspace.announced.emit(said.format(bytes_text(keep)), "info")
