"""Runs of one executable at each size of the named dimensions, followed call by call."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec
import torch
import tvm
import tvm_ffi
from torch.utils._python_dispatch import TorchDispatchMode
from tvm import IRModule, ir

from lowerscope.core.build.build import BuiltModel, planned_memory
from lowerscope.core.build.targets import check_runs_here
from lowerscope.core.files.memo import key_of
from lowerscope.core.ir.relax import binding_ids, called_name, callee_of
from lowerscope.core.lowering.types import LoweredModel
from lowerscope.core.model.dimensions import Sizes, doing_at, runs_of, sizes_text
from lowerscope.core.model.problems import LowerscopeError, error_of
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.recipe import Recipe, applies_schedules
from lowerscope.core.model.run_records import (
    FAILING,
    KEEP,
    TOP,
    CallRun,
    ClassScore,
    DlpackTransfer,
    Measuring,
    NodeProvenance,
    NodeRun,
    OutputRecord,
    Prediction,
    RunRecord,
    RunTimes,
    SizeRecord,
    TransferMode,
    call_name,
    first_difference,
    time_fields,
    with_times,
)
from lowerscope.core.model.schedule import schedule_for
from lowerscope.core.model.texts import _
from lowerscope.core.passes.bindings import inverse
from lowerscope.core.passes.transforming import TransformedModel
from lowerscope.core.run.calls import BoundCall, CallsOf, Owners
from lowerscope.core.run.compare.causes import cause_of
from lowerscope.core.run.compare.choices import corrected
from lowerscope.core.run.compare.verdicts import Verdict
from lowerscope.core.run.execution import Execution, named_results, other_outputs
from lowerscope.core.run.implementations import (
    check_callable,
    inputs_at,
    judge_run,
    measure_by_turns,
    reference_of,
)
from lowerscope.core.run.kept_run import KeptRun
from lowerscope.core.run.node_runs import REPEATS as WATCHED
from lowerscope.core.run.node_runs import NodeRuns, node_runs
from lowerscope.core.sandbox.running_call import NO_CALL, place_of
from lowerscope.core.stages import Stages


@dataclass(frozen=True)
class NamedCalls:
    """The calls of ``main``, and their labels with the FX nodes that each computes."""

    calls: tuple[BoundCall, ...]
    names: tuple[str, ...]


def named_calls(stages: Stages) -> NamedCalls:
    """Return the calls of ``main`` of the built module, cached with the build."""

    def make() -> NamedCalls:
        found = CallsOf(stages.recorded, "main")
        lowered = stages.lowered
        nodes = (
            [()] * len(found.calls) if lowered is None else Owners(stages, lowered, found).nodes_of
        )
        names = tuple(
            call_name(call.callee, each) for call, each in zip(found.calls, nodes, strict=True)
        )
        return NamedCalls(found.calls, names)

    return stages.keep("calls", key_of("calls", stages.build_key, stages.lower_key), make)


class Follower:
    """Reporter of the current call of a run.

    Args:
        calls: Of the run, in order. If the run departs from it, as with branches, a call is the
            first with its name.
    """

    def __init__(self, calls: Sequence[BoundCall], progress: Progress) -> None:
        self.index = 0
        self.inside = False
        self._events = [call.event for call in calls]
        self._known = frozenset(self._events)
        self._progress = progress
        self._depth = 0

    def tell(self, _function: object, name: str, before: bool, *_call: object) -> int:
        """Handle the notification before and after a call; see `Execution.watch`."""
        self._depth += 1 if before else -1
        if name in self._known and self._depth == before:
            self._move(name, bool(before))
        return 0

    def _move(self, event: str, inside: bool) -> None:
        """Move to a call, or, not `inside`, behind it."""
        if inside:
            here = self.index
            in_order = here < len(self._events) and self._events[here] == event
            self.index = here if in_order else self._events.index(event)
        else:
            self.index += 1
        self.inside = inside
        self._progress.at_call(self.index, inside)


@contextlib.contextmanager
def calls_told(named: NamedCalls, progress: Progress) -> Iterator[None]:
    """Give `progress` the names of the calls for the runs in the body."""
    progress.begin_calls(named.names)
    try:
        yield
    finally:
        progress.begin_calls(())


def followed_outputs(
    execution: Execution, seed: int, named: NamedCalls, progress: Progress
) -> tuple[torch.Tensor, ...]:
    """Run once, as `Execution.outputs`, and notify `progress` of each call, in `calls_told`.

    Raises a `LowerscopeError` if the run fails; the error names the call.
    """
    follower = Follower(named.calls, progress)
    progress.at_call(0, False)
    execution.watch(follower.tell)
    try:
        return execution.outputs(seed)
    except LowerscopeError as error:
        place = place_of(follower.index, follower.inside, named.names)
        raise error_of(
            msgspec.structs.replace(
                error.problem, where=place.text or error.problem.where, calls=place.names
            )
        ) from error
    finally:
        execution.watch(None)
        progress.at_call(NO_CALL, False)


QUICKLY = Measuring(warm_up=1, repeats=1)
"""Measuring of quick runs."""

SLOW_MS = 200.0
"""Time above which a quick run omits the run by node, in milliseconds."""

_WORST = (*FAILING, "rounding", "not-comparable", "no-reference", "match")


@dataclass(frozen=True)
class SizedRun:
    """One run, at one size of each named dimension; ``side`` is its reference."""

    sizes: Sizes
    side: str
    verdict: Verdict
    times: RunTimes
    prediction: Prediction | None


def run_all(
    stages: Stages,
    recipe: Recipe,
    progress: Progress,
    before: RunRecord | None = None,
    *,
    quick: bool = False,
    keep: int = KEEP,
) -> tuple[RunRecord, KeptRun | None]:
    """Build once, run at each size, compare with torch, and time both.

    Without named dimensions it runs once.

    Raises a `LowerscopeError` if a function is missing, the build or a run fails, or a size is out
    of range, which is checked before the build.

    Args:
        before: An earlier run of the same module, whose times are reused: nothing is measured.
        quick: Measure one call of each implementation, and omit the run by node for a slow model.

    Returns:
        The record, and the cached values; ``None`` if the calls of the run are unknown.
    """
    check_runs_here(stages.target)
    sizes = runs_of(recipe)
    check_callable(stages)
    built = stages.built
    named = named_calls(stages)
    # The files' late imports and registrations must exist while the model runs.
    with stages.running(), calls_told(named, progress):
        runs = [
            _run_at(each, stages, recipe, named, known, progress, quick=quick)
            for each, known in zip(sizes, times_of(before, len(sizes)), strict=True)
        ]
        # Separate and last: the timed runs must not be instrumented ones.
        # Where a size alone differs, its nodes tell why.
        worst = worst_of(runs)
        shown = worst if worst.verdict.verdict in FAILING else runs[0]
        values = inputs_at(shown.sizes, stages, recipe)
        if quick and runs[0].times.sides[0].milliseconds > SLOW_MS:
            watched = NodeRuns()
        else:
            repeats = 1 if quick else WATCHED
            watched = node_runs(stages, recipe, values, progress, repeats=repeats, keep=keep)
        calls = with_hand_overs(stages, values, watched.calls)
        record = record_of(runs, stages, built)
        record, nodes = corrected(
            record,
            watched.nodes,
            watched.kept,
            recipe.tolerances,
            progress.check,
            partial(cause_of, stages, recipe.tolerances, progress),
        )
    # A node off the path to the outputs, such as an unread state, is no difference of the run.
    first = first_difference(nodes) if record.verdict in FAILING else ""
    kept = None if watched.kept is None else watched.kept.values
    record = msgspec.structs.replace(
        record,
        nodes=_with_strategies(nodes, stages.lowered),
        calls=calls,
        quick=quick if before is None else before.quick,
        first_difference=first,
        first_made=making_of(stages, recipe, first) if first else NodeProvenance(),
        memory=planned_memory(stages.recorded),
        kept_bytes=0 if kept is None else kept.size,
        kept_budget=keep,
        kept_calls=0 if kept is None else kept.complete_calls,
    )
    return record, watched.kept


def _with_strategies(nodes: Sequence[NodeRun], lowered: LoweredModel | None) -> tuple[NodeRun, ...]:
    """Return the records of nodes and bindings with the strategy of each node."""
    known = {} if lowered is None else lowered.nodes
    strategies = {f"fx:{name}": node.strategy for name, node in known.items()}
    return tuple(
        msgspec.structs.replace(each, strategy=strategies.get(each.id, "")) for each in nodes
    )


def measure_again(
    stages: Stages, recipe: Recipe, before: RunRecord, progress: Progress
) -> RunRecord:
    """Return an earlier run of the same module with its times measured again.

    Raises a `LowerscopeError` if a run fails.
    """
    times: list[RunTimes] = []
    with stages.running():
        for sizes in runs_of(recipe):
            values = inputs_at(sizes, stages, recipe)
            _other, reference = reference_of(stages.loaded, values, recipe.seed)
            execution = Execution(stages.built.executable, "main", stages.arguments(values))
            times += measure_by_turns(
                (stages,), recipe, sizes, (execution,), reference, recipe.measuring, progress
            )
    return msgspec.structs.replace(with_times(before, times), quick=False)


def times_of(record: RunRecord | None, count: int) -> Sequence[RunTimes | None]:
    if record is None or (record.sizes and len(record.sizes) != count):
        return [None] * count
    return [each.times for each in record.sizes] or [record.times]


def _run_at(
    sizes: Sizes,
    stages: Stages,
    recipe: Recipe,
    calls: NamedCalls,
    before: RunTimes | None,
    progress: Progress,
    *,
    quick: bool,
) -> SizedRun:
    loaded = stages.loaded
    values = inputs_at(sizes, stages, recipe)
    side, reference = reference_of(loaded, values, recipe.seed)
    # Before TVM, which would read out of bounds for an invalid index: the model may have been
    # traced with other values.
    named: tuple[tuple[str, torch.Tensor], ...] | None = None
    others: tuple[OutputRecord, ...] = ()
    if reference is not None:
        progress.report(doing_at(_("Running {side}", side=side), sizes))
        returned = reference.whole_output()
        named, others = named_results(returned), other_outputs(returned)
    after_torch = torch.get_rng_state()
    progress.report(doing_at(_("Running the model"), sizes))
    execution = Execution(stages.built.executable, "main", stages.arguments(values))
    actual = followed_outputs(execution, recipe.seed, calls, progress)
    after_tvm = torch.get_rng_state()
    progress.report(doing_at(_("Comparing with {side}", side=side), sizes))
    drew_the_same = torch.equal(after_torch, after_tvm)
    verdict, expected = judge_run(
        stages, recipe, values, actual, named, drew_the_same=drew_the_same
    )
    verdict = replace(verdict, outputs=(*verdict.outputs, *others))
    if before is None:
        # A new one: after instrumentation, each call of a machine goes through Python.
        execution = Execution(stages.built.executable, "main", stages.arguments(values))
        measuring = QUICKLY if quick else recipe.measuring
        (before,) = measure_by_turns(
            (stages,), recipe, sizes, (execution,), reference, measuring, progress
        )
    return SizedRun(sizes, side, verdict, before, predict(loaded.classes, actual, expected))


def worst_of(runs: Sequence[SizedRun]) -> SizedRun:
    """Return the run with the worst verdict; of several, that with the most non-finite elements."""
    return min(
        runs, key=lambda run: (_WORST.index(run.verdict.verdict), -run.verdict.not_finite_count)
    )


def record_of(runs: Sequence[SizedRun], stages: Stages, built: BuiltModel) -> RunRecord:
    """Return the record over all runs: the worst verdict, with the outputs of that run."""
    worst = worst_of(runs)
    verdict = worst.verdict
    at = f"{sizes_text(worst.sizes)}: " if worst.sizes and verdict.reason else ""
    module = stages.transformed.module
    return RunRecord(
        verdict=verdict.verdict,
        reason=f"{at}{verdict.reason}",
        max_abs_error=largest([run.verdict.max_abs for run in runs]),
        max_rel_error=largest([run.verdict.max_rel for run in runs]),
        rtol=verdict.tolerance.rtol,
        atol=verdict.tolerance.atol,
        **time_fields(runs[0].times, runs[0].side),
        build_ms=built.milliseconds,
        functions=sum(
            isinstance(function, tvm.tirx.PrimFunc) for function in module.functions.values()
        ),
        outputs=verdict.outputs,
        not_finite_count=verdict.not_finite_count,
        prediction=runs[0].prediction,
        tracer="" if stages.traced is None else stages.traced.tracer,
        key=stages.run_key,
        reference=runs[0].side,
        sizes=tuple(_size_record(run) for run in runs if run.sizes),
    )


def _size_record(run: SizedRun) -> SizeRecord:
    return SizeRecord(
        sizes=dict(run.sizes),
        verdict=run.verdict.verdict,
        reason=run.verdict.reason,
        max_abs_error=run.verdict.max_abs,
        max_rel_error=run.verdict.max_rel,
        not_finite_count=run.verdict.not_finite_count,
        **time_fields(run.times, run.side),
    )


def largest(errors: Sequence[float | None]) -> float | None:
    """Return the largest known error."""
    return max((each for each in errors if each is not None), default=None)


_COPIES = frozenset({"clone", "copy_", "copy", "_to_copy", "lift_fresh_copy"})
"""Torch operators that only copy."""


def with_hand_overs(
    stages: Stages, inputs: Sequence[torch.Tensor], runs: tuple[CallRun, ...]
) -> tuple[CallRun, ...]:
    """Run once more if library functions were called, and add the copies of their tensors.

    A tensor is passed through DLPack. Whether torch works on that memory or on a copy is observed:
    the torch operators that access the memory are recorded.
    """
    if not any(each.entity.startswith("ext:") for each in runs):
        return runs
    calls = CallsOf(stages.recorded, "main").calls
    outside = [index for index, each in enumerate(runs) if each.entity.startswith("ext:")]
    execution = Execution(stages.built.executable, "main", stages.arguments(inputs))
    watch = _Watch([calls[index] for index in outside])
    execution.watch(watch.tell)
    try:
        execution.call()
    except LowerscopeError:
        # Every other run succeeded; omit what was not observed.
        return runs
    finally:
        watch.end()
        execution.watch(None)
    found = dict(zip(outside, watch.found, strict=False))
    return tuple(
        msgspec.structs.replace(each, hand_over=found[index]) if index in found else each
        for index, each in enumerate(runs)
    )


class _Watch:
    """Observer of the library calls in one run, in sequence."""

    def __init__(self, calls: Sequence[BoundCall]) -> None:
        self.found: list[DlpackTransfer] = []
        self._calls = calls
        self._names = frozenset(each.event for each in calls)
        self._depth = 0
        self._touched: _Touched | None = None

    def tell(self, _function: Any, name: str, before: bool, returned: Any, *args: Any) -> int:
        self._depth += 1 if before else -1
        if self._depth != (1 if before else 0) or name not in self._names:
            return 0
        place = len(self.found)
        if place >= len(self._calls) or self._calls[place].event != name:
            return 0
        if before:
            tensors = [each for each in args if isinstance(each, tvm.runtime.Tensor)]
            self._touched = _Touched(tensors)
            self._touched.__enter__()  # type: ignore[no-untyped-call]
        elif self._touched is not None:
            touched = self._touched
            self.end()
            self.found.append(touched.hand_over(self._calls[place], returned))
        return 0

    def end(self) -> None:
        """Stop observing."""
        if self._touched is not None:
            touched, self._touched = self._touched, None
            touched.__exit__(None, None, None)  # type: ignore[no-untyped-call]


class _Touched(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Mode that records the torch operators that read and write the memory of some TVM tensors."""

    def __init__(self, tensors: Sequence[tvm.runtime.Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._tensors = tensors
        self._read: dict[int, list[str]] = {}
        self._written: dict[int, list[str]] = {}
        self._made: dict[int, str] = {}
        self._bytes = [_size(each) for each in tensors]
        self._starts = [each.data_ptr() for each in tensors]

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if not func.is_view:
            # A view is another name; only its uses count.
            self._note(func, args, kwargs or {}, result)
        return result

    def _note(
        self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any
    ) -> None:
        name = func.overloadpacket.__name__
        read: list[int] = []
        written: list[int] = []
        for place, argument in enumerate(func._schema.arguments):
            value = args[place] if place < len(args) else kwargs.get(argument.name)
            writes = argument.alias_info is not None and argument.alias_info.is_write
            for tensor in _tensors(value):
                (written if writes else read).extend(self._places(tensor.data_ptr()))
        for index in written:
            self._written.setdefault(index, []).append(name)
        for index in read:
            # A copy within TVM's memory is a use of it.
            self._read.setdefault(index, []).append("" if written else name)
        for tensor in _tensors(result):
            self._made[tensor.data_ptr()] = name

    def _places(self, address: int) -> Iterator[int]:
        for index, (start, size) in enumerate(zip(self._starts, self._bytes, strict=True)):
            if start <= address < start + size:
                yield index

    def hand_over(self, call: BoundCall, returned: Any) -> DlpackTransfer:
        """Return how the tensors of a call were passed."""
        count = len(self._tensors)
        first = count - call.values if call.gives == "written" else count
        hands = [self._hand(index, written=index >= first) for index in range(count)]
        sizes = list(self._bytes)
        if call.gives == "returned":
            results = [returned] if isinstance(returned, tvm.runtime.Tensor) else [*returned]
            made = [self._made.get(each.data_ptr(), "") for each in results]
            hands += [_hand_of([each] if each else []) for each in made]
            sizes += [_size(each) for each in results]
        return DlpackTransfer(
            inputs=tuple(hands[:first]),
            results=tuple(hands[first:]),
            copied_bytes=sum(
                size for hand, size in zip(hands, sizes, strict=True) if hand == "copied"
            ),
        )

    def _hand(self, index: int, *, written: bool) -> TransferMode:
        if written:
            # The last write counts: a result may be cleared, or accumulated, before.
            return _hand_of(self._written.get(index, [])[-1:])
        return _hand_of(self._read.get(index, self._written.get(index, [])))


def _hand_of(operators: Sequence[str]) -> TransferMode:
    if not operators:
        return "unseen"
    return "copied" if all(each in _COPIES for each in operators) else "in place"


def _size(tensor: tvm.runtime.Tensor) -> int:
    return int(tensor.numel()) * int(tensor.dtype.itemsize)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        if value.layout is torch.strided:
            yield value
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from _tensors(each)


_SUM = 1e-3
"""Tolerance of the sum of probabilities, wide enough for half precision."""


def predict(
    classes: Sequence[str], actual: Sequence[torch.Tensor], expected: Sequence[torch.Tensor] | None
) -> Prediction | None:
    """Name the classes with the highest scores in the first output of each side.

    Returns:
        ``None`` if the model has no named classes, or its first output is not one score for each of
            them: shape ``(len(classes),)`` or ``(1, len(classes))``.
    """
    if not classes or not actual or actual[0].numel() != len(classes):
        return None
    outputs = [each[0].flatten().double() for each in (actual, expected) if each]
    best = [classes[int(each.argmax())] for each in outputs]
    found = Prediction(torch=best[1] if expected else "", tvm=best[0])
    if not all(bool(each.isfinite().any()) and not bool(each.isnan().any()) for each in outputs):
        return found
    # One answer for both sides, or they could not be compared.
    given = _are_probabilities(outputs[-1])
    scores = outputs if given else [each.softmax(0) for each in outputs]
    places = {
        int(place) for each in scores for place in each.argsort(descending=True, stable=True)[:TOP]
    }
    order = sorted(places, key=lambda place: (-float(scores[-1][place]), place))
    return Prediction(
        torch=found.torch,
        tvm=found.tvm,
        scores="output" if given else "softmax",
        top=tuple(
            ClassScore(
                name=classes[place],
                tvm=float(scores[0][place]),
                torch=float(scores[1][place]) if expected else None,
            )
            for place in order
        ),
    )


def _are_probabilities(output: torch.Tensor) -> bool:
    return bool((output >= 0).all()) and abs(float(output.sum()) - 1) < _SUM


def making_of(stages: Stages, recipe: Recipe, node: str) -> NodeProvenance:
    """Return the provenance of a node's code.

    Args:
        node: Its id.
    """
    lowered = stages.lowered
    assert lowered is not None
    lowering = lowered.nodes[node.removeprefix("fx:")]
    bindings = frozenset(f"relax:main/{each}" for each in lowering.bindings)
    return NodeProvenance(
        rule=lowering.rule,
        passes=tuple(passes_on(stages.transformed, bindings)),
        schedules=tuple(_schedules(stages, recipe, bindings)),
    )


def passes_on(transformed: TransformedModel, bindings: frozenset[str]) -> Iterator[str]:
    """Yield the names of the steps that changed what bindings compute, or how.

    Args:
        bindings: Ids from before the first step.
    """
    for number, run in enumerate(transformed.runs, start=1):
        if run.depth > 0 or run.after is None or run.after.same_as(run.before):
            continue
        before = _code(run.before, _of(transformed.origins_before(number), bindings))
        after = _code(run.after, _of(transformed.origins(number), bindings))
        if not _are_same(before, after):
            yield run.name.removeprefix("relax.")


def _of(origins: Mapping[str, tuple[str, ...]], bindings: frozenset[str]) -> frozenset[str]:
    """Return the descendants of `bindings`."""
    return frozenset(each for each, came in origins.items() if bindings.intersection(came))


def _code(module: IRModule, bindings: frozenset[str]) -> dict[str, tuple[Any, ...]]:
    """Return, by id, the values of bindings and the functions that these call."""
    found = {}
    for bound in binding_ids(module):
        if bound.id in bindings:
            value = bound.value
            callee = callee_of(value)
            called = module.functions.get(callee) if isinstance(callee, ir.GlobalVar) else None
            found[bound.id] = (value, called)
    return found


def _are_same(before: Mapping[str, tuple[Any, ...]], after: Mapping[str, tuple[Any, ...]]) -> bool:
    return before.keys() == after.keys() and all(
        tvm_ffi.structural_equal(one, other, map_free_vars=True)
        for name, values in before.items()
        for one, other in zip(values, after[name], strict=True)
    )


def _schedules(stages: Stages, recipe: Recipe, bindings: frozenset[str]) -> Iterator[str]:
    """Yield, for each function that the node has a part in, the steps of its schedule."""
    if not applies_schedules(recipe):
        return
    module, structures = stages.unscheduled.module, stages.functions.structures
    own = _of(inverse(stages.unscheduled.bindings), bindings)
    for bound in binding_ids(module):
        name = called_name(bound.value) if bound.id in own else ""
        structure = structures.get(name)
        if structure is None or schedule_for(recipe.schedules, name, structure) is None:
            continue
        steps = [each.title for each in stages.states(name)[-1].steps if each.status == "done"]
        if steps:
            yield f"{name}: {', '.join(steps)}"
