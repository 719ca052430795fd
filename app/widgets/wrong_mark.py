"""The mark of a field in which something stands that cannot be taken."""

from PySide6.QtWidgets import QWidget


def mark_wrong(field: QWidget, wrong: bool) -> None:
    """Give a field the border of what is wrong, or take it away."""
    if bool(field.property("wrong")) != wrong:
        field.setProperty("wrong", wrong)
        # The style sheet looks at properties when it polishes.
        field.style().unpolish(field)
        field.style().polish(field)
