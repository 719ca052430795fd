"""Drawing of a graph: tiles, marks, animation, and the overlays."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from PySide6.QtCore import (
    QEasingCurve,
    QObject,
    QPointF,
    QRectF,
    QSize,
    Qt,
    QVariantAnimation,
    Signal,
)
from PySide6.QtGui import (
    QColor,
    QLinearGradient,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
)
from PySide6.QtWidgets import QFrame, QToolButton, QWidget

from lowerscope.app.kit import theme
from lowerscope.app.kit.background import single_shot
from lowerscope.app.kit.buttons import IconButton
from lowerscope.app.kit.canvas.colouring import FIGURES, CanvasFigures, Colouring, Colours
from lowerscope.app.kit.canvas.detail import BESIDE, BLOCK_SCALE, Block
from lowerscope.app.kit.canvas.graph_geometry import GraphIndex
from lowerscope.app.kit.canvas.graph_painting import GraphPainter, Marks, paint_frames
from lowerscope.app.kit.canvas.viewport import ZOOM_STEP, PanningArea, Scene, TileCache
from lowerscope.app.kit.glossary import open_term, term_of, told_label
from lowerscope.app.kit.layouts import row_of
from lowerscope.app.kit.pane_messages import EmptyState
from lowerscope.app.kit.typefaces import TextMetrics, ui_font
from lowerscope.core.model.graph import STRATEGY_NAMES, GraphRecord
from lowerscope.core.model.texts import _

# --- Controls beside a graph: the zoom control, the legend of colours, and the minimap ---

_LEGEND_PIXELS = 11.0
LEGEND_LINE, LEGEND_LINES = 18, 2
"""Height of a line of the legend, and the greatest number of lines."""

_MARK, _BETWEEN = 14.0, 12.0


class ZoomControl(QFrame):
    """Zoom control: minus, the scale, plus, and fit."""

    zoomed = Signal(float)  # The factor by which to change the scale.
    reset = Signal()  # To 100 %, and the whole graph in view.
    fitted = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("floating", True)
        row = row_of(self, margins=2)
        minus = self._button("minus", _("Zoom out (-)"))
        minus.clicked.connect(self._zoom_out)
        self.scale = QToolButton()
        self.scale.setFont(ui_font(_LEGEND_PIXELS, tabular=True))
        self.scale.setToolTip(_("Back to 100 % (0)"))
        self.scale.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.scale.setFixedWidth(46)
        self.scale.clicked.connect(self.reset)
        plus = self._button("plus", _("Zoom in (+)"))
        plus.clicked.connect(self._zoom_in)
        fit = self._button("fit", _("Fit the whole graph (F)"))
        fit.clicked.connect(self.fitted)
        for button in (minus, self.scale, plus, fit):
            row.addWidget(button)
        self.show_zoom(1.0)

    def show_zoom(self, zoom: float) -> None:
        """Show the scale."""
        self.scale.setText(f"{zoom * 100:.{0 if zoom >= 0.0095 else 1}f} %")

    def _zoom_in(self) -> None:
        self.zoomed.emit(ZOOM_STEP)

    def _zoom_out(self) -> None:
        self.zoomed.emit(1 / ZOOM_STEP)

    def _button(self, name: str, tooltip: str) -> QToolButton:
        return IconButton(name, tooltip, size=(24, 22), focus=Qt.FocusPolicy.NoFocus)


class Legend(QWidget):
    """A coloured mark and a label for each family, strategy or range, in at most two lines.

    Those that do not fit are counted at the end, and named in the tool tip.
    """

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._entries: tuple[tuple[str, str], ...] = ()
        self._colours = Colours()
        self._font = ui_font(_LEGEND_PIXELS)
        self._metrics = TextMetrics(self._font)
        theme.notifier().changed.connect(self.update)

    def set_entries(self, entries: Sequence[tuple[str, str]], colours: Colours) -> None:
        """Show these pairs of a key and a label."""
        self._entries, self._colours = tuple(entries), colours
        self.setAccessibleName(_(", ").join(self.words()))
        self.setToolTip("\n".join(told_label(word) for word in self.words()))
        self.setVisible(bool(entries))
        self.update()

    def words(self) -> list[str]:
        """Return the labels."""
        return [word for _, word in self._entries]

    def lines(self, width: float) -> int:
        """Return the number of lines that the labels take in a width."""
        return 1 + max((line for line, *_rest in self._places(width)), default=-1)

    def _places(self, width: float) -> list[tuple[int, float, str, str]]:
        """Return the line of each entry, its left end, its key, and its label as it fits.

        The last one may be the count of those that do not fit, without a key.
        """
        advance, places = self._metrics.horizontalAdvance, []
        line, x = 0, 0.0
        for key, word in self._entries:
            needed = _MARK + advance(word)
            if x and x + needed > width:
                line, x = line + 1, 0.0
            right = Qt.TextElideMode.ElideRight
            fitted = self._metrics.elidedText(word, right, width - x - _MARK + 1)
            places.append((line, x, key, fitted))
            x += needed + _BETWEEN
        shown = sum(each[0] < LEGEND_LINES for each in places)
        while shown < len(places):
            line, x, _key, word = places[shown - 1]
            more = f"+{len(places) - shown}"
            x += _MARK + advance(word) + _BETWEEN
            if shown == 1 or x + advance(more) <= width:
                return [*places[:shown], (line, x, "", more)]
            shown -= 1
        return places

    # Qt

    def mousePressEvent(self, event: QMouseEvent) -> None:
        at = event.position()
        for line, x, _key, word in self._places(self.width()):
            wide = _MARK + self._metrics.horizontalAdvance(word)
            term = term_of(word)
            if term and QRectF(x, line * LEGEND_LINE, wide, LEGEND_LINE).contains(at):
                open_term(self, term)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self._font)
        for line, x, key, word in self._places(self.width()):
            middle = LEGEND_LINE * (line + 0.5)
            mark = QRectF(x, middle - 4.5, 9, 9)
            painter.setPen(Qt.PenStyle.NoPen)
            if not key:
                painter.setBrush(Qt.BrushStyle.NoBrush)
            elif key == "ramp":
                shades = QLinearGradient(mark.bottomLeft(), mark.topLeft())
                for level in (0.0, 1.0):
                    shades.setColorAt(level, QColor(self._colours.ramp(colours, level)))
                painter.setBrush(shades)
            else:
                painter.setBrush(QColor(self._colours.legend_colour(colours, key)))
            painter.drawRoundedRect(mark, 2, 2)
            painter.setPen(QColor(colours.quiet))
            if not key:
                x -= _MARK
            painter.drawText(QPointF(x + _MARK, middle + _LEGEND_PIXELS * 0.364), word)


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
        self._colours = Colours()
        self._seen = QRectF()
        self._grip: QPointF | None = None
        self._picture = QPixmap()
        # The canvas behind it need not be repainted when it changes.
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAccessibleName(_("Overview of the graph"))
        self.setToolTip(_("Drag to move (M shows and hides this)"))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        theme.notifier().changed.connect(self._redraw)
        self.hide()

    def show_graph(self, index: GraphIndex, colours: Colours) -> None:
        """Show another graph, or the same one in other colours."""
        self._index, self._colours = index, colours
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
        places: dict[str, list[QRectF]] = {}
        for name, rect in self._index.rects.items():
            place = QRectF(corner + rect.topLeft() * scale, rect.size() * scale)
            place.setWidth(max(1.5, place.width()))
            place.setHeight(max(1.0, place.height()))
            colour = self._colours.mark(colours, self._index.nodes[name])
            places.setdefault(colour, []).append(place)
        for colour, rects in places.items():
            painter.setBrush(QColor(colour))
            painter.drawRects(rects)
        painter.end()
        return picture

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


# --- Animation from one state of a graph to another ---

DURATION_MS = 180
MOST = 2000
"""Nodes of a graph that is animated at the most; a larger one changes at once."""


@dataclass(frozen=True)
class State:
    """A graph and its painter."""

    index: GraphIndex
    painter: GraphPainter


@dataclass(frozen=True)
class _Path:
    """The path of a node, and its opacity at the start and at the end."""

    name: str
    state: State
    start: QRectF
    end: QRectF
    opacity: tuple[float, float] = (1.0, 1.0)


class Motion(QObject):
    """Animation of the nodes that two states of a graph share, or that leave or enter a group.

    Only the picture is animated: all else is in the new state from the start.
    """

    moved = Signal()  # The picture has changed.

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._states: tuple[State, State] | None = None
        self._paths: list[_Path] = []
        self._shift = QPointF()
        self._animation = QVariantAnimation(self)
        self._animation.setDuration(DURATION_MS)
        self._animation.setEasingCurve(QEasingCurve.Type.InOutCubic)
        self._animation.setStartValue(0.0)
        self._animation.setEndValue(1.0)
        self._animation.valueChanged.connect(self._move)
        self._animation.finished.connect(self.stop)

    def start(self, before: State, after: State, shift: QPointF) -> None:
        """Animate from one state to another, unless they are large.

        Args:
            before, after: The states.
            shift: Offset from a position in the first state to the same position in the viewport.
        """
        self.stop()
        if max(len(before.index.nodes), len(after.index.nodes)) > MOST:
            return
        self._states, self._shift = (before, after), shift
        self._paths = [*_leaving(before, after, shift), *_staying(before, after, shift)]
        self._animation.start()

    def stop(self) -> None:
        """Jump to the end."""
        self._animation.stop()
        self._states, self._paths = None, []
        self.moved.emit()

    def is_running(self) -> bool:
        """Return whether the animation runs, and `paint` paints the picture."""
        return self._states is not None

    def paint(self, painter: QPainter, area: QRectF, zoom: float) -> None:
        """Paint the current frame; the painter's coordinates are the new graph's."""
        assert self._states is not None
        before, after = self._states
        share = float(self._animation.currentValue())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setOpacity(max(0.0, 1 - 2 * share))
        painter.translate(self._shift)
        self._paint_ground(painter, before, area.translated(-self._shift), zoom)
        painter.translate(-self._shift)
        painter.setOpacity(max(0.0, 2 * share - 1))
        self._paint_ground(painter, after, area, zoom)
        for path in self._paths:
            rect = QRectF(
                path.start.x() + (path.end.x() - path.start.x()) * share,
                path.start.y() + (path.end.y() - path.start.y()) * share,
                path.end.width(),
                path.end.height(),
            )
            if rect.intersects(area):
                first, last = path.opacity
                painter.setOpacity(first + (last - first) * share)
                nodes = path.state.painter.nodes
                nodes.paint_at(painter, path.state.index.nodes[path.name], rect, zoom)
        painter.setOpacity(1.0)

    def _paint_ground(self, painter: QPainter, state: State, area: QRectF, zoom: float) -> None:
        if painter.opacity() > 0:
            paint_frames(painter, state.index.graph.regions, area, zoom)
            state.painter.paint_edges(painter, area, zoom)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)

    def _move(self) -> None:
        self.moved.emit()


def _staying(before: State, after: State, shift: QPointF) -> list[_Path]:
    """Return the paths of the nodes that the new state has."""
    paths = []
    for name, end in after.index.rects.items():
        start = before.index.rects.get(name)
        if start is not None:
            paths.append(_Path(name, after, start.translated(shift), end))
        else:
            out_of = _group_of(name, after.index, before.index)
            start = QRectF(end) if out_of is None else _in_middle(end, out_of.translated(shift))
            paths.append(_Path(name, after, start, end, (0.0, 1.0)))
    return paths


def _leaving(before: State, after: State, shift: QPointF) -> list[_Path]:
    """Return the paths of the nodes that the new state does not have."""
    paths = []
    for name, start in before.index.rects.items():
        if name not in after.index.rects:
            into = _group_of(name, before.index, after.index)
            end = start.translated(shift) if into is None else _in_middle(start, into)
            paths.append(_Path(name, before, start.translated(shift), end, (1.0, 0.0)))
    return paths


def _group_of(name: str, inner: GraphIndex, outer: GraphIndex) -> QRectF | None:
    """Return the collapsed group in the other state that contains a node of this one."""
    return next(
        (outer.rects[frame] for frame in inner.frames_around(name) if frame in outer.rects), None
    )


def _in_middle(rect: QRectF, of: QRectF) -> QRectF:
    """Return a rectangle centred in another."""
    moved = QRectF(rect)
    moved.moveCenter(of.center())
    return moved


# A graph of up to this many nodes and edges is painted directly, which is always sharp; a larger
# one in tiles.
_SMALL = 400
_SETTLED_MS = 120
_GAP = 8
_FOOTER = 36
"""Height of the strip below the graph, with legend and zoom control beside each other."""

# Greatest share of the height for the overview, and the least width of a graph that has one beside
# it; in a narrower pane, scroll bars show the position.
_MINIMAP_SHARE = 0.4
_LEAST_BESIDE_MINIMAP = 480

_LEAST_WITH_SCALE = 320
"""Least width of a graph whose zoom control says the scale."""


class CanvasDrawing(PanningArea):
    """A drawing of a graph that has a layout."""

    def __init__(self) -> None:
        super().__init__()
        self._index = GraphIndex(GraphRecord())
        self._painter = GraphPainter(self._index)
        self._tiles = TileCache(self._draw_tile)
        self._motion = Motion(self)
        self._motion.moved.connect(self.viewport().update)
        self._selection: frozenset[str] = frozenset()
        self._colouring: Colouring = "family"
        self._figures: Mapping[Colouring, CanvasFigures] = {}
        self._strategies: Mapping[str, str] = STRATEGY_NAMES
        self._labels = True
        self._wants_minimap = True
        self._settled = True
        # What stands beside the drawing; ``empty`` replaces it.
        self.empty = EmptyState("", "", self.viewport())
        self.legend = Legend(self)
        self.minimap = Minimap(self)
        self.minimap.moved.connect(self.centre_on)
        self.zoom_control = ZoomControl(self)
        self.zoom_control.zoomed.connect(self.zoom_by)
        self.zoom_control.reset.connect(self.reset_zoom)
        self.zoom_control.fitted.connect(self.fit)
        self._settle_timer = single_shot(self, _SETTLED_MS, self._settle)
        theme.notifier().changed.connect(self._redraw)

    # Content

    def show_graph(
        self,
        graph: GraphRecord,
        keep_view: bool = False,
        anchor: str = "",
        at: QPointF | None = None,
    ) -> None:
        """Show another graph.

        Args:
            graph: The graph; an empty one shows the empty state.
            keep_view: Keep the scale and position, for another state of the same graph.
            anchor: The node that has become a frame, or vice versa: its corner keeps its position.
            at: The position in the viewport that was clicked; it stays under the mouse.
        """
        before = State(self._index, self._painter)
        corner = None if not anchor else self._index.place(anchor)
        origin, was_whole = QPointF(self.view.origin), self.view.is_whole()
        self._index = GraphIndex(graph)
        self._painter = self._new_painter()
        self._selection &= self._index.nodes.keys()
        there = bool(graph.boxes)
        if keep_view and not anchor:
            # What is visible in both keeps its position, such as from step to step.
            anchor = self._seen_of_both(before)
            corner = before.index.place(anchor) if anchor else None
            keep_view = bool(anchor) or not before.index.nodes
        self.empty.setVisible(not there)
        self._tiles.clear()
        self._motion.stop()
        self._show_colours()
        self.look_at(self._index.bounds(), None if keep_view else self._middle())
        place = self._index.place(anchor)
        if keep_view and corner is not None and place is not None:
            self._hold(corner, place, origin, at, whole=was_whole)
        if keep_view and before.index.nodes and self.isVisible():
            shift = (origin - self.view.origin) / self.view.zoom
            if self.view.zoom >= BLOCK_SCALE:
                self._motion.start(before, State(self._index, self._painter), shift)

    def _seen_of_both(self, before: State) -> str:
        """Return the topmost visible node that both graphs have, with the same text."""
        seen = self.view.to_graph_area(QRectF(self.viewport().rect()))
        there = self._index.nodes
        common = [
            name
            for name in before.index.inside(seen)
            if name in there and there[name].title == before.index.nodes[name].title
        ]
        return min(common, key=lambda name: before.index.rects[name].top(), default="")

    def _hold(
        self, before: QRectF, after: QRectF, origin: QPointF, at: QPointF | None, whole: bool
    ) -> None:
        """Keep a corner at its position in the viewport, and under the mouse.

        Args:
            before, after: The place of its node in the graph before and in this one.
            origin: The position of the graph before in the viewport.
            at: The position of the mouse, if it was clicked.
            whole: Whether all of the graph before was visible, as all of this one is to be.
        """
        corner = before.topLeft() * self.view.zoom + origin
        wanted = corner - after.topLeft() * self.view.zoom
        if at is not None:
            right = corner.x() + after.width() * self.view.zoom
            wanted.setX(wanted.x() + max(0.0, at.x() - right + _GAP))
        self.view.move_to(wanted)
        if whole and not self.view.is_whole():
            self.view.show_whole()
        self.show_view()

    def graph(self) -> GraphRecord:
        """Return the graph that is shown."""
        return self._index.graph

    def set_selection(self, ids: Collection[str]) -> None:
        """Mark these nodes as selected, as far as they are in the graph; the view does not move."""
        self._selection = frozenset(ids) & self._index.nodes.keys()
        self.viewport().update()

    def selection(self) -> frozenset[str]:
        """Return the selected nodes."""
        return self._selection

    def set_empty(self, title: str, hint: str = "") -> None:
        """Set the text that is shown while there are no nodes."""
        self.empty.set_text(title, hint)

    def colouring(self) -> Colouring:
        """Return the property that the colours of nodes show."""
        return self._colouring

    def set_colouring(self, colouring: Colouring) -> None:
        """Colour nodes by operator family, by strategy or by a value."""
        self._colouring = colouring
        self._recolour()

    def set_figures(self, figures: Mapping[Colouring, CanvasFigures]) -> None:
        """Set the values of nodes, by the colouring that shows them."""
        if figures != self._figures:
            self._figures = figures
            if self._colouring in FIGURES:
                self._recolour()

    def has_figures(self, colouring: Colouring) -> bool:
        """Return whether a colouring has values to show."""
        figures = self._figures.get(colouring)
        return figures is not None and bool(figures.shades)

    def _colours(self) -> Colours:
        nothing = CanvasFigures(legend=(("none", _("nothing measured yet")),))
        figures = self._figures.get(self._colouring, nothing)
        return Colours(self._colouring, figures, self._strategies)

    def _new_painter(self) -> GraphPainter:
        return GraphPainter(self._index, self._labels, self._colours())

    def _recolour(self) -> None:
        self._painter.set_colours(self._colours())
        self._show_colours()
        self._redraw()

    def _show_colours(self) -> None:
        colours = self._colours()
        self.minimap.show_graph(self._index, colours)
        self.legend.set_entries(colours.legend(self._index.graph.boxes), colours)
        self._place_overlays()

    def switch_colouring(self) -> None:
        """Switch from families to strategies or back, or from values to families."""
        self.set_colouring("strategy" if self._colouring == "family" else "family")

    def set_legend(self, words: Mapping[str, str]) -> None:
        """Set the names of strategies, or of the statuses in a difference, which colours show."""
        self._strategies = words
        self._recolour()

    def labels(self) -> bool:
        """Return whether all edges have labels."""
        return self._labels

    def switch_labels(self) -> None:
        """Label all edges, or only those of marked nodes."""
        self._labels = self._painter.labels = not self._labels
        self._redraw()

    def wants_minimap(self) -> bool:
        """Return whether a graph larger than the view has an overview."""
        return self._wants_minimap

    def switch_minimap(self) -> None:
        """Switch the overview of graphs larger than the view on or off."""
        self._wants_minimap = not self._wants_minimap
        self._place_overlays()

    def block_at(self, place: QPointF) -> Block | None:
        """Return the block in the place of nodes at a position in the viewport."""
        return self._painter.detail.at(self.view.zoom).at(self.view.to_graph(place))

    def picture(self, *, seen: bool) -> tuple[GraphPainter, QRectF]:
        """Return a painter of the graph in its current state, and its area or the visible part."""
        area = self.view.to_graph_area(QRectF(self.viewport().rect()))
        return self._painter, area & self._index.bounds() if seen else self._index.bounds()

    # View

    def go_home(self) -> None:
        """Show the initial view: the top of the graph, centred, at a readable scale."""
        self.look_at(self._index.bounds(), self._middle())

    def reveal(self, name: str) -> bool:
        """Scroll until a node is visible; return False if it is not in this graph."""
        place = self._index.place(name)
        if place is None:
            return False
        self.bring_into_view(place)
        return True

    def zoom_to_selection(self) -> None:
        """Fit the selection into the view, or the whole graph where nothing is selected."""
        area = QRectF()
        for name in self._selection:
            area |= self._index.rects[name]
        if area.isEmpty():
            self.fit()
        else:
            self.fit_to(area.adjusted(-24, -24, 24, 24))

    def centre_on(self, place: QPointF) -> None:
        """Centre the view on a point of the graph."""
        middle = QRectF(self.viewport().rect()).center()
        self._move_by(middle - place * self.view.zoom - self.view.origin)

    def has_node(self, name: str) -> bool:
        """Return whether a node, or an expanded group, is drawn."""
        return self._index.place(name) is not None

    def node_rect(self, name: str) -> QRectF:
        """Return the area of a node, or of the frame of an expanded group, in the viewport."""
        place = self._index.place(name)
        assert place is not None, name
        return self.view.to_viewport(place)

    def is_moving(self) -> bool:
        """Return whether nodes are being animated."""
        return self._motion.is_running()

    def set_zoom(self, zoom: float, anchor: QPointF | None = None) -> None:
        """Change the scale; see `PanningArea`."""
        self._settled = False
        self._settle_timer.start()
        super().set_zoom(zoom, anchor)

    def show_view(self) -> None:
        """Update scroll bars, scale, overview and picture to the view."""
        super().show_view()
        self.zoom_control.show_zoom(self.view.zoom)
        seen = self.view.to_graph_area(QRectF(self.viewport().rect()))
        self.minimap.show_seen(seen)
        if self._minimap_fits() != self.minimap.isVisibleTo(self):
            self._place_overlays()

    def _middle(self) -> float:
        top = self._index.top()
        return self._index.rects[top].center().x() if top else 0.0

    def _settle(self) -> None:
        self._settled = True
        self.viewport().update()

    def _redraw(self) -> None:
        self._tiles.clear()
        self.viewport().update()

    # What stands beside the drawing

    def _minimap_fits(self) -> bool:
        """Return whether there is an overview: where not all of the graph is seen."""
        size, area = self.minimap.sizeHint(), self.contentsRect().size()
        whole = self.viewport().size()
        if self.minimap.isVisibleTo(self):
            # Without the overview, the graph would have its room as well.
            whole += QSize(self.minimap.width() + _GAP, 0)
        seen = self.view.to_graph_area(QRectF(QPointF(), whole.toSizeF()))
        return (
            self._wants_minimap
            and not seen.adjusted(-1, -1, 1, 1).contains(self._index.bounds())
            and size.width() > 0
            and area.width() >= _LEAST_BESIDE_MINIMAP
            and size.height() <= area.height() * _MINIMAP_SHARE
        )

    def _place_overlays(self) -> None:
        """Place the footer and the overview, outside of the viewport: they cover no node."""
        self.zoom_control.scale.setVisible(self.width() >= _LEAST_WITH_SCALE)
        zoom, overview = self.zoom_control.sizeHint(), self.minimap.sizeHint()
        fits = self._minimap_fits()
        there = bool(self._index.graph.boxes)
        self.minimap.setVisible(fits)
        right = overview.width() + _GAP if fits else 0
        self.setViewportMargins(0, self._header(), right, _FOOTER if there else 0)
        area = self.viewport().geometry()
        top = area.bottom() + 1
        self.empty.setGeometry(self.viewport().rect())
        self.zoom_control.setVisible(there)
        self.legend.setVisible(there and bool(self.legend.words()))
        at = top + (_FOOTER - zoom.height()) // 2
        left = area.right() + right + 1 - zoom.width() - _GAP
        self.zoom_control.setGeometry(left, at, zoom.width(), zoom.height())
        width = left - 2 * _GAP
        height = LEGEND_LINE * self.legend.lines(width)
        self.legend.setGeometry(_GAP, top + (_FOOTER - height) // 2, width, height)
        self.minimap.setGeometry(
            area.right() + 1,
            area.bottom() - overview.height() - _GAP,
            overview.width(),
            overview.height(),
        )

    def _header(self) -> int:
        """Return the height of what stands above the drawing."""
        return 0

    # Painting

    def marks(self) -> Marks:
        """Return the marks of the graph."""
        return Marks(selection=self._selection)

    def _draw_tile(self, painter: QPainter, area: QRectF, zoom: float) -> None:
        self._painter.paint(painter, area, zoom)

    def _paint_still(self, painter: QPainter, area: QRectF, is_frame: bool) -> None:
        zoom, origin = self.view.zoom, self.view.origin
        graph = self._index.graph
        ground = QColor(theme.current().panel)
        if len(graph.boxes) + len(graph.edges) > _SMALL:
            scene = Scene(self.viewport().rect(), origin, zoom)
            # Names far out are wider than what they stand for.
            beside = BESIDE / zoom
            bounds = self._index.bounds().adjusted(-beside, -beside, beside, beside)
            settled = self._settled
            if not self._tiles.paint(painter, scene, ground, settled, bounds, is_frame):
                self.viewport().update()
        painter.translate(origin)
        painter.scale(zoom, zoom)
        if len(graph.boxes) + len(graph.edges) <= _SMALL:
            self._painter.paint(painter, area, zoom)
        seen = self.view.to_graph_area(QRectF(self.viewport().rect()))
        self._painter.paint_marks(painter, seen, zoom, self.marks())

    # Qt

    def sizeHint(self) -> QSize:
        return QSize(300, 400)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self.viewport())
        painter.fillRect(event.rect(), QColor(theme.current().panel))
        area = self.view.to_graph_area(QRectF(event.rect()).adjusted(-8, -8, 8, 8))
        if self._motion.is_running():
            painter.translate(self.view.origin)
            painter.scale(self.view.zoom, self.view.zoom)
            self._motion.paint(painter, area, self.view.zoom)
        else:
            self._paint_still(painter, area, event.rect() == self.viewport().rect())
        if self._index.nodes:
            # The borders of the footer, and of the column of the overview: boxes end there.
            painter.resetTransform()
            rect, line = self.viewport().rect(), QColor(theme.current().line)
            painter.fillRect(0, rect.bottom(), rect.width(), 1, line)
            if self.minimap.isVisible():
                painter.fillRect(rect.right(), 0, 1, rect.height(), line)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._place_overlays()
        super().resizeEvent(event)
