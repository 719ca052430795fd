"""Metrics of a scheduled function: its work, its speed and its correctness."""

from __future__ import annotations

import msgspec

from lowerscope.core.build.targets import check_runs_here
from lowerscope.core.build.threads import ProcessorUse, use_threads
from lowerscope.core.engine.pipeline import Pipeline
from lowerscope.core.files.memo import key_of
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.queries import CheckQuery, MeasureQuery, PeaksQuery, WorkQuery, answers
from lowerscope.core.model.recipe import VERSIONS
from lowerscope.core.model.schedule_records import Checked, Measured, Peaks, Work
from lowerscope.core.run.torch_interpreter import nodes_of, torch_ms
from lowerscope.core.schedule.at_sizes import Given, at_sizes, is_symbolic, sizes_at_calls
from lowerscope.core.schedule.checking import Limit, Reference, reference_of
from lowerscope.core.schedule.checking import check as check_function
from lowerscope.core.schedule.measuring import time_alone
from lowerscope.core.schedule.peaks import keep_peaks, kept_peaks, measure_peaks, peaks_key
from lowerscope.core.schedule.replay import state_at
from lowerscope.core.schedule.work import calls_from_main, work_of
from lowerscope.core.stages import Stages

BEYOND = 4.0
"""Multiple of the peaks beyond which a function did less than was counted: neither noise nor the
smallest cache, which is faster than the one that was measured, reaches it."""


def _has_functions(query: WorkQuery, pipeline: Pipeline, job: Progress) -> bool:
    return pipeline.stages(query.recipe, job).has_functions()


@answers(WorkQuery, _has_functions)
def work(query: WorkQuery, pipeline: Pipeline, job: Progress) -> Work:
    """Return the work of one call of a function before it is scheduled.

    Raises `LowerscopeError` if there is no such function.
    """
    return _work(pipeline.stages(query.recipe, job), query.function)


@answers(PeaksQuery)
def peaks(query: PeaksQuery, pipeline: Pipeline, job: Progress) -> Peaks:
    """Return the peaks of this machine, measured if they never were, or again.

    Raises `LowerscopeError` if the recipe is for another machine.
    """
    recipe = query.recipe
    pipeline.stages(recipe, job).check_runs_here("peaks are measured")
    threads = use_threads(recipe.threads)
    key = peaks_key(recipe.target, threads)
    kept = None if query.again else kept_peaks(key)
    return kept or keep_peaks(key, measure_peaks(recipe.target, threads, job))


@answers(MeasureQuery)
def measure(query: MeasureQuery, pipeline: Pipeline, job: Progress) -> Measured:
    """Measure a function after the first primitives of its schedule, and torch's nodes.

    Raises `LowerscopeError` if there is no such function, or it cannot be compiled or run alone.
    """
    recipe, function = query.recipe, query.function
    stages = pipeline.stages(recipe, job)
    stages.check_runs_here("a function alone is measured")
    found = pipeline.answer(PeaksQuery(recipe), job)
    states = stages.states(function)
    scheduled = at_sizes(state_at(states, query.index).function, given_of(stages, function))
    use = ProcessorUse()
    timing = time_alone(scheduled, stages.target, recipe.seed, job)
    disturbed = use.was_short(found.threads)
    counted = _work(stages, function)
    nodes = nodes_of(stages, function)
    key = key_of("torch_ms", stages.unscheduled_key, nodes.names, found.threads, recipe.seed)
    kept: list[float | None] = stages.keep("torch", key, list)
    use, torch_disturbed = ProcessorUse(), False
    torch = kept[0] if kept else torch_ms(stages, nodes.names, recipe.seed, job)
    if not kept and torch is not None:
        torch_disturbed = use.was_short(found.threads)
    if not kept and not torch_disturbed:
        # A time that is unreliable is measured once more the next time.
        kept.append(torch)
    measured = _measured(timing, counted, found)
    return msgspec.structs.replace(
        measured,
        torch_ms=torch,
        torch_nodes=nodes.names if torch is not None else (),
        torch_does_more=nodes.does_more,
        disturbed=disturbed or torch_disturbed,
    )


@answers(CheckQuery)
def check(query: CheckQuery, pipeline: Pipeline, job: Progress) -> Checked:
    """Compare a function after the first primitives of its schedule with the unscheduled one.

    The output of the unscheduled one is cached.

    Raises `LowerscopeError` if there is no such function, or the target is for another machine.
    """
    recipe, function, seconds = query.recipe, query.function, query.seconds
    threads = use_threads(recipe.threads)
    stages = pipeline.stages(recipe, job)
    check_runs_here(stages.target)
    states = stages.states(function)
    given = given_of(stages, function)
    try:
        base = at_sizes(states[0].function, given)
        scheduled = at_sizes(state_at(states, query.index).function, given)
    except LowerscopeError as error:
        return Checked(verdict="unknown", reason=error.problem.what)
    structure = stages.functions.structures[function]
    key = key_of("reference", structure, base.text, str(stages.target), recipe.seed, VERSIONS)

    def reference(limit: Limit) -> Reference:
        job.report("Running the unscheduled function")
        return stages.keep(
            "reference",
            key,
            lambda: reference_of(base, stages.target, recipe.seed, limit),
            lambda made: made.size,
        )

    limit = Limit(seconds, threads, job)
    checked = check_function(scheduled.function, stages.target, reference, limit, seconds)
    return msgspec.structs.replace(checked, at=base.text)


def _work(stages: Stages, function: str) -> Work:
    base = stages.states(function)[0].function

    def make() -> Work:
        calls = calls_from_main(stages.unscheduled.module).get(function, 0)
        try:
            sized = at_sizes(base, given_of(stages, function))
        except LowerscopeError:
            return work_of(base, calls)
        return work_of(sized.static, calls, sized.text)

    return stages.keep("work", key_of("work", stages.unscheduled_key, function), make)


def given_of(stages: Stages, function: str) -> Given | None:
    """Return the arguments that the model calls a function with at the traced size, if known."""
    if not is_symbolic(stages.functions.by_name[function]):
        return None

    def make() -> dict[str, Given]:
        inputs = [each.value for each in stages.loaded.inputs]
        module = stages.unscheduled.module
        shapes = [_shape(each) for each in stages.arguments_of(module, inputs)]
        return sizes_at_calls(module, shapes)

    return stages.keep("sizes", key_of("sizes", stages.unscheduled_key), make).get(function)


def _shape(value: object) -> tuple[int, ...] | None:
    shape = getattr(value, "shape", None)
    return None if shape is None else tuple(int(each) for each in shape)


def _measured(timing: Measured, work: Work, peaks: Peaks) -> Measured:
    """Return the rates of a timing, and their share of the machine's peaks."""
    moved = None if work.read is None else work.read + (work.written or 0)
    flops = work.flops
    per_second = timing.milliseconds * 1e6
    gflops = None if flops is None else flops / per_second
    gbytes = None if moved is None else moved / per_second
    share = None
    if flops is not None and moved:
        found = peaks.best_ms(flops, moved) / timing.milliseconds
        share = min(found, 1.0) if found < BEYOND else None
    return msgspec.structs.replace(timing, gflops=gflops, gbytes_per_second=gbytes, share=share)
