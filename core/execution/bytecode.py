"""The bytecode of the virtual machine as text, cut into functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_FUNCTION = re.compile(r"@([\w.]+):$")
_CALL = re.compile(r" +call +(\S+) +in:")

BUILTIN = "vm.builtin."
"""What the names of the virtual machine's own functions begin with."""


@dataclass(frozen=True)
class BytecodeLine:
    """A line of bytecode; ``call`` is the name of the function that it calls, if it does."""

    text: str
    call: str = ""


def bytecode_of(executable: str, name: str) -> tuple[BytecodeLine, ...]:
    """Return the bytecode of one function; nothing if there is no such function.

    Parameters
    ----------
    executable
        As TVM writes it.
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
    """Say which of `callees` each line calls, by their indices.

    Both are in the order of the program. What the virtual machine calls on its own has no match.
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
