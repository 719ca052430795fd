"""Safe embedding of names and texts in generated Python programs.

They come from files of others, and the programs are run. So they are embedded as literals, as
checked identifiers, and in comments and docstrings that they cannot terminate.
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
    """Return a text escaped for the inside of a double-quoted literal, single or triple."""
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
    """Return `name`, or a similar valid Python identifier."""
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


def with_characters(script: str) -> str:
    """Return a script printed by TVM with its strings as they are.

    TVM's printer writes each UTF-8 byte of a character outside of ASCII as an escape of its own,
    which Python reads as a character of its own.
    """
    # A search for a constant is faster than one for a pattern, and nearly no script has it.
    return _BYTES.sub(_decoded, script) if "\\x" in script else script


_BYTES = re.compile(r"(?<!\\)((?:\\\\)*)((?:\\x[89A-Fa-f][0-9A-Fa-f])+)")


def _decoded(match: re.Match[str]) -> str:
    try:
        text = bytes.fromhex(match[2].replace("\\x", "")).decode()
    except UnicodeDecodeError:
        return match[0]
    return match[1] + _printable(text)


def _printable(text: str) -> str:
    """Return a text with escapes for invisible characters and for those that reorder text."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
