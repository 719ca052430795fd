"""Texts of functions below one another, each under a heading; those that are closed are rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import msgspec
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from lowerscope.app.document.colouring import Colouring
from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.kit.code.code_editor import Heading
from lowerscope.app.panes.common.script_page import ScriptPage
from lowerscope.core.model.compact_script import LANGUAGE
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import FunctionTextsQuery
from lowerscope.core.model.snapshot import Card, Span, TextRecord, View


class FunctionTexts(QWidget):
    """A page with the texts of some functions, in one view.

    Args:
        view: Kind of text.
        name: Accessible name of the code view.
        set_busy: Called with whether texts are being fetched.
    """

    toggled = Signal(str)  # Open or close a function: its name.
    acted = Signal(str)  # The action of a function's heading was clicked.

    def __init__(
        self,
        document: Document,
        queries: Queries,
        colouring: Colouring,
        view: View,
        name: str,
        set_busy: Callable[[bool], None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._document = document
        self._view = view
        self._headings: tuple[Heading, ...] = ()
        self._moment: Moment | None = None
        self._texts: dict[str, TextRecord] = {}
        self._names: tuple[str, ...] = ()  # Functions of the last request, and of `_texts`.
        self._shown_first = ""  # Name of the first function that is shown.
        self._watch = queries.watch(
            self, self._query, self._take_texts, self._take_problem, set_busy
        )
        self.script = ScriptPage(document, colouring, name)
        self.script.code.heading_clicked.connect(self._click)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.script)

    def show_functions(self, headings: Sequence[Heading], moment: Moment | None) -> None:
        """Show the functions of some headings: the texts of those that are open, once visible."""
        names = tuple(each.key for each in headings if each.is_open)
        same = (names, moment) == (self._names, self._moment)
        self._headings, self._names, self._moment = tuple(headings), names, moment
        self._watch.update()
        if same or not names:
            self._show()

    @property
    def is_current(self) -> bool:
        """Return whether the requested texts are shown."""
        return self._watch.is_current

    def show_nothing(self, title: str = "", hint: str = "") -> None:
        """Show an empty page with a reason."""
        self._headings, self._names, self._texts = (), (), {}
        self._shown_first = ""
        self._watch.update()
        if title:
            self.script.code.set_empty(title, hint)
        self.script.show_text(None)

    def _query(self) -> FunctionTextsQuery | None:
        recipe = self._document.recipe
        if recipe is None or not self._names:
            return None
        return FunctionTextsQuery(recipe, self._names, self._view, self._moment)

    def _take_texts(self, records: tuple[TextRecord, ...]) -> None:
        self._texts = dict(zip(self._names, records, strict=True))
        self._show()

    def _take_problem(self, problem: Problem) -> None:
        self._texts = {}
        self.script.code.set_empty(problem.headline, problem.todo)
        self.script.show_text(None)

    def _show(self) -> None:
        headings = [
            replace(each, is_open=each.is_open and each.key in self._texts)
            for each in self._headings
        ]
        record, lines = joined(headings, self._texts)
        whole = tuple(f"tir:{each.key}" for each in headings)
        # With the same function first, another one was opened, or all are at another step.
        first = headings[0].key if headings else ""
        stays, self._shown_first = bool(first) and first == self._shown_first, first
        self.script.show_text(record, whole, headings=lines, stay=stays)

    def _click(self, name: str, is_action: bool) -> None:
        (self.acted if is_action else self.toggled).emit(name)


def joined(
    headings: Sequence[Heading], texts: Mapping[str, TextRecord]
) -> tuple[TextRecord, dict[int, Heading]]:
    """Return the texts of functions as one, and its lines that are headings, from 0."""
    lines: list[str] = []
    at: dict[int, Heading] = {}
    parts: list[tuple[TextRecord, int]] = []
    for heading in headings:
        at[len(lines)] = heading
        # The height of the row is that of its character.
        lines.append(" ")
        if heading.is_open:
            record = texts[heading.key]
            parts.append((record, len(lines)))
            lines += record.text.split("\n")
    changed = [
        line + by for record, by in parts if record.changed is not None for line in record.changed
    ]
    known = any(record.changed is not None for record, _ in parts)
    joined = TextRecord(
        text="\n".join(lines),
        language=parts[0][0].language if parts else LANGUAGE,
        spans=tuple(_moved(each, by) for record, by in parts for each in record.spans),
        cards=tuple(_moved(each, by) for record, by in parts for each in record.cards),
        changed=tuple(changed) if known else None,
    )
    return joined, at


Lines = TypeVar("Lines", Span, Card)


def _moved(lines: Lines, by: int) -> Lines:
    return msgspec.structs.replace(lines, first=lines.first + by, last=lines.last + by)
