"""Candidates for the best schedule of a function, one after the other.

They come from two places. A *rule* has choices, such as the number of adjacent values: its usual
decisions are the first candidate, and those that follow decide otherwise, near to the best so far.
*TVM's own search* (``s_tir.meta_schedule``) draws tiles and places at random, and mutates fast
ones. The one that has found the better candidate is queried more often.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import tirx
from tvm.s_tir import Schedule, meta_schedule

from lowerscope.core.ir.tensorir import LAYOUT_FREE, structure_of
from lowerscope.core.model.problems import last_line
from lowerscope.core.model.schedule import At, Primitive
from lowerscope.core.schedule.applying import apply
from lowerscope.core.schedule.at_sizes import is_symbolic
from lowerscope.core.schedule.blocks import register_intrinsics, without_those_of_gpus
from lowerscope.core.schedule.failures import REFUSED, StepFailed
from lowerscope.core.schedule.references import Output, first_outputs, function_of
from lowerscope.core.schedule.rules.by_rule import written_by_rule
from lowerscope.core.schedule.rules.recorder import Choice, ScheduleRecorder
from lowerscope.core.schedule.tuning.database import Tried
from lowerscope.core.schedule.tuning.traces import written_by_trace

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
        applied = apply(sch, primitive, outputs, target)
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
        for _ in range(_ATTEMPTS):
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
        parents = [dict(key) for _, key in known[:_PARENTS]] or [{}]
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
            self.reason = f"TVM's search failed: {last_line(error)}"
            return []

    def _some(self, count: int) -> Iterator[Proposal]:
        for _ in range(min(count, len(self._waiting))):
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
            self._tell(proposal.drawn, time, "it failed")

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
                self.reason = f"TVM's search ended: {last_line(error)}"
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
                self.reason = "TVM's search takes no symbolic extents"
                return None
            try:
                self._traces = TraceSource(*self._make)
            except REFUSED as error:
                self.reason = f"TVM's search does not take it: {last_line(error)}"
        return self._traces
