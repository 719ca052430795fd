"""Line numbers of the objects of a module in its printed script.

TVM's printer does not report the line of an object, but it writes a remark beside objects on
request. So a script is printed with a mark for each object of interest; the marks are read and
removed, which leaves exactly the printer's text without them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from lowerscope.core.python_text import with_characters

_MARK = "lowerscope mark "
_LINE = re.compile(rf" *# {_MARK}(\d+)")
_TAIL = re.compile(rf"  # {_MARK}(\d+)$")

Lines = tuple[int, int]


def marked_lines(
    node: Any, objects: Sequence[Any], **options: Any
) -> tuple[list[str], dict[int, Lines]]:
    """Print `node` and return the lines of `objects`.

    Parameters
    ----------
    node
        An object with a method ``script``: a module or a function.
    objects
        Bindings, loops and blocks inside `node`.
    options
        Of ``script``.

    Returns
    -------
    tuple[list[str], dict[int, Lines]]
        The lines of the script, and for each object, by its index, the first and last line that
        belong to it, counted from 1. Objects that are not printed on a line of their own, such
        as a loop that is named in the header of a loop around it, are left out.
    """
    marks = {node: f"{_MARK}{index}" for index, node in enumerate(objects)}
    printed = with_characters(node.script(obj_to_annotate=marks, **options)).split("\n")
    lines: list[str] = []
    single: dict[int, int] = {}
    headers: dict[int, int] = {}
    for line in printed:
        if whole := _LINE.fullmatch(line):
            headers[int(whole[1])] = len(lines)
        elif tail := _TAIL.search(line):
            single[int(tail[1])] = len(lines)
            lines.append(line[: tail.start()])
        else:
            lines.append(line)
    spans = {index: (line + 1, line + 1) for index, line in single.items()}
    spans |= {index: (line + 1, _end(lines, line)) for index, line in headers.items()}
    return lines, dict(sorted(spans.items()))


def _end(lines: list[str], header: int) -> int:
    """Return the last line, from 1, of the statement whose header is at index `header`."""
    indent = _indent(lines[header])
    last = header
    for index in range(header + 1, len(lines)):
        line = lines[index]
        if not line.strip():
            continue
        if _indent(line) < indent or (_indent(line) == indent and line.strip() != "else:"):
            break
        last = index
    return last + 1


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
