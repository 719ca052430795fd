"""Commands of the timeline Run: its steps, and the breakpoints."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from lowerscope.app.actions import Command

if TYPE_CHECKING:
    from lowerscope.app.document.document import Document
    from lowerscope.app.runs.steps import RunSteps
    from lowerscope.app.stepping import Stepping


def run_step_commands(
    document: Document, stepping: Stepping, steps: RunSteps
) -> tuple[Command, ...]:
    """Return the commands, for the menu Run."""
    tr, menu = steps.tr, steps.tr("&Run")

    def has_calls() -> bool:
        return bool(steps.calls)

    return (
        Command(
            "toggle-break",
            menu,
            tr("Toggle breakpoint at the selection"),
            steps.toggle_selected,
            "Ctrl+B",
            enabled=lambda: bool(document.selection.chosen),
            separated=True,
            key_there="B",
        ),
        Command(
            "next-break",
            menu,
            tr("Continue to the next breakpoint"),
            partial(stepping.to_break, 1),
            "Shift+F8",
            enabled=has_calls,
        ),
        Command(
            "previous-break",
            menu,
            tr("Back to the previous breakpoint"),
            partial(stepping.to_break, -1),
            "Ctrl+Shift+F8",
            enabled=has_calls,
        ),
        Command(
            "clear-breaks",
            menu,
            tr("Remove all brea&kpoints"),
            steps.clear,
            enabled=lambda: bool(steps.breaks),
        ),
    )
