"""Commands on modes and panes: showing them, and moving the focus between them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QRectF, Qt
from PySide6.QtGui import QHelpEvent, QKeyEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QAbstractScrollArea,
    QApplication,
    QToolTip,
    QWidget,
)

from lowerscope.app.document.document import Document
from lowerscope.app.kit import theme
from lowerscope.app.kit.commands import Command, Commands, available
from lowerscope.app.kit.pane import Pane, PaneTab
from lowerscope.app.shell.modes import MODES
from lowerscope.core.model.texts import _

if TYPE_CHECKING:
    from lowerscope.app.shell.panes import Panes


FIRST = {"explore": "fx", "step": "pipeline", "schedule": "schedule", "run": "outcome"}
"""Panes that get the focus when their modes are first shown."""


class PaneCommands(QObject):
    """Commands on modes, on the panes as a whole, and on the keyboard focus.

    Args:
        panes: Returns the panes, if they were made.
        set_mode: Switches to a mode.
        reset: Puts all panes back to their usual places.
        window: The main window.
    """

    def __init__(
        self,
        panes: Callable[[], Panes | None],
        set_mode: Callable[[str], None],
        reset: Callable[[], None],
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._panes = panes
        self._set_mode = set_mode
        self._reset = reset
        self._window = window
        theme.application().focusChanged.connect(self._note_focus)
        self._last = ""
        self._in_modes: dict[str, str] = {}  # Pane of each mode that last had the focus.

    def commands(self) -> tuple[Command, ...]:
        sides = (
            ("model", _("&Outline"), "O"),
            ("details", _("&Inspector"), "I"),
            ("pipeline", _("List of &steps"), ""),
        )
        return (
            *(
                Command(
                    f"mode-{mode.key}",
                    mode.title,
                    partial(self._change_mode, mode.key),
                    f"Ctrl+{number}",
                    checked=partial(self._is_mode, mode.key),
                    group="mode",
                )
                for number, mode in enumerate(MODES, start=1)
            ),
            Command("next-pane", _("&Next pane"), partial(self._go, 1), "Ctrl+Tab; F6"),
            Command(
                "previous-pane",
                _("Pre&vious pane"),
                partial(self._go, -1),
                "Ctrl+Shift+Tab; Shift+F6",
            ),
            *available(
                self._has_panes,
                Command(
                    "maximise-pane", _("M&aximise or restore the pane"), self._maximise, "Ctrl+0"
                ),
                Command(
                    "pane-window",
                    _("Open the pane in a new &window, or put it back"),
                    self._switch_window,
                ),
            ),
            *(
                Command(
                    f"pane-{name}",
                    title,
                    partial(self._switch, name),
                    enabled=partial(self._belongs, name),
                    checked=partial(self._is_shown, name),
                    explore_keys=letter,
                )
                for name, title, letter in sides
            ),
            *available(
                self._has_panes,
                Command(
                    "drawer",
                    _("Problems and &log"),
                    self._switch_drawer,
                    "Ctrl+J",
                    checked=self._has_drawer,
                ),
                Command("reset-layout", _("R&eset layout"), self._reset),
            ),
        )

    def fill(self, panes: Panes, commands: Commands) -> None:
        """Connect the commands to the panes."""
        commands.follow(panes.arranged)

    def current(self) -> str:
        """Return the name of the pane that has or last had the focus; empty for none."""
        panes = self._panes()
        if panes is None or not panes.isVisible():
            return ""
        return self._last if self._last and panes.by_name[self._last].isVisible() else ""

    def enter(self, place: QWidget) -> bool:
        """Give the keyboard focus to the content of a pane; return False if nothing accepts it."""
        target = _target(place)
        if target is not None:
            target.window().activateWindow()
            target.setFocus(Qt.FocusReason.TabFocusReason)
        return target is not None

    def enter_first(self) -> None:
        """Give the keyboard focus to the first pane of the mode, or the next that has room."""
        panes = self._panes()
        if panes is not None and not self.enter(panes.by_name[FIRST[panes.mode]]):
            self._go(1)

    def _note_focus(self, _old: QWidget | None, new: QWidget | None) -> None:
        panes = self._panes()
        if panes is not None and new is not None:
            names = (name for name, pane in panes.by_name.items() if _holds(pane, new))
            in_main = new.window() is self._window
            self._last = next(names, "" if in_main else self._last)

    def _change_mode(self, key: str) -> None:
        """Switch to a mode, whose keys hold at once: the focus goes where it was in it."""
        panes = self._panes()
        if panes is not None:
            self._in_modes[panes.mode] = self._last
        self._set_mode(key)
        panes = self._panes()
        if panes is not None:
            last = self._in_modes.get(key, "")
            if not (last and self.enter(panes.by_name[last])):
                self.enter_first()

    # Showing and closing

    def _has_panes(self) -> bool:
        panes = self._panes()
        return panes is not None and panes.isVisible()

    def _is_mode(self, key: str) -> bool:
        panes = self._panes()
        return panes is not None and panes.mode == key

    def _belongs(self, name: str) -> bool:
        panes = self._panes()
        return panes is not None and name in dict(panes.area.mode.panes)

    def _is_shown(self, name: str) -> bool:
        panes = self._panes()
        return panes is not None and self._belongs(name) and panes.area.shows(name)

    def _has_drawer(self) -> bool:
        panes = self._panes()
        return panes is not None and not panes.drawer.isHidden()

    def _switch(self, name: str) -> None:
        if (panes := self._panes()) is None:
            return
        if self.current() == name and self._is_shown(name):
            self._go(1)
        panes.switch_closed(name)
        if self._is_shown(name):
            self.enter(panes.by_name[name])

    def _switch_drawer(self) -> None:
        panes = self._panes()
        if panes is None:
            return
        if panes.drawer.isHidden():
            panes.open_drawer()
            self.enter(panes.drawer)
        else:
            panes.close_drawer()

    def _switch_window(self) -> None:
        name, panes = self.current(), self._panes()
        if name and panes is not None:
            panes.switch_window(name)
            self.enter(panes.by_name[name])
            # Its window may not have the focus yet.
            self._last = name

    def _maximise(self) -> None:
        panes, name = self._panes(), self.current()
        if panes is not None and (name or panes.area.maximised):
            panes.switch_maximised(name)

    # Moving between panes

    def _go(self, step: int) -> None:
        panes = self._panes()
        if panes is None or not panes.isVisible():
            return
        every = (*panes.by_name.values(), panes.drawer)
        places = [each for each in every if each.isVisible()]
        focus = QApplication.focusWidget()
        here = next((index for index, each in enumerate(places) if _holds(each, focus)), None)
        start = (-1 if step > 0 else 0) if here is None else here
        for distance in range(1, len(places) + 1):
            if self.enter(places[(start + step * distance) % len(places)]):
                return


def _holds(place: QWidget, widget: QWidget | None) -> bool:
    return widget is not None and (place is widget or place.isAncestorOf(widget))


def _target(place: QWidget) -> QWidget | None:
    """Return the widget of a pane that gets the focus: the content of its page, not its header.

    A graph, a list or a text comes before the fields and buttons above it, and the current tab
    where the page has nothing yet.
    """
    from lowerscope.app.kit.canvas.graph_canvas import GraphCanvas

    entrance = place.entrance() if isinstance(place, Pane) else None
    if entrance is not None and entrance.isVisible() and entrance.isEnabled():
        return entrance
    inside = place.page(place.current()) if isinstance(place, Pane) else place
    found: list[QWidget] = []
    for root in (inside, place):
        for widget in (root, *root.findChildren(QWidget)):
            by_tab = widget.focusPolicy() & Qt.FocusPolicy.TabFocus == Qt.FocusPolicy.TabFocus
            if by_tab and widget.isVisible() and widget.isEnabled():
                found.append(widget)
        if found:
            break
    content = (each for each in found if isinstance(each, QAbstractScrollArea | GraphCanvas))
    tabs = (each for each in found if isinstance(each, PaneTab))
    return next(content, next(tabs, found[0] if found else None))


# --- Keyboard equivalents of mouse actions: sorting by a column, and showing tool tips ---


class Pointing(QObject):
    """Does at the focus what the mouse does under the pointer."""

    def __init__(self, document: Document, window: QWidget) -> None:
        super().__init__(window)
        self._document = document
        self._window = window

    def commands(self) -> tuple[Command, ...]:
        return (
            Command("columns", _("Colu&mns of the table…"), self._open_columns),
            Command("tip", _("Show the card or tool ti&p"), self._tell, "Shift+F1"),
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
            words = _("No table has the focus: go to one with Tab first.")
            self._document.notify(words, "info")

    def _tell(self) -> None:
        """Show the card of what the focus is on, or the tool tip until the next key press."""
        from lowerscope.app.kit.canvas.graph_canvas import GraphCanvas
        from lowerscope.app.kit.code.code_editor import CodeEditor

        focus = self._focus()
        if focus is None or (isinstance(focus, CodeEditor | GraphCanvas) and focus.show_card()):
            return
        target = focus.viewport() if isinstance(focus, QAbstractScrollArea) else focus
        place = _place(focus)
        event = QHelpEvent(QEvent.Type.ToolTip, place, target.mapToGlobal(place))
        QApplication.sendEvent(target, event)
        if QToolTip.isVisible():
            theme.application().installEventFilter(self)

    # Qt

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() != QEvent.Type.KeyPress or not isinstance(event, QKeyEvent):
            return False
        theme.application().removeEventFilter(self)
        QToolTip.hideText()
        # Escape closes the tool tip, and nothing else that it might close.
        return event.key() == Qt.Key.Key_Escape


def _place(focus: QWidget) -> QPoint:
    """Return the cursor position within a widget."""
    if isinstance(focus, QAbstractItemView):
        place = focus.visualRect(focus.currentIndex())
    else:
        asked = focus.inputMethodQuery(Qt.InputMethodQuery.ImCursorRectangle)
        area = asked.toRect() if isinstance(asked, QRectF) else asked
        is_known = isinstance(area, QRect) and area.height() > 0
        place = area if is_known else focus.rect()
    return place.center()
