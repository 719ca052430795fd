"""The FX graph as a table for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from lowerscope.core.records import FxNode
from lowerscope.core.rendering.columns import print_columns
from lowerscope.core.rendering.shapes import extents

_COLUMNS = ("opcode", "name", "target", "args", "kwargs", "shape", "dtype", "lowered")


def print_table(nodes: Sequence[FxNode]) -> str:
    """Return the nodes as ``Graph.print_tabular`` prints them, with more columns besides.

    These are shape, dtype and, where nodes have been lowered, the strategy and the rule.
    """
    rows = [_COLUMNS, *(_row(node) for node in nodes)]
    if not any(node.rule for node in nodes):
        rows = [row[:-1] for row in rows]
    return print_columns(rows)


def _row(node: FxNode) -> tuple[str, ...]:
    shape = "" if node.shape is None else extents(node.shape) or "scalar"
    lowered = f"{node.strategy}, {node.rule}" if node.rule else ""
    return node.opcode, node.name, node.target, node.args, node.kwargs, shape, node.dtype, lowered
