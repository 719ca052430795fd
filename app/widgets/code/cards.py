"""The names in a text of which more is known, and the card that says it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QTextLine

from lowerscope.app.widgets.code.painting import x_of
from lowerscope.app.widgets.code.text import CodeText
from lowerscope.app.widgets.hover_card import CardText, HoverCard

_STRING = re.compile(r'"(?:\\.|[^"\\])*"|#.*')


@dataclass(frozen=True)
class NamedPlace:
    """Some lines in which a name stands for one thing.

    Attributes
    ----------
    name : str
        The name as it is written.
    first, last : int
        Lines from 1, both included; inner ones go before outer ones.
    card : CardText
        What is known of the thing.
    entity : str
        Its id, or ``""``.
    """

    name: str
    first: int
    last: int
    card: CardText
    entity: str = ""


@dataclass(frozen=True)
class _Found:
    place: NamedPlace
    line: int
    start: int
    end: int


class CodeCards:
    """Finds the name at a place of a text, and shows its card.

    Parameters
    ----------
    editor : CodeText
        The text.
    """

    def __init__(self, editor: CodeText) -> None:
        self._editor = editor
        self._places: list[NamedPlace] = []
        self.card = HoverCard(editor.viewport(), below=True)

    def set_places(self, places: Iterable[NamedPlace]) -> None:
        """Take the names of another text."""
        self.card.dismiss()
        self._places = sorted(places, key=lambda place: place.last - place.first)

    def hover(self, at: QPoint) -> None:
        """Show the card of the name under the mouse in a moment, or none."""
        found = self._under(at)
        if found is None:
            self.card.leave()
        else:
            self.card.want(found.place.card, self._rect(found))

    def show_at_caret(self) -> str:
        """Show the card of the name at the caret; what it says, or ``""``."""
        found = self._at(*self._editor.caret())
        if found is None:
            return ""
        self.card.show_now(found.place.card, self._rect(found))
        return found.place.card.plain()

    def entity_under(self, at: QPoint) -> str:
        """The id of what is named under the mouse, on the line on which it begins, or ``""``."""
        return self._begun(self._under(at))

    def entity_at_caret(self) -> str:
        """The id of what is named at the caret, on the line on which it begins, or ``""``."""
        return self._begun(self._at(*self._editor.caret()))

    def _begun(self, found: _Found | None) -> str:
        begins = found is not None and found.line + 1 == found.place.first
        return found.place.entity if found is not None and begins else ""

    def _under(self, at: QPoint) -> _Found | None:
        if not self._places:
            return None
        for line, block, row in self._editor.visible(self._editor.viewport().rect()):
            if row.top() <= at.y() < row.bottom() and block.layout().lineCount():
                text_line = block.layout().lineAt(0)
                x = at.x() - row.left() + text_line.x()
                if not text_line.x() <= x <= text_line.x() + text_line.naturalTextWidth():
                    return None
                on = QTextLine.CursorPosition.CursorOnCharacter
                return self._at(line, text_line.xToCursor(x, on))
        return None

    def _at(self, line: int, column: int) -> _Found | None:
        text = self._editor.lines()[line]
        for place in self._places:
            if not place.first <= line + 1 <= place.last:
                continue
            start = text.find(place.name)
            while start >= 0:
                end = start + len(place.name)
                if start <= column <= end and _stands_alone(text, start, end):
                    return _Found(place, line, start, end)
                start = text.find(place.name, end)
        return None

    def _rect(self, found: _Found) -> QRect:
        for line, block, row in self._editor.visible(self._editor.viewport().rect()):
            if line == found.line:
                text_line = block.layout().lineAt(0)
                left = row.left() - text_line.x() + x_of(text_line.cursorToX(found.start))
                right = row.left() - text_line.x() + x_of(text_line.cursorToX(found.end))
                return QRect(
                    round(left), round(row.top()), round(right - left), round(row.height())
                )
        return QRect()


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Whether a name is a variable's: no part of another, no attribute, no keyword, no string."""
    before, after = text[start - 1 : start], text[end : end + 2]
    if before == "." or before.isalnum() or before == "_":
        return False
    if after[:1].isalnum() or after[:1] == "_" or (after[:1] == "=" and after != "=="):
        return False
    return not any(part.start() < start < part.end() for part in _STRING.finditer(text))
