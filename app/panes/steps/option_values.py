"""Parsing of the values typed for a pass's options."""

from __future__ import annotations

import math

from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import OptionValue
from lowerscope.core.model.snapshot import PassOption
from lowerscope.core.model.texts import _, alternatives

LARGEST = 2**63 - 1
"""Largest integer that TVM accepts."""

WORDS = {
    "bool": _("true or false"),
    "int": _("a whole number, such as 2"),
    "float": _("a number, such as 0.5"),
    "text": "a text",
    "names": _("names separated by commas, such as main, other"),
    "pairs": _("pairs separated by commas, such as n=4, m=8"),
}
"""Description of a value of each kind, for the user."""


def option_value(option: PassOption, text: str) -> OptionValue:
    """Parse the value typed for an option.

    Raises:
        LowerscopeError: If it is not of the option's kind.
    """
    text = text.strip()
    if text == "null" and option.nullable:
        return None
    value = _read(option.kind, text)
    if value is None or (option.choices and text not in option.choices):
        wanted = alternatives(option.choices) if option.choices else WORDS[option.kind]
        raise LowerscopeError(
            _("“{text}” is not a valid value of {name}", text=text, name=option.name),
            where=option.name,
            todo=_("Enter {value}, or null", value=wanted)
            if option.nullable
            else _("Enter {value}", value=wanted),
        )
    return value


def _read(kind: str, text: str) -> OptionValue:
    """Parse a value of a kind; return ``None`` if it is not one."""
    try:
        if kind == "int":
            whole = int(text)
            return whole if abs(whole) <= LARGEST else None
        if kind == "float":
            number = float(text)
            return number if math.isfinite(number) else None
    except ValueError:
        return None
    if kind == "bool":
        return {"true": True, "false": False}.get(text.lower())
    if kind in ("names", "pairs"):
        bare = text.removeprefix("[").removesuffix("]")
        parts = tuple(part.strip() for part in bare.split(",") if part.strip())
        return parts if kind == "names" or all("=" in part for part in parts) else None
    return text


def option_text(value: OptionValue) -> str:
    """Return an option's value as typed text."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return ", ".join(value) if isinstance(value, tuple) else str(value)
