"""Saving the whole of a text that is too long to be shown."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from lowerscope.app.children.handing_over import cannot_write
from lowerscope.app.workspace import Workspace
from lowerscope.core.errors import Problem
from lowerscope.core.unfinished import whole_file


class WholeText(QObject):
    """Writes texts to files of the user's, while the window goes on.

    Signals
    -------
    done(object)
        The path of a file that is written, or the `Problem` why it is not.
    """

    done = Signal(object)

    def __init__(self, workspace: Workspace, widget: QWidget) -> None:
        super().__init__(widget)
        self._workspace = workspace
        self._widget = widget
        self.done.connect(self._report)

    def choose_file(self, title: str, name: str, text: Callable[[], Iterator[bytes]]) -> None:
        """Ask for a file, and write a text to it."""
        path, _ = QFileDialog.getSaveFileName(
            self._widget, title, name, self.tr("Text files (*.txt *.log)")
        )
        if path:
            self.save(Path(path), text)

    def save(self, path: Path, text: Callable[[], Iterator[bytes]]) -> None:
        """Write a text, as far as it has come by now, to a file."""
        # No daemon: a window that is closed meanwhile ends when it is written.
        threading.Thread(target=self._write, args=(path, text()), name="saving a text").start()

    def _write(self, path: Path, text: Iterator[bytes]) -> None:
        answer: Path | Problem = path
        try:
            with whole_file(path) as made, made.open("wb") as file:
                file.writelines(text)
        except OSError as error:
            answer = cannot_write(error, path)
        with contextlib.suppress(RuntimeError):  # the window has been closed
            self.done.emit(answer)

    def _report(self, answer: Path | Problem) -> None:
        if isinstance(answer, Problem):
            self._workspace.report(answer)
        else:
            self._workspace.announced.emit(self.tr("Saved as {0}.").format(answer), "info")
