"""A card with details of the item under the mouse; it stays while the mouse is on it."""

import math
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt
from PySide6.QtGui import QEnterEvent, QFont
from PySide6.QtWidgets import QFrame, QGridLayout, QWidget

from lowerscope.app.kit.background import single_shot
from lowerscope.app.kit.glossary import link
from lowerscope.app.kit.layouts import column_of
from lowerscope.app.kit.plain_text import Label, breakable
from lowerscope.app.kit.typefaces import TextMetrics, code_font, ui_font
from lowerscope.core.model.texts import labelled

SHOW_MS = 450
HIDE_MS = 220

_WIDEST = 460
_GAP = 10
_BESIDE = 12
_BETWEEN = 12
# Frame of the card, and padding of a label.
_SPARE = 8
_TITLE_PIXELS = 13.0
_SMALL_PIXELS = 11.5
_CODE_PIXELS = 11.0


@dataclass(frozen=True)
class CardText:
    """Text of a card."""

    title: str  # Its heading.
    rows: tuple[tuple[str, str], ...] = ()  # Labels and values.
    code: str = ""  # Lines of code below them, or ``""``.

    def plain(self) -> str:
        """Return the whole card as plain text."""
        rows = [labelled(label, value) for label, value in self.rows]
        return "\n".join(part for part in (self.title, *rows, self.code) if part)


class HoverCard(QFrame):
    """A card beside an area of a widget, on top of its window.

    Args:
        owner: The widget whose items it describes.
        below: Whether it is shown below or above the item, as with words in a line; otherwise
            beside it, if there is room.
    """

    def __init__(self, owner: QWidget, *, below: bool = False) -> None:
        super().__init__(owner)
        self._below = below
        self._owner = owner
        self._wanted: tuple[CardText, QRect] | None = None
        self._text = CardText("")
        self.setProperty("floating", True)
        self.setObjectName("hover-card")
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._title = _label(ui_font(_TITLE_PIXELS, QFont.Weight.DemiBold))
        self._grid = QGridLayout()
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(_BETWEEN)
        self._grid.setVerticalSpacing(3)
        self._grid.setColumnStretch(1, 1)
        self._code = _label(code_font(_CODE_PIXELS))
        column_of(
            self, self._title, self._grid, self._code, margins=(_BESIDE, 9, _BESIDE, 10), spacing=6
        )
        self._show_timer = single_shot(self, SHOW_MS, self._show_wanted)
        self._hide_timer = single_shot(self, HIDE_MS, self.hide)
        self.hide()

    def want(self, text: CardText, beside: QRect) -> None:
        """Show this after a delay, or at once if another card is visible.

        Args:
            text: The text of the card.
            beside: The area of the item, in the owner's coordinates; it is not covered.
        """
        self._wanted = text, beside
        self._hide_timer.stop()
        if self.isVisible():
            self._show_wanted()
        else:
            self._show_timer.start()

    def show_now(self, text: CardText, beside: QRect) -> None:
        """Show this without a delay."""
        self._wanted = text, beside
        self._show_wanted()

    def leave(self) -> None:
        """Hide after a delay, unless the mouse enters the card in the meantime."""
        self._show_timer.stop()
        if self.isVisible() and not self._hide_timer.isActive():
            self._hide_timer.start()

    def dismiss(self) -> bool:
        """Hide at once; return False if no card was visible."""
        self._show_timer.stop()
        self._hide_timer.stop()
        was = self.isVisible()
        self.hide()
        return was

    def text(self) -> CardText:
        return self._text

    def _show_wanted(self) -> None:
        self._show_timer.stop()
        self._hide_timer.stop()
        if self._wanted is None:
            return
        text, beside = self._wanted
        self._fill(text)
        window = self._owner.window()
        if self.parentWidget() is not window:
            self.setParent(window)
        self.setFixedWidth(min(self._wanted_width(), window.width() - 2 * _GAP))
        self.adjustSize()
        corner = window.mapFromGlobal(self._owner.mapToGlobal(beside.topLeft()))
        self.move(_place(QRect(corner, beside.size()), self.size(), window.rect(), self._below))
        self.show()
        self.raise_()

    def _wanted_width(self) -> int:
        """Return the width at which no text is wrapped, within bounds."""
        rows = self._text.rows
        labels = max((_advance(ui_font(_SMALL_PIXELS), label) for label, _ in rows), default=0)
        values = max((_advance(ui_font(_SMALL_PIXELS), value) for _, value in rows), default=0)
        title = _advance(self._title.font(), self._text.title)
        code = _advance(code_font(_CODE_PIXELS), self._text.code)
        widest = max(title, labels + _BETWEEN + values, code)
        return min(_WIDEST, widest + 2 * _BESIDE + _SPARE)

    def _fill(self, text: CardText) -> None:
        if text == self._text:
            return
        self._text = text
        self._title.setText(breakable(text.title))
        while (item := self._grid.takeAt(0)) is not None:
            old = item.widget()
            if old is not None:
                old.hide()
                old.deleteLater()
        for row, (name, value) in enumerate(text.rows):
            label, words = _label(ui_font(_SMALL_PIXELS)), _label(ui_font(_SMALL_PIXELS))
            label.setText(name)
            label.setProperty("role", "quiet")
            label.setWordWrap(False)
            words.setText(breakable(value))
            link(label, name)
            link(words, value)
            self._grid.addWidget(label, row, 0, Qt.AlignmentFlag.AlignTop)
            self._grid.addWidget(words, row, 1)
        self._code.setText(text.code)
        self._code.setVisible(bool(text.code))
        self.setAccessibleName(text.plain())

    # Qt

    def enterEvent(self, event: QEnterEvent) -> None:
        self._hide_timer.stop()

    def leaveEvent(self, event: QEvent) -> None:
        self.leave()


def _advance(font: QFont, text: str) -> int:
    metrics = TextMetrics(font)
    return math.ceil(max(metrics.horizontalAdvance(line) for line in text.split("\n")))


def _label(font: QFont) -> Label:
    label = Label(wraps=True)
    label.setFont(font)
    return label


def _place(beside: QRect, size: QSize, inside: QRect, only_below: bool) -> QPoint:
    """Return a position right, left, below or above an area, always inside the window."""
    width, height = size.width(), size.height()
    lowest = max(_GAP, inside.height() - height - _GAP)
    at_side = not only_below
    if at_side and beside.right() + width + 2 * _GAP < inside.width():
        return QPoint(beside.right() + _GAP, max(_GAP, min(beside.top(), lowest)))
    if at_side and beside.left() - width > 2 * _GAP:
        return QPoint(beside.left() - width - _GAP, max(_GAP, min(beside.top(), lowest)))
    x = max(_GAP, min(beside.left(), inside.width() - width - _GAP))
    below = beside.bottom() + _GAP
    return QPoint(x, below if below <= lowest else max(_GAP, beside.top() - _GAP - height))
