"""What went wrong with the last change or run, and the recipe that led to it."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from lowerscope.app.history import Change
from lowerscope.core.errors import Problem


class Trouble(QObject):
    """What the Problems page shows.

    Signals
    -------
    changed
        `problems` is new.

    Attributes
    ----------
    problems
        What went wrong; none where nothing did.
    refused
        The change that led to it; ``None`` where it was none.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.problems: tuple[Problem, ...] = ()
        self.refused: Change | None = None

    def show(self, problem: Problem, refused: Change | None = None) -> None:
        """Show a problem, in place of another one."""
        self.problems, self.refused = (problem,), refused
        self.changed.emit()

    def clear(self) -> None:
        """Show that there is no problem any more."""
        if self.problems:
            self.problems, self.refused = (), None
            self.changed.emit()
