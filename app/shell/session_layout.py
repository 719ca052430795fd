"""The layout of the window in a session: stored, restored and watched."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, QEvent, QObject
from PySide6.QtWidgets import QWidget

from lowerscope.app.document.settings import LAYOUT_VERSION
from lowerscope.app.shell.dock_layout import is_geometry, is_state
from lowerscope.core.model.recipe import WindowLayout

if TYPE_CHECKING:
    from lowerscope.app.shell.panes import Panes


def layout_of(window: QWidget, panes: Panes | None, chosen: tuple[str, ...]) -> WindowLayout:
    """Return the layout of a window with its selection."""
    return WindowLayout(
        geometry=_text(window.saveGeometry()),
        panes="" if panes is None else _text(panes.state()),
        panes_version=LAYOUT_VERSION,
        timeline=panes is None or panes.timeline_action.isChecked(),
        selection=chosen,
    )


def lay_out(window: QWidget, panes: Panes, layout: WindowLayout) -> None:
    """Apply a session's layout to a window; unknown parts of it are ignored."""
    geometry, state = _bytes(layout.geometry), _bytes(layout.panes)
    # Qt keeps the current size if the screen's size has changed.
    same_size = is_geometry(bytes(geometry.data())) and window.restoreGeometry(geometry)
    docks = [each.objectName() for each in panes.docks.values()]
    if layout.panes_version == LAYOUT_VERSION and is_state(bytes(state.data()), docks):
        panes.restore(state, same_size=same_size)
        panes.timeline_action.setChecked(layout.timeline)


class LayoutWatch(QObject):
    """Notifies the session when panes are moved, closed or resized."""

    def __init__(self, window: QWidget, panes: Panes, note: Callable[[], None]) -> None:
        super().__init__(panes)
        self._note = note
        watched: tuple[QWidget, ...] = (window, *panes.docks.values())
        for widget in watched:
            widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in _MOVES:
            self._note()
        return super().eventFilter(watched, event)


_MOVES = (QEvent.Type.Resize, QEvent.Type.Move, QEvent.Type.Hide, QEvent.Type.Show)


def _text(value: QByteArray) -> str:
    return bytes(value.toBase64().data()).decode()


def _bytes(text: str) -> QByteArray:
    return QByteArray.fromBase64(text.encode())
