"""How work under way reports where it is, and learns that it should stop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Progress(Protocol):
    """What a long piece of work is given by whoever asked for it."""

    def report(self, text: str, fraction: float | None = None) -> None:
        """Say what is being done, and which share of it is done; raise `Cancelled` to stop."""

    def check(self) -> None:
        """Raise `Cancelled` if the work should stop."""

    def begin_calls(self, names: Sequence[str]) -> None:
        """Say that a run of these calls begins; with none, that it is over."""

    def at_call(self, index: int, inside: bool) -> None:
        """Say that a call of the run is under way, or, not `inside`, that it comes next.

        It takes about a microsecond, and is known after a crash. See `running.running_call`.
        """

    def at_part(self, part: str) -> None:
        """Say which part of the recipe is being applied; ``""`` when it is over.

        It is as cheap, and known after a crash as well. See `recipe_parts`.
        """


class Silent:
    """Progress that nobody watches and nobody stops."""

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
