"""LLVM IR of a library as text: cut into functions, and without debug information."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_DEFINE = re.compile(r'define .*?@"?([\w.$-]+)"?\(')
_NAME = re.compile(r'@"?([\w.$-]+)"?')
_ANY_NAME = re.compile(r'[%@#]"?[\w.$-]+"?')
_OWN = re.compile(r"define (?:private|internal) ")
_SHARED = "__tvm_set_raised"
_DEBUG_RECORD = re.compile(r" +#dbg_")
_ATTACHMENT = re.compile(r",? ![a-z][\w.]* !\d+")
_LOCATION = re.compile(r"!dbg !(\d+)")
_WIDE_REMARK = re.compile(r" {3,}; ")
_LABEL = re.compile(r'"?([\w.$-]+)"?:(?: |$)')


@dataclass(frozen=True)
class LlvmLine:
    """A line of a function in LLVM IR.

    Attributes
    ----------
    text
        Without debug information and metadata for LLVM's own passes.
    block
        Label of the block that it is in; empty for the lines that begin and end the function.
    label
        Whether it is the block's label.
    location
        Number of the ``DILocation`` that is attached to it; 0 if there is none.
    """

    text: str
    block: str = ""
    label: bool = False
    location: int = 0


@dataclass(frozen=True)
class LlvmFunction:
    """A function of a library, and the names of the others that it refers to."""

    name: str
    lines: tuple[LlvmLine, ...]
    own: bool
    refers: frozenset[str]


def functions_of(text: str) -> dict[str, LlvmFunction]:
    """Return the functions that LLVM IR defines, by name."""
    found: dict[str, LlvmFunction] = {}
    lines = text.split("\n")
    index = 0
    while index < len(lines):
        define = _DEFINE.match(lines[index])
        if define is None:
            index += 1
            continue
        end = lines.index("}", index)
        found[define[1]] = _function(define[1], lines[index : end + 1])
        index = end + 1
    return found


def piece_of(functions: Mapping[str, LlvmFunction], name: str) -> tuple[LlvmFunction, ...]:
    """Return the functions of a library that TensorIR function `name` was compiled to.

    These are the one that computes, those that threads run, and, last, the entry point, which
    checks its arguments. LLVM may have inlined all into that. Helpers shared by all functions of
    the library are not included.
    """
    entry = functions.get(entry_of(name))
    if entry is None:
        return ()
    piece: dict[str, LlvmFunction] = {}
    waiting = [entry]
    while waiting:
        function = waiting.pop(0)
        if function.name in piece:
            continue
        piece[function.name] = function
        referred = [functions[each] for each in sorted(function.refers) if each in functions]
        waiting += [each for each in referred if each.own and not each.name.startswith(_SHARED)]
    del piece[entry.name]
    return (*piece.values(), entry)


def entry_of(name: str) -> str:
    """Return the symbol by which the virtual machine calls TensorIR function `name`."""
    return f"__tvm_ffi_{name}"


def with_helpers(
    functions: Mapping[str, LlvmFunction], piece: Sequence[LlvmFunction]
) -> frozenset[str]:
    """Return the names of the functions of `piece`, and of all functions they refer to."""
    names: set[str] = set()
    waiting = [each.name for each in piece]
    while waiting:
        name = waiting.pop()
        if name not in names and name in functions:
            names.add(name)
            waiting += functions[name].refers
    return frozenset(names)


def _function(name: str, lines: Sequence[str]) -> LlvmFunction:
    refers = {each for line in lines[1:] for each in _NAME.findall(line)}
    cleaned: list[LlvmLine] = []
    block = ""
    for line in lines:
        if _DEBUG_RECORD.match(line):
            continue
        location = _LOCATION.search(line)
        label = _LABEL.match(line)
        if label is not None:
            block = label[1]
            text = _WIDE_REMARK.sub("  ; ", line)
        else:
            text = _ATTACHMENT.sub("", line)
        inside = block if line not in (lines[0], "}") and line else ""
        number = 0 if location is None else int(location[1])
        cleaned.append(LlvmLine(text, inside, label is not None, number))
    return LlvmFunction(name, tuple(cleaned), _OWN.match(lines[0]) is not None, frozenset(refers))


def shape_of(function: LlvmFunction) -> tuple[str, ...]:
    """Return the lines of a function without names, to compare two functions by.

    The arguments of a helper depend on its other callers.
    """
    return tuple(_shape(line) for line in function.lines[1:])


def _shape(line: LlvmLine) -> str:
    if line.label:
        return "label"
    if f"@{_SHARED}" in line.text:
        return "raise"
    return _ANY_NAME.sub("%", line.text)
