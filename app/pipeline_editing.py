"""What the user can do with the steps: what the menu Passes, the pipeline pane and the tool bar
offer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

if TYPE_CHECKING:
    from lowerscope.app.actions import Commands
    from lowerscope.app.window import MainWindow
    from lowerscope.app.workspace import Workspace

STEPPING = ("next-step", "previous-step", "first-step", "last-step", "play")


class PipelineEditing(QObject):
    """Changes the recipe's steps, and which of them are gone through."""

    def __init__(self, workspace: Workspace, window: MainWindow) -> None:
        super().__init__(window)
        self._workspace = workspace
        self._commands: Commands | None = None

    def watch(self, commands: Commands) -> None:
        """Keep the commands of the menu as the state is."""
        self._commands = commands
        stepping = self._workspace.stepping
        for signal in (stepping.moment_changed, stepping.list_changed):
            signal.connect(self._show_stepping)
        self._show_stepping()

    def hide_unchanged(self) -> None:
        """Go through the steps that changed something alone, or through all of them."""
        chosen = self._workspace.stepping.filter
        self._workspace.stepping.set_filter(
            replace(chosen, hide_unchanged=not chosen.hide_unchanged)
        )

    def _show_stepping(self) -> None:
        stepping, commands = self._workspace.stepping, self._commands
        assert commands is not None
        for key in STEPPING:
            commands.enable(key, bool(stepping.lines(stepping.clock)))
        commands.enable("leave-steps", stepping.moment is not None)
        commands.check("hide-unchanged", stepping.filter.hide_unchanged)
        commands.check(f"clock-{stepping.clock}")
