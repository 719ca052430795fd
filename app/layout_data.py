"""Validation of the layout in a session, before Qt reads it.

Qt stores the places of panes and of the window as bytes, and trusts these when it reads them:
malformed data makes it write out of bounds. A session may come from anybody. So only bytes that Qt
itself would have written for these panes are passed on to it; see ``saveState`` in Qt's
``qdockarealayout.cpp`` and ``saveGeometry`` in its ``qwidget.cpp``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection

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
