"""The layout of the docks: the default rows with their sizes, tabs, and one maximised pane."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Mapping

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

    Args:
        window: The main window of the docks.
        docks: The docks, by name of their pane.
        strip: The central widget, between the two rows.
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


# --- Validation of the layout in a session, before Qt reads it ---
#
# Qt stores the places of panes and of the window as bytes, and trusts these when it reads them:
# malformed data makes it write out of bounds. A session may come from anybody. So only bytes that
# Qt itself would have written for these panes are passed on to it; see ``saveState`` in Qt's
# ``qdockarealayout.cpp`` and ``saveGeometry`` in its ``qwidget.cpp``.

_MOST = 1 << 16
"""Bound on the size of a layout, in bytes: one of all panes has some hundred."""
_DEPTH = 12
_LARGEST = 1 << 28
"""Bound on a size: the largest sizes of many widgets, each possibly unlimited, added up."""
_SCREENS = 1 << 14
"""Bound on the width of all screens of a machine side by side, in pixels."""

_STATE, _DOCKS, _SEQUENCE, _TABS, _PANE, _BARS = 0xFF, 0xFD, 0xFC, 0xFA, 0xFB, 0xFC
_FLOATING = 2
_FLAGS = (0, 1, 2, 3, 8, 10)
"""Flags of a pane: visible (1), floating (2), or closed by the user (8)."""
_AREAS = (1, 2, 4, 8)
_GEOMETRY = 0x01D9D0CB


class _Malformed(Exception):
    """Raised for bytes that Qt would not have written."""


class _Reader:
    """Reads the values of a ``QDataStream``."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, count: int) -> bytes:
        found = self._data[self._at : self._at + count]
        if count < 0 or len(found) < count:
            raise _Malformed
        self._at += count
        return found

    def byte(self, least: int = 0, most: int = 255) -> int:
        return _within(self.take(1)[0], least, most)

    def number(self, least: int = 0, most: int = _LARGEST) -> int:
        return _within(struct.unpack(">i", self.take(4))[0], least, most)

    def text(self) -> str:
        try:
            return self.take(self.number(0, _MOST)).decode("utf-16-be")
        except UnicodeDecodeError:
            raise _Malformed from None

    def finish(self) -> None:
        if self._at != len(self._data):
            raise _Malformed


def _within(value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise _Malformed
    return value


def is_state(data: bytes, panes: Collection[str]) -> bool:
    """Return whether Qt would write these bytes for a window of these docks, each at most once."""
    return _reads(data, lambda reader: _read_state(reader, set(panes)))


def is_geometry(data: bytes) -> bool:
    """Return whether Qt would write these bytes for a window on a screen."""
    return _reads(data, _read_geometry)


def _reads(data: bytes, read: Callable[[_Reader], None]) -> bool:
    reader = _Reader(data)
    try:
        if len(data) > _MOST:
            raise _Malformed
        read(reader)
        reader.finish()
    except _Malformed:
        return False
    return True


def _read_state(reader: _Reader, panes: set[str]) -> None:
    reader.number(_STATE, _STATE)
    reader.number(0, 0)
    reader.byte(_DOCKS, _DOCKS)
    last = -1
    for _ in range(reader.number(0, len(_AREAS))):
        last = reader.number(last + 1, len(_AREAS) - 1)
        _read_size(reader)
        _read_area(reader, panes, reader.byte(), 0)
    _read_size(reader)
    for _ in range(4):
        if reader.number() not in _AREAS:
            raise _Malformed
    # No tool bars.
    reader.byte(_BARS, _BARS)
    reader.number(0, 0)


def _read_area(reader: _Reader, panes: set[str], marker: int, depth: int) -> None:
    """Read panes side by side, stacked vertically, or as tabs."""
    if depth > _DEPTH or marker not in (_SEQUENCE, _TABS):
        raise _Malformed
    front = reader.number(-1) if marker == _TABS else -1
    reader.byte(1, 2)
    count = reader.number(1, len(panes))
    _within(front, -1, count - 1)
    for _ in range(count):
        if reader.byte(_PANE, _SEQUENCE) == _PANE:
            _read_pane(reader, panes)
        elif marker == _TABS:
            raise _Malformed
        else:
            _read_lengths(reader)
            _read_area(reader, panes, reader.byte(), depth + 1)


def _read_pane(reader: _Reader, panes: set[str]) -> None:
    name = reader.text()
    if name not in panes:
        raise _Malformed
    panes.remove(name)
    flags = reader.byte()
    if flags not in _FLAGS:
        raise _Malformed
    if flags & _FLOATING:
        for least in (-_SCREENS, -_SCREENS, 0, 0):
            reader.number(least, _SCREENS)
    else:
        _read_lengths(reader)


def _read_lengths(reader: _Reader) -> None:
    """Read position, size, minimum and maximum size of a part, along its row or column."""
    reader.number(-1, _SCREENS)
    reader.number(-1, _SCREENS)
    reader.number(0, _SCREENS)
    reader.number(0)


def _read_size(reader: _Reader) -> None:
    reader.number(-1, _SCREENS)
    reader.number(-1, _SCREENS)


def _read_geometry(reader: _Reader) -> None:
    reader.number(_GEOMETRY, _GEOMETRY)
    # The version; Qt reads no newer one.
    if struct.unpack(">HH", reader.take(4)) != (3, 0):
        raise _Malformed
    _read_rectangle(reader)
    _read_rectangle(reader)
    reader.number(-1, 64)
    reader.byte(0, 1)
    reader.byte(0, 1)
    reader.number(0, _SCREENS)
    _read_rectangle(reader)


def _read_rectangle(reader: _Reader) -> None:
    left, top, right, bottom = (reader.number(-_SCREENS, _SCREENS) for _ in range(4))
    _within(right - left, -1, _SCREENS)
    _within(bottom - top, -1, _SCREENS)
