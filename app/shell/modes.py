"""The four modes of the window: the panes that each shows side by side, and their widths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QRect, QSize, Qt, Signal
from PySide6.QtGui import QCloseEvent, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from lowerscope.app.kit.layouts import column_of
from lowerscope.app.kit.pane import Pane
from lowerscope.app.kit.split import Split
from lowerscope.app.panes.model.model_view import OutlineStrip
from lowerscope.core.model.texts import _


@dataclass(frozen=True)
class Mode:
    """A mode, with the panes that it shows."""

    key: str
    title: str
    tooltip: str
    panes: tuple[tuple[str, int], ...]  # From the left, each with its width in `USUAL_WIDTH`.
    side: tuple[str, ...] = ()  # Those that keep their width in a wider window.


USUAL_WIDTH = 1440
"""Window width that the widths of the modes are for."""

NARROW = 1400
"""Window width below which the outline is closed at first."""

MODES = (
    Mode(
        "explore",
        _("Explore"),
        _("Follow a node from its Python line to FX, Relax and TensorIR"),
        (("model", 210), ("fx", 240), ("relax", 352), ("tensorir", 638), ("details", 260)),
        ("model", "details"),
    ),
    Mode(
        "step",
        _("Step"),
        _("The effect of each step of translation, passes, build and run"),
        (("pipeline", 300), ("changes", 1140)),
        ("pipeline",),
    ),
    Mode(
        "schedule",
        _("Schedule"),
        _("Make one function fast, by hand, by schedule rules or by tuning"),
        (("schedule", 1440),),
    ),
    Mode(
        "run",
        _("Run"),
        _("Check results and times against torch, and find where they differ"),
        (("outcome", 1440),),
    ),
)

BY_KEY = {mode.key: mode for mode in MODES}

LEAST = {"model": 120, "fx": 200, "relax": 300, "tensorir": 340, "details": 244}
LEAST |= {"pipeline": 240, "schedule": 420}
"""Minimum widths of panes; of all others, `LEAST_WIDTH`. Contents never change them."""

LEAST_WIDTH = 150

FOLDED = {"pipeline": 56}
"""Widths of the panes that are folded in a window narrower than `FOLD_BELOW`."""

FOLD_BELOW = 1080

COLLAPSING = ("model", "details", "fx")
"""Panes that lose their place where there is no room for all, the first one first.

