"""Compact form of TVMScript: the edits that shorten a script for reading.

The edited text is shown and never stored: what is copied or exported is the script as printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from lowerscope.core.model.formatting import shape_text

LANGUAGE = "tvmscript"
"""The language of the texts that have a compact form."""

LONGEST = 3_000
"""Characters of the longest line that is shortened; a longer one holds data."""

MOST_CHARACTERS, MOST_LINES = 1_500_000, 50_000
"""The longest script that has a compact form: to find what is left out takes less than a second."""


class Edit(NamedTuple):
    """Replacement of the columns from `start` to `end` of a line."""

    start: int
    end: int
    text: str = ""


Edits = Sequence[Edit]
"""The edits of a line: in order, and disjoint."""


class CompactScript(msgspec.Struct, frozen=True, kw_only=True):
    """The compact form of a script. Lines count from 0."""

    edits: Mapping[int, Edits] = {}
    hidden: frozenset[int] = frozenset()  # Lines without content of their own.
    notes: Mapping[int, str] = {}  # Shapes of results, for the right edge of their lines.

    def line(self, number: int, printed: str) -> str:
        """Return a line in its compact form."""
        return edited(printed, self.edits.get(number, ()))

    def lines(self, printed: Sequence[str]) -> tuple[list[int], list[str]]:
        """Return the lines that are left, as numbers from 0 and as texts."""
        kept = [number for number in range(len(printed)) if number not in self.hidden]
        return kept, [self.line(number, printed[number]) for number in kept]


def compact_script(
    text: str, constants: Mapping[str, str] = {}, *, types: bool = False
) -> CompactScript:
    """Return the compact form of a script.

    Numbers are without their types, constants have the names of parameters, and arguments that are
    None, and the lines that every script has, are hidden. The types of bindings become notes, those
    of a signature shapes.
    A script that is too long stays as printed.

    Args:
        text: The script as printed.
        constants: The names of constants, by their printed form: ``metadata["ir.GenericConst"][0]``
            to ``linear0.weight``.
        types: Whether the types of bindings and signatures stay in their lines.
    """
    if len(text) > MOST_CHARACTERS or text.count("\n") >= MOST_LINES:
        return CompactScript()
    lines = text.split("\n")
    edits: dict[int, Edits] = {}
    notes: dict[int, str] = {}
    for number, line in enumerate(lines):
        if len(line) > LONGEST:
            continue
        used: tuple[tuple[str, str | None], ...] = ()
        if "metadata[" in line:
            used = tuple((each[0], constants.get(each[0])) for each in _CONSTANT.finditer(line))
        found, note = _form(line, types, used)
        if note:
            notes[number] = note
        if found:
            edits[number] = found
    return CompactScript(edits=edits, hidden=frozenset(_frame(lines)), notes=notes)


@lru_cache(maxsize=32_768)
def _form(
    line: str, types: bool, constants: tuple[tuple[str, str | None], ...]
) -> tuple[Edits, str]:
    """Return the edits of a line, and the shapes of its result: passes leave most lines alone."""
    found, note = list(_short_forms(line, constants)), ""
    if not types and "R." in line:
        hidden = list(_types(line))
        replaced = hidden or list(_shapes(line))
        if replaced:
            found = [each for each in found if not _inside(each, replaced)] + replaced
        if hidden:
            note = _note(line[hidden[-1].start : hidden[-1].end])
    return tuple(sorted(found)), note


def edited(line: str, edits: Edits) -> str:
    """Return a line with its edits applied."""
    if not edits:
        return line
    parts, end = [], 0
    for edit in edits:
        parts += [line[end : edit.start], edit.text]
        end = edit.end
    return "".join([*parts, line[end:]])


def printed_column(edits: Edits, column: int, *, end: bool = False) -> int:
    """Return the printed column of a column of an edited line.

    Args:
        end: Whether it ends a range: inside of a replacement, all of what that replaces belongs to
            the range.
    """
    shift = 0
    for edit in edits:
        begin = edit.start + shift
        if column <= begin:
            break
        if column < begin + len(edit.text):
            return edit.end if end else edit.start
        shift += len(edit.text) - (edit.end - edit.start)
    return column - shift


# An escape outside of a string is skipped: otherwise, each quote after one without an end would be
# looked at as the start of a string, to the end of the line.
_NUMBER = re.compile(
    r'"(?:\\.|[^"\\])*+"|\\.|(?P<type>T\.(?:u?int|b?float)\d+\()(?P<number>-?[\d.]+(?:e[-+]?\d+)?)\)'
)
_TYPES_OF_NUMBERS = ("T.int", "T.uint", "T.float", "T.bfloat")
_LONG_FLOAT = re.compile(
    r'"(?:\\.|[^"\\])*+"|\\.|(?<![\w.])(?P<number>\d\.\d{15,20}(?:e[-+]?\d{1,3})?)(?![\w.])'
)
_LONG = 17
"""Characters of the shortest of these: a digit, a point and 15 digits."""
_TYPED = re.compile(r'R\.const\((?P<number>-?[\d.]+(?:e[-+]?\d+)?|True|False), "\w+"\)')
_CONSTANT = re.compile(r'metadata\["[\w.]+"\](\[\d+\])')
_DTYPE = re.compile(r'R\.Tensor\(\([^()]*\), (dtype=)"')
_NOTHING = re.compile(r", \w+=None(?=[,)])")
_ANNOTATION = re.compile(r" *\w+(: R\..+?) = ")
_RESULT = ", out_ty="
_TENSOR = "R.Tensor("
_DTYPE_OF = re.compile(r'dtype="(\w+)"')
_IMPORT = "# from tvm"
_REMARK = "# Metadata omitted"
_ROOT = '# with T.sblock("root"):'


def _short_forms(line: str, constants: Iterable[tuple[str, str | None]]) -> Iterator[Edit]:
    if any(each in line for each in _TYPES_OF_NUMBERS):
        for found in _NUMBER.finditer(line):
            if found["type"]:
                yield Edit(found.start(), found.end(), _shortest(found["number"]))
    if "dtype=" in line:
        for found in _DTYPE.finditer(line):
            yield Edit(found.start(1), found.end(1))
    typed: list[Edit] = []
    if "R." in line:
        for found in _NOTHING.finditer(line):
            yield Edit(found.start(), found.end())
        for found in _TYPED.finditer(line):
            typed.append(Edit(found.start(), found.end(), _shortest(found["number"])))
        yield from typed
    if "T." not in line and "." in line:
        for found in _LONG_FLOAT.finditer(line):
            if found["number"] and not _inside(Edit(*found.span("number")), typed):
                yield Edit(found.start(), found.end(), _shortest(found["number"]))
    for found, (_constant, name) in zip(_CONSTANT.finditer(line), constants, strict=True):
        yield Edit(found.start(), found.end(), name or f"const{found[1]}")


def _shortest(number: str) -> str:
    """Return the shortest text of the same float64: ``1e-05`` for ``1.0000000000000001e-05``."""
    if len(number) < _LONG or not _LONG_FLOAT.fullmatch(number.removeprefix("-")):
        return number
    return repr(float(number))


def _types(line: str) -> Iterator[Edit]:
    """Yield the type of a binding: its annotation, and the type that it gives to a callee."""
    annotation = _ANNOTATION.match(line)
    if annotation is not None:
        yield Edit(annotation.start(1), annotation.end(1))
    begin = line.find(_RESULT)
    if begin >= 0:
        end = _end_of(line, begin + len(_RESULT))
        if end > begin:
            yield Edit(begin, end)


def _shapes(line: str) -> Iterator[Edit]:
    """Yield the types of tensors in a signature, as shapes: ``x: 1×784``."""
    begin = line.find(_TENSOR) if line.lstrip().startswith("def ") else -1
    while begin >= 0:
        end = _end_of(line, begin + len(_TENSOR))
        while end >= 0 and line[end] == ",":
            end = _end_of(line, end + 1)
        if end < 0:
            return
        if note := _note(line[begin : end + 1]):
            yield Edit(begin, end + 1, note)
        begin = line.find(_TENSOR, end)


def _inside(edit: Edit, others: Edits) -> bool:
    return any(other.start <= edit.start and edit.end <= other.end for other in others)


def _end_of(text: str, begin: int) -> int:
    """Return the end of the argument that begins at a column: a comma or a bracket after it."""
    depth = 0
    for place in range(begin, len(text)):
        if text[place] in "([{":
            depth += 1
        elif text[place] in ")]}":
            if depth == 0:
                return place
            depth -= 1
        elif text[place] == "," and depth == 0:
            return place
    return -1


def _note(type_text: str) -> str:
    """Return the shapes in a type: ``1×784``, ``1×784 int64``, ``1×4, 1×4`` for a tuple."""
    text = _NUMBER.sub(lambda found: found["number"] or found[0], type_text)
    notes = []
    begin = text.find(_TENSOR)
    while begin >= 0:
        begin += len(_TENSOR)
        end = _end_of(text, begin)
        if end < 0 or not text.startswith("(", begin):
            return ""
        extents = [each.strip().strip('"') for each in _arguments(text[begin + 1 : end - 1])]
        following = text.find(_TENSOR, end)
        found = _DTYPE_OF.search(text, end, following if following >= 0 else len(text))
        dtype = "" if found is None or found[1] == "float32" else f" {found[1]}"
        notes.append(shape_text(extents) + dtype)
        begin = following
    return ", ".join(notes)


def _arguments(text: str) -> Iterator[str]:
    begin = 0
    while begin < len(text):
        end = _end_of(text, begin)
        end = len(text) if end < 0 else end
        if text[begin:end].strip():
            yield text[begin:end]
        begin = end + 1


def _frame(lines: Sequence[str]) -> Iterator[int]:
    """Yield the lines that every script has: imports, the remark on metadata, the root block."""
    in_head = False
    for number, line in enumerate(lines):
        in_head = line.startswith(_IMPORT) or (in_head and not line)
        if in_head or line.lstrip() == _ROOT:
            yield number
    last = len(lines) - 1
    while last > 0 and (not lines[last] or lines[last].startswith(_REMARK)):
        yield last
        last -= 1
