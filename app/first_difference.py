"""The command that leads to the first node whose value differs from torch's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowerscope.app.actions import Command, Commands

if TYPE_CHECKING:
    from lowerscope.app.window import MainWindow
    from lowerscope.app.workspace import Workspace


def finding_differences(window: MainWindow) -> tuple[Command, ...]:
    """Return the commands, for the menu on running."""
    workspace, tr = window.workspace, window.tr

    def select() -> None:
        record = workspace.run_record
        if record is not None and record.first_difference:
            workspace.select((record.first_difference,))

    return (
        Command("first-difference", tr("&Run"), tr("Select the first &difference"), select, "F9"),
    )


def enable_finding(commands: Commands, workspace: Workspace) -> None:
    """Let the commands be available where the last run has shown a node that differs."""
    record = workspace.run_record
    found = record is not None and bool(record.first_difference)
    commands.enable("first-difference", found)
