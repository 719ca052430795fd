"""Archives of sessions: inspected, unpacked to a selected folder, and opened as sessions."""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial
from pathlib import Path
from threading import Event

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import (
    QDialogButtonBox,
    QFileDialog,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QPushButton,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from lowerscope.app.document.document import Document
from lowerscope.app.kit.background import in_thread, when_done
from lowerscope.app.kit.dialogs import Dialog
from lowerscope.app.kit.help_key import offer_help
from lowerscope.app.kit.pane import ProgressLine
from lowerscope.app.kit.pane_messages import Banner
from lowerscope.app.kit.plain_text import Label
from lowerscope.core.files.paths import user_path
from lowerscope.core.files.sessions import Archive, folder_for, is_archive, read_archive, unpack
from lowerscope.core.model.formatting import bytes_text
from lowerscope.core.model.problems import Cancelled, LowerscopeError, Problem
from lowerscope.core.model.texts import _


class Archives(QObject):
    """Selects the folder for an archive in a dialog, and unpacks it in a thread."""

    unpacked = Signal(str)  # Path of the unpacked session file.

    def __init__(self, document: Document, window: QWidget) -> None:
        super().__init__(window)
        self._document = document
        self._window = window
        self._archive: Archive | None = None
        self._stopped = Event()
        self.dialog: UnpackDialog | None = None  # The last dialog shown.

    def is_file(self, source: str) -> bool:
        """Return whether a source has the name of an archive."""
        return is_archive(source)

    def open(self, path: str) -> None:
        """Inspect an archive and show the dialog for its folder; nothing in it runs."""

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


# The dialog that selects the folder for an archive of a session, with the archive's contents.

_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class UnpackDialog(Dialog):
    """The files of an archive, and the folder to unpack them to.

    Args:
        archive: Contents of the archive.
        folder: The proposed folder, which does not exist yet.
    """

    unpack_wanted = Signal(str)  # The folder.

    def __init__(self, archive: Archive, folder: Path, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._name = archive.path.stem
        self.setWindowTitle(_("Unpack a session"))
        text = _(
            "{name} holds a session and the files it needs. Unpacking runs none of them; each "
            "code file needs your confirmation before it runs.",
            name=archive.path.name,
        )
        words = Label(text)
        words.setWordWrap(True)
        self.files = QTreeWidget()
        self.files.setAccessibleName(_("Files in the archive"))
        self.files.setHeaderLabels([_("file"), _("size")])
        self.files.setRootIsDecorated(False)
        self.files.setUniformRowHeights(True)
        for name, size in archive.sizes.items():
            item = QTreeWidgetItem([name, bytes_text(size)])
            item.setTextAlignment(1, _RIGHT)
            self.files.addTopLevelItem(item)
        header = self.files.header()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        self.files.headerItem().setTextAlignment(1, _RIGHT)
        self.folder = QLineEdit(str(folder))
        self.folder.setAccessibleName(_("Folder to unpack to"))
        self.browse = QPushButton(_("Browse…"))
        self.browse.setAutoDefault(False)
        self.browse.clicked.connect(self._browse)
        self.banner = Banner(wraps=True)
        self.progress = ProgressLine()
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        self.unpack = buttons.addButton(
            _("Unpack and open"), QDialogButtonBox.ButtonRole.ActionRole
        )
        buttons.button(QDialogButtonBox.StandardButton.Cancel).setAutoDefault(False)
        self.unpack.setDefault(True)
        self.unpack.setProperty("primary", True)
        self.unpack.clicked.connect(self._begin)
        buttons.rejected.connect(self.reject)
        self.folder.textChanged.connect(self._follow)
        self._lay_out(words, buttons)
        offer_help(self, "sessions")

    def show_problem(self, problem: Problem) -> None:
        """Show why unpacking failed; another folder can be selected."""
        self.progress.clear()
        self.banner.show_message(problem.line(), "wrong")
        self._let(True)
        # It lost the focus when it was disabled; Return has to trigger "Unpack" again.
        self.folder.setFocus()
        self.folder.selectAll()

    def _begin(self) -> None:
        self.banner.dismiss()
        self._let(False)
        self.progress.set_busy()
        self.unpack_wanted.emit(str(user_path(self.folder.text().strip()).absolute()))

    def _let(self, on: bool) -> None:
        for widget in (self.unpack, self.browse, self.folder):
            widget.setEnabled(on)

    def _follow(self) -> None:
        self.unpack.setEnabled(bool(self.folder.text().strip()))

    def _browse(self) -> None:
        path = QFileDialog.getExistingDirectory(
            self, _("Folder for unpacking"), str(Path(self.folder.text()).parent)
        )
        if path:
            self.folder.setText(str(Path(path) / self._name))

    def _lay_out(self, words: Label, buttons: QDialogButtonBox) -> None:
        place = QHBoxLayout()
        label = Label(_("Folder"))
        label.setBuddy(self.folder)
        place.addWidget(label)
        place.addWidget(self.folder, 1)
        place.addWidget(self.browse)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 12)
        column.setSpacing(12)
        column.addWidget(words)
        column.addWidget(self.files, 1)
        column.addLayout(place)
        column.addWidget(self.banner)
        column.addWidget(self.progress)
        column.addWidget(buttons)
        self.resize(620, 380)
        self.folder.setFocus()
