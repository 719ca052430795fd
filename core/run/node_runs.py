"""Results of a run for each FX node: the time of its calls, and its value compared with torch's."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import torch
import tvm
from tvm import ir, relax

from lowerscope.core.ir.relax import BUILTIN, relax_functions
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.progress import SILENT, Progress
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.run_records import KEEP, CallRun, NodeRun
from lowerscope.core.model.texts import _
from lowerscope.core.passes.bindings import inverse
from lowerscope.core.run.calls import BoundCall, CallsOf, Owners, bytecode_of
from lowerscope.core.run.compare.node_comparison import (
    Found,
    NodeComparison,
    NodeParts,
    NodesAlone,
    fields_of,
)
from lowerscope.core.run.execution import Execution, to_torch, to_tvm
from lowerscope.core.run.float64 import rounding_of_sums
from lowerscope.core.run.implementations import LONG, coarsest_of
from lowerscope.core.run.kept_run import KeptRun, KeptValues, addresses_of
from lowerscope.core.run.torch_interpreter import torch_times
from lowerscope.core.sandbox.running_call import NO_CALL
from lowerscope.core.stages import Stages

REPEATS = 20
"""Most instrumented runs that are timed."""

_OVERWRITTEN = _("its inputs had been overwritten")


@dataclass(frozen=True)
class NodeRuns:
    """Records of nodes and bindings, and of calls, with the cached values."""

    nodes: tuple[NodeRun, ...] = ()
    calls: tuple[CallRun, ...] = ()
    kept: KeptRun | None = None


def node_runs(
    stages: Stages,
    recipe: Recipe,
    inputs: Sequence[torch.Tensor],
    progress: Progress,
    *,
    repeats: int = REPEATS,
    keep: int = KEEP,
) -> NodeRuns:
    """Make instrumented runs, and return the results for each FX node and each binding.

    For a source without torch, for the calls only. Unavailable results are explained in a node's
    record.

    Args:
        repeats: Most instrumented runs that are timed; torch's nodes are timed unless it is 1.
    """
    lowered, traced = stages.lowered, stages.traced
    run = WatchedRun(stages, inputs, keep)
    if lowered is None or traced is None:
        return _without_nodes(stages, run, repeats, progress)
    doing = _("Comparing node by node")
    progress.report(doing)
    owners = Owners(stages, lowered, run.calls)
    parts = NodeParts(lowered, traced, owners)
    alone = NodesAlone(run.calls, parts, run.arguments, run.functions, owners.nodes_of, progress)
    coarsest = coarsest_of(stages, inputs)
    tensorir = stages.recorded.tensorir
    sums = {name: rounding_of_sums(each, coarsest) for name, each in tensorir.items()}
    comparison = NodeComparison(parts, alone, traced, inputs, recipe.seed, recipe.tolerances, sums)

    def take(index: int, tensors: Sequence[torch.Tensor], why_not: str) -> None:
        progress.report(doing, index / len(run.calls.calls))
        comparison.take(index, tensors, why_not)

    torch.manual_seed(recipe.seed)
    try:
        seen = run.run(alone.note, take, progress)
        times = run.times(seen, repeats, progress)
        torch_ms = torch_times(traced, inputs, recipe.seed, progress) if repeats > 1 else {}
    except LowerscopeError as error:
        nothing = fields_of(Found("not comparable", error.problem.what), None)
        return NodeRuns(tuple(NodeRun(id=each, **nothing) for each in owners.all))
    medians = _medians(times)
    calls = call_runs(
        stages, run.calls.calls, seen.places, medians, owners.bindings_of, owners.nodes_of
    )
    kept = KeptRun(
        key=stages.run_key,
        values=run.values,
        unread={index: why for index in run.values.calls if (why := run.why_not(index))},
        owners=owners,
        parts=parts,
        alone=alone,
        in_run=comparison.in_run,
        found_alone=comparison.alone,
        traced=traced,
        inputs=tuple(inputs),
        seed=recipe.seed,
    )
    return NodeRuns(tuple(_records(owners, parts, comparison, run, medians, torch_ms)), calls, kept)


def _without_nodes(stages: Stages, run: WatchedRun, repeats: int, progress: Progress) -> NodeRuns:
    """Return the calls of a source without torch; empty if they are unknown."""
    try:
        seen = run.run(lambda *_unused: None, lambda *_unused: progress.check(), progress)
        times = run.times(seen, repeats, progress)
    except LowerscopeError:
        return NodeRuns()
    origins = inverse(stages.transformed.bindings_in_main)
    calls = run.calls.calls
    bindings_of = [origins.get(call.binding, ()) for call in calls]
    records = call_runs(stages, calls, seen.places, _medians(times), bindings_of, [()] * len(calls))
    return NodeRuns(calls=records, kept=KeptRun(key=stages.run_key, values=run.values))


def _medians(times: Sequence[Sequence[float]]) -> list[float]:
    """Return the median time of each call in milliseconds."""
    return [statistics.median(each) * 1000 for each in zip(*times, strict=True)]


def _records(
    owners: Owners,
    parts: NodeParts,
    comparison: NodeComparison,
    run: WatchedRun,
    medians: Sequence[float],
    torch_ms: Mapping[str, float],
) -> Iterator[NodeRun]:
    """Yield the records, nodes first. A binding has the error of the node whose value it is."""
    values = _nodes_by_binding(owners, parts, comparison)
    for entity in owners.all:
        is_node = entity.startswith("fx:")
        name = entity.removeprefix("fx:") if is_node else values.get(entity, "")
        calls = owners.calls_for(entity)
        others = dict.fromkeys(each for index in calls for each in owners.nodes_of[index])
        fields: Mapping[str, Any] = {"reason": _("it is not the value of a node")}
        if name:
            fields = fields_of(comparison.in_run.get(name), comparison.alone.get(name))
        record = NodeRun(
            id=entity,
            milliseconds=sum(medians[index] for index in calls) if calls else None,
            calls=calls,
            torch_ms=torch_ms.get(name) if is_node else None,
            shared_with=tuple(each for each in others if is_node and each != entity),
            **fields,
        )
        stale = any(run.values.calls[index].is_stale for index in calls)
        if stale and record.status == "differs":
            reason = f"{_OVERWRITTEN}; {record.reason}"
            record = msgspec.structs.replace(record, reason=reason)
        yield record


def _nodes_by_binding(
    owners: Owners, parts: NodeParts, comparison: NodeComparison
) -> Mapping[str, str]:
    """Return the node whose whole value each binding is."""
    found: dict[str, str] = {}
    for name, node in owners.nodes.items():
        binding = owners.binding_of(node.value)
        if binding is not None and name in parts.of and name in comparison.in_run:
            found.setdefault(binding, name)
    return found


def call_runs(
    stages: Stages,
    calls: Sequence[BoundCall],
    places: Sequence[int],
    milliseconds: Sequence[float],
    bindings_of: Sequence[tuple[str, ...]],
    nodes_of: Sequence[tuple[str, ...]],
) -> tuple[CallRun, ...]:
    """Return the records of the calls of a run.

    Args:
        places: As in `Watched`: the index of each among all calls. These are in the order of the
            bytecode, one for each call instruction.
    """
    lines = bytecode_of(stages.recorded.built.executable.as_text(), "main")
    calling = [number for number, line in enumerate(lines, start=1) if line.call]
    found = []
    for index, (call, place) in enumerate(zip(calls, places, strict=True)):
        number = calling[place] if place < len(calling) else 0
        # With branches, the order of the calls is not that of the text.
        is_there = number > 0 and lines[number - 1].call == call.event
        found.append(
            CallRun(
                function=call.callee,
                milliseconds=milliseconds[index],
                nodes=nodes_of[index],
                bindings=bindings_of[index],
                entity=_entity_of(stages, call.callee),
                line=number if is_there else 0,
                own=place - (places[index - 1] + 1 if index else 0),
            )
        )
    return tuple(found)


def _entity_of(stages: Stages, callee: str) -> str:
    if callee in stages.recorded.tensorir:
        return f"tir:{callee}"
    return "" if callee.startswith(BUILTIN) else f"ext:{callee}"


BUDGET = 0.5
"""Total time of the timed runs, in seconds; of a slower one, one is enough."""

_UNREAD = _("nothing reads it, so its memory was reused before")

Take = Callable[[int, Sequence[torch.Tensor], str], None]
"""Callback with the index of a call, its values, and why these are not to be compared, if so."""


class WatchedRun:
    """A run of a built model, before and after it is made."""

    def __init__(self, stages: Stages, inputs: Sequence[torch.Tensor], keep: int) -> None:
        self.calls = CallsOf(stages.recorded, "main")
        self.arguments = [
            to_tvm(each) if isinstance(each, torch.Tensor) else each
            for each in stages.arguments(inputs)
        ]
        self.functions: dict[str, Any] = {}
        given = addresses_of([*self.arguments, *_constants(self.calls)])
        self.values = KeptValues(keep, self.calls.sources, given)
        self._execution = Execution(stages.built.executable, "main", self.arguments)
        # Side effects of a function occur once a call.
        self._is_pure = bool(stages.transformed.module["main"].is_pure)

    def run(
        self, note: Callable[[int, Sequence[Any]], None], take: Take, progress: Progress
    ) -> Watched:
        """Run once, and process the values.

        Raises a `LowerscopeError`: see `watched`.

        Args:
            note: Notified of the outputs of each call at once.
            take: Given the values of each call, in order: after the run, since torch's threads in
                between would slow it down; or at once, if they cannot be cached.
        """
        waiting: list[int] = []

        def flush() -> None:
            for index in waiting:
                written = self.values.calls[index].written
                kept = [each.value for each in written if each.value is not None]
                take(index, kept, self.why_not(index))
            waiting.clear()

        def took(index: int, tensors: tuple[Any, ...]) -> None:
            note(index, tensors)
            if self.values.took(index, tensors):
                waiting.append(index)
            elif all(isinstance(each, _VALUES) for each in tensors):
                flush()
                take(index, [_seen(each) for each in tensors], self.why_not(index))

        seen = watched(
            self._execution, self.calls.calls, took, self.values.begins, self.functions, progress
        )
        flush()
        return seen

    def times(self, seen: Watched, repeats: int, progress: Progress) -> list[list[float]]:
        """Return the times of the calls in a few runs in seconds, each run's in order."""
        doing = _("Timing call by call")
        progress.report(doing)
        once = max(sum(seen.seconds), 1e-6)
        count = min(repeats, int(BUDGET / once)) if self._is_pure else 1
        if count <= 1:
            return [seen.seconds]
        found = []
        for turn in range(count):
            if once >= LONG:
                progress.report(doing, turn / count)
            found.append(watch(self._execution, self.calls.calls, progress))
            progress.check()
        return found

    def why_not(self, index: int) -> str:
        """Return why the values of a call are not to be compared; empty if they are."""
        unread = self.values.calls[index].is_stale and index not in self.calls.needed
        return _UNREAD if unread else ""


