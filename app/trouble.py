"""Problems of the last change or run, and the recipe that caused them."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from lowerscope.app.history import Change
from lowerscope.core.errors import Problem


class Trouble(QObject):
    """The model of the Problems page.

    Signals
    -------
    changed
        `problems` changed.

    Attributes
    ----------
    problems
        The current problems, if any.
    refused
        The change that caused them; ``None`` if it was none.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.problems: tuple[Problem, ...] = ()
        self.refused: Change | None = None

    def show(self, problem: Problem, refused: Change | None = None) -> None:
        """Show a problem, replacing the previous one."""
        self.problems, self.refused = (problem,), refused
        self.changed.emit()

    def clear(self) -> None:
        """Clear the problems."""
        if self.problems:
            self.problems, self.refused = (), None
            self.changed.emit()
