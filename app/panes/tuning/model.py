"""The current tuning: its functions, its progress and its results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries, Slot
from lowerscope.app.engine.children import Children
from lowerscope.app.engine.client import EngineClient
from lowerscope.core.model import shared_schedules as sharing
from lowerscope.core.model.formatting import beside_text
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import PauseTuningQuery, ScheduleQuery, TuneQuery, TuneStateQuery
from lowerscope.core.model.recipe import Recipe, applies_schedules, steps_before_schedules
from lowerscope.core.model.schedule import APPLY_RULES, Schedule, fits
from lowerscope.core.model.schedule_records import ScheduleRecord
from lowerscope.core.model.texts import _, sentences
from lowerscope.core.model.tuning_records import Tuned, TunedFunction, TuneOptions, TuneState

# --- Applying tuning results to the recipe, as ordinary schedules and in one undo step ---

SecondsOf = Callable[[Recipe, Schedule], float | None]
"""Measured seconds per call of a function with a schedule; ``None`` if unknown."""

BETTER = 0.98
"""A schedule that takes less than this share of the previous time is better."""


class TunedLanding(QObject):
    """Checks that the functions still exist, and changes the recipe once."""

    landed = Signal(str, str)  # The outcome in one line, and its role.

    def __init__(self, document: Document, queries: Queries, measured: SecondsOf) -> None:
        super().__init__(document)
        self._document = document
        self._measured = measured
        self._tuned = Tuned(state=TuneState())
        self._open: list[Schedule] = []
        self._there: list[Schedule] = []
        self._gone: list[str] = []
        self._watch = queries.watch(self, self._query, self._take, self._take_problem)

    def land(self, tuned: Tuned, of: Recipe) -> None:
        """Apply to the recipe the results that are better than the previous schedules.

        Args:
            of: The recipe that was tuned; the one shown may be another by now.
        """
        self._tuned, self._open = tuned, list(tuned.schedules)
        self._there, self._gone = [], []
        recipe = self._document.wanted
        if recipe is not None and _functions_of(recipe) == _functions_of(of):
            self._there, self._open = self._open, []
        self._go_on()

    def _go_on(self) -> None:
        recipe = self._document.wanted
        if recipe is None:
            return
        if self._open:
            self._watch.refresh()
        else:
            self._change(recipe)

    def _query(self) -> ScheduleQuery | None:
        recipe = self._document.wanted
        if recipe is None or not self._open:
            return None
        return ScheduleQuery(recipe, self._open[0].function, index=0)

    def _take(self, record: ScheduleRecord) -> None:
        schedule = self._open.pop(0)
        if fits(schedule, record.function, record.structure):
            self._there.append(schedule)
        else:
            self._gone.append(schedule.function)
        self._go_on()

    def _take_problem(self, problem: Problem) -> None:
        if problem.code in ("cancelled", "crashed") and not self._watch.was_retried:
            # It is sent again once the engine has been replaced.
            return
        self._gone.append(self._open.pop(0).function)
        self._go_on()

    def _change(self, recipe: Recipe) -> None:
        functions = {each.name: each for each in self._tuned.state.functions}
        better: dict[str, float | None] = {}
        worse: list[str] = []
        after = recipe
        for schedule in self._there:
            found = functions[schedule.function]
            before = self._before(recipe, schedule, found)
            if _is_better(found, before):
                after = _with_tuned(after, schedule)
                better[schedule.function] = before and found.best and before / found.best
            else:
                worse.append(schedule.function)
        if after != recipe:
            self._document.change(after)
        text = self._words(better, worse)
        if better and not applies_schedules(after):
            text = sentences(text, _("Check “Apply to the model” to run it."))
        self.landed.emit(text, "wrong" if self._gone else "info")

    def _before(self, recipe: Recipe, schedule: Schedule, found: TunedFunction) -> float | None:
        """Return the previous seconds per call; ``None`` if unknown."""
        chosen = sharing.chosen(recipe, schedule.function, schedule.structure)
        if chosen is None or not chosen.primitives:
            ruled = any(step.name == APPLY_RULES and step.on for step in recipe.steps)
            return found.by_rules if ruled and found.by_rules is not None else found.unscheduled
        if chosen.primitives == schedule.primitives:
            return found.best
        return self._measured(recipe, chosen)

    def _words(self, better: dict[str, float | None], worse: list[str]) -> str:
        """Return one line on the functions that became faster, and on the others."""
        parts = []
        function, times = next(iter(better.items()), ("", None))
        if len(better) == 1 and times is not None:
            text = _(
                "{function} is {compared}: the schedule is in its history, and "
                "Undo restores the old one.",
                function=function,
                compared=beside_text(1.0, times, _("before"), told=True),
            )
            parts.append(text)
        elif better:
            text = _(
                "The results are in the history of {functions}; Undo restores the old ones.",
                functions=_names(list(better)),
            )
            parts.append(text)
        if worse:
            parts.append(_("{worse} keeps its schedule, which is as fast.", worse=_names(worse)))
        if self._gone:
            text = _(
                "{gone} is no longer in the model: its results are in the database.",
                gone=_names(self._gone),
            )
            parts.append(text)
        return sentences(*(parts or [_("Nothing better was found: nothing has changed.")]))


def _is_better(found: TunedFunction, before: float | None) -> bool:
    return found.best is not None and (before is None or found.best < BETTER * before)


def _with_tuned(recipe: Recipe, schedule: Schedule) -> Recipe:
    """Return `recipe` with a schedule enabled, replacing that of an earlier tuning."""
    function, structure = schedule.function, schedule.structure
    earlier = [
        each
        for each in sharing.variants(recipe, function, structure)
        if each.variant == schedule.variant
    ]
    if not earlier:
        return sharing.with_added(
            recipe, function, structure, schedule.variant, schedule.primitives
        )
    place = next(at for at, each in enumerate(recipe.schedules) if each is earlier[-1])
    after = msgspec.structs.replace(earlier[-1], primitives=schedule.primitives)
    recipe = sharing.with_schedule(recipe, earlier[-1], after)
    return sharing.with_chosen(recipe, function, structure, recipe.schedules[place])


def _functions_of(recipe: Recipe) -> Recipe:
    """Return the parts of a recipe that determine its functions."""
    plain = Recipe(source=recipe.source)
    return msgspec.structs.replace(
        recipe,
        schedules=(),
        steps=steps_before_schedules(recipe),
        tolerances=plain.tolerances,
        measuring=plain.measuring,
    )


def _names(names: list[str]) -> str:
    return (
        _(", ").join(names)
        if len(names) <= 3
        else _("{name} and {count} others", name=names[0], count=len(names) - 1)
    )


ASK_MS = 200
"""Interval of the progress queries."""

Phase = Literal["idle", "waiting", "tuning", "pausing", "paused", "stopping", "collecting"]


@dataclass(frozen=True)
class Said:
    """One line on the outcome of a tuning, and its role: ``"info"`` or ``"wrong"``."""

    text: str = ""
    role: str = "info"


class Tuning(QObject):
    """Tunes in a process of its own, so that the worker stays responsive.

    A run pauses it until the run has ended. Measurements at the workbench wait.
    """

    changed = Signal()  # `phase`, `state` or `said` changed.
    made_way = Signal()  # It may measure no more: a waiting run can start.
    held_back = Signal(bool)  # `holds_back` changed.

    def __init__(
        self,
        document: Document,
        queries: Queries,
        children: Children,
        measured: SecondsOf,
    ) -> None:
        super().__init__(document)
        self._document = document
        self._children = children
        self._client: EngineClient | None = None
        # Of the tuning process: its queries, the one that tunes, and the one of the progress.
        self._queries: Queries | None = None
        self._tuner: Slot | None = None
        self._progress: Slot | None = None
        self._of: Recipe | None = None
        self._for_run = False
        self._landing = TunedLanding(document, queries, measured)
        self._landing.landed.connect(self._say_landed)
        # ``"idle"``: there is none; ``"waiting"``: for the engine, or for the current run;
        # ``"pausing"``: until the current candidate is measured; ``"stopping"``: likewise, and
        # killed if that takes long; ``"collecting"``: the results are being read from the database.
        self.phase: Phase = "idle"
        # Progress of the current or last tuning; ``None`` before the first one.
        self.state: TuneState | None = None
        self.trials = TuneOptions().trials  # Number of trials requested last.
        self._options = TuneOptions()
        self.said = Said()  # The message shown.
        self._ask_soon = QTimer(self)
        self._ask_soon.setInterval(ASK_MS)
        self._ask_soon.timeout.connect(self._ask)
        document.on(("run", "running"), self._make_way)
        children.changed.connect(self._begin_if_waiting)
        document.on(("snapshot",), self._follow)

    # State

    @property
    def under_way(self) -> bool:
        """Return whether a tuning is in progress."""
        return self.phase != "idle"

    @property
    def prepares(self) -> bool:
        """Return whether the trials are not shared out among the functions yet."""
        functions = () if self.state is None else self.state.functions
        return not any(each.planned for each in functions)

    @property
    def measures(self) -> bool:
        """Return whether it measures, so that nothing else may."""
        return self.phase in ("tuning", "pausing", "stopping")

    @property
    def holds_back(self) -> bool:
        """Return whether measurements at the workbench have to wait."""
        return self.measures or self.phase == "waiting"

    @property
    def pid(self) -> int | None:
        """Process id of the tuning process, which leads a process group."""
        return None if self._client is None else self._client.pid

    @property
    def can_go_on(self) -> bool:
        """Return whether the last tuning can be continued."""
        return not self.under_way and self._of is not None and self._document.recipe is not None

    # Commands

    def start(self, options: TuneOptions) -> None:
        """Tune the model shown, as soon as nothing else runs."""
        self.trials = options.trials
        self._start(options)

    def _start(self, options: TuneOptions) -> None:
        recipe = self._document.recipe
        if self.under_way or recipe is None:
            return
        self._options, self._of = options, recipe
        self.state = TuneState(trials_total=options.trials)
        self._begin_client()
        self._set_phase("waiting", _("Waits until the engine and the worker are idle."))
        self._begin_if_waiting()

    def go_on(self) -> None:
        """Tune the same functions for `trials` more, continuing from the database."""
        if self.can_go_on:
            # Trials in the database count.
            done = 0 if self.state is None else sum(each.trials for each in self.state.functions)
            trials = done + self.trials
            self._start(msgspec.structs.replace(self._options, trials=trials, fresh=False))

    def pause(self) -> None:
        """Measure no more candidates until it is resumed."""
        if self.phase == "tuning":
            self._for_run = False
            self._pause(_("Pausing after the candidate being measured."))

    def resume(self) -> None:
        if self.phase in ("paused", "pausing"):
            self._for_run = False
            self._tell(paused=False)
            self._set_phase("tuning")

    def stop(self) -> None:
        """Stop tuning; its results are kept."""
        if self.phase == "waiting":
            self._end(_("Not started."))
        elif self.phase == "collecting":
            self._end(_("Stopped. The measurements are in the database."))
        elif self.phase in ("tuning", "pausing", "paused") and self._tuner is not None:
            self._set_phase("stopping", _("Stopping…"))
            # It is killed with its subprocesses if it does not stop by itself.
            self._tuner.cancel()

    def close(self) -> None:
        """Kill the process and its subprocesses: the window is closed."""
        self._ask_soon.stop()
        if self._client is not None:
            self._client.stop()
        self._end_client()
        self.phase = "idle"

    # The process

    def _begin_client(self) -> None:
        self._client = client = EngineClient("worker", parent=self)
        client.memory_limit = self._children.worker.memory_limit
        client.sandbox = self._children.worker.sandbox
        client.approved = self._children.worker.approved
        self._children.hear(client)
        self._queries = queries = Queries(client, client, client)
        self._tuner, self._progress = Slot(queries), Slot(queries)
        client.start()

    def _end_client(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            client.dismiss()
            if client.sandbox is not None:
                client.sandbox.take_over()
            client.deleteLater()
        self._queries = self._tuner = self._progress = None

    def _begin_if_waiting(self) -> None:
        document = self._document
        if self.phase != "waiting" or self._tuner is None or self._of is None:
            return
        if document.is_changing or document.running:
            return
        if self._children.engine_is_busy or self._children.worker.state == "busy":
            return
        query = TuneQuery(recipe=self._of, options=self._options)
        self._tuner.ask(query, self._take, self._take_problem, self._take_progress)
        self._set_phase("tuning", _("Starting the tuning process"))
        self._ask_soon.start()

    def _take_progress(self, text: str, _fraction: float | None) -> None:
        if self.phase == "tuning" and text != self.said.text:
            self.said = Said(text)
            self.changed.emit()

    def _ask(self) -> None:
        """Query the progress."""
        if self._queries is None or self._progress is None:
            return
        if self.phase == "pausing":
            # A pause sent before it had started was lost.
            self._tell(paused=True)
        if not self._progress.is_busy:
            self._progress.ask(TuneStateQuery(), self._take_state, self._ignore)

    def _tell(self, *, paused: bool) -> None:
        assert self._queries is not None
        self._queries.ask(PauseTuningQuery(paused=paused), self._take_state, self._ignore)

    def _ignore(self, problem: Problem) -> None:
        """Wait for the next answer; the end of the tuning has an answer of its own."""

    def _take_state(self, state: TuneState) -> None:
        if self.phase not in ("tuning", "pausing", "paused") or not state.functions:
            return
        self.state = state
        if self.prepares:
            # Those that are to be shared out.
            total = self._options.trials
            self.state = msgspec.structs.replace(state, trials_total=total)
        if state.paused and self.phase == "pausing":
            self._set_phase("paused", self._paused_words())
            self.made_way.emit()
        else:
            self.changed.emit()

    def _paused_words(self) -> str:
        if self._for_run:
            return _("Paused for the run; continues automatically.")
        return _("Paused.")

    def _take(self, tuned: Tuned) -> None:
        collected = self.phase == "collecting"
        if not collected:
            self.state = tuned.state
        self._end(self.said.text if collected else "", wrong=self.said.role == "wrong")
        if self._of is not None:
            self._landing.land(tuned, self._of)

    def _take_problem(self, problem: Problem) -> None:
        stopped = problem.code == "cancelled"
        if problem.code == "crashed":
            kept = _("the measurements are kept; More trials continues from there.")
            self._collect(_("; ").join((problem.what, kept)), wrong=True)
            self._document.notify(self.said.text, "wrong")
        elif stopped and self.phase == "stopping":
            self._collect(_("Stopped."))
        elif stopped:
            self._end(_("Stopped."))
        else:
            self._collect(problem.line(), wrong=True)

    def _collect(self, text: str, *, wrong: bool = False) -> None:
        """Read the results from the database, since the process is gone."""
        found = self.state is not None and any(
            each.best is not None for each in self.state.functions
        )
        if not found or self._tuner is None or self._of is None:
            self._end(text, wrong=wrong)
            return
        self._ask_soon.stop()
        self._finish_state()
        options = msgspec.structs.replace(self._options, trials=0, fresh=False)
        query = TuneQuery(recipe=self._of, options=options)
        self._tuner.ask(query, self._take, self._take_none)
        self._set_phase("collecting", text, wrong=wrong)
        self.made_way.emit()

    def _take_none(self, problem: Problem) -> None:
        """Leave the results in the database, as they could not be read."""
        self._end(self.said.text, wrong=True)

    def _finish_state(self) -> None:
        if self.state is not None and not self.state.finished:
            functions = tuple(
                msgspec.structs.replace(each, state="stopped")
                if each.state in ("waiting", "tuning")
                else each
                for each in self.state.functions
            )
            self.state = msgspec.structs.replace(
                self.state, functions=functions, finished=True, paused=False
            )

    def _end(self, text: str, *, wrong: bool = False) -> None:
        self._ask_soon.stop()
        self._end_client()
        self._for_run = False
        self._finish_state()
        self._set_phase("idle", text, wrong=wrong)
        self.made_way.emit()

    def _say_landed(self, text: str, role: str) -> None:
        """Report the outcome, after the reason if it ended early."""
        text = sentences(self.said.text, text)
        self.said = Said(text, "wrong" if "wrong" in (role, self.said.role) else "info")
        self.changed.emit()
        self._document.notify(self.said.text, self.said.role)

    # Interaction with runs

    def _pause(self, text: str) -> None:
        self._tell(paused=True)
        self._set_phase("pausing", text)

    def _make_way(self) -> None:
        """Pause for a run, and resume after it."""
        if self._document.running:
            if self.phase == "tuning" and self.prepares:
                self._begin_later()
            elif self.phase == "tuning":
                self._for_run = True
                self._document.say(_("The run waits until the tuning pauses"), of="run")
                self._pause(_("Pausing for the run; continues automatically."))
        elif self._for_run:
            self.resume()
        else:
            self._begin_if_waiting()

    def _begin_later(self) -> None:
        """Restart after a run: there is nothing to pause yet, and the preparation may take long."""
        if self._tuner is not None and self._tuner.is_busy:
            self._ask_soon.stop()
            self._tuner.supersede()
            self._set_phase("waiting", _("Waits for the run of the model to end."))
            self.made_way.emit()

    def _follow(self) -> None:
        """Stop the tuning of another source."""
        recipe = self._document.recipe
        if self._of is None or recipe is None or recipe.source == self._of.source:
            return
        if self.under_way:
            self._end(_("Stopped: another model is open. The measurements are kept."))
        self._of, self.state = None, None
        self.changed.emit()

    def _set_phase(self, phase: Phase, text: str = "", *, wrong: bool = False) -> None:
        before, self.phase = self.holds_back, phase
        if before != self.holds_back:
            self.held_back.emit(self.holds_back)
        self.said = Said(text, "wrong" if wrong else "info")
        self.changed.emit()
