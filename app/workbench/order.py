"""The order of steps: each change takes a value and returns another one."""

from __future__ import annotations

import re

import msgspec

from lowerscope.core.engine.schedule_params import ScheduleParams
from lowerscope.core.recipe import Recipe
from lowerscope.core.schedules import Made, Primitive, references_of

_NUMBERED = re.compile(r"s([0-9]{1,9})")
"""The ids that steps are given here; a file may have any others."""

Primitives = tuple[Primitive, ...]

Place = tuple[Recipe, str, int | None]
"""A recipe, a function, and after how many primitives; ``None`` for all."""


def new_id(primitives: Primitives) -> str:
    """Return an id that no step has, and that none has had which a later one refers to."""
    known = [each.id for each in primitives]
    references = (each for step in primitives for each in references_of(step))
    known += [each.step for each in references if isinstance(each, Made)]
    found = (_NUMBERED.fullmatch(each) for each in known)
    return f"s{max((int(each[1]) for each in found if each is not None), default=0) + 1}"


def placed(primitives: Primitives, place: int, primitive: Primitive) -> Primitives:
    """Return the steps with one more at `place`, from 0."""
    return (*primitives[:place], primitive, *primitives[place:])


def replaced(primitives: Primitives, primitive: Primitive) -> Primitives:
    """Return the steps with another one in place of that with the same id."""
    return tuple(primitive if each.id == primitive.id else each for each in primitives)


def without(primitives: Primitives, step: str) -> Primitives:
    """Return the steps but one."""
    return tuple(each for each in primitives if each.id != step)


def moved(primitives: Primitives, place: int, to: int) -> Primitives:
    """Return the steps with the one at `place` at `to`, counted in the list that comes out."""
    to = max(0, min(to, len(primitives) - 1))
    rest = (*primitives[:place], *primitives[place + 1 :])
    return placed(rest, to, primitives[place])


def switched(primitives: Primitives, step: str) -> Primitives:
    """Return the steps with one off, if it was on, or on."""
    return tuple(
        msgspec.structs.replace(each, on=not each.on) if each.id == step else each
        for each in primitives
    )


def place_of(primitives: Primitives, step: str) -> int:
    """Return the place of a step, from 0; -1 where it is not there."""
    return next((at for at, each in enumerate(primitives) if each.id == step), -1)


def params_of(place: Place) -> ScheduleParams:
    """Return the question for the record of a place."""
    recipe, function, index = place
    return ScheduleParams(recipe=recipe, function=function, index=index)
