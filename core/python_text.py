"""Names and texts in the Python programs that are written.

They come with files that others have written, and the programs are run: in a program they stand as
literals, as identifiers that were checked, and in comments and docstrings that they cannot end.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable

_NOT_IN_NAMES = re.compile(r"\W", re.ASCII)


def quoted(text: str) -> str:
    """Return a text as a literal of one line, in double quotes."""
    return f'"{docstring(text)}"'


def docstring(text: str) -> str:
    """Return a text as it stands inside of a literal in double quotes, single or triple."""
    return _printable(text.replace("\\", r"\\").replace('"', r"\""))


def comment(text: str) -> str:
    """Return a text as a comment of one line."""
    return f"# {_printable(' '.join(text.split()))}"


def quoted_lines(text: str) -> str:
    """Return a text as a literal, of several lines where that is the same text."""
    plain = all(each == "\n" or each.isprintable() for each in text)
    if not plain or "'''" in text or "\\" in text or text.endswith("'"):
        lines = "\n".join(f"    {quoted(line)}" for line in text.splitlines(keepends=True))
        return f"(\n{lines}\n)" if lines else quoted(text)
    return f"'''\\\n{text}'''"


def identifier(name: str) -> str:
    """Return `name`, or what is like it, as an identifier of Python."""
    plain = _NOT_IN_NAMES.sub("_", name) or "_"
    if plain[0].isdigit():
        plain = f"_{plain}"
    return f"{plain}_" if keyword.iskeyword(plain) or plain == "__debug__" else plain


def is_identifier(name: str) -> bool:
    """Return whether a name may stand in a program as it is."""
    return identifier(name) == name


def attribute(owner: str, *names: str) -> str:
    """Return an expression for the attribute of `owner` that a path of names leads to."""
    for name in names:
        owner = f"{owner}.{name}" if is_identifier(name) else f"getattr({owner}, {quoted(name)})"
    return owner


def keywords(arguments: Iterable[tuple[str, str]]) -> list[str]:
    """Return the arguments of a call by names and expressions."""
    return [
        f"{name}={text}" if is_identifier(name) else f"**{{{quoted(name)}: {text}}}"
        for name, text in arguments
    ]


def _printable(text: str) -> str:
    """Return a text with an escape for each character that shows nothing, or that moves others."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
