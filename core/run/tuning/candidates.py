"""Candidates for the best schedule of a function, one after the other.

They come from two places. A *rule* has choices, such as the number of adjacent values: its usual
decisions are the first candidate, and those that follow decide otherwise, near to the best so far.
*TVM's own search* (``s_tir.meta_schedule``) draws tiles and places at random, and mutates fast
ones. The one that has found the better candidate is queried more often.

TVM's traces become ordinary histories of primitives, to be read, edited and replayed: random draws
are numbers in the history, and look-ups (``get_loops``, ``get_producers`` and so on) are the places
that they have found. A trace must be that of a finished schedule, which includes the changes of
annotations by postprocessors.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import tirx
from tvm.s_tir import Schedule, meta_schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from lowerscope.core.ir.tensorir import LAYOUT_FREE, structure_of
from lowerscope.core.model.problems import last_line
from lowerscope.core.model.reasons import reason
from lowerscope.core.model.schedule import At, Made, Primitive, Reference
from lowerscope.core.model.texts import _
from lowerscope.core.run.standalone import is_symbolic
from lowerscope.core.run.tuning.database import Tried
from lowerscope.core.schedule.applying import apply
from lowerscope.core.schedule.block_primitives import register_intrinsics, without_those_of_gpus
from lowerscope.core.schedule.loop_primitives import LAYOUT_REWRITE
from lowerscope.core.schedule.primitive_table import PRIMITIVES
from lowerscope.core.schedule.references import (
    Output,
    first_outputs,
    function_of,
    references,
    stmt_of,
)
from lowerscope.core.schedule.rules.by_rule import written_by_rule
from lowerscope.core.schedule.rules.recorder import Choice, ScheduleRecorder
from lowerscope.core.schedule.step_errors import REFUSED, StepFailed

FOUND_BY_TUNING = reason("found by tuning")
"""The comment of the first step."""

_INLINED, _STAYS = -2, -1
"""Values drawn in place of a loop to compute a block under."""


def written_by_trace(
    trace: Any, function: tirx.PrimFunc, target: tvm.target.Target
) -> ScheduleRecorder:
    """Return the primitives that are equivalent to a trace, and the function after them.

    Raises `StepFailed` if an instruction has no primitive, or a guard rejects one.
    """
    reading = _Reading(ScheduleRecorder(function, target))
    for instruction in trace.insts:
        reading.take(instruction, trace.decisions.get(instruction))
    return reading.writing


class _Reading:
    """State of the conversion of a trace."""

    def __init__(self, writing: ScheduleRecorder) -> None:
        self.writing = writing
        # Objects for the loops, blocks and numbers of the trace.
        self._known: dict[Any, Any] = {}
        self._made: dict[Any, Made] = {}

    def take(self, instruction: Any, decision: Any) -> None:
        """Convert one more instruction."""
        kind = str(instruction.kind.name)
        if kind == "EnterPostproc":
            return
        outputs = list(instruction.outputs)
        sch = self.writing.sch
        if kind == "GetSBlock":
            found = [sch.get_sblock(str(instruction.attrs[0]))]
        elif kind in _LOOKED_UP:
            found = list(_LOOKED_UP[kind](sch, self._inputs(instruction)[0]))
        elif kind in ("SamplePerfectTile", "SamplePartitionedTile"):
            found = [int(each) for each in decision]
        elif kind == "SampleCategorical":
            found = [int(instruction.attrs[0][int(decision)])]
        elif kind == "SampleComputeLocation":
            found = [_location(sch, self._inputs(instruction)[0], int(decision))]
        else:
            found = self._written(kind, instruction)
        for output, each in zip(outputs, found, strict=True):
            self._known[output] = each

    def _inputs(self, instruction: Any) -> list[Any]:
        return [self._known.get(each, each) for each in instruction.inputs]

    def _number(self, each: Any) -> Any:
        is_drawn = isinstance(each, tirx.Var)
        return self._known[each] if is_drawn else _plain(each)

    def _written(self, kind: str, instruction: Any) -> list[Any]:
        if kind not in _WRITTEN:
            raise StepFailed(_("there is no primitive for {kind}"), kind=kind)
        name, arguments = _WRITTEN[kind](self, instruction)
        if name == "fuse" and len(arguments["loops"]) == 1:
            return self._inputs(instruction)
        if name in ("annotate", "unannotate"):
            return self._annotated(name, arguments)
        if name in ("compute_at", "reverse_compute_at") and isinstance(arguments["loop"], int):
            if arguments["loop"] == _STAYS:
                return []
            name = "compute_inline" if name == "compute_at" else "reverse_compute_inline"
            arguments = {"block": arguments["block"]}
        why = "" if self.writing.primitives else FOUND_BY_TUNING
        made = self.writing.do(name, why, **arguments)
        outputs = self.writing.outputs(made)
        for each, output in zip(made, outputs, strict=True):
            self._made[output] = each
        return list(outputs)

    def _annotated(self, name: str, arguments: dict[str, Any]) -> list[Any]:
        """Convert an annotation that the build reads; the others served to make the trace."""
        key = str(arguments["ann_key"])
        if key.startswith("meta_schedule.") and key != LAYOUT_REWRITE:
            return []
        on = arguments["block_or_loop"]
        if name == "annotate" and key in self.writing.block(on).annotations:
            self.writing.do("unannotate", "", block_or_loop=on, ann_key=key)
        self.writing.do(name, "", **arguments)
        return []

    def reference(self, each: Any) -> Reference | int:
        """Return the reference of a primitive to a loop or block of the trace.

        -1 and -2 where a drawn loop is none: see `_STAYS` and `_INLINED`.

        Raises `StepFailed` if a later instruction has removed it.
        """
        own = self._known[each]
        if isinstance(own, int):
            return own
        if own in self._made:
            return self._made[own]
        sch = self.writing.sch
        reference = references(sch, {}).get(stmt_of(sch, own))
        if reference is None:
            raise StepFailed(_("a loop or block of the trace no longer exists"))
        return reference

    def argument(self, each: Any) -> Any:
        """Return an input or attribute of an instruction as an argument of a primitive."""
        if isinstance(each, LoopRV | SBlockRV):
            return self.reference(each)
        if isinstance(each, tvm.ir.Array):
            return tuple(map(self.argument, each))
        return self._number(each)


def _plain(each: Any) -> Any:
    """Return a number or text of TVM's as Python's."""
    if isinstance(each, tirx.IntImm | tirx.FloatImm):
        return bool(each.value) if str(each.ty.dtype) == "bool" else each.value
    if isinstance(each, bool | int | float) or each is None:
        return each
    return str(each)


# --- what a trace looks up ----------------------------------------------------------------------


_LOOKED_UP: Mapping[str, Callable[[Schedule, Any], Any]] = {
    "GetLoops": Schedule.get_loops,
    "GetChildBlocks": Schedule.get_child_blocks,
    "GetProducers": Schedule.get_producers,
    "GetConsumers": Schedule.get_consumers,
    "GetOutputBlocks": Schedule.get_output_blocks,
}


# --- what a trace has drawn ---------------------------------------------------------------------


def _location(sch: Schedule, block: Any, decision: int) -> Any:
    return decision if decision < 0 else sch.sample_compute_location(block, decision=decision)


# --- what has a primitive -----------------------------------------------------------------------

Written = tuple[str, dict[str, Any]]


def _called(name: str, *arguments: str) -> Callable[[_Reading, Any], Written]:
    """Return the converter of an instruction to a primitive; inputs, then attributes, have names.

    One that begins with ``*`` takes all inputs that are left; an empty one is left out.
    """

    def written(reading: _Reading, instruction: Any) -> Written:
        inputs, given = list(instruction.inputs), dict[str, Any]()
        values = [*inputs, *instruction.attrs]
        for argument in arguments:
            if argument.startswith("*"):
                count = len(values) - len(instruction.attrs)
                given[argument[1:]] = tuple(map(reading.argument, values[:count]))
                values = values[count:]
                continue
            value = reading.argument(values.pop(0))
            if argument:
                given[argument] = value
        known = PRIMITIVES[name].by_name
        # A value drawn in place of a loop is no argument yet.
        return name, {
            key: bool(each) if known[key].kind == "flag" else each for key, each in given.items()
        }

    return written


def _transform_layout(reading: _Reading, instruction: Any) -> Written:
    block = reading.argument(instruction.inputs[0])
    index, written = (int(each) for each in instruction.attrs[:2])
    stmt = reading.writing.block(block)
    buffers = stmt.writes if written else stmt.reads
    return "transform_layout", {
        "block": block,
        "buffer": str(buffers[index].source.name),
        "index_map": _map_text(instruction.inputs[1]),
    }


def _transform_block_layout(reading: _Reading, instruction: Any) -> Written:
    block = reading.argument(instruction.inputs[0])
    index_map = instruction.attrs[0] if instruction.attrs else instruction.inputs[1]
    return "transform_block_layout", {"block": block, "index_map": _map_text(index_map)}


def _map_text(index_map: Any) -> str:
    axes = [
        tirx.Var(f"i{place}", str(each.ty.dtype))
        for place, each in enumerate(index_map.initial_indices)
    ]
    final = index_map.map_indices(axes)
    return f"{', '.join(str(each.name) for each in axes)} -> {', '.join(map(str, final))}"


_UNDER = ("block", "loop", "preserve_unit_loops", "index")

_WRITTEN: Mapping[str, Callable[[_Reading, Any], Written]] = {
    "Split": _called("split", "loop", "*factors", "preserve_unit_iters", "disable_predication"),
    "Fuse": _called("fuse", "*loops", "preserve_unit_iters"),
    "Reorder": _called("reorder", "*loops"),
    "AddUnitLoop": _called("add_unit_loop", "block_or_loop"),
    "Parallel": _called("parallel", "loop"),
    "Vectorize": _called("vectorize", "loop"),
    "Unroll": _called("unroll", "loop"),
    "ComputeAt": _called("compute_at", *_UNDER),
    "ReverseComputeAt": _called("reverse_compute_at", *_UNDER),
    "ComputeInline": _called("compute_inline", "block"),
    "ReverseComputeInline": _called("reverse_compute_inline", "block"),
    "CacheRead": _called("cache_read", "block", "", "read_buffer_index", "storage_scope"),
    "CacheWrite": _called("cache_write", "block", "", "write_buffer_index", "storage_scope"),
    "SetScope": _called("set_scope", "block", "buffer_index", "storage_scope"),
    "StorageAlign": _called("storage_align", "block", "buffer_index", "axis", "factor", "offset"),
    "DecomposeReduction": _called("decompose_reduction", "block", "loop"),
    "RFactor": _called("rfactor", "loop", "factor_axis"),
    "PadEinsum": _called("pad_einsum", "block", "padding"),
    "DecomposePadding": _called("decompose_padding", "block", "loop"),
    "Annotate": _called("annotate", "block_or_loop", "ann_val", "ann_key"),
    "Unannotate": _called("unannotate", "block_or_loop", "ann_key"),
    "TransformLayout": _transform_layout,
    "TransformBlockLayout": _transform_block_layout,
}
"""Converters by TVM's kind of instruction, without those for GPUs and other accelerators."""


