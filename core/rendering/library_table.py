"""The library functions as a table for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from lowerscope.core.records.snapshot import LibraryRecord
from lowerscope.core.rendering.columns import print_columns

_ORIGINS = {"torch": "torch", "tvm": "TVM", "missing": "not registered"}


def print_library(library: Sequence[LibraryRecord]) -> str:
    """Return the functions with their registrations, and the bindings that call them."""
    if not library:
        return "The module calls no library function."
    rows = [("function", "registered", "called by", "nodes")]
    rows += [(each.name, registered_at(each), _callers(each), _nodes(each)) for each in library]
    return print_columns(rows)


def registered_at(each: LibraryRecord) -> str:
    """Return the origin of a function: a file and line, torch, TVM, or nowhere."""
    return f"{each.line.file}:{each.line.line}" if each.line else _ORIGINS[each.origin]


def _callers(each: LibraryRecord) -> str:
    names = (call.removeprefix("relax:").partition("/") for call in each.calls)
    return ", ".join(f"{binding} in {function}" for function, _, binding in names) or "nothing"


def _nodes(each: LibraryRecord) -> str:
    return ", ".join(node.removeprefix("fx:") for node in each.nodes)
