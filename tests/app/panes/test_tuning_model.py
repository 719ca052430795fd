"""A tuning waits, makes way for runs, is stopped, and leaves ordinary schedules."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from pytestqt.qtbot import QtBot

from lowerscope.app.panes.tuning.commands import TuneDialog, function_of
from lowerscope.app.panes.tuning.tune_page import tuned_row
from lowerscope.core.files.pipelines_and_schedules import find_pipeline
from lowerscope.core.model.formatting import NONE
from lowerscope.core.model.queries import (
    PauseTuningQuery,
    Query,
    RunQuery,
    ScheduleQuery,
    TuneQuery,
    TuneStateQuery,
)
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.schedule import Primitive, Schedule
from lowerscope.core.model.schedule_records import ScheduleRecord
from lowerscope.core.model.snapshot import TextRecord
from lowerscope.core.model.tuning_records import Tuned, TunedFunction, TuneOptions, TuneState
from tests.app.plain_values import (
    CANCELLED,
    CRASHED,
    OTHER,
    RECIPE,
    RECORD,
    WRONG,
    Bench,
    Client,
    Sent,
    show,
    snapshot,
)

OPTIONS = TuneOptions(functions=("dense",), trials=10)
STEPS = (Primitive(id="s1", name="vectorize"),)
BEST = Schedule(function="dense", structure="s", variant="tuned", primitives=STEPS)


def state_of(trials: int, *, best: float | None = 1.0, paused: bool = False) -> TuneState:
    """Return the progress of the tuning of a function, which takes two seconds unscheduled."""
    function = TunedFunction(
        name="dense",
        structure="s",
        unscheduled=2.0,
        best=best,
        trials=trials,
        planned=10,
        state="tuning",
    )
    return TuneState(functions=(function,), trials_done=trials, trials_total=10, paused=paused)


class Tuner:
    """The tuning, and the process in whose place a test answers."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.document = bench.document
        self.tuning = bench.features.tuning
        bench.open(RECIPE)

    @property
    def client(self) -> Client:
        """The process of the current tuning."""
        return self.tuning.findChildren(Client)[-1]

    def sent(self, query: type[Query[Any]]) -> Sent:
        """Return the last query of a type."""
        return [each for each in self.client.sent if isinstance(each.query, query)][-1]

    def count(self, query: type[Query[Any]]) -> int:
        """Return the number of queries of a type."""
        return sum(isinstance(each.query, query) for each in self.client.sent)

    def begin(self, qtbot: QtBot, trials: int = 3) -> None:
        """Tune the function until there have been some trials."""
        self.tuning.start(OPTIONS)
        self.tell(qtbot, state_of(trials))

    def tell(self, qtbot: QtBot, state: TuneState) -> None:
        """Answer the next query for the progress."""
        count = self.count(TuneStateQuery)
        qtbot.waitUntil(lambda: self.count(TuneStateQuery) > count)
        self.sent(TuneStateQuery).answer(state)

    def end(self, best: float = 1.0) -> None:
        """Let the tuning come to its end with the best that it has found."""
        (function,) = state_of(10, best=best).functions
        function = msgspec.structs.replace(function, state="done")
        state = TuneState(functions=(function,), trials_done=10, trials_total=10, finished=True)
        self.sent(TuneQuery).answer(Tuned(state=state, schedules=(BEST,)))


@pytest.fixture
def tuner(bench: Bench) -> Tuner:
    return Tuner(bench)


def schedules(recipe: Recipe | None) -> tuple[Schedule, ...]:
    assert recipe is not None
    return recipe.schedules


def test_it_waits_until_the_engine_and_the_worker_are_idle(tuner: Tuner) -> None:
    tuner.bench.engine.be("busy")
    tuner.tuning.start(OPTIONS)
    assert (tuner.tuning.phase, tuner.client.sent) == ("waiting", [])
    assert tuner.tuning.state == TuneState(trials_total=10)
    # Measurements at the workbench wait for it.
    assert tuner.tuning.holds_back
    assert tuner.bench.features.measurements.waits
    tuner.bench.engine.be("ready")
    assert tuner.tuning.phase == "tuning"
    assert tuner.sent(TuneQuery).query == TuneQuery(recipe=RECIPE, options=OPTIONS)
    # There is one at a time.
    tuner.tuning.start(OPTIONS)
    assert len(tuner.tuning.findChildren(Client)) == 1


