"""Which variants a function has, alone or together with functions of the same structure.

What is shared is chosen, changed and taken away for all that share it; what a function has alone
goes before that, and concerns nobody else. Each function takes a recipe and returns another one.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from lowerscope.core.recipe import Recipe
from lowerscope.core.schedules import (
    Primitive,
    Schedule,
    fits,
    free_name,
    is_shared,
    meet,
    schedule_for,
    shown_name,
)

ALONE = "alone"
"""What a variant is called which one function has, and no other."""


def variants(recipe: Recipe, function: str, structure: str) -> tuple[Schedule, ...]:
    """Return the schedules that a function can have."""
    return tuple(each for each in recipe.schedules if fits(each, function, structure))


def chosen(recipe: Recipe, function: str, structure: str) -> Schedule | None:
    """Return the schedule that a function has; ``None`` for none."""
    return schedule_for(recipe.schedules, function, structure)


def is_alone(recipe: Recipe, function: str, structure: str) -> bool:
    """Return whether a function has a schedule of its own, which no other one can have."""
    schedule = chosen(recipe, function, structure)
    return schedule is not None and not is_shared(schedule)


def with_schedule(recipe: Recipe, before: Schedule | None, after: Schedule | None) -> Recipe:
    """Return `recipe` with a schedule in place of another; added, or taken out, for ``None``.

    It gets a number behind its name if there is one of that name already.
    """
    rest = [each for each in recipe.schedules if each is not before]
    place = next((at for at, each in enumerate(recipe.schedules) if each is before), len(rest))
    if after is not None:
        name = free_name((each.variant for each in rest if meet(each, after)), after.variant)
        rest.insert(place, msgspec.structs.replace(after, variant=name))
    return msgspec.structs.replace(recipe, schedules=tuple(rest))


def left_over(recipe: Recipe, structures: Mapping[str, str]) -> tuple[Schedule, ...]:
    """Return the schedules that none of some functions can have; none where there are none.

    Parameters
    ----------
    structures
        The structural hashes of the functions, by name.
    """
    return tuple(
        each
        for each in recipe.schedules
        if structures and not any(fits(each, *function) for function in structures.items())
    )


def with_chosen(recipe: Recipe, function: str, structure: str, schedule: Schedule | None) -> Recipe:
    """Return `recipe` with one variant of a function on, or none.

    A shared one is on for all that share it. Where others have a shared one on, a function that has
    something else alone has an empty one alone from then on if none is to be on.
    """
    if schedule is None and is_alone(recipe, function, structure):
        without = _switched(recipe, function, structure, None, shared=False)
        if chosen(without, function, structure) is None:
            return without
        empty = next(
            (
                each
                for each in variants(recipe, function, structure)
                if not each.primitives and not is_shared(each)
            ),
            None,
        )
        if empty is None:
            return with_added(recipe, function, structure, ALONE)
        schedule = empty
    shared = schedule is None or is_shared(schedule)
    return _switched(recipe, function, structure, schedule, shared=shared)


def _switched(
    recipe: Recipe, function: str, structure: str, schedule: Schedule | None, *, shared: bool
) -> Recipe:
    """Return `recipe` with one of the variants of a function on; `shared` ones are off as well."""

    def switched(each: Schedule) -> Schedule:
        if not fits(each, function, structure) or (is_shared(each) and not shared):
            return each
        return msgspec.structs.replace(each, on=each is schedule)

    return msgspec.structs.replace(recipe, schedules=tuple(map(switched, recipe.schedules)))


def with_added(
    recipe: Recipe,
    function: str,
    structure: str,
    name: str,
    primitives: tuple[Primitive, ...] = (),
    *,
    everywhere: bool = True,
) -> Recipe:
    """Return `recipe` with one variant more, which is on.

    A function that has a schedule alone has this one alone as well.
    """
    added = Schedule(
        function=function,
        structure=structure,
        variant=name,
        everywhere=everywhere and not is_alone(recipe, function, structure),
        primitives=primitives,
    )
    recipe = with_schedule(recipe, None, added)
    return with_chosen(recipe, function, structure, recipe.schedules[-1])


def with_primitives(
    recipe: Recipe, function: str, structure: str, primitives: tuple[Primitive, ...]
) -> Recipe:
    """Return `recipe` with these steps for a function, in the variant that is on or a first one."""
    schedule = chosen(recipe, function, structure)
    if schedule is None:
        return with_added(recipe, function, structure, "", primitives)
    after = msgspec.structs.replace(schedule, primitives=primitives)
    return with_schedule(recipe, schedule, after)


def with_name(recipe: Recipe, function: str, structure: str, name: str) -> Recipe:
    """Return `recipe` with another name for the variant that is on."""
    schedule = chosen(recipe, function, structure)
    if schedule is None:
        return recipe
    return with_schedule(recipe, schedule, msgspec.structs.replace(schedule, variant=name))


def without_chosen(recipe: Recipe, function: str, structure: str) -> Recipe:
    """Return `recipe` without the variant that is on.

    Then the last of the others is on: a shared one in place of a shared one, as long as there are
    any. In place of the last that a function had alone, it has what the others have.
    """
    schedule = chosen(recipe, function, structure)
    if schedule is None:
        return recipe
    recipe = with_schedule(recipe, schedule, None)
    rest = variants(recipe, function, structure)
    alike = tuple(each for each in rest if is_shared(each) == is_shared(schedule))
    if is_shared(schedule):
        alike = alike or rest
    return with_chosen(recipe, function, structure, alike[-1]) if alike else recipe


def with_shared(recipe: Recipe, function: str, structure: str, shared: bool) -> Recipe:
    """Return `recipe` with what a function has shared by all of its structure, or had alone.

    What they share stays with the others when one of them goes its own way, and that one has a copy
    of it. When it comes back with something else, all have that, and what they had is there still.
    """
    schedule = chosen(recipe, function, structure)
    if not shared:
        primitives = () if schedule is None else schedule.primitives
        if schedule is None:
            name = ALONE
        elif is_shared(schedule):
            name = f"{shown_name(schedule.variant)} {ALONE}"
        else:
            return recipe
        return with_added(recipe, function, structure, name, primitives, everywhere=False)
    if schedule is None or is_shared(schedule):
        return recipe
    return _joined(recipe, function, structure, schedule)


def _joined(recipe: Recipe, function: str, structure: str, schedule: Schedule) -> Recipe:
    """Return `recipe` with what a function has alone shared, and on for all that can have it."""
    others = [each for each in variants(recipe, function, structure) if is_shared(each)]
    same = [each for each in others if each.primitives == schedule.primitives]
    if not schedule.primitives:
        # It has nothing to give, and takes what the others have.
        recipe = with_schedule(recipe, schedule, None)
        return _switched(recipe, function, structure, None, shared=False)
    if same:
        # A copy that is as it was would be one too many.
        found = next((each for each in same if each.on), same[-1])
        recipe = with_schedule(recipe, schedule, None)
    else:
        found = msgspec.structs.replace(schedule, structure=structure, everywhere=True)
        place = next(at for at, each in enumerate(recipe.schedules) if each is schedule)
        recipe = with_schedule(recipe, schedule, found)
        found = recipe.schedules[place]
    recipe = with_chosen(recipe, function, structure, found)
    together = tuple(
        msgspec.structs.replace(each, on=False)
        if each.structure == structure and not is_shared(each)
        else each
        for each in recipe.schedules
    )
    return msgspec.structs.replace(recipe, schedules=together)


def sharing(recipe: Recipe, functions: tuple[str, ...], structure: str, schedule: Schedule) -> int:
    """Return how many of some functions of a structure have a schedule."""
    return sum(chosen(recipe, function, structure) is schedule for function in functions)
