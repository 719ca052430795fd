"""Drawing of a graph: tiles, marks, animation, and the overlays."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from PySide6.QtCore import QEasingCurve, QObject, QPointF, QRectF, QSize, QVariantAnimation, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QWidget

from lowerscope.app.kit import theme
from lowerscope.app.kit.background import single_shot
from lowerscope.app.kit.canvas.colouring import FIGURES, CanvasFigures, Colouring, Colours
from lowerscope.app.kit.canvas.detail import BESIDE, BLOCK_SCALE, Block
from lowerscope.app.kit.canvas.graph_geometry import GraphIndex
from lowerscope.app.kit.canvas.graph_painting import GraphPainter, Marks, paint_frames
from lowerscope.app.kit.canvas.overlays import LEGEND_LINE, Legend, Minimap, ZoomControl
from lowerscope.app.kit.canvas.viewport import PanningArea, Scene, TileCache
from lowerscope.app.kit.pane_messages import EmptyState
from lowerscope.core.model.graph import STRATEGY_NAMES, GraphRecord
from lowerscope.core.model.texts import _

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

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
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
        origin = QPointF(self.view.origin)
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
            self._hold(corner, place, origin, at)
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

    def _hold(self, before: QRectF, after: QRectF, origin: QPointF, at: QPointF | None) -> None:
        """Keep a corner at its position in the viewport, and under the mouse."""
        corner = before.topLeft() * self.view.zoom + origin
        wanted = corner - after.topLeft() * self.view.zoom
        if at is not None:
            right = corner.x() + after.width() * self.view.zoom
            wanted.setX(wanted.x() + max(0.0, at.x() - right + _GAP))
        self.view.move_to(wanted)
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
            # The border of the footer.
            painter.resetTransform()
            rect = self.viewport().rect()
            painter.fillRect(0, rect.bottom(), rect.width(), 1, QColor(theme.current().line))

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._place_overlays()
        super().resizeEvent(event)
