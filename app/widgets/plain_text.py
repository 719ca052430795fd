"""Texts that name what others have named are shown as they are.

Labels and tool tips take a text for markup that looks like it, and fetch what it shows: a module
called ``<img src='/dev/zero'>`` would have the window read that without an end.
"""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import Qt as Texts
from PySide6.QtWidgets import QLabel


def plain(label: QLabel) -> QLabel:
    """Return a label that takes no text for markup."""
    label.setTextFormat(Qt.TextFormat.PlainText)
    return label


def plain_tip(text: str) -> str:
    """Return a tool tip that shows a text as it is."""
    if not Texts.mightBeRichText(text):
        return text
    return Texts.convertFromPlainText(text, Texts.WhiteSpaceMode.WhiteSpaceNormal)
