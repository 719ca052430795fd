"""Schedules of a recipe, and what is changed about them."""

from __future__ import annotations

from lowerscope.app.panes.schedule.model import new_id, place_of
from lowerscope.core.model import shared_schedules as sharing
from lowerscope.core.model.recipe import (
    Recipe,
    Source,
    applied_to_model,
    applies_schedules,
    changed,
    inserted,
    moved,
    removed,
    replaced,
)
from lowerscope.core.model.schedule import (
    At,
    Made,
    Primitive,
    Schedule,
    references_of,
    schedule_for,
)

SPLIT = Primitive(id="s1", name="split", arguments={"loop": At(block="b", loop=0)})
FUSE = Primitive(
    id="s4", name="fuse", arguments={"loops": (Made(step="s1"), Made(step="s1", output=1))}
)
FIRST = Schedule(function="conv", structure="x", primitives=(SPLIT, FUSE))
SECOND = Schedule(function="conv", structure="x", variant="other", on=False)
RECIPE = Recipe(source=Source(spec="sample:conv_net"), schedules=(FIRST, SECOND))


def test_a_function_has_the_schedules_of_its_structure() -> None:
    assert sharing.variants(RECIPE, "conv1", "x") == (FIRST, SECOND)
    assert sharing.variants(RECIPE, "conv", "y") == ()
    assert schedule_for(RECIPE.schedules, "conv", "x") is FIRST
    chosen = sharing.with_chosen(RECIPE, "conv", "x", SECOND)
    applied = schedule_for(chosen.schedules, "conv", "x")
    assert applied is not None
    assert applied.variant == "other"
    none = sharing.with_chosen(RECIPE, "conv", "x", None)
    assert schedule_for(none.schedules, "conv", "x") is None


def test_steps_are_placed_moved_switched_and_taken_out() -> None:
    steps = FIRST.primitives
    assert new_id(steps) == "s5"
    added = inserted(steps, 1, Primitive(id="s5", name="unroll"))
    assert [each.id for each in added] == ["s1", "s5", "s4"]
    assert place_of(added, "s5") == 1
    assert [each.id for each in moved(added, 0, 2)] == ["s5", "s4", "s1"]
    assert [each.id for each in moved(added, 2, -1)] == ["s4", "s1", "s5"]
    assert [each.on for each in changed(added, 1, on=False)] == [True, False, True]
    assert replaced(added, 0, FUSE) == (FUSE, *added[1:])
    # A step that is no longer there has no place.
    assert place_of(added, "s9") == -1
    assert removed(added, -1) == replaced(added, -1, FUSE) == added
    rest = removed(steps, 1)
    # What was taken out may come back with undo, and what it made is not what another one makes.
    assert new_id(removed(steps, 0)) == "s5"
    assert rest == (SPLIT,)
    # Files may have any ids.
    odd = tuple(Primitive(id=each, name="unroll") for each in ("s²", "s" + "9" * 5000, "", "x7"))
    assert new_id((*odd, SPLIT)) == "s2"
    assert references_of(FUSE) == (Made(step="s1"), Made(step="s1", output=1))


def test_the_step_that_applies_schedules_is_added_once() -> None:
    applied = applied_to_model(RECIPE, True)
    assert applies_schedules(applied)
    off = applied_to_model(applied, False)
    assert not applies_schedules(off)
    assert len(off.steps) == len(applied.steps) == len(RECIPE.steps) + 1
    assert applied_to_model(off, True) == applied
