"""The page with the user's file: lines are linked to the FX nodes they create."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QVBoxLayout, QWidget

from lowerscope.app.colouring import Colouring
from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.views.fetched_page import FetchedPage
from lowerscope.app.views.nothing_shown import nothing_words


class SourcePage(QWidget):
    """One of the files that the nodes come from, with a choice if there are several."""

    def __init__(
        self,
        document: Document,
        queries: Queries,
        colouring: Colouring,
        set_busy: Callable[[bool], None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._document = document
        self._files: tuple[str, ...] = ()
        self._lines: dict[str, str] = {}
        self.files = QComboBox()
        self.files.setAccessibleName(self.tr("File"))
        self.files.activated.connect(self._choose)
        self.text = FetchedPage(
            document,
            queries,
            colouring,
            "source",
            self.tr("Source of the model"),
            set_busy,
        )
        self.text.script.begins_at_spans = True
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.files)
        column.addWidget(self.text, 1)
        document.on(("snapshot",), self._show_snapshot)
        document.on(("recipe", "pending"), self._show_wanted)
        document.on(("selection", "snapshot"), self._show_selection)
        self._show_snapshot()

    def _show_wanted(self) -> None:
        if self._document.snapshot is None:
            self._show_snapshot()

    def _show_snapshot(self) -> None:
        snapshot = self._document.snapshot
        nodes = () if snapshot is None else snapshot.fx
        lines = [node.line for node in nodes if node.line is not None]
        self._lines = {node.id: node.line.file for node in nodes if node.line is not None}
        # The model's own file first, then those that most nodes come from.
        counts = Counter(line.file for line in lines)
        own = "" if snapshot is None else snapshot.model.path
        files = tuple(sorted(counts, key=lambda file: (file != own, -counts[file])))
        before = self._current()
        self._files = files
        self.files.clear()
        for file in files:
            self.files.addItem(Path(file).name)
            self.files.setItemData(self.files.count() - 1, file, Qt.ItemDataRole.ToolTipRole)
        self.files.setVisible(len(files) > 1)
        if before in files:
            self.files.setCurrentIndex(files.index(before))
        words = (
            self.tr("No source"),
            self.tr("No line of a file is known that a node of this model comes from."),
        )
        self.text.show_nothing(*(nothing_words(self._document) if snapshot is None else words))
        if files:
            self.text.show_text_of(self._current())
            self._show_selection()

    def _show_selection(self) -> None:
        """Switch to the file of the selection, if none of it is in the one shown."""
        files = {
            self._lines[entity]
            for entity in self._document.selection.linked
            if entity in self._lines
        }
        if files and self._current() not in files:
            first = min(files, key=self._files.index)
            self.files.setCurrentIndex(self._files.index(first))
            self.text.show_text_of(first)

    def _choose(self, index: int) -> None:
        self.text.show_text_of(self._files[index])

    def _current(self) -> str:
        index = self.files.currentIndex()
        return self._files[index] if 0 <= index < len(self._files) else ""
