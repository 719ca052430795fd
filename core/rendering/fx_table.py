"""The FX graph as a table for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from lowerscope.core.model.formatting import shape_text
from lowerscope.core.records.model import Extent
from lowerscope.core.records.snapshot import FxNode, FxPart
from lowerscope.core.rendering.columns import print_columns

_COLUMNS = ("opcode", "name", "target", "args", "kwargs", "shape", "dtype", "lowered")


def print_table(nodes: Sequence[FxNode]) -> str:
    """Return the nodes as ``Graph.print_tabular`` prints them, with more columns besides.

    These are shape, dtype and, where nodes have been lowered, the strategy and the rule. Below a
    node that was broken up stand its parts, indented.
    """
    rows: list[tuple[str, ...]] = [_COLUMNS]
    for node in nodes:
        rows.append(_row(node))
        rows += [_part_row(part) for part in node.parts]
    if not any(node.rule for node in nodes):
        rows = [row[:-1] for row in rows]
    return print_columns(rows)


def _row(node: FxNode) -> tuple[str, ...]:
    shape = _shape(node.shape)
    lowered = f"{node.strategy}, {node.rule}" if node.rule else ""
    return node.opcode, node.name, node.target, node.args, node.kwargs, shape, node.dtype, lowered


def _part_row(part: FxPart) -> tuple[str, ...]:
    name, shape = f"  {part.name}", _shape(part.shape)
    return "  part", name, part.target, part.args, "", shape, part.dtype, f"  {part.rule}"


def _shape(shape: tuple[Extent, ...] | None) -> str:
    return shape_text(shape)
