"""A field that filters a list, never so narrow that it does not say by what."""

from PySide6.QtWidgets import QLineEdit

_EDGES = 22
"""Pixels of a field beside its words."""


def filter_field(words: str, name: str) -> QLineEdit:
    """Return a field with a button that clears it.

    Parameters
    ----------
    words : str
        What it says while it is empty.
    name : str
        What it is called by a screen reader.
    """
    field = QLineEdit()
    field.setPlaceholderText(words)
    field.setAccessibleName(name)
    field.setClearButtonEnabled(True)
    field.setMinimumWidth(field.fontMetrics().horizontalAdvance(words) + _EDGES)
    return field
