"""Widgets that show a text as it is: labels and text fields.

Qt's label takes a text that looks like HTML for HTML, and opens the files that it names: a module
called ``<img src='/dev/zero'>`` would be read until memory runs out. Every label of the program is
a `Label`, or a `MarkupLabel` where the markup is our own. Tool tips and the labels of Qt's own
dialogs are made plain by the style sheet, so that all texts can be given to them as they are.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QLabel, QPlainTextEdit, QWidget

LONGEST = 4_000
"""Characters of a label: far more than a window has room for, and laid out at once."""


_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
"""As of the module html, which takes longer to import than the first window has time for."""


class Label(QLabel):
    """A label that shows its text as it is.

    Parameters
    ----------
    text : str
        The text.
    parent : QWidget, optional
        The widget that it stands in.
    """

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        if text:
            self.setText(text)

    # Qt

    def setText(self, text: str) -> None:
        super().setText(text if len(text) <= LONGEST else f"{text[:LONGEST]}…")


class Markup(str):
    """HTML of our own, in which all other texts are escaped; `markup` makes it."""

    __slots__ = ()


def markup(pattern: str, *texts: str) -> Markup:
    """Return HTML with these texts in it, escaped unless they are `Markup`.

    Parameters
    ----------
    pattern : str
        The HTML, written by us, with a place ``{0}`` for each text.
    *texts : str
        What stands in the places.
    """
    return Markup(
        pattern.format(
            *(each if isinstance(each, Markup) else each.translate(_ESCAPES) for each in texts)
        )
    )


def join_markup(between: str, parts: list[str]) -> Markup:
    """Return parts one after the other, escaped unless they are `Markup`."""
    return Markup(between.join(markup("{0}", each) for each in parts))


class MarkupLabel(QLabel):
    """A label with HTML of our own; any other text is shown as it is."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.RichText)

    # Qt

    def setText(self, text: str) -> None:
        super().setText(markup("{0}", text))


class PlainTextEdit(QPlainTextEdit):
    """A text of many lines, which loads no file whatever stands in it."""

    # Qt

    def loadResource(self, kind: int, name: QUrl | str) -> object:
        return NOTHING


NOTHING = QImage(1, 1, QImage.Format.Format_ARGB32)
"""A picture in place of a file: with none at all, Qt would open the file itself."""
NOTHING.fill(0)


def literal(text: str) -> str:
    """Return a text as buttons, menus and labels of fields show it as it is.

    To them ``&`` marks a key, and what follows a tab is a shortcut.
    """
    return text.replace("&", "&&").replace("\t", " ")
