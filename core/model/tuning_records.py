"""Options, progress and results of tuning.

Everything here is plain, frozen and serialisable. This module imports neither torch nor TVM.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from lowerscope.core.model.schedule import Schedule

TunedState = Literal["waiting", "tuning", "done", "stopped", "failed"]
"""State of one function; ``"failed"`` where nothing could be measured, and the note says why."""


TunedTime = Literal["unscheduled", "by_rules", "torch", "best"]
"""A time of a function: a field of `TunedFunction`."""


class TuneOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of tuning.

    Attributes
    ----------
    functions
        By name, as they are before they are scheduled; empty for the slowest, or the whole model.
    slowest
        Number of functions with the largest shares of a run of the model; 0 for all.
    trials
        Candidates that are measured, of all functions together.
    seed
        Seed of random draws.
    fresh
        Whether results in the database are measured again.
    tracker, key
        An RPC tracker, ``host:port``, and the key of the machines to measure on; empty for this
        machine.
    """

    functions: tuple[str, ...] = ()
    slowest: int = 0
    trials: int = 64
    seed: int = 0
    fresh: bool = False
    tracker: str = ""
    key: str = ""


class TunedPoint(msgspec.Struct, frozen=True, kw_only=True):
    """The best so far, by trials of a function and by time since tuning began.

    Attributes
    ----------
    trials
        Of this function.
    seconds_spent
        Since tuning began.
    best
        Seconds of one call of the function.
    """

    trials: int
    seconds_spent: float
    best: float


class TunedFunction(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of the tuning of one function.

    Attributes
    ----------
    name, structure
        Of the function, and the structural hash of it before it is scheduled.
    twins
        Other functions of the same structure: they get the same schedule.
    calls
        Of it and its twins, in one run of the model.
    unscheduled, by_rules, torch
        Seconds of one call without a schedule, by the rules, and of torch for the same nodes;
        ``None`` where it is not known, or not yet.
    points
        Points at which a better one was found.
    trials, failed, planned
        Candidates that were measured, those among them that were rejected, crashed, took too long
        or computed something else, and those that it may have in all.
    best
        Seconds of one call of the best that was found.
    from_database
        Whether the best was in the database before.
    state
        See `TunedState`.
    note
        A note on it, such as why nothing could be measured.
    disturbed
        The times that were measured while other programs held the processors: ratios of these are
        unreliable.
    """

    name: str
    structure: str = ""
    twins: tuple[str, ...] = ()
    calls: int = 1
    unscheduled: float | None = None
    by_rules: float | None = None
    torch: float | None = None
    points: tuple[TunedPoint, ...] = ()
    trials: int = 0
    failed: int = 0
    planned: int = 0
    best: float | None = None
    from_database: bool = False
    state: TunedState = "waiting"
    note: str = ""
    disturbed: tuple[TunedTime, ...] = ()


class TuneState(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of tuning.

    Attributes
    ----------
    functions
        In the order of their share of the time.
    trials_done, trials_total
        Over all functions.
    seconds_spent, seconds_left
        Since tuning began, without pauses; and the remaining time at this pace, ``None`` where that
        is not known yet.
    paused
        Whether it waits to be resumed.
    finished
        Whether it is over, by itself or since it was stopped.
    doing
        The work under way, in words.
    """

    functions: tuple[TunedFunction, ...] = ()
    trials_done: int = 0
    trials_total: int = 0
    seconds_spent: float = 0.0
    seconds_left: float | None = None
    paused: bool = False
    finished: bool = False
    doing: str = ""


class Tuned(msgspec.Struct, frozen=True, kw_only=True):
    """Results of tuning.

    Attributes
    ----------
    state
        At the end.
    schedules
        Of the variant ``"tuned"``, one for each function of which something better than the
        unscheduled one is known: an ordinary history, that all functions of the structure share.
    database
        The folder where it is kept.
    """

    state: TuneState
    schedules: tuple[Schedule, ...] = ()
    database: str = ""
