"""What the window asks of its children about schedules.

This module imports neither torch nor TVM, so that the window can use it.
"""

from __future__ import annotations

import msgspec

from lowerscope.core.recipe import Recipe
from lowerscope.core.schedules import Reference, Schedule


class ScheduleParams(msgspec.Struct, frozen=True, kw_only=True):
    """``function`` after the first ``index`` primitives of its schedule; all for ``None``.

    Its schedule is the one of ``recipe.schedules`` that is on; without one, it has no primitives.
    ``schedule`` answers at once, from what is kept, or with the code ``"not-kept"``;
    ``derived_schedule`` derives the function that is missing.
    """

    recipe: Recipe
    function: str
    index: int | None = None


class MovesParams(msgspec.Struct, frozen=True, kw_only=True):
    """The primitives that could come next after ``index``, for what is ``chosen`` in the tree."""

    recipe: Recipe
    function: str
    index: int | None = None
    chosen: tuple[Reference, ...] = ()


class ByRuleParams(msgspec.Struct, frozen=True, kw_only=True):
    """The steps that the first rule writes that fits a function with nothing done to it."""

    recipe: Recipe
    function: str


class RulesParams(msgspec.Struct, frozen=True, kw_only=True):
    """What the rules make of each function that the model has before it is scheduled."""

    recipe: Recipe


class ProgramParams(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule as a Python program, whatever it can be applied to."""

    schedule: Schedule


class WorkParams(msgspec.Struct, frozen=True, kw_only=True):
    """What one call of ``function`` has to do, and how often the model calls it."""

    recipe: Recipe
    function: str


class MeasureParams(msgspec.Struct, frozen=True, kw_only=True):
    """Measure ``function`` after the first ``index`` primitives of its schedule."""

    recipe: Recipe
    function: str
    index: int | None = None


class CheckParams(msgspec.Struct, frozen=True, kw_only=True):
    """Compare ``function`` after the first ``index`` primitives with the unscheduled one.

    Both get the same random inputs; ``seconds`` is the time that it may take in all.
    """

    recipe: Recipe
    function: str
    index: int | None = None
    seconds: float = 30.0


class PeaksParams(msgspec.Struct, frozen=True, kw_only=True):
    """What this machine can do at best with the target and the threads of ``recipe``.

    It is measured once and kept; ``again`` measures it once more, and the best of both counts.
    """

    recipe: Recipe
    again: bool = False
