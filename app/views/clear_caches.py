"""Clearing what is kept of tuning and measuring: how much of it there is, and a question."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from lowerscope.app.widgets.question import Question
from lowerscope.core.cache_limit import Cleared, cache_size, clear_cache
from lowerscope.core.memory_limit import bytes_text

if TYPE_CHECKING:
    from lowerscope.app.window import MainWindow


def ask_to_clear(window: MainWindow, parent: QWidget) -> ClearCaches:
    """Say over a parent how much there is, and ask whether it is to go; the window says what did.

    Where there is nothing, that is said, and nothing is asked.
    """
    asking = ClearCaches(window, parent)
    asking.ask()
    return asking


class ClearCaches(QObject):
    """The question, and what is done by its answer.

    Signals
    -------
    cleared
        What there was has been removed.
    """

    cleared = Signal()

    def __init__(self, window: MainWindow, parent: QWidget) -> None:
        super().__init__(parent)
        self._window = window
        self._parent = parent

    def ask(self) -> None:
        """Ask, if there is something to be cleared."""
        tr, size = self._window.tr, cache_size()
        if not size:
            self._window.workspace.announced.emit(tr("The caches are empty"), "info")
            return
        question = Question(
            tr("Clear caches"),
            tr("Clear {0} of caches?").format(bytes_text(size)),
            tr("Clear"),
            tr(
                "Schedules that tuning has found, and what was measured of this machine, are"
                " searched for and measured again when they are needed."
            ),
            self._parent,
        )
        question.accepted.connect(self._clear)
        question.open()

    def _clear(self) -> None:
        announced = self._window.workspace.announced
        try:
            cleared = clear_cache()
        except OSError as error:
            announced.emit(str(error), "wrong")
            return
        announced.emit(cleared_text(self._window, cleared), "info")
        self.cleared.emit()


def cleared_text(window: MainWindow, cleared: Cleared) -> str:
    """Return what was removed, and what was not, in words."""
    text = window.tr("Removed {0} of caches").format(bytes_text(cleared.freed))
    if cleared.in_use:
        kept = window.tr("{0} stay: a tuning adds to them").format(bytes_text(cleared.in_use))
        return f"{text}; {kept}"
    return text
