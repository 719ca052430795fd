"""What is under way, as the status line says it: of several things, the one that was said last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Of = Literal["change", "replay", "run", "set", "fault", "schedule", "values", "export", "asked"]
"""Whose work it is: each says when its own is over, and nothing of the others."""


@dataclass(frozen=True)
class Activity:
    """What is under way: ``fraction`` is ``None`` where it is not known; idle when ``text`` is
    empty."""

    text: str = ""
    fraction: float | None = None


class Activities:
    """All that is under way."""

    def __init__(self) -> None:
        self._said: dict[Of, Activity] = {}

    @property
    def shown(self) -> Activity:
        """What was said last, of what is not over."""
        return next(reversed(self._said.values()), Activity())

    def say(self, of: Of, activity: Activity) -> None:
        """Take what somebody is at; with an empty text, that it is over."""
        self._said.pop(of, None)
        if activity.text:
            self._said[of] = activity
