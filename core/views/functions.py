"""Passes that steps can name, passes of the build, and functions at a step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from lowerscope.core.build.build import FIRST_FOR_TENSORIR
from lowerscope.core.engine.pipeline import Pipeline
from lowerscope.core.ir.relax import calls_of
from lowerscope.core.model.module_steps import Moment, PassRecord
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.queries import BuildStepsQuery, CatalogueQuery, FunctionsQuery, answers
from lowerscope.core.model.snapshot import FunctionRecord, PassType
from lowerscope.core.passes.bindings import Matches, match_bindings
from lowerscope.core.passes.blocks import Composed, blocks_after
from lowerscope.core.passes.following import inverse
from lowerscope.core.stages import Stages
from lowerscope.core.views.function_records import function_records


def functions_at(stages: Stages, moment: Moment) -> tuple[FunctionRecord, ...]:
    """Return the functions of the module at a step.

    The bindings that call them are those of the lowered module that became these calls.

    Raises
    ------
    LowerscopeError
        If there is no module at that step.
    """
    module, origins = stages.module_at(moment), stages.origins_at(moment)
    composed = _composed_at(stages, moment)
    records = tuple(
        msgspec.structs.replace(each, calls=tuple(_origins(each.calls, origins)))
        for each in function_records(module, calls_of(module), composed)
    )
    earlier = _with_blocks(stages, moment)
    if earlier is None:
        return records
    # Loops whose blocks were removed have the ids of the original loops.
    made = {each.id: each for each in functions_at(stages, earlier) if each.pieces}
    return tuple(
        msgspec.structs.replace(each, pieces=made[each.id].pieces, untied=made[each.id].untied)
        if each.id in made
        else each
        for each in records
    )


def _with_blocks(stages: Stages, moment: Moment) -> Moment | None:
    """Return the last step of the build at which functions have blocks, if that was before."""
    if moment.section != "build":
        return None
    names = [run.name for run in stages.recorded.runs]
    if FIRST_FOR_TENSORIR not in names[: moment.index]:
        return None
    return msgspec.structs.replace(moment, index=names.index(FIRST_FOR_TENSORIR))


def _composed_at(stages: Stages, moment: Moment) -> Mapping[str, Composed]:
    if moment.section == "passes":
        return stages.transformed.composed_at(moment.index)
    if moment.section == "translate":
        return {}
    scheduled = moment.section == "schedule"
    transformed = stages.unscheduled if scheduled else stages.transformed
    before = transformed.module if scheduled else stages.completed
    after = stages.module_at(moment)
    return blocks_after(
        before,
        after,
        match_bindings(before, after),
        inverse(transformed.bindings),
        transformed.composed,
        "the schedule" if scheduled else "the build",
    )


def _origins(bindings: tuple[str, ...], origins: Matches) -> Iterator[str]:
    yield from dict.fromkeys(before for each in bindings for before in origins.get(each, ()))


@answers(CatalogueQuery)
def catalogue(query: CatalogueQuery, pipeline: Pipeline, job: Progress) -> tuple[PassType, ...]:
    """Return the passes that a recipe's steps can name: TVM's, and those of its files."""
    return tuple(each.type for each in pipeline.stages(query.recipe, job).passes.values())


def _is_cached(query: FunctionsQuery, pipeline: Pipeline, job: Progress) -> bool:
    return pipeline.stages(query.recipe, job).has_module(query.moment)


@answers(FunctionsQuery, _is_cached)
def functions(
    query: FunctionsQuery, pipeline: Pipeline, job: Progress
) -> tuple[FunctionRecord, ...]:
    """Return the functions of the module at a step: see `functions_at`."""
    return functions_at(pipeline.stages(query.recipe, job), query.moment)


@answers(BuildStepsQuery)
def build_steps(
    query: BuildStepsQuery, pipeline: Pipeline, job: Progress
) -> tuple[PassRecord, ...]:
    """Return the passes of TVM's own build, in the order in which they began.

    Raises
    ------
    LowerscopeError
        If the build fails.
    """
    return pipeline.stages(query.recipe, job).recorded.records
