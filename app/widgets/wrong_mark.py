"""Marking of fields with an invalid value."""

from PySide6.QtWidgets import QWidget


def mark_wrong(field: QWidget, wrong: bool) -> None:
    """Set or remove the error border of a field."""
    if bool(field.property("wrong")) != wrong:
        field.setProperty("wrong", wrong)
        # The style sheet evaluates properties when it polishes.
        field.style().unpolish(field)
        field.style().polish(field)
