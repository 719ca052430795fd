"""Descriptions of entities for tool tips, the Details pane and the status bar."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from lowerscope.app.document.document import Document
from lowerscope.core.model.graph import name_of
from lowerscope.core.model.snapshot import (
    FxNode,
    FxPart,
    LibraryRecord,
    Snapshot,
    SourceLine,
)
from lowerscope.core.model.texts import _

Facts = tuple[tuple[str, str], ...]

RANDOM = _("draws random numbers: not comparable")
"""Text for a node whose values are random in each run."""


def names_of(entities: tuple[str, ...], most: int = 4) -> str:
    """Return the names of entities with commas, the first few and a count of the others."""
    names = _(", ").join(name_of(entity) for entity in entities[:most])
    return (
        _("{names} and {count} more", names=names, count=len(entities) - most)
        if len(entities) > most
        else names
    )


def find_node(snapshot: Snapshot, entity: str) -> FxNode | None:
    """Return the FX node with an id."""
    return snapshot.nodes.get(entity)


def line_text(line: SourceLine) -> str:
    """Return the location of a line: ``model.py:12``."""
    return f"{Path(line.file).name}:{line.line}"


def origin_text(function: LibraryRecord) -> str:
    """Return the origin of a function that no file registers."""
    return {"torch": _("by Lowerscope"), "tvm": _("by TVM")}.get(
        function.origin, _("not registered")
    )


def parts_text(node: FxNode) -> str:
    """Return the parts a node was decomposed into: ``8 × linear, 4 × tanh``; empty for none."""
    counts = Counter(part.target.split(".")[-2] for part in node.parts if "." in part.target)
    return ", ".join(f"{count} × {name}" for name, count in counts.most_common())


def find_part(snapshot: Snapshot, entity: str) -> tuple[FxNode, FxPart] | None:
    """Return the part with an id, and the node that it belongs to."""
    if not entity.startswith("part:"):
        return None
    return next(
        ((node, part) for node in snapshot.fx for part in node.parts if part.id == entity), None
    )


def tensor_of(entity: str, linked: frozenset[str]) -> str:
    """Return the id of the tensor of an entity, a parameter or a constant; empty for none."""
    if entity.startswith(("param:", "const:")):
        return entity
    parameters = [each for each in linked if each.startswith("param:")]
    return parameters[0] if entity.startswith("relax:") and len(parameters) == 1 else ""


# --- Text of the panes while no model is shown ---


def nothing_words(document: Document) -> tuple[str, str]:
    """Return a title and a hint: the state, and what the user can do."""
    if document.wanted is not None:
        return _("Opening…"), _("Cancel, in the status bar, stops it.")
    if document.problems:
        return _("Not opened"), _("Problems has the reason and the remedy.")
    return _("Nothing is open"), _("Open… (Ctrl+O) opens a model; so does a file dropped here.")
