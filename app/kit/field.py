"""A box in the tool bar: text in several styles, which may open a menu."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFocusEvent, QFont, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QMenu, QSizePolicy, QWidget

from lowerscope.app.kit import theme
from lowerscope.app.kit.focus_ring import came_by_keyboard
from lowerscope.app.kit.typefaces import UI_PIXELS, TextMetrics, ui_font

_HEIGHT = 28
_PAD = 10.0
_GAP = 7.0
_LARGEST = 420


@dataclass(frozen=True)
class Part:
    """Text in the style ``"plain"``, ``"strong"``, ``"quiet"``, ``"right"`` or ``"wrong"``.

    ``"label"`` is quiet, and is omitted if there is no room for the text that it labels.
    """

    text: str
    style: str = "plain"


class Field(QAbstractButton):
    """A bordered box, as wide as its text."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._ring = False
        self._name = name
        self._parts: tuple[Part, ...] = ()
        self._menu: QMenu | None = None
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.clicked.connect(self._open_menu)
        self.set_clickable(False)
        self.setAccessibleName(name)
        theme.notifier().changed.connect(self.update)

    def set_parts(self, parts: Sequence[Part]) -> None:
        """Set the text; the last parts are elided if there is no room."""
        if tuple(parts) == self._parts:
            # A new size hint has the whole window laid out.
            return
        self._parts = tuple(parts)
        words = " ".join(part.text for part in parts)
        self.setText(words)
        self.setAccessibleName(f"{self._name}: {words}" if words else self._name)
        self.updateGeometry()
        self.update()

    def parts(self) -> tuple[Part, ...]:
        """Return the text that is shown."""
        return self._parts

    def set_clickable(self, clickable: bool) -> None:
        """Set whether it can be clicked."""
        self._clickable = clickable
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if clickable else Qt.FocusPolicy.NoFocus)
        shape = Qt.CursorShape.PointingHandCursor if clickable else Qt.CursorShape.ArrowCursor
        self.setCursor(shape)
        self.update()

    def set_menu(self, menu: QMenu | None) -> None:
        """Set the menu that a click opens."""
        self._menu = menu
        self.set_clickable(menu is not None)

    def _open_menu(self) -> None:
        if self._menu is not None:
            self._menu.popup(self.mapToGlobal(QPoint(0, self.height() + 4)))

    def _font(self, part: Part) -> QFont:
        strong = part.style == "strong"
        weight = QFont.Weight.DemiBold if strong else QFont.Weight.Normal
        return ui_font(weight=weight, tabular=True)

    # Qt

    def sizeHint(self) -> QSize:
        width = sum(TextMetrics(self._font(p)).horizontalAdvance(p.text) for p in self._parts)
        gaps = _GAP * max(0, len(self._parts) - 1)
        arrow = 14 if self._menu is not None else 0
        return QSize(min(_LARGEST, round(width + gaps + 2 * _PAD + arrow + 1)), _HEIGHT)

    def minimumSizeHint(self) -> QSize:
        return QSize(min(120, self.sizeHint().width()), _HEIGHT)

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._ring = came_by_keyboard(event)
        super().focusInEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        outer = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        hovered = self._clickable and self.underMouse() and self.isEnabled()
        painter.setBrush(QColor(colours.hover if hovered else colours.panel))
        painter.setPen(
            QPen(QColor(colours.accent if self._ring and self.hasFocus() else colours.line), 1)
        )
        painter.drawRoundedRect(outer, 6, 6)
        shades = {
            "plain": colours.text,
            "strong": colours.text,
            "quiet": colours.quiet,
            "label": colours.quiet,
            "right": colours.right,
            "wrong": colours.wrong,
        }
        x = _PAD
        end = self.width() - _PAD - (14 if self._menu is not None else 0)
        base = round(outer.center().y() + UI_PIXELS * 0.364)
        labelled = self.width() >= self.sizeHint().width()
        for part in self._parts:
            if part.style == "label" and not labelled:
                continue
            font = self._font(part)
            metrics = TextMetrics(font)
            words = metrics.elidedText(part.text, Qt.TextElideMode.ElideRight, end - x + 1)
            painter.setFont(font)
            painter.setPen(QColor(shades[part.style] if self.isEnabled() else colours.faint))
            painter.drawText(QPointF(x, base), words)
            x += metrics.horizontalAdvance(words) + _GAP
            if x >= end:
                break
        if self._menu is not None:
            self._paint_arrow(painter, outer)

    def _paint_arrow(self, painter: QPainter, outer: QRectF) -> None:
        colours = theme.current()
        pen = QPen(QColor(colours.quiet if self.isEnabled() else colours.faint), 1.3)
        pen.setCapStyle(Qt.PenCapStyle.RoundCap)
        painter.setPen(pen)
        x, y = outer.right() - 16, outer.center().y() - 1.5
        painter.drawPolyline([QPointF(x, y), QPointF(x + 3.5, y + 3.5), QPointF(x + 7, y)])
