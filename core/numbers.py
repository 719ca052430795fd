"""The numbers of a function that is scheduled: what it does, how fast, and whether still right."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.execution.processor_use import ProcessorUse
from lowerscope.core.execution.threads import use_threads
from lowerscope.core.memo import key_of
from lowerscope.core.progress import Progress
from lowerscope.core.recipe import Recipe
from lowerscope.core.records.numbers import Checked, Measured, Peaks, Work
from lowerscope.core.running.node_times import nodes_of, torch_ms
from lowerscope.core.scheduling.at_sizes import at_sizes, is_symbolic
from lowerscope.core.scheduling.checking import Limit, Reference, check, reference_of
from lowerscope.core.scheduling.measuring import Timing, time_alone
from lowerscope.core.scheduling.peaks import keep_peaks, kept_peaks, measure_peaks, peaks_key
from lowerscope.core.scheduling.replaying import state_at
from lowerscope.core.scheduling.sizes_at_calls import Given, sizes_at_calls
from lowerscope.core.scheduling.work import calls_from_main, work_of
from lowerscope.core.stages import Stages
from lowerscope.core.target_catalogue import check_runs_here
from lowerscope.core.versions import VERSIONS

BEYOND = 4.0
"""So many times the peaks is neither noise nor the smallest cache, which is faster than the one
that was measured: a function did less than was counted."""


class Numbers:
    """Answers about the work and the speed of functions, from what the pipeline keeps.

    Parameters
    ----------
    stages
        Returns those of a recipe.
    """

    def __init__(self, stages: Callable[[Recipe, Progress], Stages]) -> None:
        self._stages = stages

    def work(self, recipe: Recipe, function: str, progress: Progress) -> Work:
        """Return what one call of a function has to do before it is scheduled.

        Raises
        ------
        LowerscopeError
            If there is no such function.
        """
        return _work(self._stages(recipe, progress), function)

    def peaks(self, recipe: Recipe, again: bool, progress: Progress) -> Peaks:
        """Return what this machine can do at best, measured if it never was, or `again`.

        Raises
        ------
        LowerscopeError
            If the recipe is for another machine.
        """
        self._stages(recipe, progress).check_runs_here("peaks are measured")
        threads = use_threads(recipe.threads)
        key = peaks_key(recipe.target, threads)
        kept = None if again else kept_peaks(key)
        return kept or keep_peaks(key, measure_peaks(recipe.target, threads, progress))

    def measure(
        self, recipe: Recipe, function: str, index: int | None, progress: Progress
    ) -> Measured:
        """Measure a function after the first primitives of its schedule, and torch's nodes.

        Raises
        ------
        LowerscopeError
            If there is no such function, or it cannot be compiled or run alone.
        """
        stages = self._stages(recipe, progress)
        stages.check_runs_here("a function alone is measured")
        peaks = self.peaks(recipe, False, progress)
        states = stages.states(function)
        scheduled = at_sizes(state_at(states, index).function, given_of(stages, function))
        use = ProcessorUse()
        timing = time_alone(scheduled, stages.target, recipe.seed, progress)
        disturbed = use.was_short(peaks.threads)
        work = _work(stages, function)
        nodes = nodes_of(stages, function)
        key = key_of("torch_ms", stages.unscheduled_key, nodes.names, peaks.threads, recipe.seed)
        kept: list[float | None] = stages.keep("torch", key, list)
        use, torch_disturbed = ProcessorUse(), False
        torch = kept[0] if kept else torch_ms(stages, nodes.names, recipe.seed, progress)
        if not kept and torch is not None:
            torch_disturbed = use.was_short(peaks.threads)
        if not kept and not torch_disturbed:
            # A time that is unreliable is measured once more the next time.
            kept.append(torch)
        measured = _measured(timing, work, peaks)
        return msgspec.structs.replace(
            measured,
            torch_ms=torch,
            torch_nodes=nodes.names if torch is not None else (),
            torch_does_more=nodes.does_more,
            at=scheduled.text,
            disturbed=disturbed or torch_disturbed,
        )

    def check(
        self,
        recipe: Recipe,
        function: str,
        index: int | None,
        seconds: float,
        progress: Progress,
    ) -> Checked:
        """Compare a function after the first primitives of its schedule with the unscheduled one.

        What the unscheduled one computes is kept.

        Raises
        ------
        LowerscopeError
            If there is no such function, or the target is for another machine.
        """
        threads = use_threads(recipe.threads)
        stages = self._stages(recipe, progress)
        check_runs_here(stages.target)
        states = stages.states(function)
        given = given_of(stages, function)
        try:
            base = at_sizes(states[0].function, given)
            scheduled = at_sizes(state_at(states, index).function, given)
        except LowerscopeError as error:
            return Checked(verdict="unknown", reason=error.problem.what)
        structure = stages.functions.structures[function]
        key = key_of("reference", structure, base.text, str(stages.target), recipe.seed, VERSIONS)

        def reference(limit: Limit) -> Reference:
            progress.report("Running the unscheduled function")
            return stages.keep(
                "reference",
                key,
                lambda: reference_of(base, stages.target, recipe.seed, limit),
                lambda made: made.size,
            )

        limit = Limit(seconds, threads, progress)
        checked = check(scheduled.function, stages.target, reference, limit, seconds)
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
    """Return what the model calls a function with at the size that it is traced at, if known."""
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


def _measured(timing: Timing, work: Work, peaks: Peaks) -> Measured:
    """Return the rates of a timing, and which share they are of what the machine allows."""
    moved = None if work.read is None else work.read + (work.written or 0)
    flops = work.flops
    per_second = timing.milliseconds * 1e6
    gflops = None if flops is None else flops / per_second
    gbytes = None if moved is None else moved / per_second
    share = None
    if flops is not None and moved:
        found = peaks.best_ms(flops, moved) / timing.milliseconds
        share = min(found, 1.0) if found < BEYOND else None
    return Measured(
        milliseconds=timing.milliseconds,
        low=timing.low,
        high=timing.high,
        repeats=timing.repeats,
        build_ms=timing.build_ms,
        gflops=gflops,
        gbytes_per_second=gbytes,
        share=share,
    )
