"""The functions of a difference in a row: a chip for each, and a menu for those without room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QAction,
    QColor,
    QFocusEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QMenu, QSizePolicy, QToolTip, QWidget

from lowerscope.app.kit import theme
from lowerscope.app.kit.plain_text import literal
from lowerscope.app.kit.typefaces import TextMetrics, code_font, ui_font
from lowerscope.core.model.texts import _

_HEIGHT = 24.0
_PAD = 8.0
_GAP = 6.0


@dataclass(frozen=True)
class Chip:
    """A function: its name, and texts with their roles before and behind it."""

    name: str
    mark: str
    role: str
    counts: tuple[tuple[str, str], ...] = ()

    @property
    def words(self) -> str:
        """The chip as text."""
        return " ".join([self.mark, self.name, *(text for text, _ in self.counts)])


class FunctionChips(QWidget):
    """Chips in a row, one of which may be current; those without room are in a menu."""

    chosen = Signal(str)  # A chip was clicked; the argument is its name.

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._chips: tuple[Chip, ...] = ()
        self._current = ""
        self._hovered = -1
        self._areas: list[QRectF] = []
        self.setAccessibleName(name)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFixedHeight(34)
        theme.notifier().changed.connect(self.update)

    def set_chips(self, chips: Sequence[Chip]) -> None:
        if tuple(chips) != self._chips:
            self._chips = tuple(chips)
            focus = Qt.FocusPolicy.TabFocus if chips else Qt.FocusPolicy.NoFocus
            self.setFocusPolicy(focus)
            self._arrange()

    def chips(self) -> tuple[Chip, ...]:
        """Return all chips, including those without room."""
        return self._chips

    def set_current(self, name: str) -> None:
        """Mark a chip as the current one."""
        if name != self._current:
            self._current = name
            self.setAccessibleDescription(name)
            self._arrange()

    def current(self) -> str:
        """Return the name of the current chip, or ``""``."""
        return self._current

    def area_of(self, name: str) -> QRectF:
        """Return the area of a chip that has room."""
        names = [chip.name for chip in self._shown()]
        return self._areas[names.index(name)]

    def _shown(self) -> tuple[Chip, ...]:
        return self._chips[: len(self._areas)]

    def _width(self, chip: Chip) -> float:
        width = 2 * _PAD + TextMetrics(ui_font(12)).horizontalAdvance(chip.mark) + 12
        width += TextMetrics(code_font()).horizontalAdvance(chip.name)
        for text, _role in chip.counts:
            width += 6 + TextMetrics(ui_font(11.5, tabular=True)).horizontalAdvance(text)
        return round(width)

    def _arrange(self) -> None:
        self._areas = []
        left, top = 0.0, (self.height() - _HEIGHT) / 2
        room = self.width()
        widths = [self._width(chip) for chip in self._chips]
        if sum(widths) + _GAP * len(widths) > room:
            room -= 64
        for width in widths:
            if left + width > room and self._areas:
                break
            self._areas.append(QRectF(left, top, min(width, room), _HEIGHT))
            left += width + _GAP
        self.update()

    def _more(self) -> QRectF:
        """Return the area of the button for the chips without room; empty if all have room."""
        if len(self._areas) == len(self._chips):
            return QRectF()
        left = self._areas[-1].right() + _GAP if self._areas else 0.0
        return QRectF(left, (self.height() - _HEIGHT) / 2, 58, _HEIGHT)

    def _open_more(self) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for chip in self._chips[len(self._areas) :]:
            action = QAction(literal(chip.words), menu)
            action.setData(chip.name)
            menu.addAction(action)
        menu.triggered.connect(self._choose)
        menu.popup(self.mapToGlobal(self._more().bottomLeft().toPoint() + QPoint(0, 2)))

    def _choose(self, action: QAction) -> None:
        self.chosen.emit(action.data())

    def _has_current(self) -> bool:
        return any(chip.name == self._current for chip in self._shown())

    def _at(self, x: float) -> int:
        areas = enumerate(self._areas)
        return next((place for place, area in areas if area.left() <= x <= area.right()), -1)

    # Qt

    def sizeHint(self) -> QSize:
        return QSize(200, 34)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() != Qt.MouseButton.LeftButton:
            return
        place = self._at(event.position().x())
        if place >= 0:
            self.chosen.emit(self._chips[place].name)
        elif self._more().contains(event.position()):
            self._open_more()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._hovered = self._at(event.position().x())
        self.update()

    def leaveEvent(self, event: QEvent) -> None:
        self._hovered = -1
        self.update()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        steps = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
        names = [chip.name for chip in self._chips]
        by = steps.get(Qt.Key(event.key()))
        if by is None or not names:
            super().keyPressEvent(event)
            return
        here = names.index(self._current) + by if self._current in names else 0
        self.chosen.emit(names[max(0, min(here, len(names) - 1))])

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            place = self._at(event.pos().x())
            words = literal(self._chips[place].words) if place >= 0 else ""
            QToolTip.showText(event.globalPos(), words, self)
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for place, (chip, area) in enumerate(zip(self._shown(), self._areas, strict=True)):
            current = chip.name == self._current
            ground = colours.accent_ground if current else colours.panel
            if place == self._hovered and not current:
                ground = colours.hover
            ring = self.hasFocus() and (current or not (place or self._has_current()))
            painter.setPen(QPen(QColor(colours.accent if ring else colours.line), 1))
            painter.setBrush(QColor(ground))
            painter.drawRoundedRect(area.adjusted(0.5, 0.5, -0.5, -0.5), 5, 5)
            self._paint_chip(painter, chip, area, current=current)
        more = self._more()
        if not more.isEmpty():
            painter.setFont(ui_font(12, tabular=True))
            painter.setPen(QColor(colours.accent))
            count = len(self._chips) - len(self._areas)
            painter.drawText(more, Qt.AlignmentFlag.AlignVCenter, _("+{count} ▾", count=count))

    def _paint_chip(self, painter: QPainter, chip: Chip, area: QRectF, *, current: bool) -> None:
        colours = theme.current()
        inks = {"right": colours.right, "wrong": colours.wrong, "unsure": colours.unsure}
        flags = Qt.AlignmentFlag.AlignVCenter
        room = area.adjusted(_PAD, 0, -_PAD, 0)
        parts = [(chip.mark, chip.role, ui_font(12)), (chip.name, "", code_font())]
        parts += [(text, role, ui_font(11.5, tabular=True)) for text, role in chip.counts]
        for text, role, font in parts:
            painter.setFont(font)
            ink = inks.get(role, colours.accent if current else colours.text)
            painter.setPen(QColor(ink))
            metrics = TextMetrics(font)
            shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, max(0.0, room.width()))
            painter.drawText(room, flags, shown)
            room.setLeft(room.left() + metrics.horizontalAdvance(shown) + 6)
