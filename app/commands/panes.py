"""The commands on panes: to show and to close each, to go from one to the next, to float one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QApplication, QDockWidget, QWidget

from lowerscope.app.actions import Command

if TYPE_CHECKING:
    from lowerscope.app.panes import Panes
    from lowerscope.app.window import MainWindow


class PaneCommands(QObject):
    """What a mouse does with the headers of panes, and where the keyboard goes."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        # The one that was let float last: it may not have the keyboard yet.
        self._floated: QDockWidget | None = None

    def commands(self) -> tuple[Command, ...]:
        """Return the commands of the menu on what is in view."""
        view, tr = self._window.tr("&View"), self._window.tr
        panes = (
            ("model", tr("Mode&l")),
            ("fx", tr("F&X")),
            ("relax", tr("Rela&x")),
            ("tensorir", tr("&TensorIR")),
            ("schedule", tr("Sc&hedule")),
            ("pipeline", tr("&Pipeline")),
            ("outcome", tr("Outco&me")),
            ("details", tr("Details")),
        )
        return (
            *(
                Command(
                    f"pane-{name}",
                    view,
                    title,
                    partial(self._switch, name),
                    separated=name == "model",
                    checkable=True,
                )
                for name, title in panes
            ),
            Command("pane-timeline", view, tr("T&imeline"), self._switch_timeline, checkable=True),
            Command(
                "next-pane",
                view,
                tr("&Next pane"),
                partial(self._go, 1),
                "Ctrl+Tab",
                separated=True,
            ),
            Command(
                "previous-pane",
                view,
                tr("Pre&vious pane"),
                partial(self._go, -1),
                "Ctrl+Shift+Tab",
            ),
            Command("float-pane", view, tr("&Float the pane, or put it back"), self._float),
        )

    def fill(self, panes: Panes) -> None:
        """Keep the switches as the panes are."""
        for name, dock in panes.docks.items():
            self._follow(f"pane-{name}", dock.toggleViewAction().isChecked())
            dock.toggleViewAction().toggled.connect(self._follow_sender)
        panes.timeline_action.toggled.connect(self._follow_timeline)
        self._follow_timeline(panes.timeline_action.isChecked())

    def _follow(self, key: str, shown: bool) -> None:
        self._window.commands.enable(key, True)
        self._window.commands.check(key, shown)

    def _follow_sender(self, shown: bool) -> None:
        for name, dock in self._window.panes.docks.items():
            if dock.toggleViewAction() is self.sender():
                self._follow(f"pane-{name}", shown)

    def _follow_timeline(self, shown: bool) -> None:
        self._follow("pane-timeline", shown)

    def _switch(self, name: str) -> None:
        # A switch that nothing stands behind yet is not on.
        self._window.commands.check(f"pane-{name}", False)
        if (panes := self._window.made_panes) is not None:
            panes.docks[name].toggleViewAction().trigger()
            self._follow(f"pane-{name}", not panes.docks[name].isHidden())

    def _switch_timeline(self) -> None:
        if (panes := self._window.made_panes) is not None:
            panes.timeline_action.trigger()
            self._follow_timeline(panes.timeline_action.isChecked())

    def _go(self, step: int) -> None:
        panes = self._window.made_panes
        if panes is None or not panes.isVisible():
            return
        places = [each for each in (*panes.docks.values(), panes.timeline) if each.isVisible()]
        places.sort(key=_place_in(panes))
        focus = QApplication.focusWidget()
        here = next((index for index, each in enumerate(places) if _holds(each, focus)), None)
        start = (-1 if step > 0 else 0) if here is None else here
        for distance in range(1, len(places) + 1):
            there = places[(start + step * distance) % len(places)]
            target = _target(there)
            if target is not None:
                target.window().activateWindow()
                target.setFocus(Qt.FocusReason.TabFocusReason)
                return

    def _float(self) -> None:
        panes = self._window.made_panes
        if panes is None:
            return
        focus = QApplication.focusWidget()
        dock = self._floated
        if dock is None or not dock.isFloating():
            dock = next((each for each in panes.docks.values() if _holds(each, focus)), None)
        if dock is None:
            return
        dock.setFloating(not dock.isFloating())
        self._floated = dock if dock.isFloating() else None
        target = focus if _holds(dock, focus) else _target(dock)
        if target is not None:
            target.window().activateWindow()
            target.setFocus(Qt.FocusReason.ShortcutFocusReason)


def _holds(place: QWidget, widget: QWidget | None) -> bool:
    return widget is not None and (place is widget or place.isAncestorOf(widget))


def _place_in(panes: Panes) -> Callable[[QWidget], tuple[bool, int, int]]:
    """Return what orders panes: as they are read, and behind them those that float."""

    def place(widget: QWidget) -> tuple[bool, int, int]:
        floats = isinstance(widget, QDockWidget) and widget.isFloating()
        corner = widget.pos() if floats else widget.mapTo(panes, widget.rect().topLeft())
        return floats, corner.y(), corner.x()

    return place


def _target(place: QWidget) -> QWidget | None:
    """Return what gets the keyboard in a pane: what is in its page rather than its header."""
    inside = place.widget() if isinstance(place, QDockWidget) else place
    for root in (inside, place):
        widgets = () if root is None else root.findChildren(QWidget)
        for widget in widgets:
            by_tab = widget.focusPolicy() & Qt.FocusPolicy.TabFocus == Qt.FocusPolicy.TabFocus
            if by_tab and widget.isVisible() and widget.isEnabled():
                return widget
    return None
