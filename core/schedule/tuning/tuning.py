"""Tuning as a job: functions, trials of each, and one candidate after the other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import msgspec

from lowerscope.core.build.targets import check_runs_here
from lowerscope.core.build.threads import ProcessorUse, use_threads
from lowerscope.core.engine.pipeline import Pipeline
from lowerscope.core.model.machines import remote_of
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.queries import PauseTuningQuery, TuneQuery, TuneStateQuery, answers
from lowerscope.core.model.tuning_records import Tuned, TunedFunction, TuneOptions, TuneState
from lowerscope.core.remote.bench import measurer_of
from lowerscope.core.run.torch_interpreter import nodes_of, torch_ms
from lowerscope.core.schedule.function_metrics import given_of
from lowerscope.core.schedule.tuning.database import Database, identity_of
from lowerscope.core.schedule.tuning.task import Setting, Task, shared_out
from lowerscope.core.schedule.work import calls_from_main
from lowerscope.core.stages import Stages

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
        self._state = TuneState(doing="Lowering the model")
        threads = use_threads(recipe.threads)
        remote = recipe.remote or remote_of(options.tracker, options.key)
        with measurer_of(remote, recipe.threads, progress) as measurer:
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
                self._say(f"Measuring {task.record.name} as it is")
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
            self._say(f"Comparing {task.record.name} with what rules make of it")
            task.settle()

    def end(self) -> None:
        """Record that the tuning is over."""
        for task in self.tasks:
            task.stop()
        self._doing = ""
        self.tell(self._state(finished=True))

    def _take_turn(self, task: Task) -> None:
        for _ in range(_TURN):
            if not task.wants_more:
                break
            self._wait_while_paused()
            self._say(f"Tuning {task.record.name}")
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
            self._say(f"Looking at {name}")
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
                "there is no function to tune",
                where="tune",
                todo="Legalise the operators of the model, so that there are some",
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
