"""The bytecode of the virtual machine as text, cut into functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_FUNCTION = re.compile(r"@([\w.]+):$")
_CALL = re.compile(r" +call +(\S+) +in:")

BUILTIN = "vm.builtin."
"""Prefix of the virtual machine's own functions."""


@dataclass(frozen=True)
class BytecodeLine:
    """A line of bytecode; ``call`` is the name of the called function, if any."""

    text: str
    call: str = ""


def bytecode_of(executable: str, name: str) -> tuple[BytecodeLine, ...]:
    """Return the bytecode of one function; empty if there is no such function.

    Parameters
    ----------
    executable
        As TVM prints it.
    """
    lines = executable.split("\n")
    begin = next((i for i, line in enumerate(lines) if line == f"@{name}:"), None)
    if begin is None:
        return ()
    end = next((i for i in range(begin, len(lines)) if not lines[i].strip()), len(lines))
    found = []
    for line in lines[begin:end]:
        call = _CALL.match(line)
        found.append(BytecodeLine(line.rstrip(), call[1] if call is not None else ""))
    return tuple(found)


def functions_in(executable: str) -> tuple[str, ...]:
    """Return the names of the functions that have bytecode."""
    matches = (_FUNCTION.match(line) for line in executable.split("\n"))
    return tuple(match[1] for match in matches if match is not None)


def match_calls(lines: Sequence[BytecodeLine], callees: Sequence[str]) -> dict[int, int]:
    """Return the index in `callees` of the call on each line, by line index.

    Both are in program order. Calls that the virtual machine makes on its own have no match.
    """
    matches: dict[int, int] = {}
    next_one = 0
    for index, line in enumerate(lines):
        if not line.call:
            continue
        found = next((i for i in range(next_one, len(callees)) if callees[i] == line.call), None)
        if found is not None:
            matches[index] = found
            next_one = found + 1
    return matches
