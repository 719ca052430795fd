"""The selection that all views share, and the links that say what belongs to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from PySide6.QtCore import QObject, Signal

from lowerscope.app.selection import Links, Selection
from lowerscope.core.records.snapshot import FunctionRecord, Snapshot


class Selecting(QObject):
    """What is selected.

    Signals
    -------
    changed
        `selection` is new.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.selection = Selection()
        self.links = Links()

    def select(self, entities: Iterable[str], *, extend: bool = False) -> None:
        """Select entities by id, in place of what is selected or, with `extend`, besides it."""
        chosen = list(self.selection.chosen) if extend else []
        for entity in entities:
            if extend and entity in chosen:
                chosen.remove(entity)
            else:
                chosen.append(entity)
        self._set(self.links.select(tuple(chosen)))

    def take(self, snapshot: Snapshot) -> None:
        """Go over to other records; what is selected stays so, where it is still there."""
        before, self.links = self.links, Links(snapshot)
        self.selection = self.links.select_again(self.selection.chosen, before)

    def take_functions(self, functions: Sequence[FunctionRecord]) -> None:
        """Let these be the functions that can be selected: those of a step; none without one."""
        before, self.links = self.links, self.links.at_step(functions)
        self._set(self.links.select_again(self.selection.chosen, before))

    def linked_to(self, *entities: str) -> frozenset[str]:
        """Return the ids that are linked to one of these."""
        return frozenset[str]().union(*(self.links.of(entity) for entity in entities))

    def _set(self, selection: Selection) -> None:
        if selection != self.selection:
            self.selection = selection
            self.changed.emit()
