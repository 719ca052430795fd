"""Tuning as a job: functions, trials of each, and one candidate after the other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import msgspec
import tvm
from tvm import tirx
from tvm.s_tir import meta_schedule

from lowerscope.core.build.targets import ProcessorUse, check_runs_here, use_threads
from lowerscope.core.model.machines import remote_of
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.queries import PauseTuningQuery, TuneQuery, TuneStateQuery, answers
from lowerscope.core.model.schedule import TUNED, Schedule
from lowerscope.core.model.texts import _
from lowerscope.core.model.tuning_records import (
    Tuned,
    TunedFunction,
    TunedPoint,
    TunedTime,
    TuneOptions,
    TuneState,
)
from lowerscope.core.remote.bench import measurer_of
from lowerscope.core.run.function_metrics import calls_from_main, given_of
from lowerscope.core.run.standalone import AtSizes, Given, at_sizes
from lowerscope.core.run.torch_interpreter import nodes_of, torch_ms
from lowerscope.core.run.tuning.candidates import Proposal, Search, drawn_from, replayed, with_cores
from lowerscope.core.run.tuning.database import Database, Kept, Tried, identity_of
from lowerscope.core.run.tuning.measurers import Candidate, LocalMeasurer, Outcome, Sized, Subject
from lowerscope.core.schedule.step_errors import StepFailed
from lowerscope.core.stages import Pipeline, Stages

_AS_FAST = 1.02
"""Ratio up to which rules are as fast as the best candidate: noise is not less."""

UNSCHEDULED_SECONDS = 30.0
"""Timeout of an unscheduled function, which is run to check candidates, in seconds."""


@dataclass(frozen=True)
class Setting:
    """Settings that all functions of a tuning share."""

    target: tvm.target.Target
    threads: int
    seed: int
    trials: int
    database: Database
    measurer: LocalMeasurer


class Task:
    """One function that is tuned.

    `function`: before it is scheduled. `given`: the arguments of its call in the model, if it has
    symbolic extents. `kept`: its entry in the database; ``None`` for none, or to ignore it.
    """

    def __init__(
        self,
        setting: Setting,
        number: int,
        function: tirx.PrimFunc,
        given: Given | None,
        record: TunedFunction,
        kept: Kept | None,
    ) -> None:
        self._setting = setting
        self._number = number
        self._function = function
        self._given = given
        self._kept = kept or Kept(
            function=record.name, torch=record.torch, disturbed=record.disturbed
        )
        self._search: Search | None = None
        self._usual: Proposal | None = None
        self._rival: Sized | None = None
        self._waiting: list[Proposal] = []
        self._asked: list[Proposal] = []
        self._seconds: list[float | None] = []
        self._begun = False
        self.ended = False
        self.record = record
        self._show(from_database=kept is not None)

    @property
    def weight(self) -> float:
        """Seconds of a run of the model that are spent in it, as scheduled by rules."""
        known = (self._kept.by_rules, self._kept.unscheduled)
        best = min((each for each in known if each is not None), default=0.0)
        return best * self.record.calls

    @property
    def schedule(self) -> Schedule | None:
        """The schedule with the best history; ``None`` where no schedule is faster than none."""
        if not self._kept.primitives:
            return None
        return Schedule(
            function=self.record.name,
            structure=self.record.structure,
            variant=TUNED,
            primitives=self._kept.primitives,
        )

    @property
    def wants_more(self) -> bool:
        """Return whether it has trials left, and there are candidates."""
        return not self.ended and self._kept.trials < self.record.planned

    def begin(self, clock: Callable[[], float]) -> None:
        """Measure it unscheduled and by rules, unless that is known."""
        if self._kept.unscheduled is not None:
            return
        found = self._begin()
        if found.seconds is None:
            self.ended = True
            self._show(state="failed", note=found.reason)
            return
        self._kept = msgspec.structs.replace(
            self._kept, unscheduled=found.seconds, best=found.seconds, primitives=()
        )
        self._note_disturbed(found, "unscheduled", "best")
        self._usual = self._searching().usual()
        if self._usual is not None:
            self._try(self._usual, clock, always=True)
        self._setting.database.keep(self._function, self._kept)
        self._show()

    def plan(self, trials: int) -> None:
        """Set the number of candidates in all."""
        done = self._kept.trials >= trials
        state = "failed" if self.ended else "done" if done else "waiting"
        self._show(planned=trials, state=state)

    def settle(self) -> None:
        """Time the best and the rules' own by turns: the best is dropped unless it is faster."""
        kept, usual = self._kept, self._usual_proposal()
        if not self._begun or usual is None or kept.primitives in ((), usual.primitives):
            return
        best = self._best()
        found = self._setting.measurer.measure(
            Candidate(
                subject=self._number,
                scheduled=_sized(at_sizes(usual.function, self._given)),
                best=kept.best,
                rival=best,
                always=True,
            )
        )
        if found.seconds is None or found.rival_seconds is None:
            return
        changes: dict[str, Any] = {"by_rules": found.seconds, "best": found.rival_seconds}
        if found.seconds <= found.rival_seconds * _AS_FAST:
            changes |= {"best": found.seconds, "primitives": usual.primitives}
        self._kept = msgspec.structs.replace(kept, **changes)
        self._note_disturbed(found, "by_rules", "best")
        self._setting.database.keep(self._function, self._kept)
        self._mend_curve()
        self._show()

    def stop(self) -> None:
        """Record that no more candidates of it are measured, since the tuning was stopped."""
        if self.record.state in ("waiting", "tuning"):
            self._show(state="stopped" if self.wants_more else "done")

    def step(self, clock: Callable[[], float]) -> None:
        """Measure one candidate more."""
        self._show(state="tuning")
        if not self._begun:
            self._begin()
        search = self._searching()
        if not self._waiting:
            search.learn(self._asked, self._seconds)
            self._asked = self._waiting = search.propose()
            self._seconds = []
        if not self._waiting:
            self.ended = True
            note = _("all candidates were measured.")
            self._show(state="done", note=f"{note} {search.reason}".strip())
            return
        proposal, *self._waiting = self._waiting
        self._seconds.append(self._try(proposal, clock))
        self._setting.database.keep(self._function, self._kept)
        self._show(state="tuning" if self.wants_more else "done")

    def _searching(self) -> Search:
        if self._search is None:
            setting, kept = self._setting, self._kept
            self._search = Search(
                self._function,
                setting.target,
                setting.threads,
                kept.tried,
                setting.database.traces,
                setting.trials,
                setting.seed,
            )
        return self._search

    def _begin(self) -> Outcome:
        self._begun = True
        setting = self._setting
        try:
            base = _sized(at_sizes(self._function, self._given))
        except LowerscopeError as error:
            return Outcome(reason=error.problem.what)
        return setting.measurer.begin(
            Subject(
                number=self._number,
                base=base,
                target=str(setting.target),
                seed=setting.seed,
                threads=setting.threads,
                seconds=UNSCHEDULED_SECONDS,
            )
        )

    def _usual_proposal(self) -> Proposal | None:
        """Return the candidate of the rules with usual decisions."""
        if self._usual is None:
            self._usual = self._searching().usual()
        return self._usual

    def _best(self) -> Sized | None:
        """Return the function with the best time; ``None`` where its history is rejected."""
        if self._rival is None:
            kept, target = self._kept, self._setting.target
            try:
                function = replayed(self._function, target, kept.primitives)
            except StepFailed:
                return None
            self._rival = _sized(at_sizes(function, self._given))
        return self._rival

    def _try(
        self, proposal: Proposal, clock: Callable[[], float], *, always: bool = False
    ) -> float | None:
        """Measure a candidate; return its time, ``None`` where it failed."""
        scheduled = _sized(at_sizes(proposal.function, self._given))
        found = self._setting.measurer.measure(
            Candidate(
                subject=self._number,
                scheduled=scheduled,
                best=self._kept.best,
                rival=self._best(),
                always=always,
            )
        )
        if found.rival_seconds is not None:
            self._correct(found)
        kept = self._kept
        tried = kept.tried
        if proposal.decisions is not None:
            tried = (*tried, Tried(dict(proposal.decisions), found.seconds))
        changes = {
            "trials": kept.trials + 1,
            "failed": kept.failed + (found.seconds is None),
            "tried": tried,
        }
        if kept.trials == 0 and proposal.decisions is not None:
            changes["by_rules"] = found.seconds
        self._kept = msgspec.structs.replace(kept, **changes)
        if "by_rules" in changes:
            self._note_disturbed(found, "by_rules")
        if found.seconds is None:
            if self._kept.failed == self._kept.trials:
                self._show(note=found.reason)
            return None
        if proposal.drawn is not None:
            self._commit(proposal.drawn, found.seconds)
        if kept.best is None or found.seconds < kept.best:
            self._kept = msgspec.structs.replace(
                self._kept, best=found.seconds, primitives=proposal.primitives
            )
            self._note_disturbed(found, "best")
            self._rival = scheduled
            point = TunedPoint(trials=self._kept.trials, seconds_spent=clock(), best=found.seconds)
            self._show(points=(*self.record.points, point), from_database=False, note="")
        return found.seconds

    def _correct(self, found: Outcome) -> None:
        """Record another time of the best so far, which was the rival of a candidate."""
        kept = self._kept
        names: list[TunedTime] = ["best"]
        if not kept.primitives:
            names.append("unscheduled")
        elif self._usual is not None and kept.primitives == self._usual.primitives:
            names.append("by_rules")
        changes: dict[str, Any] = dict.fromkeys(names, found.rival_seconds)
        self._kept = msgspec.structs.replace(kept, **changes)
        self._note_disturbed(found, *names)
        self._mend_curve()

    def _note_disturbed(self, found: Outcome, *names: TunedTime) -> None:
        """Record whether times that were just measured are unreliable."""
        others = tuple(each for each in self._kept.disturbed if each not in names)
        disturbed = (*others, *names) if found.disturbed else others
        self._kept = msgspec.structs.replace(self._kept, disturbed=disturbed)

    def _mend_curve(self) -> None:
        """Let the curve end at the best time as it is known now."""
        *before, last = self.record.points or (None,)
        if last is not None and self._kept.best is not None:
            last = msgspec.structs.replace(last, best=self._kept.best)
            self._show(points=(*before, last))

    def _commit(self, drawn: Any, seconds: float) -> None:
        """Add the draw of TVM's search to TVM's own database."""
        setting = self._setting
        module = drawn_from(self._function)
        database = setting.database.traces
        database.commit_tuning_record(
            meta_schedule.database.TuningRecord(
                drawn.sch.trace,
                database.commit_workload(module),
                [seconds],
                with_cores(setting.target, setting.threads),
                meta_schedule.arg_info.ArgInfo.from_prim_func(self._function),
            )
        )

    def _show(self, **changes: object) -> None:
        kept = self._kept
        self.record = msgspec.structs.replace(
            self.record,
            unscheduled=kept.unscheduled,
            by_rules=kept.by_rules,
            torch=kept.torch,
            trials=kept.trials,
            failed=kept.failed,
            best=kept.best,
            disturbed=kept.disturbed,
            **changes,
        )


