"""The rows in which panes stand by default, and how much room each has: widths, and a height."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDockWidget, QMainWindow, QWidget

from lowerscope.app.docking import Docking

Row = tuple[tuple[str, int], ...]
"""Panes that stand side by side, from the left, each with its width."""

TOP = (("model", 240), ("fx", 360), ("relax", 420), ("tensorir", 420))
BOTTOM = (("pipeline", 440), ("outcome", 710), ("details", 290))
WORKBENCH = (("schedule", 1110), ("outcome", 330))
"""The row at the bottom while the steps are those of a schedule; the details are put away."""

BESIDE_SCRIPT = (("model", 180), ("fx", 250), ("relax", 330), ("tensorir", 680))
"""The row at the top meanwhile: it is the script that is worked on."""

ABOVE = tuple(name for name, _ in TOP)
BELOW = ("schedule", *(name for name, _ in BOTTOM))
"""Names of all panes of the two rows, from the left."""

STEADY = ("model", "pipeline", "details")
"""These get little more than that: more room is that of graphs, scripts and tables."""

MOST_SHARE = 1.3
"""Of that, what these get at most in a wide window: names of parameters are long."""

NARROW = 1440
"""Width of the window for which these widths are."""

BOTTOM_HEIGHT = 250


def widths(row: Row, width: int) -> list[int]:
    """Return how wide the panes of a row are in a window of this width."""
    wide = min(MOST_SHARE, max(1.0, width / NARROW))
    steady = sum(wide * own for name, own in row if name in STEADY)
    others = sum(own for name, own in row if name not in STEADY)
    share = max(1.0, (width - steady) / others)
    return [round((wide if name in STEADY else share) * own) for name, own in row]


class PaneRows:
    """Gives the panes of the two rows their room, as long as they stand in them.

    Parameters
    ----------
    window
        What the docks are in.
    docks
        By the names of the panes.
    docking
        Where they stand.
    strip
        What stands between the rows.
    """

    def __init__(
        self,
        window: QMainWindow,
        docks: Mapping[str, QDockWidget],
        docking: Docking,
        strip: QWidget,
    ) -> None:
        self._window, self._docks, self._docking, self._strip = window, docks, docking, strip
        # Of the lower row; 0 where panes were moved out of it: then each keeps its room.
        self._height = self._height_before = BOTTOM_HEIGHT
        self._widths_before: list[int] | None = None

    @property
    def are_usual(self) -> bool:
        """Whether the panes stand in their rows."""
        return self._height > 0

    def reset(self) -> None:
        """Have the usual height and widths from now on; `lay_out` and `keep_height` give them."""
        self._height = BOTTOM_HEIGHT
        self._widths_before = None

    def lay_out(self, scheduling: bool) -> None:
        """Give each pane its width, at the workbench or in the usual rows."""
        before = None if scheduling else self._widths_before
        below, above = (WORKBENCH, BESIDE_SCRIPT) if scheduling else (BOTTOM, TOP)
        if self._height:
            for row, given in ((below, None), (above, before)):
                docks = [self._docks[name] for name, _ in row]
                wide = given or widths(row, self._window.width())
                self._window.resizeDocks(docks, wide, Qt.Orientation.Horizontal)

    def leave_usual(self, share: float) -> None:
        """Note the room that panes have, before the workbench gets such a share of the height."""
        self._height_before = self._height
        self.raise_to(share)
        self._widths_before = [self._docks[name].width() for name, _ in TOP]

    def return_to_usual(self) -> None:
        """Have the height again that the lower row had before the workbench."""
        if self._height:
            self._height = self._height_before or self._height

    def raise_to(self, share: float) -> None:
        """Have the lower row be such a share of the height at least."""
        if self._height:
            self._height = max(self._height, round(self._window.height() * share))

    def note_height(self) -> None:
        """Take the height of the lower row as the user has left it."""
        if not self._docking.is_maximised:
            in_rows = self._docking.stand_in_rows({"up": ABOVE, "down": BELOW})
            self._height = self._foot().height() if in_rows else 0

    def keep_height(self) -> None:
        """Give the lower row its height, and the rest to the upper one."""
        if not self._height or self._docking.is_maximised:
            return
        above = [self._docks[name] for name in ABOVE]
        head = next((dock for dock in above if dock.isVisible() and not dock.isFloating()), None)
        if head is None:
            return
        strip = self._strip.height() if self._strip.isVisible() else 0
        heights = [max(1, self._window.height() - strip - self._height), self._height]
        self._window.resizeDocks([head, self._foot()], heights, Qt.Orientation.Vertical)

    def _foot(self) -> QDockWidget:
        """Return a pane of the lower row that is in view, if there is one."""
        docks = [self._docks[name] for name in BELOW]
        return next((dock for dock in docks if dock.isVisible()), docks[1])
