"""The commands on panes: to show and to close each, and to go from one to the next."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QApplication, QDockWidget, QWidget

from lowerscope.app.actions import Command
from lowerscope.app.commands.pane_places import PanePlaces

if TYPE_CHECKING:
    from lowerscope.app.panes import Panes
    from lowerscope.app.window import MainWindow


class PaneCommands(QObject):
    """What is done with the panes as a whole, and where the keyboard goes."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._closed: list[str] = []
        self.places = PanePlaces(window, self)
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.focusChanged.connect(self._note_focus)
        self._last = ""

    def commands(self) -> tuple[Command, ...]:
        """Return the commands of the menu on what is in the window."""
        menu, tr = self._window.tr("&Window"), self._window.tr
        panes = (
            ("model", tr("Mode&l")),
            ("fx", tr("F&X")),
            ("relax", tr("Rela&x")),
            ("tensorir", tr("&TensorIR")),
            ("schedule", tr("Sc&hedule")),
            ("pipeline", tr("&Pipeline")),
            ("outcome", tr("Outco&me")),
            ("details", tr("&Details")),
        )
        return (
            Command("next-pane", menu, tr("&Next pane"), partial(self._go, 1), "Ctrl+Tab"),
            Command(
                "previous-pane", menu, tr("Pre&vious pane"), partial(self._go, -1), "Ctrl+Shift+Tab"
            ),
            *self.places.commands(menu),
            Command("close-pane", menu, tr("&Close the pane"), self._close, "Ctrl+W"),
            Command("reopen-pane", menu, tr("Re&open the pane closed last"), self._reopen),
            *(
                Command(
                    f"pane-{name}",
                    menu,
                    title,
                    partial(self._switch, name),
                    separated=name == "model",
                    checkable=True,
                )
                for name, title in panes
            ),
            Command("pane-timeline", menu, tr("T&imeline"), self._switch_timeline, checkable=True),
            Command(
                "reset-layout",
                menu,
                tr("&Reset layout"),
                self._window.reset_layout,
                separated=True,
            ),
        )

    def fill(self, panes: Panes) -> None:
        """Keep the switches as the panes are."""
        for name, dock in panes.docks.items():
            self._follow(f"pane-{name}", dock.toggleViewAction().isChecked())
            dock.toggleViewAction().toggled.connect(self._follow_sender)
        panes.timeline_action.toggled.connect(self._follow_timeline)
        self._follow_timeline(panes.timeline_action.isChecked())

    def current(self) -> str:
        """Return the name of the pane that has, or had last, the focus; empty for none."""
        panes = self._window.made_panes
        if panes is None or not panes.isVisible():
            return ""
        return self._last if self._last and panes.docking.is_in_front(self._last) else ""

    def enter(self, place: QWidget) -> bool:
        """Give the keyboard to what is in a pane; False where nothing takes it."""
        target = _target(place)
        if target is not None:
            target.window().activateWindow()
            target.setFocus(Qt.FocusReason.TabFocusReason)
        return target is not None

    def _note_focus(self, _old: QWidget | None, new: QWidget | None) -> None:
        panes = self._window.made_panes
        if panes is not None and new is not None:
            names = (name for name, dock in panes.docks.items() if _holds(dock, new))
            in_main = new.window() is self._window
            self._last = next(names, "" if in_main else self._last)

    # Showing and closing

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
        if (panes := self._window.made_panes) is None:
            return
        dock = panes.docks[name]
        if dock.isHidden() or panes.docking.is_in_front(name):
            if not dock.isHidden() and self.current() == name:
                self._go(1)
            dock.toggleViewAction().trigger()
            if dock.isHidden():
                self._closed = [*(each for each in self._closed if each != name), name]
        if not dock.isHidden():
            panes.bring(name)
            self.enter(dock)
        self._follow(f"pane-{name}", not dock.isHidden())

    def _close(self) -> None:
        name = self.current()
        if name:
            self._window.panes.take_back()
            self._switch(name)

    def _reopen(self) -> None:
        panes = self._window.made_panes
        while panes is not None and self._closed:
            name = self._closed.pop()
            if panes.docks[name].isHidden():
                self._switch(name)
                return

    def _switch_timeline(self) -> None:
        if (panes := self._window.made_panes) is not None:
            panes.timeline_action.trigger()
            self._follow_timeline(panes.timeline_action.isChecked())

    # From one to the next

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
            if isinstance(there, QDockWidget) and _target(there) is not None:
                panes.bring(there.objectName())
            if self.enter(there):
                return


def _holds(place: QWidget, widget: QWidget | None) -> bool:
    return widget is not None and (place is widget or place.isAncestorOf(widget))


def _place_in(panes: Panes) -> Callable[[QWidget], tuple[bool, int, int, int]]:
    """Return what orders panes: as they are read, tab by tab, and behind them those that float."""

    def place(widget: QWidget) -> tuple[bool, int, int, int]:
        if not isinstance(widget, QDockWidget):
            corner = widget.mapTo(panes, widget.rect().topLeft())
            return False, corner.y(), corner.x(), 0
        mates = panes.docking.mates(widget.objectName())
        front = next((each for each in mates if panes.docking.is_in_front(each)), mates[0])
        corner = panes.docks[front].pos()
        return widget.isFloating(), corner.y(), corner.x(), mates.index(widget.objectName())

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
