"""Settings of the end-to-end measurement of a run.

This module imports neither torch nor TVM.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from lowerscope.core.model.problems import LowerscopeError

BUDGET = 1.0
"""Seconds that all measurements of one run should take together, unless their number is given."""

REPEATS = 200
"""Maximum number of measurements of each side, unless their number is given."""

LEAST = 3
"""Minimum number of measurements of each side, unless their number is given."""

MOST = 100_000
"""Upper bound on the number of calls."""

MEASURING = "Measuring"
"""Prefix of the progress text of a run while it is measured."""


class Measuring(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the timing of both sides, by turns."""

    warm_up: int = 2  # unmeasured calls of each side at the start
    # Calls of each side that count; 0 for as many as a second allows, from `LEAST` to `REPEATS`.
    repeats: int = 0
    # Whether ``torch.compile`` of the model is a side as well. It takes seconds to minutes to
    # compile, and a C++ compiler.
    torch_compile: bool = False


def check_measuring(measuring: Measuring) -> Measuring:
    """Return `measuring`.

    Raises
    ------
    LowerscopeError
        If a number in it makes no sense.
    """
    for option, number, least in (
        ("--warm-up", measuring.warm_up, 1),
        ("--repeats", measuring.repeats, 0),
    ):
        if not least <= number <= MOST:
            raise LowerscopeError(
                f"{number} is not a number of calls",
                where=option,
                todo=f"Write a number from {least} to {MOST}",
            )
    return measuring


# --- Progress reports and cancellation of work under way ---


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
