"""Valid Python identifiers for the names in a module."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from lowerscope.core.python_text import identifier


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
