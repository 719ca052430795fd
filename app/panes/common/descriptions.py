"""Descriptions of entities for tool tips, the Details pane and the status bar."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QCoreApplication

from lowerscope.app.document.document import Document
from lowerscope.core.model.formatting import bytes_text, shape_text
from lowerscope.core.model.graph import STRATEGY_NAMES, name_of
from lowerscope.core.model.snapshot import (
    FunctionRecord,
    FxNode,
    FxPart,
    LibraryRecord,
    ParameterRecord,
    Snapshot,
    SourceLine,
)

Facts = tuple[tuple[str, str], ...]

RANDOM = "draws random numbers: not comparable"
"""Text for a node whose values are random in each run."""


def names_of(entities: tuple[str, ...], most: int = 4) -> str:
    """Return the names of entities with commas, the first few and a count of the others."""
    names = ", ".join(name_of(entity) for entity in entities[:most])
    return f"{names} and {len(entities) - most} more" if len(entities) > most else names


def find_node(snapshot: Snapshot, entity: str) -> FxNode | None:
    """Return the FX node with an id."""
    return snapshot.nodes.get(entity)


def line_text(line: SourceLine) -> str:
    """Return the location of a line: ``model.py:12``."""
    return f"{Path(line.file).name}:{line.line}"


def origin_text(function: LibraryRecord) -> str:
    """Return the origin of a function that no file registers."""
    return {"torch": "by Lowerscope", "tvm": "by TVM"}.get(function.origin, "not registered")


def node_facts(node: FxNode) -> Facts:
    """Return the facts about an FX node, as labels and values."""
    facts = [
        ("opcode", node.opcode),
        ("target", node.target),
        ("args", node.args),
        ("kwargs", "" if node.kwargs == "{}" else node.kwargs),
        ("value", node.type),
        ("module", node.module),
        ("source", line_text(node.line) if node.line else ""),
        ("code", node.line.text if node.line else ""),
        ("strategy", STRATEGY_NAMES.get(node.strategy, "")),
        ("rule", node.rule),
        ("reason", node.reason),
        ("random", RANDOM if node.random else ""),
        ("parts", parts_text(node)),
        ("bindings", names_of(node.bindings, most=12)),
        ("functions", names_of(node.functions, most=12)),
    ]
    return tuple((label, value) for label, value in facts if value)


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


def _part_facts(node: FxNode, part: FxPart) -> Facts:
    facts = [
        ("part of", f"{node.name} · {node.label}"),
        ("target", part.target),
        ("args", part.args),
        ("value", f"{shape_text(part.shape)} {part.dtype}".strip()),
        ("rule", part.rule),
        ("bindings", names_of(part.bindings, most=12)),
        ("functions", names_of(part.functions, most=12)),
    ]
    return tuple((label, value) for label, value in facts if value)


def tensor_of(entity: str, linked: frozenset[str]) -> str:
    """Return the id of the tensor of an entity, a parameter or a constant; empty for none."""
    if entity.startswith(("param:", "const:")):
        return entity
    parameters = [each for each in linked if each.startswith("param:")]
    return parameters[0] if entity.startswith("relax:") and len(parameters) == 1 else ""


def facts_of(
    snapshot: Snapshot,
    entity: str,
    linked: frozenset[str],
    function: FunctionRecord | None = None,
) -> Facts:
    """Return the facts about an entity, as labels and values.

    Args:
        function: The function that it is at the current step.
    """
    node = find_node(snapshot, entity)
    if node is not None:
        return node_facts(node)
    found = find_part(snapshot, entity)
    if found is not None:
        return _part_facts(*found)
    functions = snapshot.functions if function is None else (function,)
    tied = _linked_facts(linked, ("fx",))
    for outside in snapshot.library:
        if outside.id == entity:
            return _library_facts(outside)
    for each in functions:
        if each.id == entity:
            return (*_function_facts(each), *tied)
    for parameter in (*snapshot.model.parameters, *snapshot.constants):
        if parameter.id == entity:
            return (*_parameter_facts(parameter), *tied)
    for module in snapshot.model.modules:
        if module.id == entity:
            return (("kind", module.kind), ("parameters", f"{module.parameters:,}"), *tied)
    if entity.startswith("tir:"):
        return _place_facts(entity, functions, tied)
    if entity.startswith("relax:"):
        return (("kind", "Relax binding"), *_linked_facts(linked, ("fx", "tir", "ext")))
    return ()


def _library_facts(outside: LibraryRecord) -> Facts:
    at = f"{outside.line.file}:{outside.line.line}" if outside.line else ""
    return (
        ("kind", "library function"),
        ("registered", at or origin_text(outside)),
        ("called by", names_of(outside.calls, most=12) or "nothing"),
        *((("FX nodes", names_of(outside.nodes, most=12)),) if outside.nodes else ()),
    )


def _function_facts(function: FunctionRecord) -> Facts:
    is_tensorir = function.kind == "tensorir"
    loops = "1 loop" if function.loops == 1 else f"{function.loops} loops"
    blocks = "1 block" if function.blocks == 1 else f"{function.blocks} blocks"
    size = ("size", f"{loops} in {blocks}")
    return (
        ("kind", "TensorIR function" if is_tensorir else function.kind),
        *((size,) if is_tensorir else ()),
        ("called by", names_of(function.calls, most=12) or "nothing"),
    )


def _parameter_facts(parameter: ParameterRecord) -> Facts:
    form = f"{shape_text(parameter.shape)} {parameter.dtype} · {bytes_text(parameter.size)}"
    also = (("also", ", ".join(parameter.aliases)),) if parameter.aliases else ()
    return ((parameter.kind, form), *also)


def _place_facts(entity: str, functions: Sequence[FunctionRecord], tied: Facts) -> Facts:
    """Return the facts about a block, a loop or a buffer of a TensorIR function."""
    owner, _, part = entity.removeprefix("tir:").partition("/")
    block, slash, loop = part.partition("/")
    place: Facts = (("block", block),)
    if slash:
        place = (("loop", loop), ("around block", block)) if block else (("buffer", loop),)
    made_of = next((each for each in functions if each.id == f"tir:{owner}"), None)
    if not tied and made_of is not None and made_of.untied:
        tied = (("FX nodes", f"not known: {owner} {made_of.untied}"),)
    return (*place, ("function", owner), *tied)


def _linked_facts(linked: frozenset[str], kinds: tuple[str, ...]) -> Facts:
    labels = {"fx": "FX nodes", "tir": "functions", "ext": "library"}
    facts = []
    for kind in kinds:
        names = tuple(sorted(entity for entity in linked if entity.startswith(kind + ":")))
        if names:
            facts.append((labels[kind], names_of(names, most=12)))
    return tuple(facts)


# --- Text of the panes while no model is shown ---


def nothing_words(document: Document) -> tuple[str, str]:
    """Return a title and a hint: the state, and what the user can do."""
    if document.wanted is not None:
        return _tr("Opening…"), _tr("Cancel, in the status bar, stops it.")
    if document.problems:
        return _tr("Not opened"), _tr("Problems says why, and what to do.")
    return _tr("Nothing is open"), _tr("Open… (Ctrl+O) opens a model; so does a file dropped here.")


def _tr(text: str) -> str:
    return QCoreApplication.translate("nothing_shown", text)
