"""Runs with guarded memory for each call, to find out-of-bounds writes.

They are slow, and made only after a crash: memory that one call has corrupted is often read by
another one, much later.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import tvm

from lowerscope.core.errors import TVM_ERRORS, LowerscopeError, last_line
from lowerscope.core.execution.calling import check_registered
from lowerscope.core.execution.guarding import Breach, call_guarded
from lowerscope.core.execution.running import Execution
from lowerscope.core.execution.threads import use_threads
from lowerscope.core.model.queries import GuardQuery, answers
from lowerscope.core.pipeline import Pipeline
from lowerscope.core.progress import Progress
from lowerscope.core.records.fault import GuardedRun, Trespass
from lowerscope.core.running.calls import BoundCall
from lowerscope.core.running.followed_runs import Follower, NamedCalls, calls_told, named_calls
from lowerscope.core.running.running_call import NO_CALL, place_of
from lowerscope.core.stages import Stages

SKIP_RUN = 1
"""Return value of an instrument that has made the call itself (``VMInstrumentReturnKind``)."""


def guarded_run(stages: Stages, progress: Progress) -> GuardedRun:
    """Run once on the traced inputs, with guarded memory for each call.

    Raises
    ------
    LowerscopeError
        If a function is missing, or the build fails.
    """
    stages.check_runs_here("memory is guarded")
    lowered, module = stages.lowered, stages.completed
    with stages.running():
        check_registered(module, () if lowered is None else lowered.library)
    executable = stages.built.executable
    named = named_calls(stages)
    inputs = tuple(each.value for each in stages.loaded.inputs)
    with stages.running(), calls_told(named, progress):
        progress.report("Running with guarded memory")
        execution = Execution(executable, "main", stages.arguments(inputs))
        guard = _Guard(named, progress)
        start = time.perf_counter()
        execution.watch(guard.tell)
        progress.at_call(0, False)
        failure = ""
        try:
            execution.call()
        except LowerscopeError as error:
            failure = guard.failure or error.problem.what
            place = place_of(guard.follower.index, guard.follower.inside, named.names).text
            failure = f"{failure}, {place}" if place else failure
        finally:
            execution.watch(None)
            progress.at_call(NO_CALL, False)
    return GuardedRun(
        calls=guard.made,
        trespasses=tuple(guard.found),
        until=named.names[: guard.found[0].call + 1] if guard.found else (),
        milliseconds=(time.perf_counter() - start) * 1000,
        failure=failure,
    )


class _Guard:
    """Instrument that makes the calls of a run instead of the virtual machine."""

    def __init__(self, named: NamedCalls, progress: Progress) -> None:
        self.follower = Follower(named.calls, progress)
        self.found: list[Trespass] = []
        self.made = 0
        self.failure = ""
        self._named = named
        self._events = {call.event: call for call in reversed(named.calls)}

    def tell(self, function: Any, name: str, before: bool, _returned: Any, *args: Any) -> int:
        """Make a call that writes its outputs; leave others to the virtual machine."""
        call = self._call(name)
        if call is None or call.gives != "written":
            return self.follower.tell(function, name, before)
        self.follower.move(name, True)
        index = self.follower.index
        end = len(args) - call.sizes_last
        written = range(end - call.values, end)
        try:
            breaches = call_guarded(function, args, written)
        except (*TVM_ERRORS, MemoryError, OSError) as error:
            self.failure = f"the run failed: {last_line(error)}"
            raise
        self.made += 1
        self.found += self._trespasses(index, breaches, args, written)
        self.follower.move(name, False)
        return SKIP_RUN

    def _call(self, name: str) -> BoundCall | None:
        here, calls = self.follower.index, self._named.calls
        if here < len(calls) and calls[here].event == name:
            return calls[here]
        return self._events.get(name)

    def _trespasses(
        self, index: int, breaches: Sequence[Breach], args: Sequence[Any], written: range
    ) -> Iterator[Trespass]:
        for each in breaches:
            yield Trespass(
                call=index,
                name=self._named.names[index],
                text=_text(each, args, written),
                nodes=self._named.nodes[index],
            )


def _text(breach: Breach, args: Sequence[Any], written: range) -> str:
    """Describe the illegal write of a call."""
    value = args[breach.argument]
    count = "1 byte" if breach.count == 1 else f"{breach.count} bytes"
    shape = tuple(map(int, value.shape))
    if breach.written:
        number = f" {breach.argument - written.start}" if len(written) > 1 else ""
        what = f"its output{number}"
    else:
        tensors = [each for each, arg in enumerate(args) if isinstance(arg, tvm.runtime.Tensor)]
        what = f"its input {tensors.index(breach.argument)}"
    tensor = f"{what}, {shape} {value.dtype}"
    if breach.side == "inside":
        return f"changed {count} of {tensor}, which it may only read"
    gap = f", {breach.distance} bytes away" if breach.distance else ""
    return f"wrote {count} {breach.side} {tensor}{gap}"


@answers(GuardQuery)
def guard(query: GuardQuery, pipeline: Pipeline, job: Progress) -> GuardedRun:
    """Build and run once, with guarded memory for each call: see `guarded_run`."""
    use_threads(query.recipe.threads)
    return guarded_run(pipeline.stages(query.recipe, job), job)
