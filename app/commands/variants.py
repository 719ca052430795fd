"""Commands on variants."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from lowerscope.app.actions import Command

if TYPE_CHECKING:
    from lowerscope.app.window import MainWindow


def running_variants(window: MainWindow) -> tuple[Command, ...]:
    """Return the commands, for the menu Run."""
    tr, menu, workspace = window.tr, window.tr("&Run"), window.workspace
    return (
        Command(
            "run-variants",
            menu,
            tr("Run var&iants"),
            workspace.runs.variants.run_all,
            "Ctrl+F5",
            enabled=lambda: workspace.recipe is not None and not workspace.running,
        ),
        Command(
            "variants",
            menu,
            tr("Variant&s side by side"),
            partial(window.show_page, "variants"),
            "Ctrl+Shift+V",
            enabled=workspace.is_open,
        ),
    )
