"""Commands on variants."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from lowerscope.app.actions import Command

if TYPE_CHECKING:
    from lowerscope.app.window import MainWindow


def running_variants(window: MainWindow) -> tuple[Command, ...]:
    """Return the commands, for the menu Run."""
    tr, menu, document = window.tr, window.tr("&Run"), window.document
    return (
        Command(
            "run-variants",
            menu,
            tr("Run var&iants"),
            window.features.runs.variants.run_all,
            "Ctrl+F5",
            enabled=lambda: document.recipe is not None and not document.running,
        ),
        Command(
            "variants",
            menu,
            tr("Variant&s side by side"),
            partial(window.show_page, "variants"),
            "Ctrl+Shift+V",
            enabled=document.is_open,
        ),
    )
