"""Overlays of a graph: the zoom control, the legend of colours, and the minimap."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QLinearGradient, QMouseEvent, QPainter, QPaintEvent, QPen, QPixmap
from PySide6.QtWidgets import QFrame, QToolButton, QWidget

from lowerscope.app.kit import theme
from lowerscope.app.kit.buttons import IconButton
from lowerscope.app.kit.canvas.graph_geometry import GraphIndex
from lowerscope.app.kit.canvas.viewport import ZOOM_STEP
from lowerscope.app.kit.layouts import row_of
from lowerscope.app.kit.theme import Theme, kind_colour, strategy_colour
from lowerscope.app.kit.typefaces import TextMetrics, ui_font
from lowerscope.core.model.graph import Box

# --- Colours of nodes, by strategy, kind, or a value such as a time ---

Colouring = Literal["strategy", "kind", "time", "error"]
"""Property of nodes that colours show; the last two show the values of `CanvasShade`."""

FIGURES: tuple[Colouring, ...] = ("time", "error")
"""Colourings that show values."""


@dataclass(frozen=True)
class CanvasShade:
    """A value of a node that its colour shows."""

    level: float  # From 0, the least in the graph, to 1, the greatest.
    text: str  # The value as text, in place of the badge.
    wrong: bool = False  # Whether the value is wrong, whatever the level.


@dataclass(frozen=True)
class CanvasFigures:
    """Values of nodes by id, and a legend: ``"ramp"`` or ``"wrong"``, and its text."""

    shades: Mapping[str, CanvasShade] = field(default_factory=dict)
    legend: tuple[tuple[str, str], ...] = ()


_GROUNDS = {"added": "right_ground", "removed": "wrong_ground", "changed": "changed"}

STATUSES = frozenset(_GROUNDS)
"""Strategies that are the status of a node in a difference."""


def node_colour(theme: Theme, strategy: str, role: str, colouring: Colouring) -> str:
    """Return the colour of the bar of a node with a strategy, or none, and a role."""
    if colouring == "strategy" and strategy:
        return strategy_colour(theme, strategy)
    if colouring == "strategy":
        return theme.faint if role == "constant" else theme.neutral
    return kind_colour(theme, role)


def status_ground(theme: Theme, status: str) -> str:
    """Return the background of a node with a status in a difference, or of any other node."""
    name = _GROUNDS.get(status)
    ground: str = theme.node if name is None else getattr(theme, name)
    return ground


def shade_colour(theme: Theme, shade: CanvasShade | None, colouring: Colouring) -> str:
    """Return the colour of the bar of a node with a value, or without one."""
    if shade is None:
        return theme.faint
    if shade.wrong:
        return theme.wrong
    return theme.heat if colouring == "time" else theme.neutral


def shade_ground(theme: Theme, shade: CanvasShade, colouring: Colouring) -> str:
    """Return the background of a node with a value: darker for more, or lighter in a dark theme."""
    if shade.wrong:
        return theme.wrong_ground
    return ramp(theme, shade.level, colouring)


def ramp(theme: Theme, level: float, colouring: Colouring) -> str:
    """Return the background for a level from 0 to 1."""
    least = QColor(theme.node)
    most = QColor(theme.heat_ground if colouring == "time" else theme.error_ground)
    parts = zip(least.getRgb()[:3], most.getRgb()[:3], strict=True)  # type: ignore[index]
    return QColor(*(round(a + (b - a) * level) for a, b in parts)).name()


def legend_colour(theme: Theme, key: str, colouring: Colouring) -> str:
    """Return the colour of a strategy or a kind, or of wrong values."""
    if key == "wrong":
        return theme.wrong
    if colouring == "strategy":
        return strategy_colour(theme, key)
    return kind_colour(theme, key)


def present(nodes: Iterable[Box], colouring: Colouring) -> set[str]:
    """Return the strategies or kinds that at least one node has."""
    if colouring == "strategy":
        return {node.strategy for node in nodes if node.strategy}
    # Fused nodes are calls, and have their colour.
    return {"call" if node.kind == "fused" else node.kind for node in nodes}


_LEGEND_PIXELS = 11.0


class ZoomControl(QFrame):
    """Zoom control: minus, the scale, plus, and fit."""

    zoomed = Signal(float)  # The factor by which to change the scale.
    reset = Signal()  # To 100 %, and the whole graph in view.
    fitted = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("floating", True)
        row = row_of(self, margins=2)
        minus = self._button("minus", self.tr("Zoom out (-)"))
        minus.clicked.connect(self._zoom_out)
        self.scale = QToolButton()
        self.scale.setFont(ui_font(_LEGEND_PIXELS, tabular=True))
        self.scale.setToolTip(self.tr("Back to 100 % (0)"))
        self.scale.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.scale.setFixedWidth(46)
        self.scale.clicked.connect(self.reset)
        plus = self._button("plus", self.tr("Zoom in (+)"))
        plus.clicked.connect(self._zoom_in)
        fit = self._button("fit", self.tr("Fit the whole graph (F)"))
        fit.clicked.connect(self.fitted)
        for button in (minus, self.scale, plus, fit):
            row.addWidget(button)
        self.show_zoom(1.0)

    def show_zoom(self, zoom: float) -> None:
        """Show the scale."""
        self.scale.setText(f"{zoom * 100:.0f} %")

    def _zoom_in(self) -> None:
        self.zoomed.emit(ZOOM_STEP)

    def _zoom_out(self) -> None:
        self.zoomed.emit(1 / ZOOM_STEP)

    def _button(self, name: str, tooltip: str) -> QToolButton:
        return IconButton(name, tooltip, size=(24, 22), focus=Qt.FocusPolicy.NoFocus)


class Legend(QWidget):
    """A coloured bar and a label for each strategy, kind or range; transparent to the mouse."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._entries: tuple[tuple[str, str], ...] = ()
        self._colouring: Colouring = "strategy"
        self._font = ui_font(_LEGEND_PIXELS)
        theme.notifier().changed.connect(self.update)

    def set_entries(self, entries: Sequence[tuple[str, str]], colouring: Colouring) -> None:
        """Show these pairs of a strategy or kind and a label."""
        self._entries, self._colouring = tuple(entries), colouring
        self.setAccessibleName(", ".join(word for _, word in entries))
        self.setVisible(bool(entries))
        self.resize(self.sizeHint())
        self.update()

    def words(self) -> list[str]:
        """Return the labels."""
        return [word for _, word in self._entries]

    def sizeHint(self) -> QSize:
        metrics = TextMetrics(self._font)
        width = sum(metrics.horizontalAdvance(word) + 20 for _, word in self._entries)
        return QSize(round(width) + 4, 24)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        # Framed like the zoom control, so that the drawing is seen to continue behind it.
        painter.setPen(QColor(colours.line))
        painter.setBrush(QColor(colours.panel))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6)
        metrics = TextMetrics(self._font)
        painter.setFont(self._font)
        x = 8.0
        base = self.height() / 2 + _LEGEND_PIXELS * 0.364
        for key, word in self._entries:
            bar = QRectF(x, self.height() / 2 - 6, 4, 12)
            if key == "ramp":
                shades = QLinearGradient(bar.bottomLeft(), bar.topLeft())
                for level in (0.0, 1.0):
                    shades.setColorAt(level, QColor(ramp(colours, level, self._colouring)))
                painter.fillRect(bar, shades)
            else:
                painter.fillRect(bar, QColor(legend_colour(colours, key, self._colouring)))
            painter.setPen(QColor(colours.quiet))
            room = self.width() - x - 8
            shown = metrics.elidedText(word, Qt.TextElideMode.ElideRight, room)
            painter.drawText(QPointF(x + 8, base), shown)
            x += metrics.horizontalAdvance(word) + 20


