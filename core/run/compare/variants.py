"""Variants of one source: runs, comparison with torch, and interleaved timing."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lowerscope.core.build.targets import use_threads
from lowerscope.core.files.pipelines_and_schedules import variant_names
from lowerscope.core.model.comparison_records import Variant
from lowerscope.core.model.dimensions import runs_of
from lowerscope.core.model.problems import LowerscopeError, Problem
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.queries import RunQuery, VariantTimesQuery, answers
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.run_records import LEAST, Measuring, RunRecord, RunTimes, with_times
from lowerscope.core.model.texts import _
from lowerscope.core.remote.running import measure_remotely
from lowerscope.core.run.execution import Execution
from lowerscope.core.run.implementations import inputs_at, measure_by_turns, reference_of
from lowerscope.core.stages import Pipeline

BRIEFLY = Measuring(warm_up=1, repeats=LEAST)
"""Measuring of runs whose times are not used."""


def run_variants(
    pipeline: Pipeline, recipes: Sequence[Recipe], progress: Progress
) -> tuple[Variant, ...]:
    """Run recipes of one source, and time those that run by turns, so that noise affects all alike.

    A variant that cannot be built or run has its problem; the others are unaffected.

    Raises a `LowerscopeError` if a run fails while it is timed.

    Args:
        recipes: With the same inputs and threads.
    """
    names = variant_names(recipes)
    outcomes: list[RunRecord | Problem] = []
    for name, recipe in zip(names, recipes, strict=True):
        which = _(
            "Variant {count} of {recipes}, {name}",
            count=len(outcomes) + 1,
            recipes=len(recipes),
            name=name,
        )
        told = _Within(progress, which)
        brief = msgspec.structs.replace(recipe, measuring=BRIEFLY)
        try:
            pipeline.stages(recipe).check_schedules()
            outcomes.append(pipeline.answer(RunQuery(brief), told))
        except LowerscopeError as error:
            outcomes.append(error.problem)
    ran = [place for place, outcome in enumerate(outcomes) if isinstance(outcome, RunRecord)]
    told = _Within(progress, _("All variants in turn"))
    times = measure_variants(pipeline, [recipes[place] for place in ran], told)
    for place, found in zip(ran, times, strict=True):
        outcome = outcomes[place]
        assert isinstance(outcome, RunRecord)
        outcomes[place] = with_times(outcome, found)
    return tuple(
        Variant(
            name=name,
            recipe=recipe,
            record=outcome if isinstance(outcome, RunRecord) else None,
            problem=outcome if isinstance(outcome, Problem) else None,
        )
        for name, recipe, outcome in zip(names, recipes, outcomes, strict=True)
    )


class _Within:
    """Progress of a part of a task, with a prefix for it."""

    def __init__(self, whole: Progress, part: str) -> None:
        self._whole, self._part = whole, part
        self.check, self.begin_calls, self.at_call = whole.check, whole.begin_calls, whole.at_call
        self.at_part = whole.at_part

    def report(self, text: str, fraction: float | None = None) -> None:
        self._whole.report(f"{self._part}: {text}", fraction)


def measure_variants(
    pipeline: Pipeline, recipes: Sequence[Recipe], progress: Progress
) -> tuple[tuple[RunTimes, ...], ...]:
    """Return the interleaved times of recipes of one source, each at each of its sizes.

    On another machine they are timed one after the other.

    Raises a `LowerscopeError` if a build or a run fails.
    """
    found: dict[int, tuple[RunTimes, ...]] = {}
    for remote in dict.fromkeys(each.remote for each in recipes):
        places = [place for place, each in enumerate(recipes) if each.remote == remote]
        together = [recipes[place] for place in places]
        use_threads(together[0].threads)
        if remote is None:
            times = _measured_here(pipeline, together, progress)
        else:
            stages = [pipeline.stages(each, progress) for each in together]
            times = measure_remotely(stages, together, remote, progress)
        found |= zip(places, times, strict=True)
    return tuple(found[place] for place in range(len(recipes)))


def _measured_here(
    pipeline: Pipeline, recipes: Sequence[Recipe], progress: Progress
) -> tuple[tuple[RunTimes, ...], ...]:
    first = recipes[0]
    found = []
    for sizes in runs_of(first):
        # Fetch anew for each size: stages register the library functions of their executable once.
        stages = [pipeline.stages(each, progress) for each in recipes]
        for each in stages:
            _made = each.extensions, each.recorded
        # All are of one file, with the same rules and library functions.
        with stages[0].running():
            inputs = inputs_at(sizes, stages[0], first)
            _other, reference = reference_of(stages[0].loaded, inputs, first.seed)
            executions = [
                Execution(each.built.executable, "main", each.arguments(inputs)) for each in stages
            ]
            found.append(
                measure_by_turns(
                    stages, first, sizes, executions, reference, first.measuring, progress
                )
            )
    return tuple(zip(*found, strict=True))


@answers(VariantTimesQuery)
def variant_times(
    query: VariantTimesQuery, pipeline: Pipeline, job: Progress
) -> tuple[tuple[RunTimes, ...], ...]:
    """Return the interleaved times of recipes of one source: see `measure_variants`."""
    return measure_variants(pipeline, query.recipes, job)
