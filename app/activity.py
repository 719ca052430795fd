"""Activities in progress; of several, the status bar shows the one reported last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Of = Literal["change", "replay", "run", "set", "fault", "schedule", "values", "export", "asked"]
"""Owner of an activity. Each owner ends its own activity only."""


@dataclass(frozen=True)
class Activity:
    """An activity; ``fraction`` is ``None`` if unknown, and an empty ``text`` means idle."""

    text: str = ""
    fraction: float | None = None


class Activities:
    """All activities in progress."""

    def __init__(self) -> None:
        self._said: dict[Of, Activity] = {}

    @property
    def shown(self) -> Activity:
        """The most recently reported activity that is still in progress."""
        return next(reversed(self._said.values()), Activity())

    def say(self, of: Of, activity: Activity) -> None:
        """Set the activity of an owner; an empty text ends it."""
        self._said.pop(of, None)
        if activity.text:
            self._said[of] = activity
