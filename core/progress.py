"""How work under way reports where it is, and learns that it should stop."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """What a long piece of work is given by whoever asked for it."""

    def report(self, text: str, fraction: float | None = None) -> None:
        """Say what is being done, and which share of it is done; raise `Cancelled` to stop."""

    def check(self) -> None:
        """Raise `Cancelled` if the work should stop."""


class Silent:
    """Progress that nobody watches and nobody stops."""

    def report(self, text: str, fraction: float | None = None) -> None:
        """Do nothing."""

    def check(self) -> None:
        """Do nothing."""
