"""A graph that is looked at: select, hover, and walk along its edges by keyboard."""

from collections.abc import Callable, Collection, Mapping

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QToolTip, QWidget

from lowerscope.app import theme
from lowerscope.app.widgets.canvas_graph import (
    CanvasEdge,
    CanvasGraph,
    CanvasNode,
    CanvasRegion,
    GraphIndex,
    strategies,
)
from lowerscope.app.widgets.canvas_overlays import Legend, ZoomControl
from lowerscope.app.widgets.canvas_paint import GraphPainter, View
from lowerscope.app.widgets.empty_state import EmptyState
from lowerscope.app.widgets.panning_area import PanningArea

__all__ = ["CanvasEdge", "CanvasGraph", "CanvasNode", "CanvasRegion", "GraphCanvas"]

# A press that moves less than this many pixels is a click.
_DRAG = 4


class GraphCanvas(PanningArea):
    """A graph that is laid out already.

    The wheel scrolls, with Ctrl it zooms where the mouse is; dragging the ground, or anything
    with the middle button or the space bar, moves it; a double click on the ground or F shows
    all of it; ``+``, ``-`` and ``0`` zoom; the arrows walk along the edges.

    Parameters
    ----------
    name : str
        What it is called by a screen reader.
    parent : QWidget, optional
        The widget that it stands in.

    Attributes
    ----------
    tooltip : callable or None
        Gives the words that appear over a node, from its id.

    Signals
    -------
    node_clicked(str, Qt.KeyboardModifiers)
        A node was clicked, walked to, or entered.
    node_hovered(str)
        The node under the mouse, or ``""``.
    background_clicked()
        The ground was clicked, without dragging.
    menu_requested(str, QPoint)
        A context menu is wanted: the node or ``""``, and a place on the screen.
    """

    node_clicked = Signal(str, object)
    node_hovered = Signal(str)
    background_clicked = Signal()
    menu_requested = Signal(str, QPoint)

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.tooltip: Callable[[str], str] | None = None
        self._index = GraphIndex(CanvasGraph())
        self._painter = GraphPainter(self._index)
        self._selection: frozenset[str] = frozenset()
        self._hovered = ""
        self._walked = ""
        self._press: QPointF | None = None
        self._legend_words = {
            "te": self.tr("TE"),
            "high-level": self.tr("High-level"),
            "library": self.tr("Library"),
        }
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.viewport().setMouseTracking(True)
        self.empty = EmptyState("", "", self.viewport())
        self.legend = Legend(self.viewport())
        self.zoom_control = ZoomControl(self.viewport())
        self.zoom_control.zoomed.connect(self.zoom_by)
        self.zoom_control.reset.connect(self.reset_zoom)
        self.zoom_control.fitted.connect(self.fit)
        theme.notifier().changed.connect(self.viewport().update)
        self.set_graph(CanvasGraph())

    # What is shown

    def set_graph(self, graph: CanvasGraph, keep_view: bool = False) -> None:
        """Show another graph.

        Parameters
        ----------
        graph : CanvasGraph
            The graph; an empty one shows the empty state.
        keep_view : bool
            Stay at this scale and place, for a graph that is another state of the same.
        """
        self._index = GraphIndex(graph)
        self._painter = GraphPainter(self._index)
        self._selection &= self._index.nodes.keys()
        if self._walked not in self._index.nodes:
            self._walked = ""
        if self._hovered not in self._index.nodes:
            self._hover("")
        there = bool(graph.nodes)
        self.empty.setVisible(not there)
        self.zoom_control.setVisible(there)
        self._show_legend()
        self.look_at(self._index.bounds(), None if keep_view else self._middle())
        self._describe()

    def graph(self) -> CanvasGraph:
        """The graph that is shown."""
        return self._index.graph

    def set_selection(self, ids: Collection[str]) -> None:
        """Mark these nodes, as far as they are here; the view does not move."""
        self._selection = frozenset(ids) & self._index.nodes.keys()
        if self._selection and self._walked not in self._selection:
            self._walked = ""
        self._describe()
        self.viewport().update()

    def selection(self) -> frozenset[str]:
        """The nodes that are marked."""
        return self._selection

    def set_legend(self, words: Mapping[str, str]) -> None:
        """Say what the colours of strategies mean; those that no node has are left out."""
        self._legend_words = dict(words)
        self._show_legend()

    def set_empty(self, title: str, hint: str = "") -> None:
        """What is said while there is no node."""
        self.empty.set_text(title, hint)

    # Where the view is

    def go_home(self) -> None:
        """Show the graph as it is first shown: its top, in the middle, at a readable scale."""
        self.look_at(self._index.bounds(), self._middle())

    def reveal(self, name: str) -> bool:
        """Move the view until a node is seen; False when it is not in this graph."""
        if name not in self._index.nodes:
            return False
        self.bring_into_view(self._index.rects[name])
        return True

    def node_rect(self, name: str) -> QRectF:
        """Where a node stands in the viewport."""
        return self.view.to_viewport(self._index.rects[name])

    def is_ground(self, place: QPointF) -> bool:
        """Whether there is no node at a place of the viewport."""
        return not self._node_at(place)

    def show_view(self) -> None:
        """Let the scroll bars, the scale and the picture follow the view."""
        super().show_view()
        self.zoom_control.show_zoom(self.view.zoom)

    def _middle(self) -> float:
        top = self._index.top()
        return self._index.rects[top].center().x() if top else 0.0

    def _show_legend(self) -> None:
        present = strategies(self._index.graph.nodes)
        words = self._legend_words
        self.legend.set_entries([(key, word) for key, word in words.items() if key in present])
        self._place_overlays()

    def _place_overlays(self) -> None:
        area = self.viewport().rect()
        self.empty.setGeometry(area)
        size = self.zoom_control.sizeHint()
        right, bottom = area.width() - size.width() - 8, area.height() - size.height() - 8
        self.zoom_control.setGeometry(right, bottom, size.width(), size.height())
        middle = bottom + (size.height() - self.legend.height()) // 2
        self.legend.move(8, middle)
        # Where there is no room for both, the buttons are worth more.
        self.legend.setVisible(bool(self.legend.words()) and 8 + self.legend.width() < right)

    def _describe(self) -> None:
        nodes, edges = len(self._index.nodes), len(self._index.graph.edges)
        text = self.tr("{0} nodes, {1} edges").format(nodes, edges)
        titles = [self._index.nodes[name].title for name in sorted(self._selection)]
        if titles:
            text += "; " + self.tr("selected: {0}").format(", ".join(titles))
        self.setAccessibleDescription(text)

    # Mouse and keyboard

    def _node_at(self, place: QPointF) -> str:
        return self._index.at(self.view.to_graph(place))

    def _hover(self, name: str) -> None:
        if name != self._hovered:
            self._hovered = name
            self.viewport().update()
            self.node_hovered.emit(name)

    def _click(self, name: str, modifiers: Qt.KeyboardModifier) -> None:
        self._walked = name
        self.viewport().update()
        self.node_clicked.emit(name, modifiers)

    def _walk(self, key: int) -> None:
        here = self._walked or next(iter(sorted(self._selection)), "")
        index = self._index
        if not here:
            there = index.top()
        elif key == Qt.Key.Key_Down:
            there = index.successor(here)
        elif key == Qt.Key.Key_Up:
            there = index.predecessor(here)
        else:
            there = index.sibling(here, 1 if key == Qt.Key.Key_Right else -1)
        if there:
            self._click(there, Qt.KeyboardModifier.NoModifier)
            self.reveal(there)

    def _show_tooltip(self, event: QHelpEvent) -> None:
        name = self._node_at(QPointF(event.pos()))
        text = ""
        if name and self.tooltip is not None:
            text = self.tooltip(name)
        elif name and self._painter.is_shortened(name):
            node = self._index.nodes[name]
            text = f"{node.title}\n{node.subtitle}"
        if text:
            QToolTip.showText(event.globalPos(), text, self.viewport())
        else:
            QToolTip.hideText()

    # Qt

    def sizeHint(self) -> QSize:
        return QSize(300, 400)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self.viewport())
        painter.fillRect(event.rect(), QColor(theme.current().panel))
        painter.translate(self.view.origin)
        painter.scale(self.view.zoom, self.view.zoom)
        area = self.view.to_graph_area(QRectF(event.rect()).adjusted(-8, -8, 8, 8))
        walked = self._walked if self.hasFocus() else ""
        view = View(area, self.view.zoom, self._selection, self._hovered, walked)
        self._painter.paint(painter, view)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_overlays()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        super().mousePressEvent(event)
        if event.button() == Qt.MouseButton.LeftButton and not self._space:
            self._press = event.position()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        place = event.position()
        if self._press is not None and (place - self._press).manhattanLength() < _DRAG:
            return
        self._press = None
        super().mouseMoveEvent(event)
        if not event.buttons():
            self._hover(self._node_at(place))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        press, self._press = self._press, None
        if press is None or event.button() != Qt.MouseButton.LeftButton:
            return
        name = self._node_at(press)
        if name:
            self._click(name, event.modifiers())
        else:
            self._walked = ""
            self.background_clicked.emit()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        left = event.button() == Qt.MouseButton.LeftButton
        if left and self.is_ground(event.position()):
            self.fit()

    def leaveEvent(self, event: QEvent) -> None:
        self._hover("")

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        by_keyboard = event.reason() == QContextMenuEvent.Reason.Keyboard
        name = self._walked if by_keyboard else self._node_at(QPointF(event.pos()))
        place = event.globalPos()
        if by_keyboard and name:
            place = self.viewport().mapToGlobal(self.node_rect(name).center().toPoint())
        self.menu_requested.emit(name, place)

    def viewportEvent(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            self._show_tooltip(event)
            return True
        return super().viewportEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = event.key()
        if key in (Qt.Key.Key_Down, Qt.Key.Key_Up, Qt.Key.Key_Left, Qt.Key.Key_Right):
            self._walk(key)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._walked:
            self._click(self._walked, event.modifiers())
            self.reveal(self._walked)
        else:
            super().keyPressEvent(event)