_BATCH = 4
"""Candidates of one source before the other one may have its turn."""

_POPULATION = 32
"""Population of TVM's search, and its first draw: its own 512 take it half a minute."""

_PARENTS = 3
"""Number of the best decisions that are varied."""

_ATTEMPTS = 60
"""Draws of decisions to find one that was not measured yet."""


@dataclass(frozen=True, eq=False)
class Proposal:
    """A candidate.

    `decisions`: of a rule; ``None`` where it is of TVM's search. `drawn`: the candidate of TVM's
    search, which has to be told its time.
    """

    writing: ScheduleRecorder
    decisions: Mapping[str, int] | None = None
    drawn: Any = None

    @property
    def primitives(self) -> tuple[Primitive, ...]:
        """Its history."""
        return tuple(self.writing.primitives)

    @property
    def function(self) -> tirx.PrimFunc:
        """The function after all of it."""
        return function_of(self.writing.sch)


def replayed(
    function: tirx.PrimFunc, target: tvm.target.Target, primitives: Sequence[Primitive]
) -> tirx.PrimFunc:
    """Return a function after a history.

    Raises `StepFailed` if TVM or a guard rejects one of its steps.
    """
    sch = Schedule(tvm.IRModule({"main": function}))
    outputs: dict[str | At, tuple[Output, ...]] = dict(first_outputs(sch))
    for primitive in primitives:
        applied = apply(sch, primitive, outputs, target, titled=False)
        sch = applied.sch
        outputs[primitive.id] = applied.outputs
    return function_of(sch)