def _sized(sized: AtSizes) -> Sized:
    static = "" if sized.static is sized.function else str(tvm.ir.save_json(sized.static))
    return Sized(str(tvm.ir.save_json(sized.function)), static)


def shared_out(trials: int, weights: Sequence[float]) -> list[int]:
    """Return how many trials each function has, by its weight; at least one each."""
    whole = sum(weights)
    if not whole:
        return [1 for _other in weights]
    return [max(1, round(trials * each / whole)) for each in weights]


_TURN = 8
"""Candidates of a function before it is another one's turn."""

_POLL = 0.05
"""Seconds between checks for the end of a pause."""


class Tuning:
    """The present or latest tuning; queries of it may come from another thread."""

    def __init__(self) -> None:
        self._state = TuneState(finished=True)
        self._paused = threading.Event()

    @property
    def state(self) -> TuneState:
        """The state of the tuning; paused once no candidate is measured any more."""
        return self._state

    def pause(self, paused: bool) -> TuneState:
        """Pause it after the candidate that is under way, or resume it."""
        if paused:
            self._paused.set()
        else:
            self._paused.clear()
        return self.state

    def tune(self, query: TuneQuery, pipeline: Pipeline, progress: Progress) -> Tuned:
        """Search schedules for functions of a recipe; results are saved as they are found.

        Without trials, the results in the database are returned.

        Raises `LowerscopeError` if there is no such function, or nothing that can be tuned. Raises
        `Cancelled` within a second; `state` has the results until then.
        """
        recipe, options = query.recipe, query.options
        self._paused.clear()
        self._state = TuneState(doing=_("Lowering the model"))
        threads = use_threads(recipe.threads)
        remote = recipe.remote or remote_of(options.tracker, options.key)
        with closing(measurer_of(remote, recipe.threads, progress)) as measurer:
            stages = pipeline.stages(recipe, progress)
            if remote is None:
                check_runs_here(stages.target)
            where = "" if remote is None else remote.where
            database = Database(stages.target, threads, where)
            setting = Setting(
                stages.target, threads, options.seed, options.trials, database, measurer
            )
            there = remote is not None
            run = _Run(stages, setting, options, progress, self._paused, self._tell, there)
            try:
                run.measure()
            finally:
                run.end()
                database.close()
        schedules = tuple(each.schedule for each in run.tasks if each.schedule is not None)
        return Tuned(state=self.state, schedules=schedules, database=str(database.place))

    def _tell(self, state: TuneState) -> None:
        self._state = state


