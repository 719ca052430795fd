"""Labels that are terms of the glossary: a definition in the tool tip, a click opens the page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QApplication, QToolTip, QWidget

from lowerscope.app.kit.help_key import notifier
from lowerscope.app.kit.plain_text import Label
from lowerscope.core.model.texts import _, language
from lowerscope.resources import HELP

PAGE = "glossary"

UNLIKE = ("source", "target", "call", "run")
"""Anchors of terms whose words mean something else, too, in labels of nodes and functions."""

_TERM = re.compile(r"^### (.+)\n\n(?:\*\*.+?\*\* · )?(.+(?:\n.+)*)", re.MULTILINE)
_ROOM = 380.0


@dataclass(frozen=True)
class Term:
    """A term in the language of the window."""

    name: str
    anchor: str  # Anchor of its section, which is the same in all languages.
    definition: str

    def spellings(self) -> Iterator[str]:
        """Yield the forms of its name in labels: the synonym in brackets, and the plural."""
        for each in re.split("[（）]", self.name.casefold()):
            if each.isascii() and each:
                yield each + "s"
            yield each


def file_of(name: str, code: str) -> Path:
    """Return the file of a page in a language; pages that are not translated are in English."""
    translated = HELP / code / f"{name}.md"
    return translated if translated.is_file() else HELP / f"{name}.md"


def anchor_of(heading: str) -> str:
    """Return the anchor of a heading: ``Optimise for CPU`` is ``optimise-for-cpu``."""
    kept = re.sub(r"[^\w\- ]", "", heading.lower())
    return kept.strip().replace(" ", "-")


@cache
def terms(code: str) -> tuple[Term, ...]:
    """Return the terms of the glossary in a language."""
    english, own = (_TERM.findall(file_of(PAGE, each).read_text("utf-8")) for each in ("en", code))
    return tuple(
        Term(name, anchor_of(heading), " ".join(text.replace("`", "").split()))
        for (heading, _text), (name, text) in zip(english, own, strict=True)
    )


@cache
def _spelled(code: str) -> dict[str, Term]:
    return {spelling: each for each in terms(code) for spelling in each.spellings() if spelling}


def term_of(label: str) -> Term | None:
    """Return the term that a label is, whatever its case and number."""
    return None if label in UNLIKE else _spelled(language()).get(label.casefold())


def told_label(label: str) -> str:
    """Return the text of a tool tip on a label: with its definition, if it is a term."""
    from lowerscope.app.kit.tables.data_table import wrapped

    term = term_of(label)
    if term is None:
        return label
    lines = wrapped(f"{label} · {term.definition}", QToolTip.font(), _ROOM)
    return "\n".join((*lines, _("Click to open the glossary.")))


def open_term(widget: QWidget, term: Term) -> None:
    """Open the section of a term in the help."""
    notifier().wanted.emit(widget.window(), f"{PAGE}#{term.anchor}")


def link(label: Label, text: str) -> None:
    """Make a label whose text is a term a link to the glossary: underlined under the mouse."""
    term = term_of(text)
    if term is not None:
        label.setAccessibleName(text)
        label.setAccessibleDescription(term.definition)
        label.setCursor(Qt.CursorShape.PointingHandCursor)
        label.installEventFilter(_follower())


@cache
def _follower() -> _Follower:
    return _Follower(QApplication.instance())


class _Follower(QObject):
    """Shows the definition of a label under the mouse, and opens its term on a click."""

    # Qt

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        term = term_of(watched.accessibleName()) if isinstance(watched, Label) else None
        if term is None or not isinstance(watched, Label):
            return False
        kind = event.type()
        if kind in (QEvent.Type.Enter, QEvent.Type.Leave):
            font = watched.font()
            font.setUnderline(kind == QEvent.Type.Enter)
            watched.setFont(font)
        elif kind == QEvent.Type.MouseButtonPress:
            open_term(watched, term)
        elif isinstance(event, QHelpEvent) and kind == QEvent.Type.ToolTip:
            QToolTip.showText(event.globalPos(), told_label(watched.accessibleName()), watched)
            return True
        return False
