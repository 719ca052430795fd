"""Functions of the same structure share variants of a schedule, and have others alone."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from lowerscope.app.document.document import History
from lowerscope.app.panes.schedule.model import new_id, place_of
from lowerscope.core.model import shared_schedules as sharing
from lowerscope.core.model.recipe import (
    Recipe,
    Source,
    applied_to_model,
    applies_schedules,
    changed,
    from_json,
    inserted,
    moved,
    removed,
    replaced,
    to_json,
)
from lowerscope.core.model.schedule import (
    At,
    Made,
    Primitive,
    Schedule,
    is_shared,
    references_of,
    schedule_for,
    shown_name,
    with_unique_names,
)

EMPTY = Recipe(source=Source(spec="sample:conv_net"))
STRUCTURES = {"conv": "x", "conv1": "x", "conv2": "x", "dense": "y"}
NAMES = ("", "first", "wide", "alone", "first 2")

Content = tuple[Primitive, ...]
Intent = tuple[str, int, int]


def steps(number: int) -> Content:
    return tuple(Primitive(id=f"s{each}", name="unroll") for each in range(1, number + 1))


def test_one_that_goes_its_own_way_keeps_what_it_had_and_so_do_the_others() -> None:
    recipe = sharing.with_primitives(EMPTY, "conv", "x", steps(1))
    recipe = sharing.with_shared(recipe, "conv1", "x", False)
    mine = sharing.chosen(recipe, "conv1", "x")
    assert mine is not None
    assert (mine.function, mine.everywhere) == ("conv1", False)
    assert [shown_name(each.variant) for each in sharing.variants(recipe, "conv1", "x")] == [
        "first",
        "first alone",
    ]
    recipe = sharing.with_primitives(recipe, "conv1", "x", steps(2))
    found = [sharing.chosen(recipe, name, "x") for name in ("conv", "conv1", "conv2")]
    assert [each and len(each.primitives) for each in found] == [1, 2, 1]
    # Unscheduled, it does not fall back to what the others have.
    bare = sharing.with_chosen(recipe, "conv1", "x", None)
    assert [
        len(each.primitives)
        for each in (sharing.chosen(bare, name, "x") for name in ("conv", "conv1"))
        if each is not None
    ] == [1, 0]
    # Back among the others it brings what it has now; theirs is still there.
    together = sharing.with_shared(recipe, "conv1", "x", True)
    assert {
        len(each.primitives)
        for each in (sharing.chosen(together, name, "x") for name in STRUCTURES if name != "dense")
        if each is not None
    } == {2}
    assert [len(each.primitives) for each in together.schedules] == [1, 2]


def test_files_with_one_name_twice_get_names_apart() -> None:
    same = [
        Schedule(function="conv", structure="x"),
        Schedule(function="conv1", structure="x", everywhere=False),
        Schedule(function="conv2", structure="x", everywhere=False),
        Schedule(function="conv", variant="first"),
        Schedule(function="dense", structure="y"),
    ]
    names = [each.variant for each in with_unique_names(same)]
    assert names == ["", "first 2", "first 2", "first 2", ""]


@dataclass
class Bench:
    """The recipe that is open, with those before and after it, as the window has them."""

    recipe: Recipe
    structures: dict[str, str] = field(default_factory=lambda: dict(STRUCTURES))
    history: History = field(default_factory=History)

    def has(self, function: str) -> Schedule | None:
        return schedule_for(self.recipe.schedules, function, self.structures[function])

    def done_to(self, function: str) -> Content:
        schedule = self.has(function)
        return () if schedule is None else schedule.primitives

    def done(self) -> dict[str, Content]:
        return {name: self.done_to(name) for name in self.structures}

    def contents(self) -> set[Content]:
        return {each.primitives for each in self.recipe.schedules if each.primitives}

    def seen(self, function: str) -> tuple[Schedule, ...]:
        return sharing.variants(self.recipe, function, self.structures[function])

    def change(self, after: Recipe) -> None:
        self.history = self.history.changed_from(self.recipe)
        self.recipe = after


INTENTS = st.tuples(
    st.sampled_from(
        (
            *("choose", "none", "add", "duplicate", "write", "rename", "remove"),
            *("untick", "tick", "undo", "redo", "reopen", "fused"),
        )
    ),
    st.integers(0, 3),
    st.integers(0, 4),
)

SAVED = st.lists(
    st.builds(
        Schedule,
        function=st.sampled_from(tuple(STRUCTURES)),
        structure=st.sampled_from(("x", "x", "y", "")),
        variant=st.sampled_from(NAMES),
        on=st.booleans(),
        everywhere=st.booleans(),
        primitives=st.integers(0, 3).map(steps),
    ),
    max_size=4,
)


@settings(max_examples=100, deadline=None)
@given(SAVED, st.lists(INTENTS, max_size=14))
def test_whatever_is_done_in_whatever_order(saved: list[Schedule], intents: list[Intent]) -> None:
    schedules = with_unique_names(saved)
    bench = Bench(msgspec.structs.replace(EMPTY, schedules=schedules))
    for intent in intents:
        _do(bench, intent)
        for function in bench.structures:
            names = [shown_name(each.variant) for each in bench.seen(function)]
            assert len(set(names)) == len(names)
            schedule = bench.has(function)
            assert schedule is None or any(each is schedule for each in bench.seen(function))


def _do(bench: Bench, intent: Intent) -> None:
    """Do one thing as a user does, and see that it was that and nothing else."""
    what, place, number = intent
    function = tuple(bench.structures)[place % len(bench.structures)]
    structure = bench.structures[function]
    here = (bench.recipe, function, structure)
    before, contents, had = bench.done(), bench.contents(), bench.has(function)
    recipe, history = bench.recipe, bench.history
    alone = had is not None and not is_shared(had)
    gone: set[Content] = set()
    if what == "choose":
        choices = bench.seen(function)
        if not choices:
            return None
        schedule = choices[number % len(choices)]
        alone = not is_shared(schedule)
        bench.change(sharing.with_chosen(*here, schedule))
        now = bench.has(function)
        assert now is not None
        assert (now.variant, now.primitives) == (schedule.variant, schedule.primitives)
    elif what == "none":
        bench.change(sharing.with_chosen(*here, None))
        assert bench.done_to(function) == ()
    elif what in ("add", "duplicate"):
        content = before[function] if what == "duplicate" else ()
        bench.change(sharing.with_added(*here, NAMES[number], content))
        assert bench.done_to(function) == content
    elif what == "write":
        bench.change(sharing.with_primitives(*here, steps(number)))
        assert bench.done_to(function) == steps(number)
        gone = {before[function]}
    elif what == "rename":
        bench.change(sharing.with_name(*here, NAMES[number]))
        assert bench.done() == before
    elif what == "remove":
        bench.change(sharing.without_chosen(*here))
        assert len(bench.recipe.schedules) == len(recipe.schedules) - (had is not None)
        gone = {before[function]}
    elif what == "untick":
        bench.change(sharing.with_shared(*here, False))
        assert bench.done() == before
        now = bench.has(function)
        assert now is not None
        assert not is_shared(now)
    elif what == "tick":
        bench.change(sharing.with_shared(*here, True))
        now = bench.has(function)
        assert now is None or is_shared(now)
        if alone and before[function]:
            twins = [each for each in bench.structures if bench.structures[each] == structure]
            own = [each for each in twins if not _alone_by_name(bench, each)]
            assert all(bench.done_to(each) == before[function] for each in (function, *own))
        alone = not alone  # what was not alone already stays as it is for all
    elif what == "undo" and history.undo:
        bench.recipe, bench.history = history.back_from(recipe)
        return _same_after_redo(bench, recipe)
    elif what == "redo" and history.redo:
        bench.recipe, bench.history = history.forward_from(recipe)
        return None
    elif what == "reopen":
        bench.recipe = from_json(to_json(recipe))
        assert with_unique_names(bench.recipe.schedules) == recipe.schedules
        assert bench.done() == before
    elif what == "fused":
        # A function has another name, as after fusion: it has what it shared.
        bench.structures = {
            (f"fused_{name}" if name == function else name): each
            for name, each in bench.structures.items()
        }
        if had is not None and is_shared(had) and had.function != function:
            assert bench.done_to(f"fused_{function}") == before[function]
        return None
    assert bench.contents() >= contents - gone
    others = [each for each in bench.structures if each != function]
    if alone:
        assert all(bench.done_to(each) == before[each] for each in others)
    else:
        assert all(
            bench.done_to(each) == before[each]
            for each in others
            if bench.structures[each] != structure
        )
    return None


def _alone_by_name(bench: Bench, function: str) -> bool:
    """Return whether a function alone has a schedule that a file gives to its name."""
    schedule = bench.has(function)
    return schedule is not None and not schedule.structure


def _same_after_redo(bench: Bench, recipe: Recipe) -> None:
    again, _ = bench.history.forward_from(bench.recipe)
    assert again is recipe


# Schedules of a recipe, and what is changed about them


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