def test_before_trials_are_shared_out_all_are_to_come(tuner: Tuner, qtbot: QtBot) -> None:
    tuner.tuning.start(OPTIONS)
    function = TunedFunction(name="dense", structure="s")
    tuner.tell(qtbot, TuneState(functions=(function,)))
    assert tuner.tuning.state == TuneState(functions=(function,), trials_total=10)
    assert tuned_row(function).cell(2).text == NONE
    # There is nothing to pause yet.
    assert tuner.tuning.prepares
    tuner.tell(qtbot, state_of(1))
    assert not tuner.tuning.prepares


def test_the_best_is_a_variant_which_undo_takes_out(tuner: Tuner, qtbot: QtBot) -> None:
    tuner.begin(qtbot)
    tuner.end()
    assert tuner.tuning.phase == "idle"
    assert not tuner.bench.features.measurements.waits
    assert schedules(tuner.document.wanted) == (BEST,)
    assert tuner.bench.notices[-1] == tuner.tuning.said.text
    tuner.document.undo()
    assert schedules(tuner.document.wanted) == ()


def test_what_is_no_faster_changes_nothing(tuner: Tuner, qtbot: QtBot) -> None:
    tuner.begin(qtbot)
    tuner.end(best=1.99)
    assert schedules(tuner.document.wanted) == ()
    assert tuner.tuning.said.role == "info"


def test_the_next_tuning_replaces_the_schedule_of_the_one_before(
    tuner: Tuner, qtbot: QtBot
) -> None:
    before = msgspec.structs.replace(BEST, primitives=())
    tuner.document.change(msgspec.structs.replace(RECIPE, schedules=(before,)))
    tuner.begin(qtbot)
    tuner.end()
    assert schedules(tuner.document.wanted) == (BEST,)


def test_of_a_function_that_is_gone_nothing_is_applied(tuner: Tuner, qtbot: QtBot) -> None:
    tuner.begin(qtbot)
    tuner.bench.change(msgspec.structs.replace(RECIPE, steps=find_pipeline("fuse").steps))
    tuner.end()
    text = TextRecord(text="", language="python")
    asked = tuner.bench.sent(ScheduleQuery)
    assert isinstance(asked.query, ScheduleQuery)
    assert (asked.query.function, asked.query.index) == ("dense", 0)
    asked.answer(ScheduleRecord(function="dense", structure="other", index=0, script=text))
    assert schedules(tuner.document.wanted) == ()
    assert tuner.tuning.said.role == "wrong"
    assert "no longer in the model" in tuner.tuning.said.text


def test_a_run_pauses_it_and_it_goes_on_by_itself(tuner: Tuner, qtbot: QtBot) -> None:
    tuner.begin(qtbot)
    runs = tuner.bench.features.runs
    runs.run()
    # The candidate that is measured comes to its end first.
    assert tuner.tuning.phase == "pausing"
    assert tuner.sent(PauseTuningQuery).query == PauseTuningQuery(paused=True)
    assert tuner.bench.count(RunQuery) == 0
    tuner.tell(qtbot, state_of(4, paused=True))
    assert tuner.tuning.phase == "paused"
    assert tuner.bench.count(RunQuery) == 1
    tuner.bench.sent(RunQuery).answer(RECORD)
    assert tuner.tuning.phase == "tuning"
    assert tuner.sent(PauseTuningQuery).query == PauseTuningQuery(paused=False)


def test_what_the_user_has_paused_stays_so_after_a_run(tuner: Tuner, qtbot: QtBot) -> None:
    tuner.begin(qtbot)
    tuner.tuning.pause()
    tuner.tell(qtbot, state_of(4, paused=True))
    tuner.bench.run()
    assert tuner.tuning.phase == "paused"
    tuner.tuning.resume()
    assert tuner.tuning.phase == "tuning"


def test_before_the_first_trial_a_run_goes_first(tuner: Tuner) -> None:
    tuner.tuning.start(OPTIONS)
    first = tuner.sent(TuneQuery)
    tuner.bench.features.runs.run()
    assert first.fate.startswith("killed after")
    assert tuner.tuning.phase == "waiting"
    tuner.bench.sent(RunQuery).answer(RECORD)
    assert tuner.tuning.phase == "tuning"
    assert tuner.sent(TuneQuery) is not first


