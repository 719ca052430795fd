"""The window's layout, as sessions keep it."""

from __future__ import annotations

import msgspec


class WindowLayout(msgspec.Struct, frozen=True, kw_only=True):
    """Layout of the window: Qt's own values, in base 64, and the selection.

    Attributes
    ----------
    geometry, panes
        Place and size of the window; the arrangement of its panes.
    panes_version
        Of the set of panes; an arrangement of another set is not restored.
    timeline
        Whether the timeline was shown.
    selection
        Ids of the selection.
    """

    geometry: str = ""
    panes: str = ""
    panes_version: int = 0
    timeline: bool = True
    selection: tuple[str, ...] = ()
