"""What the window asks of the worker about tuning.

``tune`` runs until it is done or cancelled; meanwhile ``tune_state`` and ``pause_tuning`` are
answered at once. This module imports neither torch nor TVM.
"""

from __future__ import annotations

import msgspec

from lowerscope.core.recipe import Recipe
from lowerscope.core.records.tuning import TuneOptions


class TuneParams(msgspec.Struct, frozen=True, kw_only=True):
    """Search schedules for functions of ``recipe``; the result is a `Tuned`."""

    recipe: Recipe
    options: TuneOptions = TuneOptions()


class TuneStateParams(msgspec.Struct, frozen=True):
    """How far the tuning is that runs, or that ran last: a `TuneState`."""


class PauseTuningParams(msgspec.Struct, frozen=True, kw_only=True):
    """Pause the tuning that runs after the trial that is under way, or resume it."""

    paused: bool
