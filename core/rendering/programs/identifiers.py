"""Names of what stands in a module, as names that a Python program may use."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterable
from itertools import count

_NOT_IN_NAMES = re.compile(r"\W", re.ASCII)


def identifier(name: str) -> str:
    """Return `name` as an identifier of Python."""
    plain = _NOT_IN_NAMES.sub("_", name) or "_"
    if plain[0].isdigit():
        plain = f"_{plain}"
    return f"{plain}_" if keyword.iskeyword(plain) or plain == "__debug__" else plain


def quoted(name: str) -> str:
    """Return any name as a literal of Python: whatever stands in it, it stays a string.

    Names come with files that others have written, and programs with them are run.
    """
    return json.dumps(str(name), ensure_ascii=False)


class Identifiers:
    """The names that are taken in one scope of a program, and in those around it.

    Parameters
    ----------
    taken
        Names that nothing in this scope may get.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)

    def inner(self) -> Identifiers:
        """Return a scope within this one."""
        return Identifiers(self._taken)

    def take(self, name: str) -> str:
        """Return an identifier like `name` that is not taken yet, and take it."""
        plain = identifier(name)
        found = plain
        if found in self._taken:
            numbered = (f"{plain}_{number}" for number in count(1))
            found = next(each for each in numbered if each not in self._taken)
        self._taken.add(found)
        return found
