"""The drawing of a graph with what floats over it: its parts in tiles, marks, motion, overlays."""

from collections.abc import Collection, Mapping

from PySide6.QtCore import QPointF, QRectF, QSize, QTimer
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QWidget

from lowerscope.app import theme
from lowerscope.app.widgets.canvas.colours import FIGURES, Colouring, present
from lowerscope.app.widgets.canvas.graph import CanvasFigures, CanvasGraph
from lowerscope.app.widgets.canvas.index import GraphIndex
from lowerscope.app.widgets.canvas.minimap import Minimap
from lowerscope.app.widgets.canvas.motion import Motion, State
from lowerscope.app.widgets.canvas.overlays import Legend, ZoomControl
from lowerscope.app.widgets.canvas.paint import GraphPainter, Marks
from lowerscope.app.widgets.canvas.panning_area import PanningArea
from lowerscope.app.widgets.canvas.tiles import Scene, TileCache
from lowerscope.app.widgets.empty_state import EmptyState

# A graph of so many nodes and edges is painted as it is, which is always sharp; above it, in tiles.
_SMALL = 400
_SETTLED_MS = 120
_GAP = 8
# The overview takes no more of the viewport than this share of its width.
_MINIMAP_SHARE = 0.4
# In a narrower viewport the overview would stand on what the boxes say; scroll bars tell the place.
_LEAST_BESIDE_MINIMAP = 300


