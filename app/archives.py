"""Archives of sessions: inspected, unpacked to a selected folder, and opened as sessions."""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QWidget

from lowerscope.app.background import in_thread, when_done
from lowerscope.app.document.document import Document
from lowerscope.core.errors import Cancelled, LowerscopeError
from lowerscope.core.session_archives import (
    Archive,
    folder_for,
    is_archive,
    read_archive,
    unpack,
)

if TYPE_CHECKING:
    from lowerscope.app.views.unpack_dialog import UnpackDialog


class Archives(QObject):
    """Selects the folder for an archive in a dialog, and unpacks it in a thread.

    Signals
    -------
    unpacked
        Path of the unpacked session file.

    Attributes
    ----------
    dialog
        The last dialog shown.
    """

    unpacked = Signal(str)

    def __init__(self, document: Document, window: QWidget) -> None:
        super().__init__(window)
        self._document = document
        self._window = window
        self._archive: Archive | None = None
        self._stopped = Event()
        self.dialog: UnpackDialog | None = None

    def is_file(self, source: str) -> bool:
        """Return whether a source has the name of an archive."""
        return is_archive(source)

    def open(self, path: str) -> None:
        """Inspect an archive and show the dialog for its folder; nothing in it runs."""
        from lowerscope.app.views.unpack_dialog import UnpackDialog

        try:
            archive = read_archive(Path(path).absolute())
            folder = folder_for(archive)
        except LowerscopeError as error:
            self._document.report(error.problem)
            return
        if folder.exists():
            # Unpacked unchanged.
            self.unpacked.emit(str(folder / archive.session))
            return
        self._archive = archive
        dialog = self.dialog = UnpackDialog(archive, folder, self._window)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.unpack_wanted.connect(self._begin)
        dialog.rejected.connect(self._stop)
        dialog.open()

    def _begin(self, folder: str) -> None:
        archive, stopped = self._archive, Event()
        assert archive is not None
        self._stopped = stopped

        def check() -> None:
            if stopped.is_set():
                raise Cancelled

        unpacked = in_thread("unpacking", partial(unpack, archive, Path(folder), check))
        when_done(unpacked, self, self._take)

    def _stop(self) -> None:
        self._stopped.set()
        self._archive = self.dialog = None

    def _take(self, future: Future[Path]) -> None:
        try:
            session = future.result()
        except Cancelled:
            return
        except LowerscopeError as error:
            if self.dialog is not None:
                self.dialog.show_problem(error.problem)
            return
        dialog, self._archive, self.dialog = self.dialog, None, None
        if dialog is not None:
            dialog.accept()
            self.unpacked.emit(str(session))
