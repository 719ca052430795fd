"""When a child that has died is started anew, and when it is given up."""

from __future__ import annotations

import time

FAILED_STARTS = 3
FAILED_STARTS_SECONDS = 30.0
"""After so many deaths within so many seconds, none of which was ready before, it is given up."""

RESTART_DELAYS_MS = (0, 500, 1500)
"""Before a restart, by the number of deaths since it was last ready."""


class Restarting:
    """How often a child has died before it was ready."""

    def __init__(self) -> None:
        self._deaths: list[float] = []

    def forget(self) -> None:
        """Count anew: it is ready, or the user has asked for it."""
        self._deaths.clear()

    def note_death(self, was_ready: bool) -> int | None:
        """Return the milliseconds to wait before the next start; ``None`` to give it up."""
        now = time.monotonic()
        self._deaths = [each for each in self._deaths if now - each < FAILED_STARTS_SECONDS]
        if not was_ready:
            self._deaths.append(now)
        count = len(self._deaths)
        return RESTART_DELAYS_MS[count] if count < FAILED_STARTS else None
