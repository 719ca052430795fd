"""Schedules as the recipe holds them: primitives that are applied to a TensorIR function in order.

A primitive names what it works on by where it comes from, so that a step can be edited, moved or
taken out in the middle and the rest applied again. Everything here is plain, frozen and
serialisable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import msgspec

from lowerscope.core.model.reasons import Reason
from lowerscope.core.model.texts import _, joined


class Made(msgspec.Struct, frozen=True, kw_only=True, tag="made"):
    """A result of an earlier primitive of the same schedule.

    `output`: which of its results, from 0: loops or blocks in the order of TVM's own.
    """

    step: str
    output: int = 0


class At(msgspec.Struct, frozen=True, tag="at"):
    """A block by its name, or a loop around it by its place."""

    block: str
    occurrence: int = 0  # which of the blocks of that name, from 0, in the order of the script
    # Place among the loops around the block, from 0 for the outermost; ``None`` for the block
    # itself.
    loop: int | None = None
    # Whether it is the one that was so before the first step, wherever the steps have moved it:
    # that holds when steps in the middle change. Otherwise the one that is so when the step is
    # applied.
    first: bool = False


Reference = Made | At
"""Reference of a primitive to a loop or a block."""

Element = bool | int | float | str | Reference | None
"""One of several values of an argument; ``None`` where TVM is to find it, such as a factor."""

Argument = Element | tuple[Element, ...]
"""The value of an argument of a primitive."""


class Primitive(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One step of a schedule."""

    id: str  # its own within the schedule, such as ``"s3"``; it stays when steps are moved
    name: str  # in `core.schedule.table`, as the method of ``tvm.s_tir.Schedule`` is called
    # By the names that the primitive's entry gives them; those that are missing have its defaults.
    arguments: dict[str, Argument] = {}
    on: bool = True
    # Whether it is applied although it can make the function compute something else.
    forced: bool = False
    # Why it is done, as the rule that wrote it says; empty for the user's own.
    comment: str | Reason = ""

    def __eq__(self, other: object) -> bool:
        # True, 1 and 1.0 are equal in Python, and three different annotations to TVM.
        return isinstance(other, Primitive) and self._exactly() == other._exactly()

    def __hash__(self) -> int:
        # A recipe is looked up in tables, and a dict has no hash of its own.
        *hashable, _comment = self._exactly()
        return hash(tuple(hashable))

    def _exactly(self) -> tuple[object, ...]:
        arguments = frozenset((name, _typed(each)) for name, each in self.arguments.items())
        return self.id, self.name, self.on, self.forced, arguments, self.comment


def _typed(argument: Argument) -> tuple[object, ...]:
    members = argument if isinstance(argument, tuple) else (argument,)
    return isinstance(argument, tuple), *((type(each), each) for each in members)


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """Primitives for one TensorIR function, or for all of the same structure."""

    function: str  # name of the function that it was made for
    # Structural hash of that function before it was scheduled, without its name and attributes;
    # empty to go by the name alone. A function with this structure has this schedule under whatever
    # name, since fusion renames; one of this name and another structure has not.
    structure: str = ""
    variant: str = ""  # its name among the schedules of the function; ``""`` for the first
    # Whether it is the one that is applied to the model; of several, see `schedule_for`.
    on: bool = True
    # Whether all functions of this structure share it, or that of the name has it alone.
    everywhere: bool = True
    primitives: tuple[Primitive, ...] = ()


@dataclass(frozen=True)
class Applied:
    """A schedule that was applied to a function of the model.

    `lines`: returns the program that does the same, by ``sch``.
    """

    schedule: Schedule
    lines: Callable[[], tuple[str, ...]]


APPLY_SCHEDULES = "ApplySchedules"
"""The step of a recipe that applies its schedules to the functions at its place."""

APPLY_RULES = "ApplyRules"
"""The step that schedules, by rules, the functions that no schedule is applied to."""

VECTOR_MATH = "VectorMath"
"""The step that writes exponential functions and their like so that they can be vectorized."""

APPLY_TUNED = "ApplyTuned"
"""The step that schedules functions by tuning results, and by rules where there are none."""

SCHEDULING = (APPLY_SCHEDULES, APPLY_RULES, APPLY_TUNED)
"""The steps that schedule functions."""


def references_of(primitive: Primitive) -> tuple[Reference, ...]:
    """Return the references of a primitive, in the order of its arguments.

    They are to loops, blocks, and numbers that others returned.
    """
    return tuple(
        each
        for argument in primitive.arguments.values()
        for each in (argument if isinstance(argument, tuple) else (argument,))
        if isinstance(each, Made | At)
    )


def is_shared(schedule: Schedule) -> bool:
    """Return whether all functions of the structure of a schedule can have it."""
    return schedule.everywhere and bool(schedule.structure)


def fits(schedule: Schedule, function: str, structure: str) -> bool:
    """Return whether a function of this name and structure can have a schedule."""
    if schedule.function == function:
        return schedule.structure in ("", structure)
    return is_shared(schedule) and schedule.structure == structure


def schedule_for(schedules: Sequence[Schedule], function: str, structure: str) -> Schedule | None:
    """Return the schedule that a function has: the last that is on and fits it.

    One that it has alone goes before those that it shares with functions of the same structure,
    and of these, one that was made for the function itself goes first.

    `function` and `structure`: its name, and its structural hash before it is scheduled.
    """
    fitting = [each for each in schedules if each.on and fits(each, function, structure)]
    ranks = [(not is_shared(each), each.function == function) for each in fitting]
    best = max(ranks, default=None)
    found = (each for each, rank in zip(fitting, ranks, strict=True) if rank == best)
    return next(reversed(tuple(found)), None)


AUTO_SCHEDULE, TUNED = "auto-schedule", "tuned"
"""Names of variants that a rule and tuning write: the same in files of all languages."""

_SHOWN = {AUTO_SCHEDULE: _("auto-schedule"), TUNED: _("tuned")}


def shown_name(variant: str) -> str:
    """Return the displayed name of a variant; the first one has no name of its own."""
    name, _sep, number = variant.rpartition(" ")
    if name in _SHOWN and number.isdecimal():
        return joined(" ", (_SHOWN[name], number))
    return _SHOWN.get(variant, variant) or _("first")


def free_name(names: Iterable[str], wanted: str) -> str:
    """Return a name that no variant is shown with: `wanted`, or with a number behind it."""
    taken, number, name = {shown_name(each) for each in names}, 2, wanted
    while shown_name(name) in taken:
        name, number = f"{wanted or shown_name(wanted)} {number}", number + 1
    # A translated text becomes the user's own here: files hold plain strings.
    return str(name)


def conflict(one: Schedule, other: Schedule) -> bool:
    """Return whether two schedules could apply to the same function."""
    same = one.structure == other.structure or "" in (one.structure, other.structure)
    return same and (one.function == other.function or is_shared(one) or is_shared(other))


def with_unique_names(schedules: Sequence[Schedule]) -> tuple[Schedule, ...]:
    """Return schedules with unique names among those that can apply to one function.

    Files may have duplicates; the later one gets a number.
    """
    apart: list[Schedule] = []
    for schedule in schedules:
        names = (each.variant for each in apart if conflict(each, schedule))
        name = free_name(names, schedule.variant)
        apart.append(msgspec.structs.replace(schedule, variant=name))
    return tuple(apart)


def name_before_packing(function: str) -> str:
    """Return the name that a function had before TVM's ``SplitLayoutRewritePreproc`` split it."""
    return function.removesuffix("_prepacked")
