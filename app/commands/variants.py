"""The commands on variants of runs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from lowerscope.app.actions import Command, Commands

if TYPE_CHECKING:
    from lowerscope.app.window import MainWindow
    from lowerscope.app.workspace import Workspace


def running_variants(window: MainWindow) -> tuple[Command, ...]:
    """Return the commands, for the menu on running."""
    tr, menu = window.tr, window.tr("&Run")
    return (
        Command(
            "run-variants",
            menu,
            tr("Run &variants"),
            window.workspace.runs.variants.run_all,
            "Ctrl+F5",
        ),
        Command(
            "variants",
            menu,
            tr("Variants side &by side"),
            partial(window.show_page, "variants"),
            "Ctrl+Shift+V",
        ),
    )


def enable_variants(commands: Commands, workspace: Workspace) -> None:
    """Let the commands be available that there is something for."""
    commands.enable("run-variants", workspace.recipe is not None and not workspace.running)
    commands.enable("variants", workspace.recipe is not None)
    commands.enable("export-report", bool(workspace.runs.variants.kept))
