"""Options, progress and results of tuning."""

from __future__ import annotations

from typing import Literal

import msgspec

from lowerscope.core.model.schedule import Schedule

TunedState = Literal["waiting", "tuning", "done", "stopped", "failed"]
"""State of one function; ``"failed"`` where nothing could be measured, and the note says why."""


TunedTime = Literal["unscheduled", "by_rules", "torch", "best"]
"""A time of a function: a field of `TunedFunction`."""


class TuneOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of tuning."""

    # By name, as they are before they are scheduled; empty for the slowest, or the whole model.
    functions: tuple[str, ...] = ()
    slowest: int = 0  # number of functions with the largest shares of a run of the model; 0 for all
    trials: int = 64  # candidates that are measured, of all functions together
    seed: int = 0  # seed of random draws
    fresh: bool = False  # whether results in the database are measured again
    # tracker, key: an RPC tracker, ``host:port``, and the key of the machines to measure on; empty
    # for this machine
    tracker: str = ""
    key: str = ""


class TunedPoint(msgspec.Struct, frozen=True, kw_only=True):
    """The best so far, by trials of a function and by time since tuning began."""

    trials: int  # of this function
    seconds_spent: float  # since tuning began
    best: float  # seconds of one call of the function


class TunedFunction(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of the tuning of one function."""

    # name, structure: of the function, and the structural hash of it before it is scheduled
    name: str
    structure: str = ""
    twins: tuple[str, ...] = ()  # other functions of the same structure: they get the same schedule
    calls: int = 1  # of it and its twins, in one run of the model
    # unscheduled, by_rules, torch: seconds of one call without a schedule, by the rules, and of
    # torch for the same nodes; ``None`` where it is not known, or not yet
    unscheduled: float | None = None
    by_rules: float | None = None
    torch: float | None = None
    points: tuple[TunedPoint, ...] = ()  # points at which a better one was found
    # trials, failed, planned: candidates that were measured, those among them that were rejected,
    # crashed, took too long or computed something else, and those that it may have in all
    trials: int = 0
    failed: int = 0
    planned: int = 0
    best: float | None = None  # seconds of one call of the best that was found
    from_database: bool = False  # whether the best was in the database before
    state: TunedState = "waiting"  # see `TunedState`
    note: str = ""  # a note on it, such as why nothing could be measured
    # The times that were measured while other programs held the processors: ratios of these are
    # unreliable.
    disturbed: tuple[TunedTime, ...] = ()


class TuneState(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of tuning."""

    functions: tuple[TunedFunction, ...] = ()  # in the order of their share of the time
    # trials_done, trials_total: over all functions
    trials_done: int = 0
    trials_total: int = 0
    # seconds_spent, seconds_left: since tuning began, without pauses; and the remaining time at
    # this pace, ``None`` where that is not known yet
    seconds_spent: float = 0.0
    seconds_left: float | None = None
    paused: bool = False  # whether it waits to be resumed
    finished: bool = False  # whether it is over, by itself or since it was stopped
    doing: str = ""  # the work under way, in words


class Tuned(msgspec.Struct, frozen=True, kw_only=True):
    """Results of tuning."""

    state: TuneState  # at the end
    # Of the variant ``"tuned"``, one for each function of which something better than the
    # unscheduled one is known: an ordinary history, that all functions of the structure share.
    schedules: tuple[Schedule, ...] = ()
    database: str = ""  # the folder where it is kept