Those at the sides can then be shown over the others, and FX in the place of `BESIDE`.
"""

BESIDE = "relax"

INSPECTOR, GIVES = "details", "tensorir"
"""The pane that comes with a selection, and the one that it takes its room from."""

CLOSABLE = ("model", "details", "pipeline")
"""Panes at the sides, which the user can close."""

MOST = 1 << 14
"""Bound on a width in a session, in pixels."""


class ModeArea(Split):
    """All panes side by side, of which those of the current mode are visible.

    Args:
        panes: The panes by name, from the left.
    """

    window_opened = Signal(QWidget)  # A pane is in a window of its own.
    placing = Signal()  # It is known which panes have a place; they are about to be shown.
    emptied = Signal(bool)  # All panes of the mode are in windows of their own, or not any more.

    def __init__(self, panes: Mapping[str, Pane]) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self._panes = dict(panes)
        self.mode = MODES[0]  # The current mode.
        self._widths: dict[str, dict[str, int]] = {}  # By mode, then by pane; as the user set them.
        self._closed: set[str] = set()
        self._empty: set[str] = set()  # Panes that have no place while they have no content.
        self._visible: list[str] = []  # Panes side by side, as they were last laid out.
        self._collapsed: frozenset[str] = frozenset()  # Panes that there is no room for.
        self._front = BESIDE  # The pane that is shown where FX has no place of its own.
        self._over: PaneOver | None = None
        self.maximised = ""  # Name of the pane that covers all others; empty for none.
        self._windows: dict[str, PaneWindow] = {}
        self._laid_out = 0  # Width that the panes were laid out for.
        self._folds = False
        self.setChildrenCollapsible(False)
        self.setHandleWidth(1)
        self.splitterMoved.connect(self._note_widths)
        for name, pane in self._panes.items():
            pane.setMinimumWidth(LEAST.get(name, LEAST_WIDTH))
            self.addWidget(pane)
            pane.hide()
            pane.header.beside.chosen.connect(self.bring)
            pane.header.maximise_wanted.connect(self._switch_maximised)
            pane.header.window_wanted.connect(self._switch_window)

    # The mode

    def set_mode(self, key: str) -> None:
        """Switch to a mode; its panes get the widths that they last had in it."""
        self._end_over()
        self.mode = BY_KEY[key]
        self.maximised = ""
        self._show()

    def shows(self, name: str) -> bool:
        """Return whether a pane belongs to the current mode and is neither closed nor covered."""
        return not self._panes[name].isHidden()

    def bring(self, name: str) -> None:
        """Make a pane of the current mode visible, wherever there is room for it."""
        window = self._windows.get(name)
        if window is not None:
            window.raise_()
        elif not self.shows(name):
            self._closed.discard(name)
            self.maximised = ""
            if name in self._collapsed and name in CLOSABLE:
                self._show_over(name)
            elif self._collapsed.intersection(("fx",)) and name in ("fx", BESIDE):
                self._front = name
            self._show()

    def switch(self, name: str) -> None:
        """Close a pane at the side, or show it."""
        if self.shows(name):
            self.set_closed(name, True)
        else:
            self.bring(name)

    def has_place(self, name: str) -> bool:
        """Return whether a pane is neither closed nor without room in the current mode."""
        return name in self._places() and name not in self._collapsed

    # Closing and maximising

    @property
    def closed(self) -> frozenset[str]:
        """Names of the panes that the user has closed."""
        return frozenset(self._closed)

    def set_closed(self, name: str, closed: bool) -> None:
        """Close or show a pane at the side."""
        if closed and self.shows_over() == name:
            # It has its place again where there is room.
            self._end_over()
        else:
            (self._closed.add if closed else self._closed.discard)(name)
        self.maximised = ""
        self._show()

    def set_empty(self, name: str, empty: bool) -> None:
        """Set whether a pane has no content; it has no place then."""
        if empty != (name in self._empty):
            (self._empty.add if empty else self._empty.discard)(name)
            self._show()

    # A pane over the others

    def shows_over(self) -> str:
        """Return the name of the pane that lies over the others; empty for none."""
        return "" if self._over is None else self._over.name

    def _show_over(self, name: str) -> None:
        self._end_over()
        self._over = PaneOver(name, self._panes[name], self)
        self._place_over()
        self._over.show()
        self._over.raise_()

    def _end_over(self) -> None:
        if self._over is not None:
            over, self._over = self._over, None
            self._insert(over.name)
            over.deleteLater()

    def _place_over(self) -> None:
        if self._over is not None:
            width = dict(self.mode.panes)[self._over.name]
            area = QRect(self.geometry())
            area.setWidth(min(width, area.width()))
            if self._over.name == INSPECTOR:
                area.moveRight(self.geometry().right())
            self._over.setGeometry(area)

    def maximise(self, name: str) -> None:
        """Give one pane the whole window; the empty name restores the others."""
        self.maximised = name if name in dict(self.mode.panes) else ""
        self._show()

    def _switch_maximised(self) -> None:
        name = self._sender_name()
        if name and name not in self._windows:
            self.maximise("" if self.maximised else name)

    # Windows of their own

    def is_in_window(self, name: str) -> bool:
        """Return whether a pane is in a window of its own."""
        return name in self._windows

    def switch_window(self, name: str) -> None:
        """Show a pane in a window of its own, or put it back."""
        if name in self._windows:
            self._windows[name].close()
            return
        pane = self._panes[name]
        size = pane.size()
        window = self._windows[name] = PaneWindow(name, pane, self)
        window.closed.connect(self._put_back)
        window.resize(size.expandedTo(QSize(480, 400)))
        self.window_opened.emit(window)
        window.show()
        self.maximised = ""
        self._show()

    def _switch_window(self) -> None:
        name = self._sender_name()
        if name:
            self.switch_window(name)

    def _put_back(self, name: str) -> None:
        window = self._windows.pop(name)
        self._insert(name)
        window.deleteLater()
        self._show()

    def _insert(self, name: str) -> None:
        """Put a pane back between its neighbours."""
        names = list(self._panes)
        before = names[: names.index(name)]
        place = sum(self.indexOf(self._panes[each]) >= 0 for each in before)
        self.insertWidget(place, self._panes[name])

    def _sender_name(self) -> str:
        header = self.sender()
        return next((name for name, pane in self._panes.items() if pane.header is header), "")

    # Widths

    def reset(self) -> None:
        """Choose the usual widths, and show all panes."""
        for window in list(self._windows.values()):
            window.close()
        self._widths = {}
        self._closed = set()
        self.maximised = ""
        self._show()

    def widths(self) -> dict[str, dict[str, int]]:
        """Return the widths that the user gave the panes: by mode, then by pane."""
        return {mode: dict(widths) for mode, widths in self._widths.items()}

    def restore(self, widths: Mapping[str, Mapping[str, int]], closed: tuple[str, ...]) -> None:
        """Apply stored widths and closed panes; unknown names and absurd widths are ignored."""
        self._widths = {
            key: {
                name: width
                for name, width in each.items()
                if name in self._panes and 0 < width < MOST
            }
            for key, each in widths.items()
            if key in BY_KEY
        }
        self._closed = {name for name in closed if name in CLOSABLE}
        self.maximised = ""
        self._show()

    def _places(self) -> list[str]:
        """Return the panes that may have a place, whether or not they have content."""
        names = (name for name, _width in self.mode.panes if name not in self._windows)
        return [name for name in names if name not in self._closed]

    def _find_collapsed(self) -> frozenset[str]:
        """Return the panes that there is no room for, which does not depend on the selection."""
        names, around = self._places(), self.parentWidget()
        needed = sum(LEAST.get(name, LEAST_WIDTH) for name in names) + len(names)
        room = self.width() if around is None else around.width()
        if "model" not in names and "model" in dict(self.mode.panes):
            room -= OutlineStrip.WIDTH
        collapsed = set()
        for name in COLLAPSING:
            if needed > room and name in names:
                collapsed.add(name)
                needed -= LEAST[name] - (OutlineStrip.WIDTH if name == "model" else 0)
        return frozenset(collapsed)

    def _shown(self) -> list[str]:
        """Return the panes that are side by side."""
        if self.maximised:
            return [self.maximised]
        over = self.shows_over()
        left_out = self._empty | self._collapsed - {"fx"} | {over}
        if "fx" in self._collapsed and "fx" not in self._empty:
            left_out |= {BESIDE if self._front == "fx" else "fx"}
        return [name for name in self._places() if name not in left_out]

    def _show(self) -> None:
        """Show the panes of the mode, each with its width."""
        self._collapsed = self._find_collapsed() if self._laid_out else frozenset()
        over = self.shows_over()
        if over and (over not in self._collapsed or over in self._empty):
            self._end_over()
        self._visible = shown = self._shown()
        for name, pane in self._panes.items():
            # Those that go are not to be laid out for another width.
            if name not in shown and self.indexOf(pane) >= 0:
                pane.hide()
        self.placing.emit()
        shares = self._shares()
        for name, pane in self._panes.items():
            place = self.indexOf(pane)
            if place < 0:  # It is in a window of its own, or over the others.
                continue
            if name in shares:
                # Qt gives a hidden pane its least width, for which it would be laid out first.
                pane.resize(shares[name], self.height())
            # Qt counts lines that it has not hidden yet.
            self.handle(place).setVisible(name in shares and name != shown[0])
            pane.setVisible(name in shares)
        beside = {name: self._panes[name].accessibleName() for name in ("fx", BESIDE)}
        for name in beside:
            has_both = "fx" in self._collapsed - self._empty and not self.maximised
            self._panes[name].header.set_beside(beside if has_both else {}, name)
        self._lay_out()
        self.emptied.emit(not shown and bool(self._windows))

    def _shares(self) -> dict[str, int]:
        """Return the widths of the panes in view, which fill this together with the lines."""
        shown, stored = self._visible, self._widths.get(self.mode.key, {})
        usual = dict(self.mode.panes)
        folded = FOLDED if self._folds else {}
        wanted = {name: folded.get(name) or stored.get(name, usual[name]) for name in shown}
        inspector = wanted.pop(INSPECTOR, 0)
        wide = [name for name in wanted if name not in self.mode.side]
        rest = sum(wanted[name] for name in wide)
        side = sum(wanted.values()) - rest + self.handleWidth() * (len(wanted) - 1)
        room = max(1, self.width() - side - (0 if GIVES in wanted else inspector))
        for name in wide:
            width = wanted[name]
            wanted[name] = width * room // rest
            room, rest = room - wanted[name], rest - width
        if inspector:
            wanted[INSPECTOR] = inspector
            inspector += self.handleWidth()
            for name in (GIVES, BESIDE, "fx"):
                # Beyond that, the others are made narrower as well.
                given = min(inspector, max(0, wanted.get(name, 0) - LEAST[name]))
                if given:
                    wanted[name] -= given
                    inspector -= given
        return wanted

    def _lay_out(self) -> None:
        sizes = [0] * self.count()
        for name, width in self._shares().items():
            sizes[self.indexOf(self._panes[name])] = width
        self.setSizes(sizes)
        self._laid_out = self.width()

    def _note_widths(self) -> None:
        """Store the widths of the panes in view, once the user has moved a line."""
        if not self._windows.keys().isdisjoint(dict(self.mode.panes)):
            # The others have the room of one that is in a window of its own.
            return
        sizes = self.sizes()
        noted = self._widths.setdefault(self.mode.key, {})
        for name in self._visible:
            width = sizes[self.indexOf(self._panes[name])]
            if width > 0 and not (self._folds and name in FOLDED):
                noted[name] = width
        if INSPECTOR in self._visible and GIVES in self._visible:
            noted[GIVES] += noted[INSPECTOR] + self.handleWidth()

    # Qt

    def event(self, event: QEvent) -> bool:
        handled = super().event(event)
        if event.type() == QEvent.Type.Show:
            # Widths count once it has its own.
            self._lay_out()
            self._show()
        return handled

    def resizeEvent(self, event: QResizeEvent) -> None:
        # Qt would share the room by the widths of the moment, whose rounding adds up.
        self._folds = event.size().width() < FOLD_BELOW
        for name, width in FOLDED.items():
            self._panes[name].setMinimumWidth(width if self._folds else LEAST[name])
        if self._laid_out and self._find_collapsed() != self._collapsed:
            self._show()
        self._lay_out()
        self._place_over()


class PaneOver(QFrame):
    """A pane at the side that lies over the others."""

    def __init__(self, name: str, pane: Pane, area: ModeArea) -> None:
        super().__init__(area.parentWidget())
        self.name = name
        self._area = area
        self.setProperty("floating", True)
        column_of(self, (pane, 1), margins=1)
        pane.show()

    # Qt

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape:
            # Before the window's commands.
            event.accept()
            if event.type() == QEvent.Type.KeyPress:
                self._area.set_closed(self.name, True)
            return True
        return super().event(event)


class PaneWindow(QWidget):
    """A pane in a window of its own, for a second screen."""

    closed = Signal(str)  # Its pane is to be put back; the argument is its name.

    def __init__(self, name: str, pane: Pane, parent: QWidget) -> None:
        # A tool window: the keys of the main window hold in it.
        super().__init__(parent, Qt.WindowType.Tool)
        self.name = name
        self.setWindowTitle(pane.title())
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(pane)
        pane.show()

    def closeEvent(self, event: QCloseEvent) -> None:
        super().closeEvent(event)
        self.closed.emit(self.name)
