"""Facts below one another: a quiet name and its value, which is elided if necessary."""

from collections.abc import Sequence

from PySide6.QtWidgets import QGridLayout, QWidget

from lowerscope.app.widgets.pane import ElidedLabel
from lowerscope.app.widgets.plain_text import Label


class FactLines(QWidget):
    """A list of facts, one per line.

    Parameters
    ----------
    parent : QWidget, optional
        The parent widget.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._lines: list[tuple[Label, ElidedLabel]] = []
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(2)
        self._grid.setColumnStretch(1, 1)

    def set_facts(self, facts: Sequence[tuple[str, str]]) -> None:
        """Show names and values."""
        while len(self._lines) < len(facts):
            name, value = Label(), ElidedLabel()
            name.setProperty("role", "quiet")
            place = len(self._lines)
            self._grid.addWidget(name, place, 0)
            self._grid.addWidget(value, place, 1)
            self._lines.append((name, value))
        for place, (name, value) in enumerate(self._lines):
            there = place < len(facts)
            name.setVisible(there)
            value.setVisible(there)
            if there:
                name.setText(facts[place][0])
                value.set_whole(facts[place][1])
