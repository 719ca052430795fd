"""Records as bytes and as JSON.

TVM's names, and the texts that it makes of its objects, are of a subclass of ``str`` that msgspec
does not know, so that ``str(variable)`` in a record is enough to produce one. They are written as
plain strings.
"""

from __future__ import annotations

from typing import Any

import msgspec

from lowerscope.core.model.texts import Text

UNREADABLE = (msgspec.MsgspecError, UnicodeError, RecursionError)
"""Exceptions of decoding: invalid messages, text that is not UTF-8, and endlessly nested lists. The
last two are not errors of msgspec's own."""

NO_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)
"""Exceptions of `ast.parse` for text that is not Python, or nested too deeply."""


class Row(msgspec.Struct, frozen=True, array_like=True):
    """A record of which an answer may hold thousands: in MessagePack, it is without field names."""


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return str.__str__(value)
    raise TypeError(f"a record holds an object of the type {type(value).__name__}")


_MSGPACK = msgspec.msgpack.Encoder(enc_hook=_plain)
_JSON = msgspec.json.Encoder(enc_hook=_plain)


def to_bytes(value: Any, english: dict[str, str] | None = None) -> bytes:
    """Return a record as MessagePack.

    Args:
        english: Takes the texts in the record that are not in English, with their English.

    Raises a `TypeError` if it holds anything but plain values.
    """
    if english is None:
        return _MSGPACK.encode(value)

    def plain(each: Any) -> str:
        shown = _plain(each)
        if isinstance(each, Text):
            english[shown] = each.english
        return shown

    return msgspec.msgpack.encode(value, enc_hook=plain)


def to_json(value: Any) -> str:
    """Return a record as indented JSON.

    Raises a `TypeError` if it holds anything but plain values.
    """
    return msgspec.json.format(_JSON.encode(_named(value)), indent=2).decode()


def _named(value: Any) -> Any:
    """Return a value with the rows in it as mappings by their fields."""
    match value:
        case msgspec.Struct() if isinstance(value, Row) or not value.__struct_config__.array_like:
            config = value.__struct_config__
            fields = {name: _named(getattr(value, name)) for name in value.__struct_fields__}
            return fields if config.tag is None else {config.tag_field: config.tag, **fields}
        case tuple() | list():
            return [_named(each) for each in value]
        case dict():
            return {name: _named(each) for name, each in value.items()}
    return value
