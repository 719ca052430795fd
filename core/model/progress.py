"""Progress reports and cancellation of work under way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Progress(Protocol):
    """Interface by which a long task reports progress and is cancelled."""

    def report(self, text: str, fraction: float | None = None) -> None:
        """Report the work under way and the share of it that is done; raise `Cancelled` to stop."""

    def check(self) -> None:
        """Raise `Cancelled` if the work should stop."""

    def begin_calls(self, names: Sequence[str]) -> None:
        """Report the start of a run of these calls; with none, its end."""

    def at_call(self, index: int, inside: bool) -> None:
        """Report that a call of the run is under way or, if not `inside`, that it comes next.

        It takes about a microsecond, and is known after a crash. See `sandbox.running_call`.
        """

    def at_part(self, part: str) -> None:
        """Report the part of the recipe that is being applied; ``""`` at the end.

        It is as cheap, and known after a crash as well. See `recipe_parts`.
        """


class Silent:
    """Progress that ignores reports and never cancels."""

    def report(self, text: str, fraction: float | None = None) -> None:
        """Do nothing."""

    def check(self) -> None:
        """Do nothing."""

    def begin_calls(self, names: Sequence[str]) -> None:
        """Do nothing."""

    def at_call(self, index: int, inside: bool) -> None:
        """Do nothing."""

    def at_part(self, part: str) -> None:
        """Do nothing."""


SILENT = Silent()
