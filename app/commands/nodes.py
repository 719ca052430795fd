"""Commands on FX nodes: selecting the next one, and lowering the selected ones."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from lowerscope.app.actions import Command

if TYPE_CHECKING:
    from lowerscope.app.document.document import Document
    from lowerscope.core.recipe import Strategy


class NodeCommands(QObject):
    """Commands on nodes."""

    def __init__(self, document: Document) -> None:
        super().__init__(document)
        self._document = document

    def walking(self) -> tuple[Command, ...]:
        """Return the commands that step through the nodes, for the menu Edit."""
        tr = self.tr
        menu, go, document = tr("&Edit"), self._select, self._document

        return (
            Command(
                "next-node",
                menu,
                tr("&Next node"),
                partial(go, 1),
                "Alt+Down",
                enabled=document.has_torch,
                separated=True,
            ),
            Command(
                "previous-node",
                menu,
                tr("&Previous node"),
                partial(go, -1),
                "Alt+Up",
                enabled=document.has_torch,
            ),
        )

    def lowering(self) -> tuple[Command, ...]:
        """Return the commands that lower the selection, for the menu Lowering."""
        tr = self.tr
        menu, lower = tr("&Lowering"), self._lower

        def selected() -> bool:
            document = self._document
            return document.has_torch() and bool(document.selection.of_kind("fx"))

        return (
            Command(
                "selection-high-level",
                menu,
                tr("Sele&ction as high-level"),
                partial(lower, "high-level"),
                "Alt+1",
                enabled=selected,
                separated=True,
            ),
            Command(
                "selection-te",
                menu,
                tr("Selection as TE"),
                partial(lower, "te"),
                "Alt+2",
                enabled=selected,
            ),
            Command(
                "selection-library",
                menu,
                tr("Selection as library"),
                partial(lower, "library"),
                "Alt+3",
                enabled=selected,
            ),
            Command(
                "selection-reset",
                menu,
                tr("Selection as the default"),
                partial(lower, None),
                "Alt+0",
                enabled=selected,
            ),
        )

    def _lower(self, strategy: Strategy | None) -> None:
        """Set the strategy of the selected nodes, or restore the default."""
        self._document.lower_nodes(self._document.selection.of_kind("fx"), strategy)

    def _select(self, step: int) -> None:
        """Select the next or the previous node."""
        snapshot = self._document.snapshot
        nodes = () if snapshot is None else snapshot.fx
        if not nodes:
            return
        marked = self._document.selection.of_kind("fx")
        places = [index for index, node in enumerate(nodes) if node.id in marked]
        place = places[-1 if step > 0 else 0] + step if places else 0
        self._document.select((nodes[max(0, min(place, len(nodes) - 1))].id,))
