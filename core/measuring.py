"""Settings of the end-to-end measurement of a run.

This module imports neither torch nor TVM.
"""

from __future__ import annotations

import msgspec

from lowerscope.core.errors import LowerscopeError

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
    """Settings of the timing of both sides, by turns.

    Attributes
    ----------
    warm_up
        Unmeasured calls of each side at the start.
    repeats
        Calls of each side that count; 0 for as many as a second allows, from `LEAST` to `REPEATS`.
    torch_compile
        Whether ``torch.compile`` of the model is a side as well. It takes seconds to minutes to
        compile, and a C++ compiler.
    """

    warm_up: int = 2
    repeats: int = 0
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
