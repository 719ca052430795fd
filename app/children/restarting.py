"""Restart policy of a child that crashed."""

from __future__ import annotations

import time

FAILED_STARTS = 3
FAILED_STARTS_SECONDS = 30.0
"""A child that crashes this often within this many seconds, never ready, is not restarted."""

RESTART_DELAYS_MS = (0, 500, 1500)
"""Delay before a restart, by the number of crashes since it was last ready."""


class Restarting:
    """Counts crashes of a child before it was ready."""

    def __init__(self) -> None:
        self._deaths: list[float] = []

    def forget(self) -> None:
        """Reset the count: the child is ready, or the user has requested it."""
        self._deaths.clear()

    def note_death(self, was_ready: bool) -> int | None:
        """Return the milliseconds to wait before the next start; ``None`` to not restart it."""
        now = time.monotonic()
        self._deaths = [each for each in self._deaths if now - each < FAILED_STARTS_SECONDS]
        if not was_ready:
            self._deaths.append(now)
        count = len(self._deaths)
        return RESTART_DELAYS_MS[count] if count < FAILED_STARTS else None
