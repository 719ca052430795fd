"""Builder of the lines of a program, with the entities that they show."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count

from lowerscope.core.files.python_text import identifier
from lowerscope.core.model.snapshot import Span, TextRecord


class ProgramLines:
    """Lines with indents, and spans that enclose the lines added inside."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._spans: list[Span] = []
        self._depth = 0

    def __len__(self) -> int:
        """Return the number of lines."""
        return len(self._lines)

    def add(self, *lines: str) -> None:
        """Add lines at the current indent; empty ones stay empty."""
        indent = "    " * self._depth
        self._lines.extend(indent + line if line else "" for line in lines)

    @contextmanager
    def indented(self, levels: int = 1) -> Iterator[None]:
        """Indent the lines that are added inside by a number of levels."""
        self._depth += levels
        yield
        self._depth -= levels

    @contextmanager
    def span(self, entity: str) -> Iterator[None]:
        """Tie the lines that are added inside to an entity; nothing for an empty one."""
        first = len(self._lines) + 1
        place = len(self._spans)
        yield
        if entity and len(self._lines) >= first:
            span = Span(entity=entity, first=first, last=len(self._lines))
            self._spans.insert(place, span)

    def uses(self, name: str) -> bool:
        """Return whether the lines use a module by its name, such as ``tirx``, before a dot."""
        use = re.compile(rf"\b{name}\.")
        return any(use.search(line) for line in self._lines)

    def record(self, language: str, head: Sequence[str] = ()) -> TextRecord:
        """Return the text below `head`, with the spans in order, outer ones first."""
        moved = len(head)
        return TextRecord(
            text="\n".join([*head, *self._lines]) + "\n",
            language=language,
            spans=tuple(
                Span(entity=span.entity, first=span.first + moved, last=span.last + moved)
                for span in self._spans
            ),
        )


class Identifiers:
    """The names that are taken in one scope of a program, and in those around it."""

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
