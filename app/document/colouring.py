"""Colours of the lines of each FX node, in all code panes, while switched on."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from lowerscope.app.document.document import Document
from lowerscope.core.model.snapshot import FxNode, Snapshot


class Colouring(QObject):
    """The switch, and the colour of each entity: that of the first node it belongs to."""

    changed = Signal()  # Switched on or off, or the names refer to other functions.

    def __init__(self, document: Document) -> None:
        super().__init__(document)
        self._document = document
        self.on = False
        self._numbered: Snapshot | None = None
        self._nodes: dict[str, tuple[int, FxNode]] = {}

    def toggle(self) -> None:
        self.on = not self.on
        self.changed.emit()

    def renew(self) -> None:
        """Redraw the coloured lines after the links changed."""
        if self.on:
            self.changed.emit()

    def number_of(self, entity: str) -> int | None:
        """Return the colour number of an entity's lines, or ``None``."""
        found = self._found(entity)
        return None if found is None else found[0]

    def node_of(self, entity: str) -> FxNode | None:
        """Return the node that determines an entity's colour."""
        found = self._found(entity)
        return None if found is None else found[1]

    def _found(self, entity: str) -> tuple[int, FxNode] | None:
        snapshot = self._document.snapshot
        if snapshot is not self._numbered:
            self._numbered = snapshot
            self._nodes = {} if snapshot is None else _numbered(snapshot)
        return self._nodes.get(self._document.links.owner_of(entity))


def _numbered(snapshot: Snapshot) -> dict[str, tuple[int, FxNode]]:
    """Number the nodes that produce values, so that neighbours have different colours."""
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
