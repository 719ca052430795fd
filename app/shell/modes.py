"""The four modes of the window: the panes that each shows side by side, and their widths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QCloseEvent, QResizeEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from lowerscope.app.kit.pane import Pane
from lowerscope.app.kit.split import Split
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
        _("What became what: one node from its Python line to FX, Relax and TensorIR"),
        (("model", 210), ("fx", 240), ("relax", 352), ("tensorir", 378), ("details", 260)),
        ("model", "details"),
    ),
    Mode(
        "step",
        _("Step"),
        _("What each step of the translation, the passes, the build and the run did"),
        (("pipeline", 300), ("changes", 1140)),
        ("pipeline",),
    ),
    Mode(
        "schedule",
        _("Schedule"),
        _("One function made fast, by hand, by rule or by tuning"),
        (("schedule", 1440),),
    ),
    Mode(
        "run",
        _("Run"),
        _("Whether it is right, how fast it is, and if not, where"),
        (("outcome", 1440),),
    ),
)

BY_KEY = {mode.key: mode for mode in MODES}

LEAST = {"model": 120, "details": 244, "pipeline": 240, "schedule": 420}
"""Minimum widths of panes; of all others, `LEAST_WIDTH`. Contents never change them."""

LEAST_WIDTH = 150

FOLDED = {"pipeline": 56}
"""Widths of the panes that are folded in a window narrower than `FOLD_BELOW`."""

FOLD_BELOW = 1080

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

    def __init__(self, panes: Mapping[str, Pane]) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self._panes = dict(panes)
        self._mode = MODES[0]
        self._widths: dict[str, dict[str, int]] = {}  # By mode, then by pane; as the user set them.
        self._closed: set[str] = set()
        self._empty: set[str] = set()  # Panes that have no place while they have no content.
        self._maximised = ""
        self._windows: dict[str, PaneWindow] = {}
        self._laid_out = 0  # Width that the panes were laid out for.
        self._folds = False
        self.setChildrenCollapsible(False)
        self.setHandleWidth(1)
        for name, pane in self._panes.items():
            pane.setMinimumWidth(LEAST.get(name, LEAST_WIDTH))
            self.addWidget(pane)
            self.setStretchFactor(self.indexOf(pane), 1)
            pane.hide()
            pane.header.maximise_wanted.connect(self._switch_maximised)
            pane.header.window_wanted.connect(self._switch_window)

    # The mode

    @property
    def mode(self) -> Mode:
        """The current mode."""
        return self._mode

    def set_mode(self, key: str) -> None:
        """Switch to a mode; its panes get the widths that they last had in it."""
        self._note_widths()
        self._mode = BY_KEY[key]
        self._maximised = ""
        self._show()

    def shows(self, name: str) -> bool:
        """Return whether a pane belongs to the current mode and is neither closed nor covered."""
        return not self._panes[name].isHidden()

    def bring(self, name: str) -> None:
        """Make a pane of the current mode visible, whether closed or behind a maximised one."""
        window = self._windows.get(name)
        if window is not None:
            window.raise_()
        elif not self.shows(name):
            self._note_widths()
            self._closed.discard(name)
            self._maximised = ""
            self._show()

    # Closing and maximising

    @property
    def closed(self) -> frozenset[str]:
        """Names of the panes that the user has closed."""
        return frozenset(self._closed)

    @property
    def maximised(self) -> str:
        """Name of the pane that covers all others; empty for none."""
        return self._maximised

    def set_closed(self, name: str, closed: bool) -> None:
        """Close or show a pane at the side."""
        self._note_widths()
        (self._closed.add if closed else self._closed.discard)(name)
        self._maximised = ""
        self._show()

    def set_empty(self, name: str, empty: bool) -> None:
        """Set whether a pane has no content; it has no place then."""
        if empty != (name in self._empty):
            self._note_widths()
            (self._empty.add if empty else self._empty.discard)(name)
            self._show()

    def maximise(self, name: str) -> None:
        """Give one pane the whole window; the empty name restores the others."""
        self._note_widths()
        self._maximised = name if name in dict(self._mode.panes) else ""
        self._show()

    def _switch_maximised(self) -> None:
        name = self._sender_name()
        if name and name not in self._windows:
            self.maximise("" if self._maximised else name)

    # Windows of their own

    def is_in_window(self, name: str) -> bool:
        """Return whether a pane is in a window of its own."""
        return name in self._windows

    def switch_window(self, name: str) -> None:
        """Show a pane in a window of its own, or put it back."""
        if name in self._windows:
            self._windows[name].close()
            return
        self._note_widths()
        pane = self._panes[name]
        size = pane.size()
        window = self._windows[name] = PaneWindow(name, pane, self)
        window.closed.connect(self._put_back)
        window.resize(size.expandedTo(QSize(480, 400)))
        self.window_opened.emit(window)
        window.show()
        self._maximised = ""
        self._show()

    def _switch_window(self) -> None:
        name = self._sender_name()
        if name:
            self.switch_window(name)

    def _put_back(self, name: str) -> None:
        window = self._windows.pop(name)
        self.insertWidget(list(self._panes).index(name), self._panes[name])
        window.deleteLater()
        self._show()

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
        self._maximised = ""
        self._show()

    def widths(self) -> dict[str, dict[str, int]]:
        """Return the widths that the user gave the panes: by mode, then by pane."""
        self._note_widths()
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
        self._maximised = ""
        self._show()

    def _shown(self) -> list[str]:
        if self._maximised:
            return [self._maximised]
        names = (name for name, _ in self._mode.panes if name not in self._windows)
        return [name for name in names if name not in self._closed | self._empty]

    def _show(self) -> None:
        """Show the panes of the mode, each with its width."""
        shown = self._shown()
        for name, pane in self._panes.items():
            if name not in self._windows:
                pane.setVisible(name in shown)
        for name in shown:
            share = 0 if name in self._mode.side else 1
            self.setStretchFactor(self.indexOf(self._panes[name]), share)
        self._lay_out()

    def _lay_out(self) -> None:
        shown, stored = self._shown(), self._widths.get(self._mode.key, {})
        usual = dict(self._mode.panes)
        folded = FOLDED if self._folds else {}
        wanted = {name: folded.get(name) or stored.get(name, usual[name]) for name in shown}
        side = sum(width for name, width in wanted.items() if name in self._mode.side)
        rest = sum(width for name, width in wanted.items() if name not in self._mode.side)
        room = max(1, self.width() - side)
        sizes = [0] * self.count()
        for name, width in wanted.items():
            share = width if name in self._mode.side or not rest else width * room // rest
            sizes[self.indexOf(self._panes[name])] = share
        self.setSizes(sizes)
        self._laid_out = self.width()

    def _note_widths(self) -> None:
        """Store the widths of the panes in view."""
        if self._maximised or not self.isVisible() or not self._laid_out:
            return
        if not self._windows.keys().isdisjoint(dict(self._mode.panes)):
            # The others have the room of one that is in a window of its own.
            return
        sizes = self.sizes()
        noted = self._widths.setdefault(self._mode.key, {})
        for name in self._shown():
            width = sizes[self.indexOf(self._panes[name])]
            if width > 0 and not (self._folds and name in FOLDED):
                noted[name] = width

    # Qt

    def resizeEvent(self, event: QResizeEvent) -> None:
        folds = event.size().width() < FOLD_BELOW
        if folds == self._folds:
            super().resizeEvent(event)
            return
        self._note_widths()
        self._folds = folds
        for name, width in FOLDED.items():
            self._panes[name].setMinimumWidth(width if folds else LEAST[name])
        super().resizeEvent(event)
        self._lay_out()

    def event(self, event: QEvent) -> bool:
        handled = super().event(event)
        if event.type() == QEvent.Type.Show:
            # Widths count once it has its own.
            self._lay_out()
        return handled


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
