"""Commands for failed runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowerscope.app.actions import Command

if TYPE_CHECKING:
    from lowerscope.app.document.document import Document
    from lowerscope.app.runs.faults import Faults


def fault_commands(document: Document, faults: Faults) -> tuple[Command, ...]:
    """Return the commands, for the menu Run."""
    tr, menu = faults.tr, faults.tr("&Run")
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