class CanvasDrawing(PanningArea):
    """A graph that is laid out already, to look at.

    Parameters
    ----------
    parent : QWidget, optional
        The widget that it stands in.

    Attributes
    ----------
    empty, legend, zoom_control, minimap : QWidget
        What floats over the drawing, or stands in its place.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._index = GraphIndex(CanvasGraph())
        self._painter = GraphPainter(self._index)
        self._tiles = TileCache(self._draw_tile)
        self._motion = Motion(self)
        self._motion.moved.connect(self.viewport().update)
        self._selection: frozenset[str] = frozenset()
        self._colouring: Colouring = "strategy"
        self._figures: Mapping[Colouring, CanvasFigures] = {}
        self._labels = True
        self._wants_minimap = True
        self._settled = True
        self._legend_words: dict[Colouring, dict[str, str]] = {
            "strategy": {
                "te": self.tr("TE"),
                "high-level": self.tr("High-level"),
                "library": self.tr("Library"),
            },
            "kind": {
                "input": self.tr("Input"),
                "constant": self.tr("Constant"),
                "call": self.tr("Call"),
                "group": self.tr("Module"),
                "output": self.tr("Output"),
            },
        }
        self.empty = EmptyState("", "", self.viewport())
        self.legend = Legend(self.viewport())
        self.minimap = Minimap(self.viewport())
        self.minimap.moved.connect(self.centre_on)
        self.zoom_control = ZoomControl(self.viewport())
        self.zoom_control.zoomed.connect(self.zoom_by)
        self.zoom_control.reset.connect(self.reset_zoom)
        self.zoom_control.fitted.connect(self.fit)
        self._settle_timer = QTimer(self)
        self._settle_timer.setSingleShot(True)
        self._settle_timer.setInterval(_SETTLED_MS)
        self._settle_timer.timeout.connect(self._settle)
        theme.notifier().changed.connect(self._redraw)

    # What is shown

    def show_graph(
        self,
        graph: CanvasGraph,
        keep_view: bool = False,
        anchor: str = "",
        at: QPointF | None = None,
    ) -> None:
        """Show another graph.

        Parameters
        ----------
        graph : CanvasGraph
            The graph; an empty one shows the empty state.
        keep_view : bool
            Stay at this scale and place, for a graph that is another state of the same.
        anchor : str
            The node that has become a frame, or the other way round: its corner stays where it is.
        at : QPointF, optional
            The place in the viewport where it was clicked; it stays under the mouse.
        """
        before = State(self._index, self._painter)
        corner = None if not anchor else self._index.place(anchor)
        origin = QPointF(self.view.origin)
        self._index = GraphIndex(graph)
        self._painter = self._new_painter()
        self._selection &= self._index.nodes.keys()
        there = bool(graph.nodes)
        if keep_view and not anchor:
            # What is seen of both stays in its place, such as from step to step.
            anchor = self._seen_of_both(before)
            corner = before.index.place(anchor) if anchor else None
            keep_view = bool(anchor) or not before.index.nodes
        self.empty.setVisible(not there)
        self.zoom_control.setVisible(there)
        self.minimap.show_graph(self._index, self._colouring, self._shown_figures().shades)
        self._tiles.clear()
        self._motion.stop()
        self.look_at(self._index.bounds(), None if keep_view else self._middle())
        place = self._index.place(anchor)
        if keep_view and corner is not None and place is not None:
            self._hold(corner, place, origin, at)
        if keep_view and before.index.nodes and self.isVisible():
            shift = (origin - self.view.origin) / self.view.zoom
            self._motion.start(before, State(self._index, self._painter), shift)
        self._show_legend()

    def _seen_of_both(self, before: State) -> str:
        """Return the topmost node in view that both graphs have, with the same words."""
        seen = self.view.to_graph_area(QRectF(self.viewport().rect()))
        there = self._index.nodes
        common = [
            name
            for name in before.index.inside(seen)
            if name in there and there[name].title == before.index.nodes[name].title
        ]
        return min(common, key=lambda name: before.index.rects[name].top(), default="")

    def _hold(self, before: QRectF, after: QRectF, origin: QPointF, at: QPointF | None) -> None:
        """Let the corner of a place stay where it was in the viewport, and the mouse on it."""
        corner = before.topLeft() * self.view.zoom + origin
        wanted = corner - after.topLeft() * self.view.zoom
        if at is not None:
            right = corner.x() + after.width() * self.view.zoom
            wanted.setX(wanted.x() + max(0.0, at.x() - right + _GAP))
        self.view.move_to(wanted)
        self.show_view()

    def graph(self) -> CanvasGraph:
        """The graph that is shown."""
        return self._index.graph

    def set_selection(self, ids: Collection[str]) -> None:
        """Mark these nodes, as far as they are here; the view does not move."""
        self._selection = frozenset(ids) & self._index.nodes.keys()
        self.viewport().update()

    def selection(self) -> frozenset[str]:
        """The nodes that are marked."""
        return self._selection

    def set_empty(self, title: str, hint: str = "") -> None:
        """What is said while there is no node."""
        self.empty.set_text(title, hint)

    def colouring(self) -> Colouring:
        """What the colours of nodes say."""
        return self._colouring

    def set_colouring(self, colouring: Colouring) -> None:
        """Let the colours of nodes say their strategies or their kinds, or show figures."""
        self._colouring = colouring
        self._recolour()

    def set_figures(self, figures: Mapping[Colouring, CanvasFigures]) -> None:
        """Take other figures, by the colouring that shows them."""
        if figures != self._figures:
            self._figures = figures
            if self._colouring in FIGURES:
                self._recolour()

    def has_figures(self, colouring: Colouring) -> bool:
        """Whether there are figures that a colouring would show."""
        figures = self._figures.get(colouring)
        return figures is not None and bool(figures.shades)

    def _shown_figures(self) -> CanvasFigures:
        return self._figures.get(self._colouring, CanvasFigures())

    def _new_painter(self) -> GraphPainter:
        shades = self._shown_figures().shades
        return GraphPainter(self._index, self._labels, self._colouring, shades)

    def _recolour(self) -> None:
        self._painter = self._new_painter()
        self.minimap.show_graph(self._index, self._colouring, self._shown_figures().shades)
        self._show_legend()
        self._redraw()

    def switch_colouring(self) -> None:
        """Go over from strategies to kinds, or back; from figures to strategies."""
        self.set_colouring("kind" if self._colouring == "strategy" else "strategy")

    def set_legend(self, words: Mapping[str, str]) -> None:
        """Say what the colours of strategies mean; those that no node has are left out."""
        self._legend_words["strategy"] = dict(words)
        self._show_legend()

    def labels(self) -> bool:
        """Whether what flows is written beside all edges."""
        return self._labels

    def switch_labels(self) -> None:
        """Write what flows beside all edges, or beside those of marked nodes alone."""
        self._labels = self._painter.labels = not self._labels
        self._redraw()

    def wants_minimap(self) -> bool:
        """Whether there is an overview where the graph is larger than the view."""
        return self._wants_minimap

    def switch_minimap(self) -> None:
        """Have an overview where the graph is larger than the view, or never."""
        self._wants_minimap = not self._wants_minimap
        self._place_overlays()

    def picture(self, *, seen: bool) -> tuple[GraphPainter, QRectF]:
        """What paints the graph as it looks now, and its area, or the one that is seen."""
        area = self.view.to_graph_area(QRectF(self.viewport().rect()))
        return self._painter, area & self._index.bounds() if seen else self._index.bounds()

    # Where the view is

    def go_home(self) -> None:
        """Show the graph as it is first shown: its top, in the middle, at a readable scale."""
        self.look_at(self._index.bounds(), self._middle())

    def reveal(self, name: str) -> bool:
        """Move the view until a node is seen; False when it is not in this graph."""
        place = self._index.place(name)
        if place is None:
            return False
        self.bring_into_view(place)
        return True

    def zoom_to_selection(self) -> None:
        """Show what is selected, as large as it fits, or everything where nothing is."""
        area = QRectF()
        for name in self._selection:
            area |= self._index.rects[name]
        if area.isEmpty():
            self.fit()
        else:
            self.fit_to(area.adjusted(-24, -24, 24, 24))

    def centre_on(self, place: QPointF) -> None:
        """Bring a place of the graph to the middle of the viewport."""
        middle = QRectF(self.viewport().rect()).center()
        self._move_by(middle - place * self.view.zoom - self.view.origin)

    def node_rect(self, name: str) -> QRectF:
        """Where a node, or the frame of what is expanded, stands in the viewport."""
        place = self._index.place(name)
        assert place is not None, name
        return self.view.to_viewport(place)

    def is_moving(self) -> bool:
        """Whether nodes are on their way to their places."""
        return self._motion.is_running()

    def set_zoom(self, zoom: float, anchor: QPointF | None = None) -> None:
        """Change the scale; see `PanningArea`."""
        self._settled = False
        self._settle_timer.start()
        super().set_zoom(zoom, anchor)

    def show_view(self) -> None:
        """Let the scroll bars, the scale, the overview and the picture follow the view."""
        super().show_view()
        self.zoom_control.show_zoom(self.view.zoom)
        seen = self.view.to_graph_area(QRectF(self.viewport().rect()))
        self.minimap.show_seen(seen)
        is_larger = not seen.adjusted(-1, -1, 1, 1).contains(self._index.bounds())
        if self._minimap_fits(is_larger) != self.minimap.isVisibleTo(self.viewport()):
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

    # Overlays

    def _show_legend(self) -> None:
        if self._colouring in FIGURES:
            words = self._shown_figures().legend or (("none", self.tr("nothing measured yet")),)
            self.legend.set_entries(words, self._colouring)
            self._place_overlays()
            return
        there = present(self._index.graph.nodes, self._colouring)
        known = self._legend_words[self._colouring]
        self.legend.set_entries(
            [(key, word) for key, word in known.items() if key in there], self._colouring
        )
        self._place_overlays()

    def _minimap_fits(self, is_larger: bool) -> bool:
        size, area = self.minimap.sizeHint(), self.viewport().size()
        return (
            self._wants_minimap
            and is_larger
            and size.width() > 0
            and area.width() >= _LEAST_BESIDE_MINIMAP
            and size.width() <= area.width() * _MINIMAP_SHARE
            and size.height() <= area.height() * _MINIMAP_SHARE
        )

    def _place_overlays(self) -> None:
        area = self.viewport().rect()
        self.empty.setGeometry(area)
        size = self.zoom_control.sizeHint()
        right, bottom = area.width() - size.width() - _GAP, area.height() - size.height() - _GAP
        self.zoom_control.setGeometry(right, bottom, size.width(), size.height())
        legend = self.legend.sizeHint()
        middle = bottom + (size.height() - legend.height()) // 2
        # Where there is no room beside the buttons, it stands above them.
        beside = _GAP + legend.width() < right
        at = middle if beside else bottom - legend.height() - 4
        room = area.width() - 2 * _GAP
        self.legend.setGeometry(_GAP, at, min(legend.width(), room), legend.height())
        self.legend.setVisible(bool(self.legend.words()))
        seen = self.view.to_graph_area(QRectF(area))
        is_larger = not seen.adjusted(-1, -1, 1, 1).contains(self._index.bounds())
        self.minimap.setVisible(self._minimap_fits(is_larger))
        map_size = self.minimap.sizeHint()
        self.minimap.setGeometry(
            area.width() - map_size.width() - _GAP,
            (bottom if beside else at) - map_size.height() - _GAP,
            map_size.width(),
            map_size.height(),
        )

    # Painting

    def marks(self) -> Marks:
        """What is marked."""
        return Marks(selection=self._selection)

    def _draw_tile(self, painter: QPainter, area: QRectF, zoom: float) -> None:
        self._painter.paint(painter, area, zoom)

    def _paint_still(self, painter: QPainter, area: QRectF, is_frame: bool) -> None:
        zoom, origin = self.view.zoom, self.view.origin
        graph = self._index.graph
        ground = QColor(theme.current().panel)
        if len(graph.nodes) + len(graph.edges) > _SMALL:
            scene = Scene(self.viewport().rect(), origin, zoom)
            bounds, settled = self._index.bounds(), self._settled
            if not self._tiles.paint(painter, scene, ground, settled, bounds, is_frame):
                self.viewport().update()
        painter.translate(origin)
        painter.scale(zoom, zoom)
        if len(graph.nodes) + len(graph.edges) <= _SMALL:
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

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_overlays()
