"""Widgets that show plain text: labels and text fields.

Qt's label renders text that looks like HTML, and opens the files that it names: a module called
``<img src='/dev/zero'>`` would be read until memory runs out. Every label of the program is a
`Label`, or a `MarkupLabel` where the markup is our own. The style sheet makes tool tips and the
labels of Qt's own dialogs plain, so that any text can be passed to them as it is.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from PySide6.QtGui import QImage
from PySide6.QtWidgets import QLabel, QPlainTextEdit, QWidget

if TYPE_CHECKING:
    from PySide6.QtCore import QUrl

PLAIN, RICH = 0, 1
"""Values of ``Qt.TextFormat``. The namespace ``Qt`` takes longer to make than the first page."""

LONGEST = 4_000
"""Characters of a label that are shown: more than a window has room for, and quick to lay out."""


_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
"""The escapes of the module html, which takes too long to import before the first window."""


class Label(QLabel):
    """A label that shows its text literally."""

    def __init__(
        self, text: str = "", parent: QWidget | None = None, *, role: str = "", wraps: bool = False
    ) -> None:
        super().__init__(parent)
        self.setProperty("textFormat", PLAIN)
        if role:
            self.setProperty("role", role)
        self.setWordWrap(wraps)
        if text:
            self.setText(text)

    def set_role(self, role: str) -> None:
        """Change the role by which the style sheet colours it."""
        self.setProperty("role", role)
        self.style().unpolish(self)
        self.style().polish(self)

    # Qt

    def setText(self, text: str) -> None:
        super().setText(text if len(text) <= LONGEST else f"{text[:LONGEST]}…")


class Markup(str):
    """HTML of our own, in which all other texts are escaped; created by `markup`."""

    __slots__ = ()


def markup(pattern: str, *texts: str, **named: str) -> Markup:
    """Return HTML with these texts inserted, escaped unless they are `Markup`.

    Args:
        pattern: The HTML, written by us, with a placeholder ``{0}`` or ``{name}`` for each text;
            ``<b>`` is the semibold of titles, since Qt would widen it to a bold of its own.
        *texts: The texts for the placeholders.
        **named: Those for placeholders with names.
    """
    escaped = {name: _escaped(text) for name, text in named.items()}
    pattern = pattern.replace("<b>", _SEMIBOLD).replace("</b>", "</span>")
    return Markup(pattern.format(*map(_escaped, texts), **escaped))


_SEMIBOLD = '<span style="font-weight:600">'


def _escaped(text: str) -> str:
    return text if isinstance(text, Markup) else text.translate(_ESCAPES)


def join_markup(between: str, parts: list[str]) -> Markup:
    """Return joined parts, escaped unless they are `Markup`."""
    return Markup(between.join(markup("{0}", each) for each in parts))


class MarkupLabel(QLabel):
    """A label with HTML of our own; any other text is shown literally."""

    def __init__(self, *, role: str = "", wraps: bool = False) -> None:
        super().__init__()
        self.setProperty("textFormat", RICH)
        self.setProperty("role", role)
        self.setWordWrap(wraps)

    # Qt

    def setText(self, text: str) -> None:
        shown = markup("{0}", text)
        # Shift+Tab never leaves a text that begins with a link (measured with Qt 6.11).
        super().setText(f"\u200b{shown}" if shown.startswith("<a ") else shown)


def breakable(text: str) -> str:
    """Return a text with long names that a label may wrap after their separators."""
    return _LONG_NAME.sub(lambda name: _SEPARATOR.sub("\\g<0>\u200b", name[0]), text)


def unbroken(text: str) -> str:
    """Return a formula that a label wraps at its spaces only, not within ``1e-05`` or ``|x|``."""
    return " ".join("\u2060".join(each) for each in text.split(" "))


_LONG_NAME = re.compile(r"\S{20,}")
_SEPARATOR = re.compile(r"[._,:/(]+(?=\w)")


class PlainTextEdit(QPlainTextEdit):
    """A multi-line text field that never loads files, whatever its text."""

    # Qt

    def loadResource(self, kind: int, name: QUrl | str) -> object:
        return no_picture()


@cache
def no_picture() -> QImage:
    """Return a picture in place of a file: without one, Qt would open the file itself."""
    picture = QImage(1, 1, QImage.Format.Format_ARGB32)
    picture.fill(0)
    return picture


def literal(text: str) -> str:
    """Return a text escaped for buttons, menus and form labels, so that it is shown literally.

    In these, ``&`` marks a mnemonic, and a shortcut follows a tab.
    """
    return text.replace("&", "&&").replace("\t", " ")
