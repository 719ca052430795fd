"""The table of primitives."""

from __future__ import annotations

import difflib

from lowerscope.core.scheduling import (
    annotating,
    blocks,
    layout,
    loops,
    memory,
    reductions,
    sampling,
)
from lowerscope.core.scheduling.entry import Entry
from lowerscope.core.scheduling.failures import StepFailed

PRIMITIVES: dict[str, Entry] = {
    entry.name: entry
    for subject in (loops, blocks, memory, layout, reductions, annotating, sampling)
    for entry in subject.ENTRIES
}
"""In the order of the menu."""


def entry_of(name: str) -> Entry:
    """Return the entry of a primitive.

    Raises
    ------
    StepFailed
        If there is no primitive of this name.
    """
    entry = PRIMITIVES.get(name)
    if entry is None:
        near = difflib.get_close_matches(name, PRIMITIVES, n=1)
        raise StepFailed(
            f"there is no primitive {name!r}" + (f"; did you mean {near[0]}?" if near else "")
        )
    return entry
