"""The variants of a function's schedule, its own or shared by functions of the same structure.

A shared schedule is enabled, changed and removed for all that share it; a function's own schedule
takes precedence, and affects no other function. Each function takes a recipe and returns another
one.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.schedule import (
    Primitive,
    Schedule,
    conflict,
    fits,
    free_name,
    is_shared,
    schedule_for,
    shown_name,
)

ALONE = "alone"
"""Name of a variant that belongs to one function only."""


def variants(recipe: Recipe, function: str, structure: str) -> tuple[Schedule, ...]:
    """Return the possible schedules of a function."""
    return tuple(each for each in recipe.schedules if fits(each, function, structure))


def chosen(recipe: Recipe, function: str, structure: str) -> Schedule | None:
    """Return the enabled schedule of a function; ``None`` for none."""
    return schedule_for(recipe.schedules, function, structure)


def is_alone(recipe: Recipe, function: str, structure: str) -> bool:
    """Return whether a function has a schedule of its own, not shared with others."""
    schedule = chosen(recipe, function, structure)
    return schedule is not None and not is_shared(schedule)


def with_schedule(recipe: Recipe, before: Schedule | None, after: Schedule | None) -> Recipe:
    """Return `recipe` with a schedule replaced by another; added or removed for ``None``.

    A number is appended to its name if there is one of that name already.
    """
    rest = [each for each in recipe.schedules if each is not before]
    place = next((at for at, each in enumerate(recipe.schedules) if each is before), len(rest))
    if after is not None:
        name = free_name((each.variant for each in rest if conflict(each, after)), after.variant)
        rest.insert(place, msgspec.structs.replace(after, variant=name))
    return msgspec.structs.replace(recipe, schedules=tuple(rest))


def left_over(recipe: Recipe, structures: Mapping[str, str]) -> tuple[Schedule, ...]:
    """Return the schedules that fit none of some functions; none if there are no functions.

    Args:
        structures: The structural hashes of the functions, by name.
    """
    return tuple(
        each
        for each in recipe.schedules
        if structures and not any(fits(each, *function) for function in structures.items())
    )


def with_chosen(recipe: Recipe, function: str, structure: str, schedule: Schedule | None) -> Recipe:
    """Return `recipe` with one variant of a function enabled, or none.

    A shared one is enabled for all that share it. If a function with a variant of its own is to
    have none enabled while others have a shared one, it gets an empty one of its own.
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
    """Return `recipe` with one variant on and the function's others off, shared ones if
    `shared`.
    """

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
    """Return `recipe` with another variant, enabled.

    It is the function's own if the function has one of its own already.
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
    """Return `recipe` with these steps for a function, in the enabled or a first variant."""
    schedule = chosen(recipe, function, structure)
    if schedule is None:
        return with_added(recipe, function, structure, "", primitives)
    after = msgspec.structs.replace(schedule, primitives=primitives)
    return with_schedule(recipe, schedule, after)


def with_name(recipe: Recipe, function: str, structure: str, name: str) -> Recipe:
    """Return `recipe` with the enabled variant renamed."""
    schedule = chosen(recipe, function, structure)
    if schedule is None:
        return recipe
    return with_schedule(recipe, schedule, msgspec.structs.replace(schedule, variant=name))


def without_chosen(recipe: Recipe, function: str, structure: str) -> Recipe:
    """Return `recipe` without the enabled variant.

    The last of the others is then enabled: a shared one after a shared one, if there is one. After
    its last own variant, the function uses the shared ones.
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
    """Return `recipe` with a function's schedule shared by all of its structure, or its own.

    The others keep the shared schedule when one becomes separate, which gets a copy of it. If it
    joins again with a different schedule, all use that, and the previous one is kept.
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
    """Return `recipe` with a function's own schedules shared, and enabled for all that fit."""
    others = [each for each in variants(recipe, function, structure) if is_shared(each)]
    same = [each for each in others if each.primitives == schedule.primitives]
    if not schedule.primitives:
        # It has no schedule to share, and uses the others'.
        recipe = with_schedule(recipe, schedule, None)
        return _switched(recipe, function, structure, None, shared=False)
    if same:
        # An unchanged copy would be redundant.
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
