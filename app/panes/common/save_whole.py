"""Saving of a text that is too long to be shown completely."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.engine.file_broker import cannot_write
from lowerscope.app.kit.background import in_thread, when_done
from lowerscope.core.files.atomic_write import atomic_file
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.texts import _


class WholeText(QObject):
    """Writes texts to the user's files in the background."""

    done = Signal(object)  # The path of the written file, or a `Problem`.

    def __init__(self, document: Document, widget: QWidget) -> None:
        super().__init__(widget)
        self._document = document
        self._widget = widget

    def choose_file(self, title: str, name: str, text: Callable[[], Iterator[bytes]]) -> None:
        """Select a file in a dialog, and write a text to it."""
        path, _filter = QFileDialog.getSaveFileName(
            self._widget, title, name, _("Text files (*.txt *.log)")
        )
        if path:
            self.save(Path(path), text)

    def save(self, path: Path, text: Callable[[], Iterator[bytes]]) -> None:
        """Write the text available by now to a file."""
        pieces = text()

        def write() -> Path | Problem:
            try:
                with atomic_file(path) as made, made.open("wb") as file:
                    file.writelines(pieces)
            except OSError as error:
                return cannot_write(error, path)
            return path

        when_done(in_thread("saving a text", write), self, self._report)

    def _report(self, future: Future[Path | Problem]) -> None:
        answer = future.result()
        if isinstance(answer, Problem):
            self._document.report(answer)
        else:
            self._document.notify(_("Saved as {answer}.", answer=answer), "info")
        self.done.emit(answer)
