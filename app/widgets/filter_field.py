"""A filter field that is never too narrow for its placeholder."""

from PySide6.QtWidgets import QLineEdit

_EDGES = 22
"""Pixels of a field beside its text."""


def filter_field(words: str, name: str) -> QLineEdit:
    """Return a filter field with a button that clears it.

    Parameters
    ----------
    words : str
        The placeholder.
    name : str
        The accessible name.
    """
    field = QLineEdit()
    field.setPlaceholderText(words)
    field.setAccessibleName(name)
    field.setClearButtonEnabled(True)
    field.setMinimumWidth(field.fontMetrics().horizontalAdvance(words) + _EDGES)
    return field