@answers(TuneQuery)
def tune(query: TuneQuery, pipeline: Pipeline, job: Progress) -> Tuned:
    """Search schedules for functions of a recipe: see `Tuning.tune`."""
    return pipeline.part(Tuning).tune(query, pipeline, job)


@answers(TuneStateQuery)
def tune_state(_query: TuneStateQuery, pipeline: Pipeline, _job: Progress) -> TuneState:
    """Return the state of the present or latest tuning."""
    return pipeline.part(Tuning).state


@answers(PauseTuningQuery)
def pause_tuning(query: PauseTuningQuery, pipeline: Pipeline, _job: Progress) -> TuneState:
    """Pause the tuning after the candidate that is under way, or resume it."""
    return pipeline.part(Tuning).pause(query.paused)


@dataclass
class _Run:
    """One tuning from its beginning to its end."""

    stages: Stages
    setting: Setting
    options: TuneOptions
    progress: Progress
    paused: threading.Event
    tell: Callable[[TuneState], None]
    # Torch runs here, and its times say nothing of another machine.
    there: bool
    tasks: list[Task] = field(default_factory=list)
    _began: float = field(default_factory=time.monotonic)
    _waited: float = 0.0
    _searching_since: float = 0.0
    _before: int = 0
    _doing: str = ""

    def measure(self) -> None:
        """Take all outstanding measurements."""
        self.tasks = list(self._chosen())
        if self.options.trials:
            for task in self.tasks:
                self._say(_("Measuring {name} unscheduled", name=task.record.name))
                task.begin(self._clock)
        self.tasks.sort(key=lambda each: -each.weight)
        if self.options.slowest:
            self.tasks = self.tasks[: self.options.slowest]
        plans = shared_out(self.options.trials, [each.weight for each in self.tasks])
        for task, trials in zip(self.tasks, plans, strict=True):
            task.plan(trials if self.options.trials else task.record.trials)
        self._before, self._searching_since = self._done, self._clock()
        while waiting := [each for each in self.tasks if each.wants_more]:
            for task in waiting:
                self._take_turn(task)
        for task in self.tasks:
            self._wait_while_paused()
            self._say(_("Comparing {name} with its schedules by rules", name=task.record.name))
            task.settle()

    def end(self) -> None:
        """Record that the tuning is over."""
        for task in self.tasks:
            task.stop()
        self._doing = ""
        self.tell(self._state(finished=True))

    def _take_turn(self, task: Task) -> None:
        for _turn in range(_TURN):
            if not task.wants_more:
                break
            self._wait_while_paused()
            self._say(_("Tuning {name}", name=task.record.name))
            task.step(self._clock)

    def _wait_while_paused(self) -> None:
        began = time.monotonic()
        if self.paused.is_set():
            self.tell(msgspec.structs.replace(self._state(finished=False), paused=True))
        while self.paused.is_set():
            self.progress.check()
            time.sleep(_POLL)
        self._waited += time.monotonic() - began

    def _chosen(self) -> Iterator[Task]:
        """Yield the functions that may be tuned, one of each structure."""
        functions, options = self.stages.functions, self.options
        unknown = [each for each in options.functions if each not in functions.by_name]
        if unknown:
            # Raises, with the available names.
            self.stages.states(unknown[0])
        calls = calls_from_main(self.stages.unscheduled.module)
        seen: set[str] = set()
        for name in options.functions or functions.by_name:
            function = functions.by_name[name]
            identity = identity_of(function)
            twins = tuple(
                each
                for each in functions.twins(name)
                if identity_of(functions.by_name[each]) == identity
            )
            times = sum(calls.get(each, 0) for each in (name, *twins))
            if identity in seen or not (times or options.functions):
                continue
            seen.add(identity)
            kept = None if options.fresh else self.setting.database.kept(function)
            if kept is None and not options.trials:
                continue
            self._say(_("Analysing {name}", name=name))
            use = ProcessorUse()
            record = TunedFunction(
                name=name,
                structure=functions.structures[name],
                twins=twins,
                calls=max(1, times),
                torch=self._torch(name) if kept is None else kept.torch,
            )
            if kept is None and use.was_short(self.setting.threads):
                record = msgspec.structs.replace(record, disturbed=("torch",))
            given = given_of(self.stages, name)
            yield Task(self.setting, len(seen), function, given, record, kept)
        if not seen:
            raise LowerscopeError(
                _("there is no function to tune"),
                where="tune",
                todo=_("Legalise the operators of the model to get some"),
            )

    def _torch(self, name: str) -> float | None:
        """Return the seconds that torch takes for the nodes of a function, if it does no more."""
        nodes = nodes_of(self.stages, name)
        if nodes.does_more or self.there:
            return None
        found = torch_ms(self.stages, nodes.names, self.options.seed, self.progress)
        return None if found is None else found / 1000

    def _say(self, doing: str) -> None:
        self._doing = doing
        state = self._state(finished=False)
        self.tell(state)
        total = state.trials_total
        self.progress.report(doing, state.trials_done / total if total else None)

    @property
    def _done(self) -> int:
        return sum(min(each.record.trials, each.record.planned) for each in self.tasks)

    def _clock(self) -> float:
        return time.monotonic() - self._began - self._waited

    def _state(self, *, finished: bool) -> TuneState:
        done, total = self._done, sum(each.record.planned for each in self.tasks)
        spent, left = self._clock(), None
        if done > self._before:
            left = (total - done) * (spent - self._searching_since) / (done - self._before)
        return TuneState(
            functions=tuple(each.record for each in self.tasks),
            trials_done=done,
            trials_total=total,
            seconds_spent=spent,
            seconds_left=0.0 if finished else left,
            finished=finished,
            doing=self._doing,
        )
