"""Tuning finds something better, which is an ordinary history, and keeps it."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import psutil
import pytest

from lowerscope.core.cli.main import main
from lowerscope.core.engine.pipeline import Pipeline
from lowerscope.core.model.queries import CheckQuery, RunQuery, ScheduleQuery, TuneQuery
from lowerscope.core.model.recipe import Recipe, Source, Step, applied_to_model, with_tuned
from lowerscope.core.model.tuning_records import Tuned, TuneOptions

RECIPE = Recipe(
    source=Source(spec="sample:matmul_relu"), steps=(Step(name="LegalizeOps"),), target="native"
)
TRIALS = 8


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return Pipeline()


@pytest.fixture(scope="module")
def tuned(pipeline: Pipeline) -> Tuned:
    return pipeline.answer(TuneQuery(RECIPE, TuneOptions(trials=TRIALS)))


def test_the_best_is_a_history_that_computes_the_same(pipeline: Pipeline, tuned: Tuned) -> None:
    state = tuned.state
    assert state.finished
    assert state.trials_done == state.trials_total >= TRIALS
    assert tuned.schedules
    for each in state.functions:
        assert each.state == "done"
        assert each.best is not None
        assert each.unscheduled is not None
        assert each.by_rules is None or each.best <= each.by_rules
        assert [point.best for point in each.points][-1] == each.best
    # The trials are shared out by what a run spends in each.
    spent = [
        each.calls * min(each.by_rules or math.inf, each.unscheduled or math.inf)
        for each in state.functions
    ]
    assert len(spent) == 2
    assert sorted(spent, reverse=True) == spent
    for each, share in zip(state.functions, spent, strict=True):
        assert abs(each.planned - TRIALS * share / sum(spent)) <= 1
    slow = max(state.functions, key=lambda each: each.unscheduled or 0)
    assert slow.best < slow.unscheduled  # type: ignore[operator]
    recipe = applied_to_model(msgspec.structs.replace(RECIPE, schedules=tuned.schedules), True)
    assert pipeline.stages(recipe).transformed.notes == ()
    for schedule in tuned.schedules:
        checked = pipeline.answer(CheckQuery(recipe, schedule.function, None, 60.0))
        assert checked.verdict == "same", checked.reason
        record = pipeline.answer(ScheduleQuery(recipe, schedule.function, None))
        assert {step.status for step in record.steps} == {"done"}
    assert pipeline.answer(RunQuery(recipe, quick=True)).verdict == "match"


def test_the_slowest_functions_alone_can_be_tuned(pipeline: Pipeline, tuned: Tuned) -> None:
    found = pipeline.answer(TuneQuery(RECIPE, TuneOptions(trials=0, slowest=1)))
    assert [each.name for each in found.state.functions] == [tuned.state.functions[0].name]


def test_a_second_time_the_database_answers(tuned: Tuned) -> None:
    fresh = Pipeline()
    again = fresh.answer(TuneQuery(RECIPE, TuneOptions(trials=TRIALS)))
    assert all(each.from_database and not each.points for each in again.state.functions)
    assert again.schedules == tuned.schedules
    assert fresh.answer(TuneQuery(RECIPE, TuneOptions(trials=0))).schedules == tuned.schedules


def test_the_step_applies_what_was_found(
    pipeline: Pipeline, tuned: Tuned, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    recipe = with_tuned(RECIPE)
    assert recipe.steps[-1].name == "ApplyTuned"
    made = pipeline.stages(recipe).transformed
    assert made.notes == ()
    applied = {each.schedule.function: each.schedule for each in made.schedules[0]}
    for schedule in tuned.schedules:
        assert applied[schedule.function].primitives == schedule.primitives
    # With another database, nothing is known: rules schedule it, and that is said.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    notes = pipeline.stages(recipe).transformed.notes
    assert {each.where for each in notes} >= {each.function for each in tuned.schedules}
    assert all("not tuned" in each.text for each in notes)


def test_the_command_says_what_it_has(tuned: Tuned, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["sample:matmul_relu", "--target", "native"]
    assert main(["tune", *arguments, "--trials", str(TRIALS)]) == 0
    text = capsys.readouterr().out
    assert text.splitlines()[0].split() == [
        *("function", "calls", "unscheduled", "rules", "tuned", "torch", "trials"),
    ]
    assert "from the database" in text
    assert "--schedule tuned" in text
    assert main(["run", *arguments, "--schedule", "tuned"]) == 0
    assert "not tuned" not in capsys.readouterr().err
    assert main(["tune", *arguments, "--function", "nowhere"]) == 2
    assert "nowhere" in capsys.readouterr().err


def test_what_was_found_is_applied_and_checked_by_the_command(
    tuned: Tuned, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["schedule", "sample:matmul_relu", "--target", "native", "--apply", "tuned"]
    found = {each.function: each for each in tuned.schedules}
    assert main([*command, "--json", "--check"]) == 0
    listed = {each["function"]: each for each in json.loads(capsys.readouterr().out)}
    assert {each["rule"] for each in listed.values()} == {"tuned"}
    for name, each in listed.items():
        primitives = found[name].primitives if name in found else ()
        assert each["steps"] == len(primitives)
        assert not primitives or each["check"]["verdict"] == "same"
    name = next(iter(found))
    assert main([*command, "--function", name, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)["schedule"]
    assert [each["status"] for each in record["steps"]] == ["done"] * len(found[name].primitives)
    # With another number of threads it was not tuned: a rule does it, as in a run.
    other = [*command, "--threads", "1", "--function", name]
    assert main(other) == main(["run", *command[1:4], "--schedule", "tuned", "--threads", "1"]) == 2
    note = f"{name}: it was not tuned for this target, and is scheduled by a rule"
    assert capsys.readouterr().err.count(note) == 2


def test_an_interrupt_leaves_no_process_and_keeps_what_was_found(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lowerscope.app", "tune", "sample:matmul_relu"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    tuning = subprocess.Popen(
        [*command, "--target", "native", "--trials", "900"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert tuning.stderr is not None
    for line in tuning.stderr:
        if "trials" in line:
            break
    below = psutil.Process(tuning.pid).children(recursive=True)
    assert below
    tuning.send_signal(signal.SIGINT)
    out, err = tuning.communicate()
    assert tuning.returncode == 2
    assert "stopped; what was found is kept" in err
    assert "Traceback" not in err
    assert "stopped" in out
    assert not any(each.is_running() for each in below)
    assert list(tmp_path.glob("lowerscope/tuning/*/f-*.json"))
