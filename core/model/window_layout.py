"""The window's layout, as sessions keep it."""

from __future__ import annotations

import msgspec


class WindowLayout(msgspec.Struct, frozen=True, kw_only=True):
    """Layout of the window: Qt's own values, in base 64, and the selection."""

    # geometry, panes: place and size of the window; the arrangement of its panes
    geometry: str = ""
    panes: str = ""
    panes_version: int = 0  # of the set of panes; an arrangement of another set is not restored
    timeline: bool = True  # whether the timeline was shown
    selection: tuple[str, ...] = ()  # ids of the selection
