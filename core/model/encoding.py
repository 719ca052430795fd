"""Records as bytes and as JSON.

TVM's names, and the texts that it makes of its objects, are of a subclass of ``str`` that msgspec
does not know, so that ``str(variable)`` in a record is enough to produce one. They are written as
plain strings.
"""

from __future__ import annotations

from typing import Any

import msgspec

UNREADABLE = (msgspec.MsgspecError, UnicodeError, RecursionError)
"""Exceptions of decoding: invalid messages, text that is not UTF-8, and endlessly nested lists. The
last two are not errors of msgspec's own."""

NO_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)
"""Exceptions of `ast.parse` for text that is not Python, or nested too deeply."""


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return str.__str__(value)
    raise TypeError(f"a record holds an object of the type {type(value).__name__}")


_MSGPACK = msgspec.msgpack.Encoder(enc_hook=_plain)
_JSON = msgspec.json.Encoder(enc_hook=_plain)


def to_bytes(value: Any) -> bytes:
    """Return a record as MessagePack.

    Raises a `TypeError` if it holds anything but plain values.
    """
    return _MSGPACK.encode(value)


def to_json(value: Any) -> str:
    """Return a record as indented JSON.

    Raises a `TypeError` if it holds anything but plain values.
    """
    return msgspec.json.format(_JSON.encode(value), indent=2).decode()
