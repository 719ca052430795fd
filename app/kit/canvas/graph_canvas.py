"""Interactive graph: select, hover, search, expand, and follow edges by keyboard."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping

from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, Qt, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QWidget

from lowerscope.app.kit.canvas.detail import BLOCK_SCALE, CHEVRON_SCALE
from lowerscope.app.kit.canvas.drawing import CanvasDrawing
from lowerscope.app.kit.canvas.graph_geometry import GraphIndex, Way, described
from lowerscope.app.kit.canvas.graph_painting import Marks
from lowerscope.app.kit.code.code_view import FindBar, compile_pattern
from lowerscope.app.kit.hover_card import CardText, HoverCard
from lowerscope.core.model.graph import GROUPS, Box, Edge, GraphRecord, Port

# --- Key bindings of a graph that do not depend on the keyboard's position ---

WALK: Mapping[int, Way] = {
    Qt.Key.Key_Down: "down",
    Qt.Key.Key_Up: "up",
    Qt.Key.Key_Left: "left",
    Qt.Key.Key_Right: "right",
    Qt.Key.Key_Home: "first",
    Qt.Key.Key_End: "last",
}
"""Direction along the edges for each key."""

PLAIN: Mapping[int, Callable[[GraphCanvas], object]] = {
    Qt.Key.Key_Z: lambda canvas: canvas.zoom_to_selection(),
    Qt.Key.Key_L: lambda canvas: canvas.switch_labels(),
    Qt.Key.Key_M: lambda canvas: canvas.switch_minimap(),
    Qt.Key.Key_C: lambda canvas: canvas.switch_colouring(),
}
"""Action for each key, without Ctrl."""


# --- Search in a graph: the search bar, and the matching nodes ---


class GraphSearch(QObject):
    """The matches of a search, in reading order: from the top, from the left.

    Args:
        parent: The widget that the bar stands in.
    """

    changed = Signal(str)  # The matches changed; the argument is the current one, or ``""``.
    stepped = Signal(str)  # Another match became current.
    closed = Signal()  # The user closed the search.

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.found: list[str] = []  # The matching nodes.
        self._place = -1
        self._index = GraphIndex(GraphRecord())
        self.bar = FindBar(parent)  # The bar.
        self.bar.search_changed.connect(self.search)
        self.bar.next_wanted.connect(self.go_on)
        self.bar.previous_wanted.connect(self.go_back)
        self.bar.closed.connect(self.close)

    def show_graph(self, index: GraphIndex) -> None:
        """Search another graph."""
        self._index = index
        if self.is_open():
            self.search()

    def is_open(self) -> bool:
        """Return whether the bar is shown."""
        return not self.bar.isHidden()

    def open(self) -> None:
        """Show the bar with the previous pattern."""
        self.bar.open_field(None)
        self.search()

    def close(self) -> None:
        """Hide the bar and clear the matches."""
        self.bar.hide()
        self.found, self._place = [], -1
        self.closed.emit()

    def current(self) -> str:
        """Return the current match, or ``""``."""
        return self.found[self._place] if 0 <= self._place < len(self.found) else ""

    def go_on(self) -> None:
        """Go to the next match, wrapping around."""
        self._step(1)

    def go_back(self) -> None:
        """Go to the previous match, wrapping around."""
        self._step(-1)

    def search(self) -> None:
        """Search titles, second lines, and the members of groups for the pattern."""
        typed, here = self.bar.field.text(), self.current()
        self.found = []
        if typed:
            try:
                pattern = compile_pattern(
                    typed, self.bar.case.isChecked(), self.bar.regex.isChecked()
                )
            except re.error as error:
                self.bar.show_wrong_pattern(str(error))
                self.changed.emit("")
                return
            rects = self._index.rects
            nodes = self._index.nodes.items()
            self.found = [name for name, node in nodes if _is_found(node, pattern)]
            self.found.sort(key=lambda name: (rects[name].y(), rects[name].x()))
        self._place = self.found.index(here) if here in self.found else min(0, len(self.found) - 1)
        self._show_count()
        self.changed.emit(self.current())

    def _step(self, by: int) -> None:
        if self.found:
            self._place = (self._place + by) % len(self.found)
            self._show_count()
            self.stepped.emit(self.current())

    def _show_count(self) -> None:
        self.bar.show_count(self._place + 1, len(self.found), False)


def _is_found(node: Box, pattern: re.Pattern[str]) -> bool:
    return any(pattern.search(text) for text in node.words)


# A press that moves less than this many pixels is a click.
_DRAG = 4
_NEAR = 6.0
"""Pixels beside an edge that still are on it, for the mouse."""


class GraphCanvas(CanvasDrawing):
    """A graph that has a layout, for mouse and keyboard.

    The wheel scrolls, and zooms at the mouse with Ctrl; dragging the background, or anything with
    the middle button or the space bar, pans; a double click on the background or F shows all of it,
    Z the selection; ``+``, ``-`` and ``0`` zoom; the arrows follow the edges; ``/`` searches; B
    flags a node. A chevron, a double click, Enter, the space bar, ``+`` and
    ``-`` expand a group and collapse a frame. Far out, a click on a block selects what it stands
    for, and a double click zooms there.
    """

    # A node became current, by click or keyboard; or the title of a frame.
    node_clicked = Signal(str, object)
    node_hovered = Signal(str)  # The node under the mouse, or ``""``.
    # A port was clicked: the nodes at its other ends; or a block: those that it stands for.
    ends_wanted = Signal(tuple)
    background_clicked = Signal()  # The background was clicked, without dragging.
    # A group is to be expanded, or a frame collapsed; the argument is its id.
    expand_wanted = Signal(str)
    collapse_wanted = Signal(str)
    # The flag of a node is to be toggled: its id, or ``""`` for the selection.
    flag_wanted = Signal(str)
    # A context menu is requested: the node, frame or ``""``, the edge or ``None``, and a screen
    # position.
    menu_requested = Signal(str, object, QPoint)

    def __init__(self, name: str) -> None:
        super().__init__()
        # Returns the text of a node's card by its id, or ``None`` for no card.
        self.card_text: Callable[[str], CardText | None] | None = None
        self._hovered = ""
        self._port: Port | None = None
        self._walked = ""
        self._flags: frozenset[str] = frozenset()
        self._before = ""
        self._press: QPointF | None = None
        self._was_dragged = False
        self._folded_at: QPointF | None = None
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.viewport().setMouseTracking(True)
        self.card = HoverCard(self.viewport())
        self.search = GraphSearch(self)
        self.search.changed.connect(self._look_at_found)
        self.search.stepped.connect(self._go_to_found)
        self.search.closed.connect(self._end_search)
        self.set_graph(GraphRecord())

    # Content

    def set_graph(self, graph: GraphRecord, keep_view: bool = False, anchor: str = "") -> None:
        """Show another graph.

        Args:
            graph: The graph; an empty one shows the empty state.
            keep_view: Keep the scale and position, for another state of the same graph.
            anchor: The group that was expanded, or the frame that was collapsed: it keeps its
                position.
        """
        self.card.dismiss()
        at, self._folded_at = self._folded_at, None
        self.show_graph(graph, keep_view, anchor, at)
        if self._index.place(self._walked) is None:
            self._walked = ""
        self._port = None
        if self._index.place(self._hovered) is None:
            self._hover("")
        self.search.show_graph(self._index)
        self._describe()

    def set_selection(self, ids: Collection[str]) -> None:
        """Mark these nodes as selected, as far as they are in the graph; the view does not move."""
        super().set_selection(ids)
        if self._selection and self._walked not in self._selection | self._index.frames.keys():
            self._walked = ""
        self._describe()

    def marks(self) -> Marks:
        return Marks(
            selection=self._selection,
            found=frozenset(self.search.found),
            hovered=self._hovered,
            walked=self._walked if self.hasFocus() or self.search.is_open() else "",
            port=self._port,
            flags=self._flags,
        )

    def set_flags(self, ids: Collection[str]) -> None:
        """Put a disc on these nodes, as far as they are in the graph."""
        self._flags = frozenset(ids)
        self._describe()
        self.viewport().update()

    def is_ground(self, place: QPointF) -> bool:
        """Return whether nothing at a position in the viewport can be clicked."""
        is_block = self.block_at(place) is not None
        return not is_block and not self._thing_at(place) and self._port_at(place) is None

    def _describe(self) -> None:
        text = described(self._index, self._walked, self._selection, self._flags)
        if text != self.accessibleDescription():
            self.setAccessibleDescription(text)

    # Search

    def open_find(self) -> None:
        """Open the search bar."""
        if self._index.nodes:
            self.search.open()
            self._place_find_bar()

    def _look_at_found(self, name: str) -> None:
        if name:
            self._walked = name
            self._describe()
            self.reveal(name)
        self.viewport().update()

    def _go_to_found(self, name: str) -> None:
        self._click(name, Qt.KeyboardModifier.NoModifier)
        self.reveal(name)

    def _end_search(self) -> None:
        self._place_find_bar()
        self.setFocus()
        self.viewport().update()

    def _place_find_bar(self) -> None:
        self._place_overlays()
        self.search.bar.setGeometry(0, 0, self.width(), self._header())

    def _header(self) -> int:
        bar = self.search.bar
        return bar.sizeHint().height() if self.search.is_open() else 0

    # Expand and collapse

    def fold(self, name: str) -> None:
        """Request that a group be expanded, or a frame collapsed; anything else stays."""
        if name in self._index.frames:
            self.collapse_wanted.emit(name)
        elif self.is_group(name):
            self.expand_wanted.emit(name)

    def is_group(self, name: str) -> bool:
        """Return whether this is a node that can be expanded."""
        return name in self._index.nodes and self._index.nodes[name].kind in GROUPS

    def is_frame(self, name: str) -> bool:
        """Return whether this is a frame that can be collapsed."""
        return name in self._index.frames

    def frame_around(self, name: str) -> str:
        """Return the innermost frame around a node or frame, or ``""``."""
        return next(iter(self._index.frames_around(name)), "")

    # Mouse and keyboard

    def _thing_at(self, place: QPointF) -> str:
        """Return the node, or the frame whose title or block is at a position in the viewport."""
        block = self.block_at(place)
        if block is not None:
            return block.frame or (block.boxes[0] if len(block.boxes) == 1 else "")
        at = self.view.to_graph(place)
        return self._index.at(at) or self._index.bar_at(at)

    def _port_at(self, place: QPointF) -> Port | None:
        is_drawn = self.view.zoom >= BLOCK_SCALE
        return self._index.port_at(self.view.to_graph(place)) if is_drawn else None

    def _edge_at(self, place: QPointF) -> Edge | None:
        if self.view.zoom < BLOCK_SCALE:
            # Farther out, edges are too close to each other to be meant.
            return None
        return self._painter.edge_at(self.view.to_graph(place), _NEAR / self.view.zoom)

    def _is_chevron(self, place: QPointF) -> bool:
        is_drawn = self.view.zoom >= CHEVRON_SCALE
        return is_drawn and self._index.chevron_at(self.view.to_graph(place))

    def _hover(self, name: str, port: Port | None = None) -> None:
        if port != self._port:
            self._port = port
            self.viewport().update()
        if name != self._hovered:
            self._hovered = name
            self.viewport().update()
            self.node_hovered.emit(name)
            text = self._text_of(name)
            if text is None:
                self.card.leave()
            else:
                self.card.want(text, self.node_rect(name).toAlignedRect())

    def show_card(self, name: str = "") -> bool:
        """Show the card of a node, by default the current one; return False if there is none."""
        name = name or self.current()
        text = self._text_of(name)
        if text is not None:
            self.reveal(name)
            self.card.show_now(text, self.node_rect(name).toAlignedRect())
        return text is not None

    def current(self) -> str:
        """Return the node or frame of the keyboard, or else a selected one, or ``""``."""
        return self._walked or next(iter(sorted(self._selection)), "")

    def _text_of(self, name: str) -> CardText | None:
        if self._index.place(name) is None or self.card_text is None:
            return None
        return self.card_text(name)

    def _click(self, name: str, modifiers: Qt.KeyboardModifier) -> None:
        if name != self._walked:
            self._before = self._walked
        self._walked = name
        self.viewport().update()
        self.node_clicked.emit(name, modifiers)
        self._describe()

    def _walk(self, key: int, modifiers: Qt.KeyboardModifier) -> None:
        there = self._index.beside(self.current(), WALK[key], self._before)
        if there:
            self._click(there, modifiers & Qt.KeyboardModifier.ShiftModifier)
            self.reveal(there)

    # Qt

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.search.bar.resize(self.width(), self.search.bar.height())

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.card.dismiss()
        super().mousePressEvent(event)
        if event.button() == Qt.MouseButton.LeftButton and not self._space:
            self._press = event.position()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        place = event.position()
        if self._press is not None and (place - self._press).manhattanLength() < _DRAG:
            return
        self._press = None
        self._was_dragged = self._space and bool(event.buttons())
        super().mouseMoveEvent(event)
        if not event.buttons():
            self._hover(self._thing_at(place), self._port_at(place))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        press, self._press = self._press, None
        if press is None or event.button() != Qt.MouseButton.LeftButton:
            return
        name, port, block = self._thing_at(press), self._port_at(press), self.block_at(press)
        if self._is_chevron(press):
            self._folded_at = press
            self.fold(name)
        elif port is not None:
            self._walked = port.others[0]
            self.ends_wanted.emit(port.others)
            self.reveal(port.others[0])
        elif name:
            self._click(name, event.modifiers())
        elif block is not None:
            self.ends_wanted.emit(block.boxes)
        else:
            self._walked = ""
            self.background_clicked.emit()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if event.button() != Qt.MouseButton.LeftButton:
            return
        name, block = self._thing_at(event.position()), self.block_at(event.position())
        if self._is_chevron(event.position()):
            # Its first click has already expanded or collapsed it.
            return
        if block is not None:
            self.fit_to(block.rect.adjusted(-24, -24, 24, 24))
        elif name:
            self._folded_at = event.position()
            self.fold(name)
        elif self.is_ground(event.position()):
            self.fit()

    def wheelEvent(self, event: QWheelEvent) -> None:
        self.card.dismiss()
        super().wheelEvent(event)

    def leaveEvent(self, event: QEvent) -> None:
        self._hover("")

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self.card.dismiss()
        by_keyboard = event.reason() == QContextMenuEvent.Reason.Keyboard
        name = self._walked if by_keyboard else self._thing_at(QPointF(event.pos()))
        place = event.globalPos()
        if by_keyboard and name:
            place = self.viewport().mapToGlobal(self.node_rect(name).center().toPoint())
        edge = None if by_keyboard or name else self._edge_at(QPointF(event.pos()))
        self.menu_requested.emit(name, edge, place)

    def viewportEvent(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            # The card has more details.
            return True
        return super().viewportEvent(event)

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.ShortcutOverride:
            # Escape closes what is open here, and triggers none of the window's shortcuts.
            is_open = self.card.isVisible() or self.search.is_open()
            if event.key() == Qt.Key.Key_Escape and is_open:
                event.accept()
                return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, walked = event.key(), self._walked
        plain = not event.modifiers() & Qt.KeyboardModifier.ControlModifier
        is_open = self.card.dismiss()
        if key in WALK and plain:
            self._walk(key, event.modifiers())
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and walked:
            if self.is_group(walked) or self.is_frame(walked):
                self.fold(walked)
            else:
                self._click(walked, event.modifiers())
                self.reveal(walked)
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal) and plain and self.is_group(walked):
            self.fold(walked)
        elif key == Qt.Key.Key_Minus and plain and self._frame_of_walked():
            self.fold(self._frame_of_walked())
        elif key == Qt.Key.Key_Slash:
            self.open_find()
        elif key == Qt.Key.Key_F3:
            shift = event.modifiers() & Qt.KeyboardModifier.ShiftModifier
            (self.search.go_back if shift else self.search.go_on)()
        elif key == Qt.Key.Key_Escape and self.search.is_open() and not is_open:
            self.search.close()
        elif key == Qt.Key.Key_B and plain:
            self.flag_wanted.emit(walked)
        elif key in PLAIN and plain:
            PLAIN[key](self)
        else:
            super().keyPressEvent(event)

    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Space and not event.isAutoRepeat():
            # Held, it drags; only without a drag is it a press.
            if not self._was_dragged:
                self.fold(self._walked)
            self._was_dragged = False
        super().keyReleaseEvent(event)

    def _frame_of_walked(self) -> str:
        return self._walked if self.is_frame(self._walked) else self.frame_around(self._walked)
