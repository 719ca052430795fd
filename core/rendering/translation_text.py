"""The node map as a table for the terminal, and the translation of one node as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lowerscope.core.model.formatting import shape_text
from lowerscope.core.records.snapshot import FxNode
from lowerscope.core.records.steps import TranslationRecord
from lowerscope.core.records.translation import NodeTranslation, RuleSource, TeRecord
from lowerscope.core.rendering.columns import print_columns

_COLUMNS = ("#", "node", "target", "strategy", "rule", "value", "type", "adds to the module")


def print_node_map(records: Sequence[TranslationRecord], nodes: Sequence[FxNode]) -> str:
    """Return the node map: for each node, in order, its value, and its additions."""
    rows: list[tuple[str, ...]] = [_COLUMNS]
    for record, node in zip(records, nodes, strict=True):
        also = f" (also {_names(record.rebound)})" if record.rebound else ""
        rows.append(
            (
                str(record.number),
                node.name,
                node.target,
                node.strategy,
                node.rule,
                f"{record.value}{also}",
                node.type,
                ", ".join(record.functions),
            )
        )
    return print_columns(rows)


def print_translation(translation: NodeTranslation) -> str:
    """Return the translation of one node: its rules with their source, and the work of TE."""
    name = translation.node.removeprefix("fx:")
    lines = [f"{translation.number} {name}: {translation.summary}"]
    for source in translation.sources:
        lines += ["", *_source_lines(source)]
    for call in translation.calls:
        lines += ["", *_call_lines(call)]
    return "\n".join(lines)


def _source_lines(source: RuleSource) -> Iterator[str]:
    place = f"{source.line.file}:{source.line.line}" if source.line else ""
    remarks = "; ".join(part for part in (place, source.remark) if part)
    yield f"── {source.name} ({remarks})" if remarks else f"── {source.name}"
    yield from (f"    {line}".rstrip() for line in source.text.rstrip("\n").split("\n"))


def _call_lines(call: TeRecord) -> Iterator[str]:
    yield f"── {call.title}{' by the pass LegalizeOps' if call.by_pass else ''}"
    yield "  1 placeholders"
    for each in call.placeholders:
        shape = shape_text(each.shape)
        yield f"    {each.name}: {shape} {each.dtype} for {each.argument}"
    yield "  2 expression"
    expression = call.expression.text if call.expression else f"# {call.refusal}"
    yield from _indented(expression)
    first = call.first_made.rpartition("/")[2]
    equal = f", made for {first} already" if first else ""
    yield f"  3 function {call.function}{equal}"
    yield from _indented(call.script.text)
    yield "  4 call_tir"
    yield from _indented(call.call)


def _indented(text: str) -> Iterator[str]:
    yield from (f"    {line}".rstrip() for line in text.rstrip("\n").split("\n"))


def _names(entities: Sequence[str]) -> str:
    return ", ".join(each.partition(":")[2] for each in entities)
