"""Which colour the lines of each FX node have in all panes of code, while that is switched on."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from lowerscope.app.selection import Links
from lowerscope.core.records.snapshot import FxNode, Snapshot


class Colouring(QObject):
    """The switch, and the colour of each entity: that of the first node that it belongs to.

    Signals
    -------
    changed
        It was switched on or off, or other functions have the names.
    """

    changed = Signal()

    def __init__(
        self,
        snapshot: Callable[[], Snapshot | None],
        links: Callable[[], Links],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.on = False
        self._snapshot = snapshot
        self._links = links
        self._numbered: Snapshot | None = None
        self._nodes: dict[str, tuple[int, FxNode]] = {}

    def toggle(self) -> None:
        """Switch it on, or off."""
        self.on = not self.on
        self.changed.emit()

    def renew(self) -> None:
        """Let what is coloured be drawn anew: its links are others."""
        if self.on:
            self.changed.emit()

    def number_of(self, entity: str) -> int | None:
        """Return the number of the colour that an entity's lines have; ``None`` for none."""
        found = self._found(entity)
        return None if found is None else found[0]

    def node_of(self, entity: str) -> FxNode | None:
        """Return the node that an entity has its colour of."""
        found = self._found(entity)
        return None if found is None else found[1]

    def _found(self, entity: str) -> tuple[int, FxNode] | None:
        snapshot = self._snapshot()
        if snapshot is not self._numbered:
            self._numbered = snapshot
            self._nodes = {} if snapshot is None else _numbered(snapshot)
        return self._nodes.get(self._links().owner_of(entity))


def _numbered(snapshot: Snapshot) -> dict[str, tuple[int, FxNode]]:
    """Number the nodes that make something, so that neighbours have colours of their own."""
    result: dict[str, tuple[int, FxNode]] = {}
    number = 0
    for node in snapshot.fx:
        if not node.bindings and not node.functions:
            continue
        found = (number, node)
        for entity in (node.id, *node.bindings, *node.functions):
            result.setdefault(entity, found)
        for part in node.parts:
            result.setdefault(part.id, found)
        if node.line is not None:
            result.setdefault(node.line.id, found)
        number += 1
    return result
