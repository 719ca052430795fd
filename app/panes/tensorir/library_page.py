"""The page of external functions: where they are registered, and their callers."""

from __future__ import annotations

from PySide6.QtWidgets import QVBoxLayout, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.kit.tables.data_table import Cell, Column, Row
from lowerscope.app.panes.common.descriptions import line_text, names_of, nothing_words, origin_text
from lowerscope.app.panes.common.entity_table import EntityTable
from lowerscope.core.model.snapshot import LibraryRecord
from lowerscope.core.model.texts import _


class LibraryPage(QWidget):
    """A table of the library functions, linked to the selection."""

    def __init__(self, document: Document, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self.table = EntityTable(
            document,
            _("Library functions"),
            (
                Column(_("function"), width=150),
                Column(_("registered"), width=150),
                Column(_("called by"), width=110),
                Column(_("nodes"), stretch=True, width=110),
            ),
            "ext",
        )
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.table)
        document.on(("snapshot",), self._show_snapshot)
        document.on(("recipe", "pending"), self._show_wanted)
        document.on(("selection", "snapshot"), self.table.show_selection)
        self._show_snapshot()

    def _show_wanted(self) -> None:
        if self._document.snapshot is None:
            self._show_snapshot()

    def _show_snapshot(self) -> None:
        snapshot = self._document.snapshot
        words = (
            _("No library functions"),
            _("Nothing outside of the module is called by name."),
        )
        self.table.set_empty(*(nothing_words(self._document) if snapshot is None else words))
        records = () if snapshot is None else snapshot.library
        self.table.set_rows([_row(each) for each in records])
        self.table.show_selection()


def _row(each: LibraryRecord) -> Row:
    place = f"{each.line.file}:{each.line.line}" if each.line else origin_text(each)
    return Row(
        each.id,
        (
            Cell(each.name, bold=True, tooltip=each.name),
            Cell(
                line_text(each.line) if each.line else origin_text(each),
                role="wrong" if each.origin == "missing" else "quiet",
                tooltip=place,
            ),
            Cell(
                names_of(each.calls) or "nothing",
                role="quiet",
                tooltip=names_of(each.calls, most=60),
            ),
            Cell(names_of(each.nodes), role="quiet", tooltip=names_of(each.nodes, most=60)),
        ),
    )
