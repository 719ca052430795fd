"""Parameters and their values as text, for the command line."""

from __future__ import annotations

from collections.abc import Sequence

from lowerscope.core.model.formatting import bytes_text, shape_text
from lowerscope.core.records.model import ParameterRecord, ValuesRecord

_WIDTH = 48


def print_parameters(records: Sequence[ParameterRecord]) -> str:
    """Return a line for each: name, kind, shape, dtype, bytes, and other names of the same."""
    rows = [
        (
            each.name,
            each.kind,
            shape_text(each.shape),
            each.dtype,
            bytes_text(each.size),
            f"also {', '.join(each.aliases)}" if each.aliases else "",
        )
        for each in records
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)] if rows else []
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def print_values(record: ValuesRecord) -> str:
    """Return range, counts, histogram and first values in lines."""
    form = f"{shape_text(record.shape)} {record.dtype}"
    lines = [f"{record.name}: {form}, {bytes_text(record.size)}"]
    if record.mean is not None:
        lines.append(
            f"min {record.low:.6g}, max {record.high:.6g}, mean {record.mean:.6g}, "
            f"std {record.deviation:.6g}"
        )
    lines.append(
        f"{record.count:,} values: {record.nans:,} NaN, {record.infinities:,} infinite, "
        f"{record.zeros:,} zero"
    )
    most = max(record.counts, default=0)
    for low, high, count in zip(record.edges, record.edges[1:], record.counts, strict=False):
        bar = "█" * round(_WIDTH * count / most) if most else ""
        lines.append(f"{low:>12.4g} … {high:<12.4g} {count:>10,} {bar}".rstrip())
    more = ", …" if len(record.first) < record.count else ""
    lines.append(f"first: {', '.join(record.first)}{more}")
    return "\n".join(lines)
