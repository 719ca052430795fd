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


@dataclass(frozen=True)
class Activities:
    """All activities in progress by owner, the one reported last at the end."""

    all: tuple[tuple[Of, Activity], ...] = ()

    @property
    def shown(self) -> Activity:
        """The most recently reported activity that is still in progress."""
        return self.all[-1][1] if self.all else Activity()

    def after(self, of: Of, activity: Activity) -> Activities:
        """Return the activities once an owner has reported one; an empty text ends its own."""
        others = tuple(each for each in self.all if each[0] != of)
        return Activities((*others, (of, activity)) if activity.text else others)
