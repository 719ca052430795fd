"""The command that clears the caches of tuning and measuring."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from lowerscope.app.actions import Command
from lowerscope.app.views.clear_caches import ask_to_clear

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from lowerscope.app.document.document import Document


def clearing(document: Document, parent: QWidget) -> Command:
    """Return the command that clears the caches, for the menu Run."""
    return Command(
        "clear-caches",
        parent.tr("&Run"),
        parent.tr("&Clear caches…"),
        partial(ask_to_clear, document, parent),
    )
