"""What the lines of a text are marked with: what is selected, changed, found, or of one colour."""

from collections.abc import Callable, Collection, Iterable, Sequence

from lowerscope.app.theme_colours import Theme
from lowerscope.app.widgets.code.lines import LineSet, Match, Span, Spans

Tint = Callable[[str], int | None]
"""Says which colour of the palette an entity has; ``None`` for none."""


class CodeMarks:
    """The marks of a text. Lines count from 0, those of spans and changes from 1.

    Nothing is looked up but for the lines that are painted.
    """

    def __init__(self) -> None:
        self.tint: Tint | None = None
        self.current_match: Match | None = None
        self._spans = Spans()
        self._selection: frozenset[str] = frozenset()
        self._selected = LineSet()
        self._changed = LineSet()
        self._here = 0
        self._matches: dict[int, list[Match]] = {}

    def clear(self) -> None:
        """Take off what belongs to a text; what is selected stays so."""
        self._spans, self._selected, self._changed = Spans(), LineSet(), LineSet()
        self._matches, self.current_match = {}, None
        self._here = 0

    def set_spans(self, spans: Iterable[Span]) -> None:
        """Say which lines belong to which entities."""
        self._spans = Spans(spans)
        self.select(self._selection)

    def spans_of(self, entity: str) -> list[Span]:
        """The lines of an entity."""
        return self._spans.of((entity,))

    def entity(self, line: int) -> str:
        """The innermost entity of a line, or ``""``."""
        return "" if line < 0 else self._spans.innermost(line + 1)

    def select(self, entities: Collection[str]) -> None:
        """Mark the lines of these entities as selected."""
        self._selection = frozenset(entities)
        spans = self._spans.of(self._selection)
        self._selected = LineSet((span.first, span.last) for span in spans)

    def change(self, lines: Iterable[int]) -> None:
        """Mark these lines, from 1, as changed."""
        self._changed = LineSet((line, line) for line in lines)

    def point(self, line: int) -> None:
        """Point at a line, from 1, as the one that is looked at; 0 for none.

        What is selected is not marked meanwhile: it may well have other lines as well.
        """
        self._here = line

    def is_here(self, line: int) -> bool:
        """Whether a line is the one that is pointed at."""
        return line + 1 == self._here

    def find(self, matches: Sequence[Match], current: Match | None) -> None:
        """Mark the places that were found, and one of them more than the others."""
        by_line: dict[int, list[Match]] = {}
        for match in matches:
            by_line.setdefault(match.line, []).append(match)
        self._matches, self.current_match = by_line, current

    def is_selected(self, line: int) -> bool:
        """Whether a line belongs to what is selected, or is the one that is pointed at."""
        return self.is_here(line) if self._here else line + 1 in self._selected

    def is_changed(self, line: int) -> bool:
        """Whether a line is marked as changed."""
        return line + 1 in self._changed

    def matches(self, line: int) -> Sequence[Match]:
        """The places in a line that were found."""
        return self._matches.get(line, ())

    def tint_of(self, line: int, colours: Theme) -> str:
        """The colour that a line's entity has in the palette of the theme, or ``""``."""
        entity = self.entity(line) if self.tint is not None else ""
        number = self.tint(entity) if self.tint is not None and entity else None
        return "" if number is None else colours.tints[number % len(colours.tints)]

    def ground(self, line: int, colours: Theme) -> str:
        """The colour behind a line, or ``""``."""
        if self.is_selected(line):
            return colours.accent_ground
        if self.is_changed(line):
            return colours.changed
        return self.tint_of(line, colours)