def test_stopped_it_keeps_what_it_has_found(tuner: Tuner, qtbot: QtBot) -> None:
    tuner.begin(qtbot)
    tuner.tuning.stop()
    first = tuner.sent(TuneQuery)
    assert (first.fate, tuner.tuning.phase) == ("cancelled", "stopping")
    first.refuse(CANCELLED)
    # It is in the database, where no more trials are needed to read it.
    assert tuner.tuning.phase == "collecting"
    assert tuner.tuning.state is not None
    assert tuner.tuning.state.functions[0].state == "stopped"
    read = tuner.sent(TuneQuery).query
    assert isinstance(read, TuneQuery)
    assert read.options.trials == 0
    tuner.end()
    assert schedules(tuner.document.wanted) == (BEST,)


def test_stopped_before_it_has_found_anything_it_is_over(tuner: Tuner) -> None:
    tuner.tuning.start(OPTIONS)
    client = tuner.client
    tuner.tuning.stop()
    tuner.sent(TuneQuery).refuse(CANCELLED)
    assert tuner.tuning.phase == "idle"
    assert client.state == "stopped"
    tuner.bench.engine.be("busy")
    tuner.tuning.start(OPTIONS)
    tuner.tuning.stop()
    assert tuner.tuning.phase == "idle"


def test_a_process_that_crashed_leaves_what_it_found_and_can_go_on(
    tuner: Tuner, qtbot: QtBot
) -> None:
    tuner.begin(qtbot, trials=4)
    tuner.sent(TuneQuery).refuse(CRASHED)
    assert tuner.tuning.phase == "collecting"
    assert CRASHED.what in tuner.bench.notices[-1]
    tuner.end()
    assert schedules(tuner.document.wanted) == (BEST,)
    # The reason stays beside the outcome.
    assert CRASHED.what in tuner.tuning.said.text
    assert tuner.tuning.said.role == "wrong"
    assert tuner.tuning.can_go_on
    tuner.tuning.go_on()
    again = tuner.sent(TuneQuery).query
    assert isinstance(again, TuneQuery)
    # Those in the database count.
    assert again.options.trials == 4 + OPTIONS.trials


def test_a_database_that_cannot_be_read_ends_it(tuner: Tuner, qtbot: QtBot) -> None:
    tuner.begin(qtbot)
    tuner.sent(TuneQuery).refuse(CRASHED)
    tuner.sent(TuneQuery).refuse(WRONG)
    assert (tuner.tuning.phase, tuner.tuning.said.role) == ("idle", "wrong")
    assert schedules(tuner.document.wanted) == ()


def test_another_model_ends_it(tuner: Tuner, qtbot: QtBot) -> None:
    tuner.begin(qtbot)
    client = tuner.client
    show(tuner.document, OTHER)
    assert tuner.tuning.phase == "idle"
    assert client.state == "stopped"
    assert not tuner.tuning.can_go_on


def test_a_window_that_is_closed_takes_the_process_along(tuner: Tuner, qtbot: QtBot) -> None:
    tuner.begin(qtbot)
    client = tuner.client
    tuner.bench.features.stop()
    assert client.state == "stopped"
    assert tuner.tuning.phase == "idle"


# The form


def test_the_form_has_the_function_the_slowest_or_all(tuner: Tuner, qtbot: QtBot) -> None:
    dialog = TuneDialog(tuner.document, "dense", tuner.tuning, None)
    qtbot.addWidget(dialog)
    dialog.trials.setValue(14)
    assert dialog.options() == TuneOptions(functions=("dense",), trials=14)
    dialog.slowest.click()
    dialog.count.setValue(1)
    assert dialog.options() == TuneOptions(slowest=1, trials=14)
    dialog.whole.click()
    assert dialog.options() == TuneOptions(trials=14)
    assert "2 functions, about 7 trials each" in dialog.estimate.text()
    dialog.begin.click()
    assert tuner.sent(TuneQuery).query == TuneQuery(recipe=RECIPE, options=dialog.options())


def test_a_function_has_its_name_from_before_its_weights_are_laid_out(tuner: Tuner) -> None:
    show(tuner.document, RECIPE, "dense_prepacked", "relu", key="2")
    tuner.document.select(("tir:dense_prepacked",))
    assert function_of(tuner.document) == "dense"


def test_without_a_function_there_is_nothing_to_tune(tuner: Tuner, qtbot: QtBot) -> None:
    tuner.document.reload()
    none = msgspec.structs.replace(snapshot("dense"), functions=(), links=(), key="2")
    tuner.bench.engine.last().answer(none)
    dialog = TuneDialog(tuner.document, "", tuner.tuning, None)
    qtbot.addWidget(dialog)
    assert not dialog.begin.isEnabled()
    assert not dialog.empty.isHidden()
