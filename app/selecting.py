"""The selection shared by all views, and the links between entities."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from PySide6.QtCore import QObject, Signal

from lowerscope.app.selection import Links, Selection
from lowerscope.core.records.snapshot import FunctionRecord, Snapshot


class Selecting(QObject):
    """The selection model.

    Signals
    -------
    changed
        `selection` changed.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.selection = Selection()
        self.links = Links()

    def select(self, entities: Iterable[str], *, extend: bool = False) -> None:
        """Select entities by id, replacing the selection or, with `extend`, adding to it."""
        chosen = list(self.selection.chosen) if extend else []
        for entity in entities:
            if extend and entity in chosen:
                chosen.remove(entity)
            else:
                chosen.append(entity)
        self._set(self.links.select(tuple(chosen)))

    def take(self, snapshot: Snapshot) -> None:
        """Switch to other records; entities that still exist stay selected."""
        before, self.links = self.links, Links(snapshot)
        self.selection = self.links.select_again(self.selection.chosen, before)

    def take_functions(self, functions: Sequence[FunctionRecord]) -> None:
        """Set the functions of a step, which can be selected; none without a step."""
        before, self.links = self.links, self.links.at_step(functions)
        self._set(self.links.select_again(self.selection.chosen, before))

    def linked_to(self, *entities: str) -> frozenset[str]:
        """Return the ids linked to any of these."""
        return frozenset[str]().union(*(self.links.of(entity) for entity in entities))

    def _set(self, selection: Selection) -> None:
        if selection != self.selection:
            self.selection = selection
            self.changed.emit()
