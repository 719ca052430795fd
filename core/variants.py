"""Variants of one source: each is built, run and compared with torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lowerscope.core.errors import LowerscopeError, Problem
from lowerscope.core.progress import Progress
from lowerscope.core.recipe import Recipe
from lowerscope.core.run_records import RunRecord
from lowerscope.core.showing import check_model_schedules
from lowerscope.core.variant_names import variant_names
from lowerscope.core.variant_records import Variant

if TYPE_CHECKING:
    from lowerscope.core.pipeline import Pipeline


def run_variants(
    pipeline: Pipeline, recipes: Sequence[Recipe], progress: Progress
) -> tuple[Variant, ...]:
    """Run each recipe; one that cannot be built or run has its problem, and the others go on."""
    names = variant_names(recipes)
    outcomes: list[RunRecord | Problem] = []
    for name, recipe in zip(names, recipes, strict=True):
        progress.report(f"Running {name}", len(outcomes) / len(recipes))
        try:
            check_model_schedules(pipeline, recipe)
            outcomes.append(pipeline.run(recipe, progress))
        except LowerscopeError as error:
            outcomes.append(error.problem)
    return tuple(
        Variant(
            name=name,
            recipe=recipe,
            record=outcome if isinstance(outcome, RunRecord) else None,
            problem=outcome if isinstance(outcome, Problem) else None,
        )
        for name, recipe, outcome in zip(names, recipes, outcomes, strict=True)
    )
