"""Reasons that are kept in English, and read in the language of the process."""

from __future__ import annotations

import re

import msgspec

from lowerscope.core.model import texts


class Reason(msgspec.Struct, frozen=True, omit_defaults=True):
    """A text in English and the values of its fields: what keeps it is read in any language.

    `plural`: the text where the value ``count`` is not 1; empty if there is one text only.
    """

    text: str
    values: dict[str, int | str] = {}
    plural: str = ""


def reason(text: str, /, **values: int | str) -> str | Reason:
    """Return a text for `worded`, without its translation."""
    return Reason(text, values) if values else text


def reason_n(singular: str, plural: str, count: int, /, **values: int | str) -> Reason:
    """Return the form of a text for a number, for `worded`."""
    return Reason(singular, {"count": count, **values}, plural)


_FIELD = re.compile(r"\{(\w+)\}")


def worded(text: str | Reason) -> str:
    """Return a text of `reason` in the language of the process."""
    if isinstance(text, str):
        return texts._(text) if text else ""
    shown = texts._(text.text)
    if text.plural:
        count = text.values.get("count")
        shown = texts._texts.ngettext(
            text.text, text.plural, count if isinstance(count, int) else 0
        )
    # It may come from a file, so nothing but names of fields is obeyed.
    return _FIELD.sub(lambda field: str(text.values.get(field[1], field[0])), shown)
