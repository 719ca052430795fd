"""Commands for failed runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowerscope.app.actions import Command

if TYPE_CHECKING:
    from lowerscope.app.window import MainWindow


def fault_commands(window: MainWindow) -> tuple[Command, ...]:
    """Return the commands, for the menu Run."""
    tr, document = window.tr, window.document
    faults, menu = window.features.faults, tr("&Run")
    return (
        Command(
            "go-back",
            menu,
            tr("&Back to what worked"),
            faults.go_back,
            enabled=lambda: faults.can_go_back,
            separated=True,
        ),
        Command(
            "guarded-run",
            menu,
            tr("Run with &guarded memory"),
            faults.look,
            enabled=lambda: document.snapshot is not None and not document.running,
        ),
    )
