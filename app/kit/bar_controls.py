"""Painted controls of a bar: fields, a verdict, switches with segments, tabs, and a search."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QFont,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QAbstractButton, QMenu, QSizePolicy, QToolTip, QWidget

from lowerscope.app.kit import theme
from lowerscope.app.kit.focus_ring import came_by_keyboard
from lowerscope.app.kit.typefaces import UI_PIXELS, TextMetrics, ui_font
from lowerscope.core.model.texts import labelled

_HEIGHT = 28
_FIELD_HEIGHT = 36
_PAD = 10.0
_GAP = 6.0
_LARGEST = 260
_SMALL = 11.0
_BAR = 12.5


@dataclass(frozen=True)
class Part:
    """Text in the style ``"plain"``, ``"strong"`` or ``"quiet"``; quiet text is smaller."""

    text: str
    style: str = "plain"


class Field(QAbstractButton):
    """A box with one or two short lines, as wide as the longer one.

    Args:
        least: Width below which it is not shrunk, in pixels.
        framed: Whether it has a border.
    """

    def __init__(self, name: str, *, least: int = 76, framed: bool = True) -> None:
        super().__init__()
        self._ring = False
        self._name = name
        self._least = least
        self._framed = framed
        self._lines: tuple[tuple[Part, ...], ...] = ()
        self._menu: QMenu | None = None
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.clicked.connect(self._open_menu)
        self.set_clickable(False)
        self.setAccessibleName(name)
        theme.notifier().changed.connect(self.update)

    def set_lines(self, *lines: Sequence[Part]) -> None:
        """Set the text; the last parts of a line are elided if there is no room."""
        given = tuple(tuple(part for part in line if part.text) for line in lines)
        wanted = tuple(line for line in given if line)
        if wanted == self._lines:
            # A new size hint has the whole window laid out.
            return
        self._lines = wanted
        words = " ".join(part.text for line in wanted for part in line)
        self.setText(words)
        self.setAccessibleName(labelled(self._name, words) if words else self._name)
        self.updateGeometry()
        self.update()

    def set_clickable(self, clickable: bool) -> None:
        """Set whether it can be clicked."""
        self._clickable = clickable
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if clickable else Qt.FocusPolicy.NoFocus)
        shape = Qt.CursorShape.PointingHandCursor if clickable else Qt.CursorShape.ArrowCursor
        self.setCursor(shape)
        self.update()

    def menu(self) -> QMenu | None:
        """Return the menu that a click opens."""
        return self._menu

    def set_menu(self, menu: QMenu | None) -> None:
        """Set the menu that a click opens."""
        self._menu = menu
        self.set_clickable(menu is not None)
        self.updateGeometry()

    def is_cut(self) -> bool:
        """Return whether the text is elided; the tool tip has to have all of it then."""
        return self.width() < self.sizeHint().width()

    def _open_menu(self) -> None:
        if self._menu is not None:
            self._menu.popup(self.mapToGlobal(QPoint(0, self.height() + 4)))

    def _font(self, part: Part) -> QFont:
        strong = part.style == "strong"
        weight = QFont.Weight.DemiBold if strong else QFont.Weight.Normal
        pixels = _SMALL if part.style == "quiet" else _BAR
        return ui_font(pixels, weight=weight, tabular=True)

    def _edges(self) -> tuple[float, float]:
        """Return the room at the left and at the right of the text."""
        pad = _PAD if self._framed else 2.0
        return pad, pad + (14 if self._menu is not None else 0)

    # Qt

    def sizeHint(self) -> QSize:
        widths = [
            sum(TextMetrics(self._font(part)).horizontalAdvance(part.text) for part in line)
            + _GAP * (len(line) - 1)
            for line in self._lines
        ]
        left, right = self._edges()
        width = round(max(widths, default=0) + left + right + 1)
        return QSize(min(_LARGEST, width), _FIELD_HEIGHT)

    def minimumSizeHint(self) -> QSize:
        return QSize(min(self._least, self.sizeHint().width()), _FIELD_HEIGHT)

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._ring = came_by_keyboard(event, self._ring)
        super().focusInEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        outer = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        hovered = self._clickable and self.underMouse() and self.isEnabled()
        ring = self._ring and self.hasFocus()
        painter.setBrush(QColor(colours.hover if hovered else colours.panel))
        edge = colours.accent if ring else colours.line
        painter.setPen(QPen(QColor(edge), 1) if self._framed or ring else Qt.PenStyle.NoPen)
        painter.drawRoundedRect(outer, 6, 6)
        middle = outer.center().y()
        bases = (middle + _BAR * 0.364,) if len(self._lines) < 2 else (middle - 3, middle + 11.5)
        for line, base in zip(self._lines, bases, strict=False):
            self._paint_line(painter, line, round(base))
        if self._menu is not None:
            self._paint_arrow(painter, outer)

    def _paint_line(self, painter: QPainter, line: Sequence[Part], base: float) -> None:
        colours = theme.current()
        left, right = self._edges()
        x, end = left, self.width() - right
        for part in line:
            if x >= end:
                return
            font = self._font(part)
            metrics = TextMetrics(font)
            words = metrics.elidedText(part.text, Qt.TextElideMode.ElideRight, end - x + 1)
            shade = colours.quiet if part.style == "quiet" else colours.text
            painter.setFont(font)
            painter.setPen(QColor(shade if self.isEnabled() else colours.faint))
            painter.drawText(QPointF(x, base), words)
            x += metrics.horizontalAdvance(words) + _GAP

    def _paint_arrow(self, painter: QPainter, outer: QRectF) -> None:
        colours = theme.current()
        pen = QPen(QColor(colours.quiet if self.isEnabled() else colours.faint), 1.3)
        pen.setCapStyle(Qt.PenCapStyle.RoundCap)
        painter.setPen(pen)
        x, y = outer.right() - 16, outer.center().y() - 1.5
        painter.drawPolyline([QPointF(x, y), QPointF(x + 3.5, y + 3.5), QPointF(x + 7, y)])


_LEAST = 84
_ROUND = 14.0
MARKS = {"right": "✓", "wrong": "✕", "near": "≈", "unsure": "?", "neutral": "", "busy": ""}
"""Mark before the words of a verdict, by its role."""

_TURN_MS = 80


class Pill(QAbstractButton):
    """A verdict that can be clicked for details."""

    def __init__(self) -> None:
        super().__init__()
        self._ring = False
        self._role = "neutral"
        self._words = ""
        self._figure = ""
        self._angle = 0
        self._turning = QTimer(self)
        self._turning.setInterval(_TURN_MS)
        self._turning.timeout.connect(self._turn)
        self.setFont(ui_font(weight=QFont.Weight.DemiBold, tabular=True))
        # The text is elided if there is no room for it.
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        theme.notifier().changed.connect(self.update)

    def set_state(self, role: str, text: str, figure: str = "", tooltip: str = "") -> None:
        """Set the verdict.

        Args:
            role: One of `MARKS`.
            text, figure: The word, and the number that supports it.
            tooltip: More about it.
        """
        assert role in MARKS, role
        self._role, self._words, self._figure = role, text, figure
        self.setText(self._whole())
        self.setAccessibleName(self._whole())
        self.setToolTip(tooltip)
        self._keep_turning()
        self.updateGeometry()
        self.update()

    def role(self) -> str:
        """Return the role that was set last."""
        return self._role

    def _whole(self) -> str:
        words = " · ".join(part for part in (self._words, self._figure) if part)
        return " ".join(part for part in (MARKS[self._role], words) if part)

    def _colours(self) -> tuple[str, str]:
        colours = theme.current()
        return {
            "right": (colours.right, colours.right_ground),
            "wrong": (colours.wrong, colours.wrong_ground),
            "near": (colours.unsure, colours.changed),
            "unsure": (colours.unsure, colours.changed),
            "neutral": (colours.quiet, colours.hover),
            "busy": (colours.accent, colours.accent_ground),
        }[self._role]

    def _keep_turning(self) -> None:
        if self._role == "busy" and self.isVisible():
            self._turning.start()
        else:
            self._turning.stop()

    def _turn(self) -> None:
        self._angle = (self._angle + 30) % 360
        self.update()

    # Qt

    def sizeHint(self) -> QSize:
        width = TextMetrics(self.font()).horizontalAdvance(self.text())
        busy = 18 if self._role == "busy" else 0
        return QSize(round(width + busy + 2 * _WIDE_PAD), _HEIGHT)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint().boundedTo(QSize(_LEAST, _HEIGHT))

    def showEvent(self, event: object) -> None:
        self._keep_turning()

    def hideEvent(self, event: object) -> None:
        self._turning.stop()

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._ring = came_by_keyboard(event, self._ring)
        super().focusInEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        words, ground = self._colours()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        outer = QRectF(self.rect())
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(ground))
        painter.drawRoundedRect(outer, _ROUND, _ROUND)
        if self._ring and self.hasFocus():
            painter.setPen(QPen(QColor(words), 1))
            painter.drawRoundedRect(outer.adjusted(0.5, 0.5, -0.5, -0.5), _ROUND, _ROUND)
        x = _WIDE_PAD
        if self._role == "busy":
            pen = QPen(QColor(words), 2)
            pen.setCapStyle(Qt.PenCapStyle.RoundCap)
            painter.setPen(pen)
            ring = QRectF(x, outer.center().y() - 5.5, 11, 11)
            painter.drawArc(ring, -self._angle * 16, 270 * 16)
            x += 18
        painter.setPen(QColor(words))
        painter.setFont(self.font())
        room = outer.width() - x - _WIDE_PAD + 1
        text = TextMetrics(self.font()).elidedText(self.text(), Qt.TextElideMode.ElideRight, room)
        painter.drawText(QPointF(x, round(outer.center().y() + UI_PIXELS * 0.364)), text)


_WIDE_PAD = 12.0
_RADIUS = 6.0


@dataclass(frozen=True)
class Segment:
    """A segment: its key, its label, its meaning, and whether it is enabled."""

    key: str
    label: str
    tooltip: str = ""
    enabled: bool = True
    shade: str = "accent"  # Colour of its label while it is on: a field of the theme.


class SegmentedSwitch(QWidget):
    """A switch between segments.

    Args:
        segments: The segments; the first is on.
    """

    changed = Signal(str)  # The user chose another segment; the argument is its key.

    _height = _HEIGHT
    _pad = _WIDE_PAD
    _pixels = UI_PIXELS
    _weight = QFont.Weight.Normal  # of segments that are not on

    def __init__(self, name: str, segments: Sequence[Segment] = ()) -> None:
        super().__init__()
        self._ring = False
        self._name = name
        self._segments: list[Segment] = []
        self._current = ""
        self._hovered = -1
        self._pressed = -1
        self._plain = ui_font(self._pixels, weight=self._weight)
        self._strong = ui_font(self._pixels, weight=QFont.Weight.DemiBold)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        theme.notifier().changed.connect(self.update)
        self.set_segments(segments)

    def set_segments(self, segments: Sequence[Segment]) -> None:
        """Set the segments; the current one stays on if it is among them."""
        self._segments = list(segments)
        if self._current not in [segment.key for segment in segments]:
            self._current = segments[0].key if segments else ""
        self.updateGeometry()
        self._show_current()

    def segments(self) -> list[Segment]:
        return list(self._segments)

    def current(self) -> str:
        """Return key of the segment that is on, or ``""``."""
        return self._current

    def set_current(self, key: str) -> None:
        """Switch to a segment without a signal; ``""`` for none."""
        self._current = key
        self._show_current()

    def set_segment_enabled(self, key: str, enabled: bool, tooltip: str = "") -> None:
        """Set whether a segment is enabled, and the reason if not."""
        self._segments = [
            replace(segment, enabled=enabled, tooltip=tooltip or segment.tooltip)
            if segment.key == key
            else segment
            for segment in self._segments
        ]
        self.update()

    def segment_rect(self, key: str) -> QRectF:
        """Return the area of a segment in the widget."""
        return self._rects()[[segment.key for segment in self._segments].index(key)]

    def _show_current(self) -> None:
        labels = [segment.label for segment in self._segments if segment.key == self._current]
        self.setAccessibleName(labelled(self._name, labels[0]) if labels else self._name)
        self.update()

    def _choose(self, i: int) -> None:
        segment = self._segments[i]
        if self.isEnabled() and segment.enabled and segment.key != self._current:
            self._current = segment.key
            self._show_current()
            self.changed.emit(segment.key)

    def _rects(self) -> list[QRectF]:
        rects = []
        x = 0.0
        metrics = TextMetrics(self._strong)
        for segment in self._segments:
            width = round(metrics.horizontalAdvance(segment.label) + 2 * self._pad)
            rects.append(QRectF(x, 0, width, self._height))
            x += width
        return rects

    def _at(self, place: QPointF) -> int:
        hits = (i for i, rect in enumerate(self._rects()) if rect.contains(place))
        return next(hits, -1)

    def _is_hovered(self, place: int) -> bool:
        return place == self._hovered and self._segments[place].enabled and self.isEnabled()

    def _idle_colour(self) -> str:
        return theme.current().text

    def _step(self, by: int) -> None:
        keys = [segment.key for segment in self._segments]
        i = keys.index(self._current) + by if self._current in keys else 0
        while 0 <= i < len(keys):
            if self._segments[i].enabled:
                self._choose(i)
                return
            i += by or 1

    # Qt

    def sizeHint(self) -> QSize:
        rects = self._rects()
        return QSize(round(rects[-1].right()) if rects else 0, self._height)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._ring = came_by_keyboard(event, self._ring)
        super().focusInEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        rects = self._rects()
        if not rects:
            return
        outer = QRectF(0.5, 0.5, rects[-1].right() - 1, _HEIGHT - 1)
        shape = QPainterPath()
        shape.addRoundedRect(outer, _RADIUS, _RADIUS)
        painter.fillPath(shape, QColor(colours.panel))
        painter.setClipPath(shape)
        for i, (segment, rect) in enumerate(zip(self._segments, rects, strict=True)):
            chosen = segment.key == self._current
            if chosen:
                painter.fillRect(rect, _ground(segment.shade))
            elif self._is_hovered(i):
                painter.fillRect(rect, QColor(colours.hover))
            self._paint_word(painter, segment, rect, chosen)
        painter.setClipping(False)
        painter.setPen(QPen(QColor(colours.line), 1))
        for rect in rects[1:]:
            painter.drawLine(QPointF(rect.left() - 0.5, 1), QPointF(rect.left() - 0.5, _HEIGHT - 1))
        if self._ring and self.hasFocus():
            painter.setPen(QPen(QColor(colours.accent), 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPath(shape)

    def _paint_word(self, painter: QPainter, segment: Segment, rect: QRectF, chosen: bool) -> None:
        colours = theme.current()
        font = self._strong if chosen else self._plain
        usable = segment.enabled and self.isEnabled()
        shade = getattr(colours, segment.shade) if chosen else self._idle_colour()
        painter.setFont(font)
        painter.setPen(QColor(shade if usable else colours.faint))
        width = TextMetrics(font).horizontalAdvance(segment.label)
        base = round(rect.center().y() + self._pixels * 0.364)
        painter.drawText(QPointF(round(rect.center().x() - width / 2), base), segment.label)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        hovered = self._at(event.position())
        if hovered != self._hovered:
            self._hovered = hovered
            self.update()

    def leaveEvent(self, event: QEvent) -> None:
        self._hovered = -1
        self.update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._pressed = self._at(event.position())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        pressed, self._pressed = self._pressed, -1
        if pressed >= 0 and pressed == self._at(event.position()):
            self._choose(pressed)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Up):
            self._step(-1)
        elif event.key() in (Qt.Key.Key_Right, Qt.Key.Key_Down):
            self._step(1)
        else:
            super().keyPressEvent(event)

    def inputMethodQuery(self, query: Qt.InputMethodQuery) -> object:
        # The keyboard's position, where menus and tool tips opened by key appear.
        if query == Qt.InputMethodQuery.ImCursorRectangle and self._current:
            return self.segment_rect(self._current).toRect()
        return super().inputMethodQuery(query)

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            i = self._at(QPointF(event.pos()))
            text = self._segments[i].tooltip if i >= 0 else ""
            QToolTip.showText(event.globalPos(), text, self)
            return True
        return super().event(event)


def _ground(shade: str) -> QColor:
    """Return the background of a segment that is on."""
    colours = theme.current()
    if shade == "accent":
        return QColor(colours.accent_ground)
    front, back = QColor(getattr(colours, shade)), QColor(colours.panel)
    share = 0.22 if colours.dark else 0.13
    mixed = (
        share * one + (1 - share) * other
        for one, other in zip(_channels(front), _channels(back), strict=True)
    )
    return QColor.fromRgbF(*mixed)


def _channels(colour: QColor) -> tuple[float, float, float]:
    return colour.redF(), colour.greenF(), colour.blueF()


_TAB_LINE = 3
_NARROW_PAD = 7.0


class BarTabs(SegmentedSwitch):
    """Large tabs over the whole height of a bar, with a line below the current one."""

    _height = 44
    _pixels = 14.5
    _weight = QFont.Weight.DemiBold

    def _idle_colour(self) -> str:
        return theme.current().quiet

    def set_narrow(self, narrow: bool) -> None:
        """Take less room beside the words."""
        self._pad = _NARROW_PAD if narrow else _WIDE_PAD
        self.updateGeometry()
        self.update()

    # Qt

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = theme.current()
        painter = QPainter(self)
        for place, (segment, rect) in enumerate(zip(self._segments, self._rects(), strict=True)):
            chosen = segment.key == self._current
            if chosen:
                painter.fillRect(rect, QColor(colours.accent_ground))
                line = rect.adjusted(0, self._height - _TAB_LINE, 0, 0)
                painter.fillRect(line, QColor(colours.accent))
            elif self._is_hovered(place):
                painter.fillRect(rect, QColor(colours.hover))
            self._paint_word(painter, segment, rect, chosen)
            if chosen and self._ring and self.hasFocus():
                painter.setPen(QPen(QColor(colours.accent), 1))
                painter.drawRect(rect.adjusted(1.5, 1.5, -1.5, -1.5 - _TAB_LINE))


class SearchField(QAbstractButton):
    """A button that looks like a search field, with the keys that do the same."""

    def __init__(self, words: str, keys: str) -> None:
        super().__init__()
        self._ring = False
        self._keys = keys
        self.setText(words)
        self.setAccessibleName(words)
        self.setToolTip(f"{words} ({keys})")
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        theme.notifier().changed.connect(self.update)

    # Qt

    def sizeHint(self) -> QSize:
        return QSize(304, 22)

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._ring = came_by_keyboard(event, self._ring)
        super().focusInEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours, font, small = theme.current(), ui_font(12), ui_font(_SMALL)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        outer = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.setBrush(QColor(colours.hover if self.underMouse() else colours.ground))
        ring = self._ring and self.hasFocus()
        painter.setPen(QPen(QColor(colours.accent if ring else colours.line), 1))
        painter.drawRoundedRect(outer, 6, 6)
        middle = outer.center().y()
        painter.setPen(QPen(QColor(colours.quiet), 1.3))
        painter.drawEllipse(QRectF(9, middle - 5, 8, 8))
        painter.drawLine(QPointF(16, middle + 2), QPointF(19, middle + 5))
        room = TextMetrics(small).horizontalAdvance(self._keys) + 10
        key = QRectF(outer.right() - room - 4, middle - 8, room, 16)
        painter.setPen(QColor(colours.quiet))
        painter.setFont(font)
        words = TextMetrics(font).elidedText(
            self.text(), Qt.TextElideMode.ElideRight, key.left() - 32
        )
        painter.drawText(QPointF(26, round(middle + 12 * 0.364)), words)
        painter.setPen(QPen(QColor(colours.line), 1))
        painter.setBrush(QColor(colours.panel))
        painter.drawRoundedRect(key, 4, 4)
        painter.setPen(QColor(colours.quiet))
        painter.setFont(small)
        painter.drawText(key, Qt.AlignmentFlag.AlignCenter, self._keys)
