"""The layout of the window in a session: stored, restored and watched."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QWidget

from lowerscope.app.shell.modes import MODES
from lowerscope.core.model.recipe import WindowLayout

if TYPE_CHECKING:
    from lowerscope.app.shell.panes import Panes


def layout_of(window: QWidget, panes: Panes | None, chosen: tuple[str, ...]) -> WindowLayout:
    """Return the layout of a window with its selection."""
    layout = WindowLayout() if panes is None else panes.layout_of_panes()
    size = window.normalGeometry().size()
    return msgspec.structs.replace(
        layout,
        size=(size.width(), size.height()),
        maximised=window.isMaximized(),
        selection=chosen,
    )


def lay_out(window: QWidget, panes: Panes, layout: WindowLayout) -> None:
    """Apply a session's layout to a window; parts of it that are unknown or absurd are ignored."""
    least, most = window.minimumSize(), window.screen().availableSize()
    width, height = layout.size
    if layout.maximised:
        window.showMaximized()
    elif least.width() <= width <= most.width() and least.height() <= height <= most.height():
        window.resize(width, height)
    panes.restore(layout)


def stored(panes: Panes) -> str:
    """Return the layout of the panes as JSON, for the settings.

    The window begins in the first mode: a model that is opened next has not been run.
    """
    layout = msgspec.structs.replace(panes.layout_of_panes(), mode=MODES[0].key)
    return msgspec.json.encode(layout).decode()


def restore(panes: Panes, text: str) -> None:
    """Apply a layout of the settings; the usual one if there is none that can be read."""
    try:
        panes.restore(msgspec.json.decode(text, type=WindowLayout))
    except msgspec.MsgspecError:
        panes.settle()


class LayoutWatch(QObject):
    """Notifies the session when the window or its panes are arranged otherwise."""

    def __init__(self, window: QWidget, panes: Panes, note: Callable[[], None]) -> None:
        super().__init__(panes)
        self._note = note
        window.installEventFilter(self)
        panes.arranged.connect(note)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self._note()
        return super().eventFilter(watched, event)