_VALUES = (tvm.runtime.Tensor, bool, int, float)
"""Types of a call's results; for a call made by a pass, it may be memory instead."""


def _seen(value: Any) -> torch.Tensor:
    """Return a value as a tensor, a view that is valid until the memory is reused."""
    if isinstance(value, tvm.runtime.Tensor):
        return torch.utils.dlpack.from_dlpack(value)
    return to_torch(value)


def _constants(calls: CallsOf) -> list[Any]:
    """Return the constant tensors in ``main``."""
    found: list[Any] = []

    def note(expression: Any) -> None:
        if isinstance(expression, ir.GenericConst):
            found.append(expression.value)

    relax.analysis.post_order_visit(dict(relax_functions(calls.before))["main"], note)
    return found


Took = Callable[[int, tuple[Any, ...]], None]
"""Callback with the index of a call, and its input or output tensors."""


class _Watch:
    """Handler of the virtual machine's notifications in one run."""

    def __init__(
        self, calls: Sequence[BoundCall], took: Took | None, begins: Took | None, progress: Progress
    ) -> None:
        self.functions: dict[str, Any] = {}
        self.seconds: list[float] = []
        self.places: list[int] = []
        self.failure: BaseException | None = None
        self._calls = calls
        self._events = frozenset(call.event for call in calls)
        self._took = took
        self._begins = begins
        self._at_call = progress.at_call
        self._depth = 0
        self._made = 0
        self._start = 0.0

    def tell(self, function: Any, name: str, before: bool, returned: Any, *args: Any) -> int:
        now = time.perf_counter()
        if before:
            self._depth += 1
            if self._depth == 1:
                self._made += 1
                if self._begins is not None:
                    self._begin(name, args)
                if name in self._events:
                    self._at_call(len(self.seconds), True)
                self._start = time.perf_counter()
            return 0
        self._depth -= 1
        place = len(self.seconds)
        # Nested calls are a part of the outer one.
        if self._depth or self.failure is not None or name not in self._events:
            return 0
        if place < len(self._calls) and self._calls[place].event == name:
            self.seconds.append(now - self._start)
            self.places.append(self._made - 1)
            self.functions[name] = function
            self._at_call(place + 1, False)
            if self._took is not None:
                self._tell(self._took, place, self._calls[place].values_of(returned, args))
        elif not name.startswith(BUILTIN):
            self.failure = _out_of_order()
        return 0

    def _begin(self, name: str, args: Sequence[Any]) -> None:
        place = len(self.seconds)
        if self.failure is None and place < len(self._calls) and self._calls[place].event == name:
            assert self._begins is not None
            self._tell(self._begins, place, self._calls[place].reads_of(args))

    def _tell(self, told: Took, place: int, tensors: tuple[Any, ...]) -> None:
        try:
            told(place, tensors)
        except Exception as error:  # TVM would wrap the error in a message of its own
            self.failure = error


