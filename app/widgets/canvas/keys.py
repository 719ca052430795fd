"""Key bindings of a graph that do not depend on the keyboard's position."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt

from lowerscope.app.widgets.canvas.index import Way

if TYPE_CHECKING:
    from lowerscope.app.widgets.canvas.graph_canvas import GraphCanvas

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
