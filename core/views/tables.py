"""The node map as a table for the terminal, and the translation of one node as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lowerscope.core.files.console import columns, table_lines
from lowerscope.core.model.formatting import bytes_text, shape_text
from lowerscope.core.model.graph import STRATEGY_NAMES
from lowerscope.core.model.module_steps import TranslationRecord
from lowerscope.core.model.snapshot import (
    FxNode,
    FxPart,
    LibraryRecord,
    NodeTranslation,
    ParameterRecord,
    RuleSource,
    TeRecord,
    ValuesRecord,
)
from lowerscope.core.model.texts import _, _n


def print_columns(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as aligned columns, with a rule below the first."""
    rule = ["-" * max(map(columns, column)) for column in zip(*rows, strict=True)]
    return "\n".join(table_lines([rows[0], rule, *rows[1:]], range(0)))


_COLUMNS = (
    *("#", _("node"), _("target"), _("strategy"), _("rule"), _("value"), _("type")),
    _("added to the module"),
)


def print_node_map(records: Sequence[TranslationRecord], nodes: Sequence[FxNode]) -> str:
    """Return the node map: for each node, in order, its value, and its additions."""
    rows: list[tuple[str, ...]] = [_COLUMNS]
    for record, node in zip(records, nodes, strict=True):
        value = record.value
        if record.rebound:
            names = ", ".join(each.partition(":")[2] for each in record.rebound)
            value = _("{value} (also {names})", value=value, names=names)
        rows.append(
            (
                str(record.number),
                node.name,
                node.target,
                STRATEGY_NAMES.get(node.strategy, node.strategy),
                node.rule,
                value,
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
    remarks = _("; ").join(part for part in (place, source.remark) if part)
    yield f"── {source.name} ({remarks})" if remarks else f"── {source.name}"
    yield from _indented(source.text)


def _call_lines(call: TeRecord) -> Iterator[str]:
    title = _("{title} by the pass LegalizeOps", title=call.title) if call.by_pass else call.title
    yield f"── {title}"
    yield _("  1 placeholders")
    for each in call.placeholders:
        yield _(
            "    {name}: {type} for {argument}",
            name=each.name,
            type=f"{shape_text(each.shape)} {each.dtype}",
            argument=each.argument,
        )
    yield _("  2 expression")
    expression = call.expression.text if call.expression else f"# {call.refusal}"
    yield from _indented(expression)
    first = call.first_made.rpartition("/")[2]
    if first:
        yield _(
            "  3 function {function}, already generated for {first}",
            function=call.function,
            first=first,
        )
    else:
        yield _("  3 function {function}", function=call.function)
    yield from _indented(call.script.text)
    yield "  4 call_tir"
    yield from _indented(call.call)


def _indented(text: str) -> Iterator[str]:
    yield from (f"    {line}".rstrip() for line in text.rstrip("\n").split("\n"))


_NODE_COLUMNS = ("opcode", "name", "target", "args", "kwargs", "shape", "dtype", "lowered")


def print_table(nodes: Sequence[FxNode]) -> str:
    """Return the nodes as ``Graph.print_tabular`` prints them, with more columns besides.

    These are shape, dtype and, where nodes have been lowered, the strategy and the rule. Below a
    node that was broken up stand its parts, indented.
    """
    rows: list[tuple[str, ...]] = [_NODE_COLUMNS]
    for node in nodes:
        rows.append(_row(node))
        rows += [_part_row(part) for part in node.parts]
    if not any(node.rule for node in nodes):
        rows = [row[:-1] for row in rows]
    return print_columns(rows)


def _row(node: FxNode) -> tuple[str, ...]:
    shape = shape_text(node.shape)
    lowered = f"{node.strategy}, {node.rule}" if node.rule else ""
    return node.opcode, node.name, node.target, node.args, node.kwargs, shape, node.dtype, lowered


def _part_row(part: FxPart) -> tuple[str, ...]:
    name, shape = f"  {part.name}", shape_text(part.shape)
    return "  part", name, part.target, part.args, "", shape, part.dtype, f"  {part.rule}"


_ORIGINS = {"torch": "torch", "tvm": "TVM", "missing": _("not registered")}


def print_library(library: Sequence[LibraryRecord]) -> str:
    """Return the functions with their registrations, and the bindings that call them."""
    if not library:
        return _("The module calls no library function.")
    rows = [(_("function"), _("registered in"), _("called by"), _("nodes"))]
    for each in library:
        nodes = ", ".join(node.removeprefix("fx:") for node in each.nodes)
        rows.append((each.name, registered_at(each), _callers(each), nodes))
    return print_columns(rows)


def registered_at(each: LibraryRecord) -> str:
    """Return the origin of a function: a file and line, torch, TVM, or nowhere."""
    return f"{each.line.file}:{each.line.line}" if each.line else _ORIGINS[each.origin]


def _callers(each: LibraryRecord) -> str:
    names = (call.removeprefix("relax:").partition("/") for call in each.calls)
    found = [
        _("{binding} in {function}", binding=binding, function=function)
        for function, _other, binding in names
    ]
    return _(", ").join(found) if found else _("nothing")


_WIDTH = 48


def print_parameters(records: Sequence[ParameterRecord]) -> str:
    """Return a line for each: name, kind, shape, dtype, bytes, and other names of the same."""
    rows = [
        (
            each.name,
            _KINDS.get(each.kind, each.kind),
            shape_text(each.shape),
            each.dtype,
            bytes_text(each.size),
            _("also {names}", names=_(", ").join(each.aliases)) if each.aliases else "",
        )
        for each in records
    ]
    return "\n".join(table_lines(rows, range(4, 5)))


_KINDS = {"parameter": _("parameter"), "buffer": _("buffer"), "constant": _("constant")}


def print_values(record: ValuesRecord) -> str:
    """Return range, counts, histogram and first values in lines."""
    form = f"{shape_text(record.shape)} {record.dtype}"
    lines = [f"{record.name}: {form}, {bytes_text(record.size)}"]
    if record.mean is not None:
        lines.append(
            _(
                "min {low:.6g}, max {high:.6g}, mean {mean:.6g}, std {deviation:.6g}",
                low=record.low,
                high=record.high,
                mean=record.mean,
                deviation=record.deviation,
            )
        )
    lines.append(
        _n(
            "{count:,} value: {nans:,} NaN, {infinities:,} infinite, {zeros:,} zero",
            "{count:,} values: {nans:,} NaN, {infinities:,} infinite, {zeros:,} zero",
            record.count,
            nans=record.nans,
            infinities=record.infinities,
            zeros=record.zeros,
        )
    )
    most = max(record.counts, default=0)
    for low, high, count in zip(record.edges, record.edges[1:], record.counts, strict=False):
        bar = "█" * round(_WIDTH * count / most) if most else ""
        lines.append(f"{low:>12.4g} … {high:<12.4g} {count:>10,} {bar}".rstrip())
    first = (*record.first, "…") if len(record.first) < record.count else record.first
    lines.append(_("first values: {values}", values=_(", ").join(first)))
    return "\n".join(lines)
