"""Commands on panes: showing and closing them, and moving the focus between them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt
from PySide6.QtGui import QHelpEvent, QKeyEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QAbstractScrollArea,
    QApplication,
    QDockWidget,
    QToolTip,
    QWidget,
)

from lowerscope.app.document.document import Document
from lowerscope.app.kit.commands import Command, Commands

if TYPE_CHECKING:
    from lowerscope.app.shell.panes import Panes


class PaneCommands(QObject):
    """Commands on the panes as a whole, and on the keyboard focus."""

    def __init__(
        self, panes: Callable[[], Panes | None], reset: Callable[[], None], window: QWidget
    ) -> None:
        super().__init__(window)
        self._panes = panes
        self._reset = reset
        self._window = window
        self._closed: list[str] = []
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.focusChanged.connect(self._note_focus)
        self._last = ""

    def commands(self) -> tuple[Command, ...]:
        """Return the commands, for the menu View."""
        menu, tr = self._window.tr("&Window"), self._window.tr
        panes = (
            ("model", tr("Mode&l")),
            ("fx", tr("F&X")),
            ("relax", tr("&Relax")),
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
            Command("float-pane", menu, tr("&Float or dock the pane"), self._float),
            Command(
                "maximise-pane",
                menu,
                tr("M&aximise or restore the pane"),
                self._maximise,
                "Alt+Shift+Return",
            ),
            Command("close-pane", menu, tr("&Close the pane"), self._close, "Ctrl+W"),
            Command("reopen-pane", menu, tr("Re&open the pane closed last"), self._reopen),
            *(
                Command(
                    f"pane-{name}",
                    menu,
                    title,
                    partial(self._switch, name),
                    checked=partial(self._is_shown, name),
                    separated=name == "model",
                )
                for name, title in panes
            ),
            Command(
                "pane-timeline",
                menu,
                tr("T&imeline"),
                self._switch_timeline,
                checked=self._has_timeline,
            ),
            Command("reset-layout", menu, tr("R&eset layout"), self._reset, separated=True),
        )

    def fill(self, panes: Panes, commands: Commands) -> None:
        """Connect the commands to the panes, and handle the keys of floating ones."""
        commands.follow(panes.timeline_action.toggled)
        for dock in panes.docks.values():
            commands.follow(dock.toggleViewAction().toggled)
            commands.take_keys(dock)

    def current(self) -> str:
        """Return the name of the pane that has or last had the focus; empty for none."""
        panes = self._panes()
        if panes is None or not panes.isVisible():
            return ""
        return self._last if self._last and panes.dock_layout.is_in_front(self._last) else ""

    def enter(self, place: QWidget) -> bool:
        """Give the keyboard focus to the content of a pane; return False if nothing accepts it."""
        target = _target(place)
        if target is not None:
            target.window().activateWindow()
            target.setFocus(Qt.FocusReason.TabFocusReason)
        return target is not None

    def _note_focus(self, _old: QWidget | None, new: QWidget | None) -> None:
        panes = self._panes()
        if panes is not None and new is not None:
            names = (name for name, dock in panes.docks.items() if _holds(dock, new))
            in_main = new.window() is self._window
            self._last = next(names, "" if in_main else self._last)

    # Showing and closing

    def _is_shown(self, name: str) -> bool:
        panes = self._panes()
        return panes is not None and panes.docks[name].toggleViewAction().isChecked()

    def _has_timeline(self) -> bool:
        panes = self._panes()
        return panes is not None and panes.timeline_action.isChecked()

    def _switch(self, name: str) -> None:
        if (panes := self._panes()) is None:
            return
        dock = panes.docks[name]
        if dock.isHidden() or panes.dock_layout.is_in_front(name):
            if not dock.isHidden() and self.current() == name:
                self._go(1)
            dock.toggleViewAction().trigger()
            if dock.isHidden():
                self._closed = [*(each for each in self._closed if each != name), name]
        if not dock.isHidden():
            panes.bring(name)
            self.enter(dock)

    def _close(self) -> None:
        name, panes = self.current(), self._panes()
        if name and panes is not None:
            panes.take_back()
            self._switch(name)

    def _reopen(self) -> None:
        panes = self._panes()
        while panes is not None and self._closed:
            name = self._closed.pop()
            if panes.docks[name].isHidden():
                self._switch(name)
                return

    def _float(self) -> None:
        name, panes = self.current(), self._panes()
        if name and panes is not None:
            panes.take_back()
            dock = panes.docks[name]
            dock.setFloating(not dock.isFloating())
            self.enter(dock)
            # Its window may not have the focus yet.
            self._last = name

    def _maximise(self) -> None:
        panes, name = self._panes(), self.current()
        if panes is None:
            return
        if panes.dock_layout.is_maximised:
            panes.take_back()
        elif name and not panes.docks[name].isFloating():
            panes.maximise(name)

    def _switch_timeline(self) -> None:
        if (panes := self._panes()) is not None:
            panes.timeline_action.trigger()

    # Moving between panes

    def _go(self, step: int) -> None:
        panes = self._panes()
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
    """Return a sort key of panes: reading order, tab by tab, then the floating ones."""

    def place(widget: QWidget) -> tuple[bool, int, int, int]:
        if not isinstance(widget, QDockWidget):
            corner = widget.mapTo(panes, widget.rect().topLeft())
            return False, corner.y(), corner.x(), 0
        mates = panes.dock_layout.tabbed_with(widget.objectName())
        front = next((each for each in mates if panes.dock_layout.is_in_front(each)), mates[0])
        corner = panes.docks[front].pos()
        return widget.isFloating(), corner.y(), corner.x(), mates.index(widget.objectName())

    return place


def _target(place: QWidget) -> QWidget | None:
    """Return the widget of a pane that gets the focus: the content of its page, not its header."""
    inside = place.widget() if isinstance(place, QDockWidget) else place
    for root in (inside, place):
        widgets = () if root is None else root.findChildren(QWidget)
        for widget in widgets:
            by_tab = widget.focusPolicy() & Qt.FocusPolicy.TabFocus == Qt.FocusPolicy.TabFocus
            if by_tab and widget.isVisible() and widget.isEnabled():
                return widget
    return None


# --- Keyboard equivalents of mouse actions: sorting by a column, and showing tool tips ---


class Pointing(QObject):
    """Does at the focus what the mouse does under the pointer."""

    def __init__(self, document: Document, window: QWidget) -> None:
        super().__init__(window)
        self._document = document
        self._window = window

    def commands(self) -> tuple[Command, ...]:
        """Return the commands, for the menu View."""
        view, tr = self._window.tr("&View"), self._window.tr
        return (
            Command("columns", view, tr("Colu&mns of the table…"), self._open_columns),
            Command("tip", view, tr("Show the tool ti&p"), self._tell, "Shift+F1"),
        )

    def _focus(self) -> QWidget | None:
        """Return the focus widget, or that of this window while another window is in front."""
        return QApplication.focusWidget() or self._window.focusWidget()

    def _open_columns(self) -> None:
        from lowerscope.app.kit.tables.data_table import Table

        focus = self._focus()
        if isinstance(focus, Table):
            focus.open_columns()
        else:
            words = self._window.tr("The keyboard is in no table: go to one with Tab first.")
            self._document.notify(words, "info")

    def _tell(self) -> None:
        """Show the tool tip of the focus widget until the next key press."""
        focus = self._focus()
        if focus is None:
            return
        target = focus.viewport() if isinstance(focus, QAbstractScrollArea) else focus
        place = _place(focus)
        event = QHelpEvent(QEvent.Type.ToolTip, place, target.mapToGlobal(place))
        QApplication.sendEvent(target, event)
        if QToolTip.isVisible():
            application = QApplication.instance()
            assert application is not None
            application.installEventFilter(self)

    # Qt

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() != QEvent.Type.KeyPress or not isinstance(event, QKeyEvent):
            return False
        application = QApplication.instance()
        assert application is not None
        application.removeEventFilter(self)
        QToolTip.hideText()
        # Escape closes the tool tip, and nothing else that it might close.
        return event.key() == Qt.Key.Key_Escape


def _place(focus: QWidget) -> QPoint:
    """Return the cursor position within a widget."""
    if isinstance(focus, QAbstractItemView):
        place = focus.visualRect(focus.currentIndex())
    else:
        asked = focus.inputMethodQuery(Qt.InputMethodQuery.ImCursorRectangle)
        place = asked if isinstance(asked, QRect) and asked.isValid() else focus.rect()
    return place.center()
