"""The dialog that clears the caches of tuning and measuring."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.widgets.question import Question
from lowerscope.core.cache_limit import Cleared, cache_size, clear_cache
from lowerscope.core.model.formatting import bytes_text


def ask_to_clear(document: Document, parent: QWidget) -> ClearCaches:
    """Show the size of the caches over a parent, and clear them after confirmation.

    If they are empty, a message says so.
    """
    asking = ClearCaches(document, parent)
    asking.ask()
    return asking


class ClearCaches(QObject):
    """The confirmation dialog, and the clearing.

    Signals
    -------
    cleared
        The caches have been cleared.
    """

    cleared = Signal()

    def __init__(self, document: Document, parent: QWidget) -> None:
        super().__init__(parent)
        self._document = document
        self._parent = parent

    def ask(self) -> None:
        """Show the dialog, if there is something to clear."""
        tr, size = self.tr, cache_size()
        if not size:
            self._document.notify(tr("The caches are empty"), "info")
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
        notify = self._document.notify
        try:
            cleared = clear_cache()
        except OSError as error:
            notify(str(error), "wrong")
            return
        notify(cleared_text(self.tr, cleared), "info")
        self.cleared.emit()


def cleared_text(tr: Callable[[str], str], cleared: Cleared) -> str:
    """Return a message about what was removed, and what was not."""
    text = tr("Removed {0} of caches").format(bytes_text(cleared.freed))
    if cleared.in_use:
        kept = tr("{0} stay: a tuning adds to them").format(bytes_text(cleared.in_use))
        return f"{text}; {kept}"
    return text
