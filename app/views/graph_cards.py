"""Texts of the cards of a graph's boxes."""

from __future__ import annotations

import re

from lowerscope.app.document.document import Document
from lowerscope.app.views.descriptions import RANDOM, Facts, find_node, line_text, names_of
from lowerscope.app.views.node_figures import measured_in, run_facts
from lowerscope.app.widgets.hover_card import CardText
from lowerscope.core.model.entities import name_of
from lowerscope.core.model.graph import Box, Region
from lowerscope.core.model.labels import STRATEGY_NAMES
from lowerscope.core.records.snapshot import FxNode, Snapshot

_TYPE = re.compile(r"(?<=\w): .+? = ")

MOST_CODE = 8
"""Lines of code in a card."""


def card_text(document: Document, box: Box) -> CardText:
    """Return the text of the card of `box`."""
    snapshot = document.snapshot
    if box.kind == "group" or snapshot is None:
        measured = run_facts(document.run_record, measured_in(box))
        return CardText(box.title, (*_group_facts(box), *measured))
    node = find_node(snapshot, box.id)
    if node is not None:
        code = "" if node.line is None else node.line.text.strip()
        facts = (*_given(_node_facts(node)), *run_facts(document.run_record, (box.id,)))
        return CardText(f"{node.title} · {node.label}", facts, code)
    linked = document.linked_to(*box.entities)
    # Links of functions are those after the passes, not those of a step.
    functions = (*_of_kind(linked, "tir"), *_of_kind(linked, "ext")) if box.origins is None else ()
    described = [
        ("from", _other_name(box)),
        ("value", box.subtitle),
        ("holds", names_of(box.members, most=6)),
        ("strategy", STRATEGY_NAMES.get(box.strategy, "")),
        ("FX nodes", names_of(_of_kind(linked, "fx"))),
        ("functions", names_of(functions)),
    ]
    measured = run_facts(document.run_record, measured_in(box))
    facts = (*_given(described), *measured)
    return CardText(box.title, facts, _binding_text(snapshot, box.entities))


def frame_text(region: Region) -> CardText:
    """Return the text of the card of the frame of an expanded module or fused function."""
    if region.id.startswith("module:"):
        return CardText(region.title, (("module", module_path(region.id)),))
    return CardText(region.title, (("holds", names_of(region.origins, most=6)),))


def module_path(entity: str) -> str:
    """Return the dotted path of a module in a graph, without the number of its group."""
    return entity.partition(":")[2].partition("#")[0]


def _node_facts(node: FxNode) -> list[tuple[str, str]]:
    how = STRATEGY_NAMES.get(node.strategy, "")
    return [
        ("kind", node.opcode),
        ("value", node.type),
        ("module", node.module),
        ("source", line_text(node.line) if node.line is not None else ""),
        ("lowered as", f"{how} · {node.rule}" if how and node.rule else how),
        ("reason", node.reason),
        ("random", RANDOM if node.random else ""),
        ("bindings", names_of(node.bindings)),
        ("functions", names_of(node.functions)),
    ]


def _group_facts(box: Box) -> Facts:
    facts = [
        ("module", module_path(box.id)),
        ("kind", box.subtitle),
        ("strategy", STRATEGY_NAMES.get(box.strategy, "")),
        ("inside", names_of(box.members, most=6)),
    ]
    return _given(facts)


def _other_name(box: Box) -> str:
    """Return the name of the binding as it was lowered, if that is different."""
    is_other = len(box.entities) == 1 and box.entities != (box.id,)
    return name_of(box.entities[0]) if is_other else ""


def _binding_text(snapshot: Snapshot, entities: tuple[str, ...]) -> str:
    """Return the lines of the script that define some bindings, as they were lowered.

    Their leading types are omitted, since a card is narrow.
    """
    whole = snapshot.relax.text.splitlines()
    lines = [
        _TYPE.sub(" = ", line.strip())
        for span in snapshot.relax.spans
        if span.entity in entities
        for line in whole[span.first - 1 : span.last]
    ]
    return "\n".join(lines[:MOST_CODE] + ["…"] * (len(lines) > MOST_CODE))


def _of_kind(entities: frozenset[str], kind: str) -> tuple[str, ...]:
    return tuple(sorted(each for each in entities if each.startswith(f"{kind}:")))


def _given(facts: list[tuple[str, str]]) -> Facts:
    return tuple((label, value) for label, value in facts if value)
