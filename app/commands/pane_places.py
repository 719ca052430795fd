"""The commands on where a pane stands: what a mouse does with its header and its edges."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QPoint, Qt
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QAction
from PySide6.QtWidgets import QApplication, QMenu

from lowerscope.app.actions import Command
from lowerscope.app.docking import STEP

if TYPE_CHECKING:
    from lowerscope.app.arrangement import Way
    from lowerscope.app.commands.panes import PaneCommands
    from lowerscope.app.panes import Panes
    from lowerscope.app.window import MainWindow


class PanePlaces(QObject):
    """Moves, floats, joins, resizes and maximises the pane that has the focus.

    Parameters
    ----------
    window
        The window.
    panes
        Knows which pane that is.
    """

    def __init__(self, window: MainWindow, panes: PaneCommands) -> None:
        super().__init__(panes)
        self._window = window
        self._panes = panes
        # The one that was let float last: it may not have the keyboard yet.
        self._floated = ""

    def commands(self, menu: str) -> tuple[Command, ...]:
        """Return the commands, for a menu."""
        tr = self._window.tr
        moves: tuple[tuple[Way, str, str], ...] = (
            ("left", tr("Move the pane &left"), "Left"),
            ("right", tr("Move the pane ri&ght"), "Right"),
            ("up", tr("Move the pane &up"), "Up"),
            ("down", tr("Move the pane do&wn"), "Down"),
        )
        sizes = (
            ("narrower", tr("&Narrower"), "Home", True, -STEP),
            ("wider", tr("&Wider"), "End", True, STEP),
            ("higher", tr("&Taller"), "PgUp", False, STEP),
            ("lower", tr("&Shorter"), "PgDown", False, -STEP),
        )
        return (
            *(
                Command(
                    f"move-pane-{way}",
                    menu,
                    text,
                    partial(self._move, way),
                    f"Alt+Shift+{key}",
                    separated=way == "left",
                )
                for way, text, key in moves
            ),
            Command("join-pane", menu, tr("Put it with &another, as tabs…"), self._join),
            Command("float-pane", menu, tr("&Float or dock the pane"), self._float),
            *(
                Command(
                    f"pane-{key}",
                    menu,
                    text,
                    partial(self._grow, across, by),
                    f"Alt+Shift+{name}",
                    separated=key == "narrower",
                )
                for key, text, name, across, by in sizes
            ),
            Command(
                "maximise-pane",
                menu,
                tr("Ma&ximise or restore the pane"),
                self._maximise,
                "Alt+Shift+Return",
            ),
        )

    def _here(self) -> tuple[Panes, str] | None:
        """Return the panes, with the name of the one that a command is for."""
        name = self._panes.current()
        return (self._window.panes, name) if name else None

    def _move(self, way: Way) -> None:
        if (here := self._here()) is None:
            return
        panes, name = here
        panes.take_back()
        focus = QApplication.focusWidget()
        moved = panes.docking.move(name, way)
        if focus is not None and not focus.hasFocus():
            focus.setFocus(Qt.FocusReason.ShortcutFocusReason)
        words = {
            "left": self.tr("{0} moved left"),
            "right": self.tr("{0} moved right"),
            "up": self.tr("{0} moved up"),
            "down": self.tr("{0} moved down"),
        }
        self._say(words[way] if moved else self.tr("{0} is at the edge"), name)

    def _join(self) -> None:
        if (here := self._here()) is None:
            return
        panes, name = here
        panes.take_back()
        menu = QMenu(panes)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.setAccessibleName(self.tr("Panes to be put with"))
        for mate in panes.docking.docked():
            if mate not in panes.docking.mates(name):
                action = menu.addAction(panes.docks[mate].windowTitle())
                action.setData((name, mate))
        menu.triggered.connect(self._join_chosen)
        dock = panes.docks[name]
        menu.popup(dock.mapToGlobal(QPoint(12, dock.height() // 8)))
        if menu.actions():
            menu.setActiveAction(menu.actions()[0])

    def _join_chosen(self, action: QAction) -> None:
        name, mate = action.data()
        panes = self._window.panes
        panes.docking.join(name, mate)
        self._panes.enter(panes.docks[name])
        self._say(self.tr("{0} is a tab beside {1}"), name, mate)

    def _float(self) -> None:
        panes = self._window.made_panes
        if panes is None:
            return
        floats = bool(self._floated) and panes.docks[self._floated].isFloating()
        name = self._floated if floats else self._panes.current()
        if not name:
            return
        panes.take_back()
        dock, focus = panes.docks[name], QApplication.focusWidget()
        dock.setFloating(not dock.isFloating())
        self._floated = name if dock.isFloating() else ""
        if focus is not None and dock.isAncestorOf(focus):
            focus.window().activateWindow()
            focus.setFocus(Qt.FocusReason.ShortcutFocusReason)
        else:
            self._panes.enter(dock)
        words = self.tr("{0} floats") if dock.isFloating() else self.tr("{0} is put back")
        self._say(words, name)

    def _grow(self, across: bool, by: int) -> None:
        if (here := self._here()) is not None:
            panes, name = here
            panes.docking.grow(name, across, by)
            panes.note_moved()

    def _maximise(self) -> None:
        panes = self._window.made_panes
        if panes is None:
            return
        if panes.docking.is_maximised:
            panes.take_back()
        elif (here := self._here()) is not None and not panes.docks[here[1]].isFloating():
            panes.maximise(here[1])
            self._say(self.tr("{0} is maximised"), here[1])

    def _say(self, words: str, *names: str) -> None:
        """Tell a screen reader what has become of a pane."""
        if QAccessible.isActive():
            titles = [self._window.panes.docks[name].windowTitle() for name in names]
            event = QAccessibleAnnouncementEvent(self._window, words.format(*titles))
            QAccessible.updateAccessibility(event)