_WIDEST, _HIGHEST = 168.0, 150.0
_NARROWEST, _LOWEST = 36.0, 24.0
# Shares of the width and height of the canvas.
_SHARE_ACROSS, _SHARE_DOWN = 0.2, 0.3
_MARGIN = 4.0
# The visible part is never drawn smaller than this.
_LEAST_SEEN = 6.0


class Minimap(QWidget):
    """A small picture of a graph with a frame around the visible part, which can be dragged."""

    moved = Signal(QPointF)  # The point of the graph that is to be centred.

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._index: GraphIndex | None = None
        self._colouring: Colouring = "strategy"
        self._shades: Mapping[str, CanvasShade] = {}
        self._seen = QRectF()
        self._grip: QPointF | None = None
        self._picture = QPixmap()
        # The canvas behind it need not be repainted when it changes.
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAccessibleName(self.tr("Overview of the graph"))
        self.setToolTip(self.tr("Drag to move (M shows and hides this)"))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        theme.notifier().changed.connect(self._redraw)
        self.hide()

    def show_graph(
        self, index: GraphIndex, colouring: Colouring, shades: Mapping[str, CanvasShade]
    ) -> None:
        """Show another graph, or the same one in other colours."""
        self._index, self._colouring, self._shades = index, colouring, shades
        self._redraw()

    def show_seen(self, seen: QRectF) -> None:
        """Show which part of the graph is visible."""
        if seen != self._seen:
            self._seen = seen
            self.update()

    def seen_rect(self) -> QRectF:
        """Return the area of the frame around the visible part."""
        scale, corner = self._scale()
        rect = QRectF(corner + self._seen.topLeft() * scale, self._seen.size() * scale)
        grow_x = max(0.0, _LEAST_SEEN - rect.width()) / 2
        grow_y = max(0.0, _LEAST_SEEN - rect.height()) / 2
        rect.adjust(-grow_x, -grow_y, grow_x, grow_y)
        return rect & QRectF(self.rect()).adjusted(1, 1, -1, -1)

    def _scale(self) -> tuple[float, QPointF]:
        """Return the scale of the graph, and the position of its origin."""
        bounds = QRectF() if self._index is None else self._index.bounds()
        if bounds.isEmpty():
            return 1.0, QPointF()
        room = QRectF(self.rect()).adjusted(_MARGIN, _MARGIN, -_MARGIN, -_MARGIN)
        scale = min(room.width() / bounds.width(), room.height() / bounds.height())
        return scale, room.center() - bounds.center() * scale

    def _redraw(self) -> None:
        self._picture = QPixmap()
        self.update()

    def _draw(self) -> QPixmap:
        ratio = self.devicePixelRatioF()
        picture = QPixmap(self.size() * ratio)
        picture.setDevicePixelRatio(ratio)
        colours = theme.current()
        picture.fill(QColor(colours.panel))
        if self._index is None:
            return picture
        scale, corner = self._scale()
        painter = QPainter(picture)
        painter.setPen(Qt.PenStyle.NoPen)
        blocks: dict[tuple[str, str, str], list[QRectF]] = {}
        for name, rect in self._index.rects.items():
            node = self._index.nodes[name]
            place = QRectF(corner + rect.topLeft() * scale, rect.size() * scale)
            place.setWidth(max(1.5, place.width()))
            place.setHeight(max(1.0, place.height()))
            ground = self._ground(colours, name)
            blocks.setdefault((ground, node.strategy, node.kind), []).append(place)
        for (ground, strategy, role), places in blocks.items():
            colour = ground or node_colour(colours, strategy, role, self._colouring)
            painter.setBrush(QColor(colour))
            painter.drawRects(places)
        painter.end()
        return picture

    def _ground(self, colours: Theme, name: str) -> str:
        """Return the colour of a node's value, or ``""`` where values are not shown."""
        if self._colouring not in FIGURES:
            return ""
        shade = self._shades.get(name)
        if shade is None:
            return colours.node_line
        return colours.wrong if shade.wrong else shade_ground(colours, shade, self._colouring)

    # Qt

    def sizeHint(self) -> QSize:
        bounds = QRectF() if self._index is None else self._index.bounds()
        if bounds.isEmpty():
            return QSize(0, 0)
        over = self.parentWidget()
        room = QSize() if over is None else over.size()
        widest = min(_WIDEST, room.width() * _SHARE_ACROSS)
        highest = min(_HIGHEST, room.height() * _SHARE_DOWN)
        scale = min(widest / bounds.width(), highest / bounds.height())
        return QSize(
            round(max(_NARROWEST, bounds.width() * scale) + 2 * _MARGIN),
            round(max(_LOWEST, bounds.height() * scale) + 2 * _MARGIN),
        )

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._picture.size() != self.size() * self.devicePixelRatioF():
            self._picture = self._draw()
        colours = theme.current()
        painter = QPainter(self)
        painter.drawPixmap(0, 0, self._picture)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(colours.line), 1))
        painter.drawRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5))
        seen = QColor(colours.text)
        seen.setAlphaF(0.07)
        painter.setBrush(seen)
        painter.setPen(QPen(QColor(colours.quiet), 1))
        painter.drawRect(self.seen_rect().toAlignedRect().adjusted(0, 0, -1, -1))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        rect = self.seen_rect()
        place = event.position()
        # A press outside of the frame moves it there first.
        self._grip = place - rect.center() if rect.contains(place) else QPointF()
        if not rect.contains(place):
            self._go(place)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._grip is not None:
            self._go(event.position() - self._grip)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._grip = None

    def _go(self, place: QPointF) -> None:
        scale, corner = self._scale()
        self.moved.emit((place - corner) / scale)
