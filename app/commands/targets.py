"""The commands that choose what is compiled for, and the machine that runs it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import Qt

from lowerscope.app.actions import Command
from lowerscope.app.targets import Targets

if TYPE_CHECKING:
    from lowerscope.app.window import MainWindow


class TargetCommands:
    """Targets, and other machines."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window
        self._workspace = window.workspace
        self.targets = Targets(window.workspace)
        for news in (self._workspace.recipe_wanted, self._workspace.snapshot_changed):
            news.connect(self._enable)

    def commands(self) -> tuple[Command, ...]:
        """Return the commands of the menu."""
        tr, change = self._window.tr, self._window.change
        menu = tr("&Run")
        return (
            Command(
                "target-llvm",
                menu,
                tr("Target: &llvm"),
                partial(change, target="llvm"),
                separated=True,
            ),
            Command(
                "target-native",
                menu,
                tr("Target: this &machine"),
                partial(change, target="native", remote=None),
            ),
            Command("target-other", menu, tr("&Other target…"), self.choose_target),
            Command("target-remote", menu, tr("&Remote machine…"), self.choose_remote),
            Command("target-here", menu, tr("Run on this machine again"), self.leave_remote),
        )

    def watch(self) -> None:
        """Let the commands show what is chosen."""
        for key in ("target-llvm", "target-native"):
            self._window.commands.action(key).setCheckable(True)
        self._enable()

    def choose_target(self) -> None:
        """Show what there is to compile for, and take what is typed."""
        if self._workspace.wanted is None:
            return
        from lowerscope.app.views.target_dialog import TargetDialog

        dialog = TargetDialog(self._workspace, self.targets, self._window)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    def choose_remote(self) -> None:
        """Ask for a tracker and a key."""
        if self._workspace.wanted is None:
            return
        from lowerscope.app.views.remote_dialog import RemoteDialog

        dialog = RemoteDialog(self._workspace, self.targets, self._window)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    def leave_remote(self) -> None:
        """Run on this machine again; the target stays."""
        recipe = self._workspace.wanted
        if recipe is not None and recipe.remote is not None:
            self._workspace.change(msgspec.structs.replace(recipe, remote=None))

    def _enable(self) -> None:
        recipe, commands = self._workspace.wanted, self._window.commands
        there = self._workspace.snapshot is not None
        for key in ("target-other", "target-remote"):
            commands.enable(key, there)
        commands.enable("target-here", recipe is not None and recipe.remote is not None)