class RuleSource:
    """Variation of the choices of a rule."""

    def __init__(
        self,
        function: tirx.PrimFunc,
        target: tvm.target.Target,
        tried: Sequence[Tried],
        random_numbers: random.Random,
    ) -> None:
        self._function = function
        self._target = target
        self._random = random_numbers
        self._times = {_key(each.decisions): each.seconds for each in tried}
        self._choices: dict[frozenset[tuple[str, int]], tuple[Choice, ...]] = {}
        self._made: set[str] = set()

    def usual(self) -> Proposal | None:
        """Return the usual decisions of the rule; ``None`` where none fits."""
        return self._proposal({})

    def propose(self, count: int) -> list[Proposal]:
        """Return `count` candidates, or fewer where there are no more."""
        found: list[Proposal] = []
        for _turn in range(_ATTEMPTS):
            if len(found) == count:
                break
            decisions = self._varied()
            proposal = None if decisions is None else self._proposal(decisions)
            if proposal is not None:
                found.append(proposal)
        return found

    def learn(self, proposals: Sequence[Proposal], seconds: Sequence[float | None]) -> None:
        """Record the times of candidates."""
        for proposal, time in zip(proposals, seconds, strict=True):
            assert proposal.decisions is not None
            self._times[_key(proposal.decisions)] = time

    def _varied(self) -> dict[str, int] | None:
        """Return decisions close to some of the best."""
        known = [(time, key) for key, time in self._times.items() if time is not None]
        known.sort(key=lambda each: each[0])
        parents = [dict(key) for _other, key in known[:_PARENTS]] or [{}]
        # The best most often.
        parent = parents[min(self._random.randrange(2 * len(parents)) // 2, len(parents) - 1)]
        choices = [each for each in self._choices_of(parent) if len(each.offered) > 1]
        if not choices:
            return None
        count = self._random.choice((1, 1, 2, 2, len(choices)))
        varied = {each.name: each.taken for each in choices}
        for choice in self._random.sample(choices, min(count, len(choices))):
            others = [each for each in choice.offered if each != choice.taken]
            varied[choice.name] = self._random.choice(others)
        return varied

    def _choices_of(self, decisions: Mapping[str, int]) -> tuple[Choice, ...]:
        key = _key(decisions)
        if key not in self._choices:
            writing = written_by_rule(self._function, self._target, decisions)[1]
            self._choices[key] = () if writing is None else tuple(writing.choices)
        return self._choices[key]

    def _proposal(self, decisions: Mapping[str, int]) -> Proposal | None:
        """Return the candidate of a rule for some decisions, if it is new."""
        if decisions and _key(decisions) in self._times:
            return None
        writing = written_by_rule(self._function, self._target, decisions)[1]
        if writing is None:
            return None
        taken = {each.name: each.taken for each in writing.choices}
        self._choices[_key(taken)] = tuple(writing.choices)
        made = structure_of(function_of(writing.sch))
        if made in self._made or (decisions and _key(taken) in self._times):
            return None
        self._made.add(made)
        return Proposal(writing, taken)


def _key(decisions: Mapping[str, int]) -> frozenset[tuple[str, int]]:
    return frozenset(decisions.items())


class TraceSource:
    """TVM's own search."""

    def __init__(
        self,
        function: tirx.PrimFunc,
        target: tvm.target.Target,
        threads: int,
        database: meta_schedule.database.Database,
        trials: int,
        seed: int,
    ) -> None:
        self._function = function
        self._target = target
        self._waiting: list[Any] = []
        self.ended = False
        self.reason = ""
        strategy = meta_schedule.search_strategy.EvolutionarySearch(
            population_size=_POPULATION, init_min_unmeasured=_POPULATION // 2, genetic_num_iters=2
        )
        register_intrinsics(target)
        with without_those_of_gpus():
            self._context = meta_schedule.TuneContext(
                drawn_from(function),
                target=with_cores(target, threads),
                space_generator="post-order-apply",
                search_strategy=strategy,
                num_threads=1,
                rand_state=seed + 1,
            )
        model = meta_schedule.cost_model.RandomModel()
        # Twice as many as are wanted: some of them have no history.
        self._context.pre_tuning(2 * trials + _BATCH, _BATCH, None, database, model)

    def propose(self, count: int) -> list[Proposal]:
        """Return `count` candidates, or fewer where there are no more."""
        found: list[Proposal] = []
        while len(found) < count and not self.ended:
            if not self._waiting:
                self._waiting = self._drawn()
                self.ended = not self._waiting
            found += self._some(count - len(found))
        return found

    def _drawn(self) -> list[Any]:
        try:
            return list(self._context.generate_measure_candidates() or ())
        except REFUSED as error:
            self.reason = _("TVM's search failed: {last_line}", last_line=last_line(error))
            return []

    def _some(self, count: int) -> Iterator[Proposal]:
        for _turn in range(min(count, len(self._waiting))):
            drawn = self._waiting.pop(0)
            try:
                writing = written_by_trace(drawn.sch.trace, self._function, self._target)
            except StepFailed as error:
                self._tell(drawn, None, str(error))
                continue
            yield Proposal(writing, drawn=drawn)

    def learn(self, proposals: Sequence[Proposal], seconds: Sequence[float | None]) -> None:
        """Record the times of candidates."""
        for proposal, time in zip(proposals, seconds, strict=True):
            self._tell(proposal.drawn, time, _("it failed"))

    def _tell(self, drawn: Any, seconds: float | None, reason: str) -> None:
        result = meta_schedule.runner.RunnerResult(
            None if seconds is None else [seconds], None if seconds is not None else reason
        )
        self._context.notify_runner_results([drawn], [result])


def drawn_from(function: tirx.PrimFunc) -> tvm.IRModule:
    """Return the module that TVM's search is given for a function.

    The layout of its constants may not change: for fused functions that allow it, the search finds
    no candidate, and takes a minute to fail.
    """
    bare = function.with_attr("global_symbol", "main")
    if LAYOUT_FREE in (bare.attrs or {}):
        bare = bare.without_attr(LAYOUT_FREE)
    return tvm.IRModule({"main": bare})


def with_cores(target: tvm.target.Target, threads: int) -> tvm.target.Target:
    """Return a target with a number of cores, which TVM's search needs."""
    if "num-cores" in target.attrs:
        return target
    return tvm.target.Target({**dict(target.export()), "num-cores": threads})


Source = RuleSource | TraceSource


class Search:
    """All candidates of one function."""

    def __init__(
        self,
        function: tirx.PrimFunc,
        target: tvm.target.Target,
        threads: int,
        tried: Sequence[Tried],
        database: meta_schedule.database.Database,
        trials: int,
        seed: int,
    ) -> None:
        numbers = random.Random(f"{seed} {structure_of(function)} {len(tried)}")
        self._of_rules = RuleSource(function, target, tried, numbers)
        self._numbers = numbers
        self._best: dict[int, float] = {}
        self._traces: Source | None = None
        self._ended: set[int] = set()
        self.reason = ""
        self._make = (function, target, threads, database, trials, seed)

    def usual(self) -> Proposal | None:
        """Return the candidate of the rules with usual decisions; ``None`` where none fits."""
        return self._of_rules.usual()

    def propose(self) -> list[Proposal]:
        """Return some candidates; none where there are no more."""
        for place in self._places():
            source = self._source(place)
            try:
                proposals = [] if source is None else source.propose(_BATCH)
            except REFUSED as error:
                # It cannot continue with its draws for some functions.
                self.reason = _("TVM's search has ended: {last_line}", last_line=last_line(error))
                proposals = []
            if proposals:
                return proposals
            self._ended.add(place)
        return []

    def learn(self, proposals: Sequence[Proposal], seconds: Sequence[float | None]) -> None:
        """Record the times of candidates of one `propose`, as far as they were measured."""
        measured = proposals[: len(seconds)]
        if not measured:
            return
        # Those of one batch are of one source.
        place = int(measured[0].decisions is None)
        source = self._source(place)
        assert source is not None, "it has proposed them"
        source.learn(measured, seconds)
        times = [time for time in seconds if time is not None]
        if times:
            self._best[place] = min(*times, self._best.get(place, times[0]))

    def _places(self) -> list[int]:
        """Return the sources in the order of their queries: rules, 0, and TVM's search, 1."""
        left = [each for each in (0, 1) if each not in self._ended]
        fresh = [each for each in left if each not in self._best]
        if fresh or len(left) < 2:
            return fresh + [each for each in left if each not in fresh]
        better = min(left, key=lambda each: self._best[each])
        first = better if self._numbers.random() < 0.75 else 1 - better
        return [first, 1 - first]

    def _source(self, place: int) -> Source | None:
        if place == 0:
            return self._of_rules
        if self._traces is None and 1 not in self._ended:
            if is_symbolic(self._make[0]):
                self.reason = _("TVM's search takes no symbolic extents")
                return None
            try:
                self._traces = TraceSource(*self._make)
            except REFUSED as error:
                self.reason = _(
                    "TVM's search does not take it: {last_line}", last_line=last_line(error)
                )
        return self._traces
