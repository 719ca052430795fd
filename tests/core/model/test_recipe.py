"""The recipe as a value and as a file."""

from __future__ import annotations

import os

import msgspec
import pytest

from lowerscope.core.model.recipe import (
    InputSpec,
    Override,
    Recipe,
    Source,
    Step,
    from_json,
    override_text,
    part_of,
    primitive_text,
    step_text,
    to_json,
    without_part,
)
from lowerscope.core.model.schedule import Primitive, Schedule
from lowerscope.core.model.shared_schedules import with_schedule
from lowerscope.core.model.texts import Text
from lowerscope.core.model.tolerances import Tolerance, Tolerances
from lowerscope.core.sandbox.running_call import CallWriter, new_file, read

FULL = Recipe(
    source=Source(spec="model.py", entry="Net", args='{"width": 3}', params="p.pkl", trust=True),
    seed=7,
    inputs=(InputSpec(name="x", shape=(1, 3), dtype="int64", low=0, high=9),),
    tracer="export",
    lowering="te",
    overrides=(Override(pattern="layer1.*", strategy="library"),),
    steps=(
        Step(name="LegalizeOps", on=False),
        Step(name="FuseOps", options={"fuse_opt_level": 1, "patterns": ("a", "b")}),
    ),
    tolerances=Tolerances(float16=Tolerance(1e-3, 0.0)),
    target="native",
    threads=2,
)


def test_a_recipe_survives_its_file() -> None:
    assert from_json(to_json(FULL)) == FULL


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("{}", "source"),
        ('{"source": {"spec": "a"}, "lowering": "fast"}', "lowering"),
        ('{"source": {"spec": "a"}, "seed": "one"}', "seed"),
        (
            '{"source": {"spec": "a"}, "overrides": [{"pattern": "a", "strategy": "b"}]}',
            r"overrides\[0\].strategy|overrides\[...\].strategy",
        ),
    ],
)
def test_what_is_no_recipe_is_refused_with_the_field(text: str, field: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=field):
        from_json(text)


def test_a_file_with_one_tolerance_for_all_dtypes_is_read() -> None:
    old = (
        '{"source": {"spec": "a"}, "version": 1, "seed": 3, "tolerances": {"rtol": %s, "atol": %s}}'
    )
    assert from_json(old % (1e-4, 1e-5)) == Recipe(source=Source(spec="a"), seed=3)
    chosen = from_json(old % (1e-3, 1e-6))
    assert chosen.tolerances.float32 == Tolerance(1e-3, 1e-6)
    # As it was then: no closer than four units in the last place.
    assert chosen.tolerances.float16 == Tolerance(4 * 2.0**-10, 0.4 * 2.0**-10)
    assert from_json(to_json(chosen)) == chosen
    with pytest.raises(msgspec.ValidationError, match="lowering"):
        from_json(
            '{"source": {"spec": "a"}, "version": 1, "tolerances": {"rtol": 1}, "lowering": 1}'
        )


# The parts of a recipe that a child may die of: written down, found again, switched off


LONG = "layer" * 40
RECIPE = Recipe(
    source=Source(spec="sample:matmul_relu"),
    overrides=(Override(pattern="relu", strategy="te"), Override(pattern=LONG, strategy="te")),
    steps=(Step(name="LegalizeOps"), Step(name="FuseOps"), Step(name="LegalizeOps")),
    schedules=(
        Schedule(function="dense", primitives=(Primitive(id="s1", name="split"),)),
        Schedule(
            function="relu",
            primitives=(Primitive(id="s1", name="split"), Primitive(id="s2", name="unroll")),
        ),
    ),
)
STEPS, OVERRIDES, SCHEDULES = RECIPE.steps, RECIPE.overrides, RECIPE.schedules


def off(recipe: Recipe) -> list[str]:
    """Return what is switched off."""
    primitives = [
        (schedule.function, each) for schedule in recipe.schedules for each in schedule.primitives
    ]
    return [
        *(f"step {place}" for place, each in enumerate(recipe.steps) if not each.on),
        *(f"override {each.pattern}" for each in recipe.overrides if not each.on),
        *(f"{function} {each.id}" for function, each in primitives if not each.on),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (step_text(3, STEPS[2]), "step 2"),
        (override_text(OVERRIDES, OVERRIDES[0]), "override relu"),
        (override_text(OVERRIDES, OVERRIDES[1]), f"override {LONG}"),
        (primitive_text(SCHEDULES, SCHEDULES[1], SCHEDULES[1].primitives[0]), "relu s1"),
    ],
)
def test_a_part_is_known_when_its_process_is_gone(text: str, expected: str) -> None:
    file = new_file()
    CallWriter(file).at_part(text)
    part = part_of(RECIPE, read(file).part)
    os.close(file)
    assert part is not None
    assert off(without_part(RECIPE, part)) == [expected]


@pytest.mark.parametrize(
    "text", ["", "step", "step 7 FuseOps", "step 0 FuseOps", "primitive 1 s9 split", "step x y"]
)
def test_what_a_recipe_does_not_have_is_no_part_of_it(text: str) -> None:
    assert part_of(RECIPE, text) is None


def test_a_translated_name_of_a_variant_is_written_to_a_file() -> None:
    name = Text("自动调度")
    name.english = "auto-schedule"
    recipe = Recipe(source=Source(spec="sample:matmul"))
    recipe = with_schedule(recipe, None, Schedule(function="matmul", variant=name))
    assert from_json(to_json(recipe)) == recipe
    assert recipe.schedules[0].variant == "自动调度"
