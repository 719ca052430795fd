"""Text of the panes while no model is shown."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from lowerscope.app.document.document import Document


def nothing_words(document: Document) -> tuple[str, str]:
    """Return a title and a hint: the state, and what the user can do."""
    if document.wanted is not None:
        return _tr("Opening…"), _tr("Cancel, in the status bar, stops it.")
    if document.problems:
        return _tr("Not opened"), _tr("Problems says why, and what to do.")
    return _tr("Nothing is open"), _tr("Open… (Ctrl+O) opens a model; so does a file dropped here.")


def _tr(text: str) -> str:
    return QCoreApplication.translate("nothing_shown", text)
