"""Which recipes are run as variants of another one."""

from __future__ import annotations

import msgspec

from lowerscope.app.panes.run.run_variants import variants_of
from lowerscope.core.files.pipelines_and_schedules import find_pipeline, variant_names
from lowerscope.core.model.recipe import Recipe, Source, Step
from lowerscope.core.model.schedule import Schedule

PLAIN = Recipe(source=Source(spec="sample:fashion_mlp"), target="native")
FUSED = find_pipeline("fuse").steps


def test_both_lowerings_as_they_are_and_fused() -> None:
    four = variants_of(PLAIN, ("high-level", "te"))
    assert [(each.lowering, each.steps == FUSED) for each in four] == [
        ("high-level", False),
        ("te", False),
        ("high-level", True),
        ("te", True),
    ]
    # The rest is as it was, and a schedule that is not applied makes no other run.
    assert {each.target for each in four} == {"native"}
    schedules = (Schedule(function="matmul"),)
    assert len(variants_of(msgspec.structs.replace(PLAIN, schedules=schedules), ("te",))) == 3
    same = msgspec.structs.replace(PLAIN, schedules=schedules)
    assert len(variants_of(same, ("high-level", "te"))) == 4


def test_what_is_shown_is_among_them_with_its_schedules_and_passes() -> None:
    shown = msgspec.structs.replace(
        PLAIN,
        steps=(*PLAIN.steps, Step(name="ApplySchedules")),
        schedules=(Schedule(function="matmul"),),
    )
    recipes = variants_of(shown, ("high-level", "te"))
    assert recipes[-1] == shown
    assert variant_names(recipes)[-1] == "high-level · legalised · matmul scheduled"


def test_a_source_without_torch_has_its_pipelines_alone() -> None:
    recipes = variants_of(PLAIN, (PLAIN.lowering,))
    assert variant_names(recipes) == ("legalised", "fused")
