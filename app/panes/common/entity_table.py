"""A table whose rows are entities of the document, tied to the selection; used by several panes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from PySide6.QtCore import Qt

from lowerscope.app.document.document import Document
from lowerscope.app.document.selection import EXTENDING
from lowerscope.app.kit.tables.data_table import Column, Row, Table


class EntityTable(Table):
    """A table that marks the selected entities, and selects those that are clicked.

    Args:
        kinds: Kinds of the entities in it.
    """

    def __init__(
        self, document: Document, name: str, columns: Sequence[Column], *kinds: str
    ) -> None:
        super().__init__(name, columns)
        self._document = document
        self._kinds = kinds
        self.word_titles(document.named_engine)
        self.row_clicked.connect(self._select)

    def show_selection(self) -> None:
        """Mark the rows of the selection, and bring the first one into view."""
        selection = self._document.selection
        marked = [each for kind in self._kinds for each in selection.of_kind(kind)]
        self.set_selection(marked)
        chosen = [each for each in selection.chosen if each in marked]
        if marked:
            self.reveal((chosen or marked)[0])

    def _select(self, entity: str, modifiers: Qt.KeyboardModifier) -> None:
        self._document.select((entity,), extend=bool(modifiers & EXTENDING))


def matching(rows: Iterable[Row], filter_text: str) -> list[Row]:
    """Return the rows that have each word of a filter in a cell or its tool tip."""
    words = filter_text.casefold().split()
    return [row for row in rows if not words or all(word in _text(row) for word in words)]


def _text(row: Row) -> str:
    cells = (row.cell(place) for place in range(len(row.cells)))
    return "\n".join(f"{each.text}\n{each.tooltip}" for each in cells).casefold()
