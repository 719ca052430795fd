"""The layout of the docks: the default rows with their sizes, tabs, and one maximised pane."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QByteArray, QObject, Qt
from PySide6.QtWidgets import QDockWidget, QMainWindow, QTabBar, QWidget

Row = tuple[tuple[str, int], ...]
"""Panes side by side, from the left, each with its width."""

TOP = (("model", 240), ("fx", 360), ("relax", 420), ("tensorir", 420))
BOTTOM = (("pipeline", 440), ("outcome", 710), ("details", 290))
WORKBENCH = (("schedule", 1110), ("outcome", 330))
"""The bottom row while a schedule is edited; the details are hidden."""

BESIDE_SCRIPT = (("model", 180), ("fx", 250), ("relax", 330), ("tensorir", 680))
"""The top row while a schedule is edited: most of it is the script."""

ABOVE = tuple(name for name, _ in TOP)
BELOW = ("schedule", *(name for name, _ in BOTTOM))
"""Names of all panes of the two rows, from the left."""

STEADY = ("model", "pipeline", "details")
"""Panes that grow little with the window; the graphs, scripts and tables get the rest."""

MOST_SHARE = 1.3
"""Largest growth of a steady pane in a wide window, for long parameter names."""

NARROW = 1440
"""Window width that the widths above are for."""

BOTTOM_HEIGHT = 250


def widths(row: Row, width: int) -> list[int]:
    """Return the widths of the panes of a row in a window of this width."""
    wide = min(MOST_SHARE, max(1.0, width / NARROW))
    steady = sum(wide * own for name, own in row if name in STEADY)
    others = sum(own for name, own in row if name not in STEADY)
    share = max(1.0, (width - steady) / others)
    return [round((wide if name in STEADY else share) * own) for name, own in row]


class DockLayout:
    """Sizes of the docks in their default rows, and the state that is saved.

    Parameters
    ----------
    window
        The main window of the docks.
    docks
        The docks, by name of their pane.
    strip
        The central widget, between the two rows.
    """

    def __init__(
        self, window: QMainWindow, docks: Mapping[str, QDockWidget], strip: QWidget
    ) -> None:
        self._window, self._docks, self._strip = window, docks, strip
        # Height of the bottom row; 0 if panes were moved out of it: each then keeps its size.
        self._height = self._height_before = BOTTOM_HEIGHT
        self._widths_before: list[int] | None = None
        # The state before a pane was maximised.
        self._before = QByteArray()
        self.set_corners()

    def set_corners(self) -> None:
        """Give a pane at the left or right edge of the window the full height."""
        left, right = Qt.DockWidgetArea.LeftDockWidgetArea, Qt.DockWidgetArea.RightDockWidgetArea
        self._window.setCorner(Qt.Corner.TopLeftCorner, left)
        self._window.setCorner(Qt.Corner.BottomLeftCorner, left)
        self._window.setCorner(Qt.Corner.TopRightCorner, right)
        self._window.setCorner(Qt.Corner.BottomRightCorner, right)

    def is_in_front(self, name: str) -> bool:
        """Return whether a pane is visible, and not hidden behind another one's tab."""
        dock = self._docks[name]
        # Qt leaves a dock behind a tab visible, outside of the window.
        return dock.isVisible() and (dock.isFloating() or dock.geometry().right() >= 0)

    def tabbed_with(self, name: str) -> tuple[str, ...]:
        """Return the names of the panes tabbed with `name`, itself included."""
        dock = self._docks[name]
        beside = [dock, *self._window.tabifiedDockWidgets(dock)]
        return tuple(name for name, each in self._docks.items() if each in beside)

    # Default rows

    @property
    def are_usual(self) -> bool:
        """Return whether the panes stand in their default rows."""
        return self._height > 0

    def reset(self) -> None:
        """Choose the default height and widths; `lay_out` and `keep_height` apply them."""
        self._height = BOTTOM_HEIGHT
        self._widths_before = None

    def lay_out(self, scheduling: bool) -> None:
        """Give each pane its width, in the rows of the workbench or in the default ones."""
        before = None if scheduling else self._widths_before
        below, above = (WORKBENCH, BESIDE_SCRIPT) if scheduling else (BOTTOM, TOP)
        if self._height:
            for row, given in ((below, None), (above, before)):
                docks = [self._docks[name] for name, _ in row]
                wide = given or widths(row, self._window.width())
                self._window.resizeDocks(docks, wide, Qt.Orientation.Horizontal)

    def leave_usual(self, share: float) -> None:
        """Store the sizes of the default rows, then give the bottom row this share of the height.

        `return_to_usual` restores them.
        """
        self._height_before = self._height
        self.raise_to(share)
        self._widths_before = [self._docks[name].width() for name, _ in TOP]

    def return_to_usual(self) -> None:
        """Choose the height that the bottom row had before the workbench."""
        if self._height:
            self._height = self._height_before or self._height

    def raise_to(self, share: float) -> None:
        """Choose at least this share of the height for the bottom row."""
        if self._height:
            self._height = max(self._height, round(self._window.height() * share))

    def note_height(self) -> None:
        """Store the current height of the bottom row, as set by the user."""
        if not self.is_maximised:
            self._height = self._foot().height() if self._stand_in_rows() else 0

    def keep_height(self) -> None:
        """Restore the height of the bottom row, and leave the rest to the top row."""
        if not self._height or self.is_maximised:
            return
        above = [self._docks[name] for name in ABOVE]
        head = next((dock for dock in above if dock.isVisible() and not dock.isFloating()), None)
        if head is None:
            return
        strip = self._strip.height() if self._strip.isVisible() else 0
        heights = [max(1, self._window.height() - strip - self._height), self._height]
        self._window.resizeDocks([head, self._foot()], heights, Qt.Orientation.Vertical)

    def _foot(self) -> QDockWidget:
        """Return a visible pane of the bottom row, if any."""
        docks = [self._docks[name] for name in BELOW]
        return next((dock for dock in docks if dock.isVisible()), docks[1])

    def _stand_in_rows(self) -> bool:
        """Return whether the docked panes in view stand in the default two rows."""
        for area, names in (
            (Qt.DockWidgetArea.TopDockWidgetArea, ABOVE),
            (Qt.DockWidgetArea.BottomDockWidgetArea, BELOW),
        ):
            docks = [
                self._docks[name]
                for name in names
                if self.is_in_front(name) and not self._docks[name].isFloating()
            ]
            if any(self._window.dockWidgetArea(dock) != area for dock in docks):
                return False
            if len({dock.y() for dock in docks}) > 1:
                return False
        return True

    # Maximising, and the state

    @property
    def is_maximised(self) -> bool:
        """Return whether one pane is maximised."""
        return not self._before.isEmpty()

    def maximise(self, name: str) -> None:
        """Hide all other docked panes; `restore` undoes it."""
        self._before = self._window.saveState()
        for other, dock in self._docks.items():
            if other != name and not dock.isFloating():
                dock.hide()

    def restore(self) -> None:
        """Put all panes back to where they were before one was maximised."""
        before, self._before = self._before, QByteArray()
        if not before.isEmpty():
            self._window.restoreState(before)

    def forget(self) -> None:
        """Discard the state before a pane was maximised."""
        self._before = QByteArray()

    def state(self) -> QByteArray:
        """Return the state to save: with a maximised pane, the one before it."""
        return self._before if self.is_maximised else self._window.saveState()


def name_tabs(part: QObject) -> None:
    """Give the tab bars that Qt makes for docks an accessible name."""
    if isinstance(part, QTabBar):
        part.setAccessibleName(part.tr("Panes in this place"))
