"""Tables of text for the terminal."""

from __future__ import annotations

from collections.abc import Sequence


def print_columns(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as aligned columns, with a rule below the first."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    rule = tuple("-" * width for width in widths)
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (rows[0], rule, *rows[1:])
    )
