"""Syntax of ``--pass NAME[:OPTION=VALUE,…]``, without torch or TVM."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from lowerscope.core.encoding import UNREADABLE
from lowerscope.core.errors import LowerscopeError
from lowerscope.core.recipe import OptionValue, Step


def parse_step(text: str) -> Step:
    """Parse ``NAME[:OPTION=VALUE,…]``; options are checked when the pass is applied.

    Values are written as in JSON, or as texts without quotes; ``[a,b]`` is a list of texts.

    Raises `LowerscopeError` if there is no name, or the text after it is not of the form
    ``OPTION=VALUE``.
    """
    name, _, rest = text.partition(":")
    options: dict[str, OptionValue] = {}
    for part in _split(rest):
        option, equals, value = part.partition("=")
        if not equals or not option.strip():
            raise LowerscopeError(
                f"{part.strip()!r} is not OPTION=VALUE", where=f"--pass {text}", todo=_EXAMPLE
            )
        options[option.strip()] = _value(value.strip())
    if not name.strip():
        raise LowerscopeError("it names no pass", where=f"--pass {text}", todo=_EXAMPLE)
    return Step(name=name.strip(), options=options)


_EXAMPLE = "Write for example --pass FoldConstant or --pass LegalizeOps:skip_ops=[relax.add]"


def _split(text: str) -> Iterator[str]:
    """Yield the parts between commas that are outside of brackets and quotes."""
    depth, quoted, begin = 0, False, 0
    for index, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif not quoted and character in "[]":
            depth += 1 if character == "[" else -1
        elif character == "," and not quoted and depth == 0:
            yield text[begin:index]
            begin = index + 1
    if text[begin:].strip():
        yield text[begin:]


def _value(text: str) -> OptionValue:
    if text.startswith("[") and text.endswith("]"):
        return tuple(str(_value(each.strip())) for each in _split(text[1:-1]))
    try:
        value: OptionValue = msgspec.json.decode(text, type=bool | int | float | str | None)
    except UNREADABLE:
        return text
    return value
