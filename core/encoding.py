"""Records as bytes and as JSON.

TVM's names, and the texts that it makes of its objects, are of a subclass of ``str`` that msgspec
does not know, so that ``str(variable)`` in a record is enough to meet one. They are written as what
they say.
"""

from __future__ import annotations

from typing import Any

import msgspec

UNREADABLE = (msgspec.MsgspecError, UnicodeError, RecursionError)
"""What is raised for bytes that are no message, or no value of a type: text that is no UTF-8 and
lists in lists without end are not errors of msgspec's own."""

NO_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What `ast.parse` raises for text that is no Python, or is too deep for it."""


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return str.__str__(value)
    raise TypeError(f"a record holds an object of the type {type(value).__name__}")


_MSGPACK = msgspec.msgpack.Encoder(enc_hook=_plain)
_JSON = msgspec.json.Encoder(enc_hook=_plain)


def to_bytes(value: Any) -> bytes:
    """Return a record as MessagePack.

    Raises
    ------
    TypeError
        If it holds what is no plain value.
    """
    return _MSGPACK.encode(value)


def to_json(value: Any) -> str:
    """Return a record as indented JSON.

    Raises
    ------
    TypeError
        If it holds what is no plain value.
    """
    return msgspec.json.format(_JSON.encode(value), indent=2).decode()
