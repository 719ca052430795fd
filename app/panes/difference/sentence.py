"""The sentence on a step, painted with its names of code and the letters of groups."""

from __future__ import annotations

import re
from collections.abc import Mapping

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QHelpEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from lowerscope.app.kit import theme
from lowerscope.app.kit.buttons import push_button
from lowerscope.app.kit.code.diff_editor import paint_group
from lowerscope.app.kit.plain_text import literal
from lowerscope.app.kit.typefaces import TextMetrics, code_font, ui_font

_PIECE = re.compile(r"`([^`]*)`|([^`]+)")
_LINE = 19.0
_CLOSE = 17.0
"""Height of a line, and of one of two."""
_PAD = 12.0


class SentenceBar(QWidget):
    """A sentence in one or two lines: names between backticks are code.

    A name that has a group is preceded by the group's letter.
    """

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._text = ""
        self._groups: Mapping[str, int] = {}
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFixedHeight(38)
        self.link = push_button("", look="quiet")
        self.link.setParent(self)
        self.link.hide()
        theme.notifier().changed.connect(self.update)

    def set_sentence(self, text: str, groups: Mapping[str, int], link: str = "") -> None:
        """Show a sentence, and a link behind it.

        Args:
            groups: The number of the group of each function, from 0.
        """
        if (text, groups, link) == (self._text, self._groups, self.link.text()):
            return
        self._text, self._groups = text, groups
        self.setAccessibleDescription(self.text())
        self.link.setText(link)
        self.link.setVisible(bool(link))
        self._place_link()
        self.update()

    def _place_link(self) -> None:
        self.link.adjustSize()
        lines = self._lines()[:2]
        pitch = _LINE if len(lines) == 1 else _CLOSE
        left = round(_PAD + sum(width for *_piece, width in lines[-1]))
        middle = (self.height() - 1) / 2 + pitch * (len(lines) - 1) / 2
        self.link.move(left, round(middle - self.link.height() / 2))

    def text(self) -> str:
        """Return the sentence without marks."""
        return self._text.replace("`", "")

    def _pieces(self) -> list[tuple[str, bool, int]]:
        """Return the words with whether each is code, and the group in front of it, or -1."""
        found: list[tuple[str, bool, int]] = []
        for code, words in _PIECE.findall(self._text):
            if code:
                found.append((code, True, self._groups.get(code, -1)))
            else:
                found += [(word, False, -1) for word in re.findall(r"\s+|[^\s]+", words)]
        return found

    # Qt

    def sizeHint(self) -> QSize:
        return QSize(300, 38)

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            QToolTip.showText(event.globalPos(), literal(self.text()), self)
            return True
        return super().event(event)

    def _lines(self) -> list[list[tuple[str, bool, int, float]]]:
        """Return the pieces of each line, with their widths."""
        room = self.width() - 2 * _PAD - self.link.width() * bool(self.link.text())
        fonts = {True: TextMetrics(code_font()), False: TextMetrics(ui_font())}
        lines: list[list[tuple[str, bool, int, float]]] = [[]]
        left = 0.0
        for text, code, group in self._pieces():
            width = fonts[code].horizontalAdvance(text) + (20 if group >= 0 else 0)
            if left + width > room and left and text.strip():
                lines.append([])
                left = 0.0
            if left or text.strip():
                lines[-1].append((text, code, group, width))
                left += width
        return lines

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_link()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = theme.current()
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(colours.accent_ground))
        line = QRectF(0, self.height() - 1, self.width(), 1)
        painter.fillRect(line, QColor(colours.line))
        lines = self._lines()
        shown = lines[:2]
        pitch = _LINE if len(shown) == 1 else _CLOSE
        top = (self.height() - 1 - pitch * len(shown)) / 2
        for number, pieces in enumerate(shown):
            left = _PAD
            for place, (text, code, group, width) in enumerate(pieces):
                area = QRectF(left, top + number * pitch, width + 2, pitch)
                if group >= 0:
                    paint_group(painter, QRectF(left, area.center().y() - 7, 14, 14), group)
                    area.setLeft(left + 20)
                painter.setFont(code_font() if code else ui_font())
                painter.setPen(QColor(colours.text))
                is_cut = number == 1 and len(lines) > 2 and place == len(pieces) - 1
                painter.drawText(area, Qt.AlignmentFlag.AlignVCenter, "…" if is_cut else text)
                left += width