def watch(
    execution: Execution, calls: Sequence[BoundCall], progress: Progress = SILENT
) -> list[float]:
    """Run once and return the time of each call: see `watched`."""
    return watched(execution, calls, progress=progress).seconds


@dataclass(frozen=True)
class Watched:
    """Results of an instrumented run."""

    seconds: list[float]  # the time of each call, with some microseconds of overhead
    # Index of each among all calls of the virtual machine, in run order and from 0: it makes others
    # in between, for memory and shapes.
    places: list[int]
    functions: dict[str, Any]


def watched(
    execution: Execution,
    calls: Sequence[BoundCall],
    took: Took | None = None,
    begins: Took | None = None,
    functions: dict[str, Any] | None = None,
    progress: Progress = SILENT,
) -> Watched:
    """Run once and return the results for each call.

    Raises a `LowerscopeError` if the run fails, or its calls are not those of `calls` in order, as
    with branches.

    Args:
        took: Called with the index and the value of each call as soon as it is computed: the memory
            is reused later. Not a part of the call's time.
        begins: Called with the index of a call and its inputs, just before it; not a part of its
            time.
    """
    seen = _Watch(calls, took, begins, progress)
    if functions is not None:
        seen.functions = functions
    execution.watch(seen.tell)
    try:
        execution.call()
    finally:
        execution.watch(None)
        progress.at_call(NO_CALL, False)
    if seen.failure is not None:
        raise seen.failure
    if len(seen.seconds) != len(calls):
        raise _out_of_order()
    return Watched(seen.seconds, seen.places, seen.functions)


def _out_of_order() -> LowerscopeError:
    return LowerscopeError(
        _("the calls of the run are not those of main in order, so calls have no bindings"),
        where="run",
        todo=_("A main with branches is timed as a whole only"),
    )
