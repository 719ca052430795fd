"""Parts of a recipe that are applied, and can be switched off, one by one.

They are passes, steps of schedules, and strategies of nodes. A child writes which of them it
applies into memory that outlives it (`running.running_call`), so that the one that crashed it is
known. This module imports neither torch nor TVM.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import msgspec

from lowerscope.core.recipe import Override, Recipe, Step
from lowerscope.core.schedules import Primitive, Schedule

_T = TypeVar("_T")


@dataclass(frozen=True)
class Part:
    """A part of a recipe.

    Attributes
    ----------
    kind
        Kind of the part.
    place
        From 0, among the recipe's steps, schedules or overrides.
    name
        Of the pass, the primitive, or the pattern of the nodes.
    primitive
        `Primitive.id` of a step of a schedule; empty otherwise.
    function
        The function that such a schedule was made for.
    """

    kind: Literal["step", "primitive", "override"]
    place: int
    name: str
    primitive: str = ""
    function: str = ""


def step_text(number: int, step: Step) -> str:
    """Return the text form of a pass; its number counts from 1."""
    return f"step {number - 1} {step.name}"


def override_text(overrides: Sequence[Override], override: Override) -> str:
    """Return the text form of one of the recipe's overrides."""
    return f"override {overrides.index(override)} {override.pattern}"


def primitive_text(schedules: Sequence[Schedule], schedule: Schedule, primitive: Primitive) -> str:
    """Return the text form of a step of one of the recipe's schedules."""
    return f"primitive {schedules.index(schedule)} {primitive.id} {primitive.name}"


def part_of(recipe: Recipe, text: str) -> Part | None:
    """Return the part of a recipe that a text form, possibly truncated, stands for.

    ``None`` where the recipe has no such part.
    """
    kind, _, rest = text.partition(" ")
    number, _, written = rest.partition(" ")
    if not number.isdecimal() or not written:
        return None
    place = int(number)
    if kind == "step":
        step = _at(recipe.steps, place)
        part = None if step is None else Part("step", place, step.name)
    elif kind == "override":
        override = _at(recipe.overrides, place)
        part = None if override is None else Part("override", place, override.pattern)
    else:
        identity, _, written = written.partition(" ")
        schedule = _at(recipe.schedules, place)
        steps = () if schedule is None else schedule.primitives
        found = next((each for each in steps if each.id == identity), None)
        if schedule is None or found is None:
            return None
        part = Part("primitive", place, found.name, found.id, schedule.function)
    return part if part is not None and part.name.startswith(written) else None


def without_part(recipe: Recipe, part: Part) -> Recipe:
    """Return `recipe` with one of its parts switched off, not removed."""
    if part.kind == "step":
        steps = _replaced(recipe.steps, part.place, _off)
        return msgspec.structs.replace(recipe, steps=steps)
    if part.kind == "override":
        overrides = _replaced(recipe.overrides, part.place, _off)
        return msgspec.structs.replace(recipe, overrides=overrides)

    def left_out(schedule: Schedule) -> Schedule:
        primitives = tuple(
            _off(each) if each.id == part.primitive else each for each in schedule.primitives
        )
        return msgspec.structs.replace(schedule, primitives=primitives)

    schedules = _replaced(recipe.schedules, part.place, left_out)
    return msgspec.structs.replace(recipe, schedules=schedules)


_Switched = TypeVar("_Switched", Step, Primitive, Override)


def _off(part: _Switched) -> _Switched:
    return msgspec.structs.replace(part, on=False)


def _replaced(values: Sequence[_T], place: int, make: Callable[[_T], _T]) -> tuple[_T, ...]:
    return tuple(make(each) if index == place else each for index, each in enumerate(values))


def _at(values: Sequence[_T], place: int) -> _T | None:
    return values[place] if place < len(values) else None
