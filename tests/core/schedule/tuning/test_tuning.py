"""Tuning finds something better, which is an ordinary history, and keeps it."""

from __future__ import annotations

import json
import math
import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest
import tvm
from tvm import te, tirx, topi
from tvm.s_tir import Schedule, meta_schedule

from lowerscope.core.cli.main import main
from lowerscope.core.model.queries import CheckQuery, RunQuery, ScheduleQuery, TuneQuery
from lowerscope.core.model.recipe import Recipe, Source, Step, applied_to_model, with_tuned
from lowerscope.core.model.tuning_records import Tuned, TuneOptions
from lowerscope.core.run.tuning.candidates import TraceSource
from lowerscope.core.run.tuning.measurers import Candidate, LocalMeasurer, Sized, Subject
from lowerscope.core.schedule.applying import apply
from lowerscope.core.schedule.references import first_outputs, function_of
from lowerscope.core.stages import Pipeline
from tests.core.schedule.running import Runner
from tests.diagonal import at_length
from tests.warm_processes import WarmProcess, run_warm

RECIPE = Recipe(
    source=Source(spec="sample:matmul_relu"), steps=(Step(name="LegalizeOps"),), target="native"
)
TRIALS = 4


@pytest.fixture(scope="module")
def tuned(pipeline: Pipeline) -> Tuned:
    return pipeline.answer(TuneQuery(RECIPE, TuneOptions(trials=TRIALS)))


def test_the_best_is_a_history_that_computes_the_same(pipeline: Pipeline, tuned: Tuned) -> None:
    state = tuned.state
    assert state.finished
    assert state.trials_done == state.trials_total >= TRIALS
    assert tuned.schedules
    faster = {schedule.function for schedule in tuned.schedules}
    for each in state.functions:
        assert each.state == "done"
        assert each.best is not None
        assert each.unscheduled is not None
        assert each.by_rules is None or each.best <= each.by_rules
        # Its points are the candidates that were faster than what was known before them.
        assert each.points[-1].best == each.best if each.name in faster else not each.points
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
    command = ("-m", "lowerscope.app", "tune", "sample:matmul_relu")
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    tuning = WarmProcess(*command, "--target", "native", "--trials", "900", environment=environment)
    assert tuning.stdout is not None
    assert tuning.stderr is not None
    for line in tuning.stderr:
        if "trials" in line:
            break
    below = psutil.Process(tuning.pid).children(recursive=True)
    assert below
    os.kill(tuning.pid, signal.SIGINT)
    err = tuning.stderr.read()
    assert tuning.wait() == 2
    assert "stopped; the results are kept" in err
    assert "Traceback" not in err
    assert "stopped" in tuning.stdout.read()
    tuning.close()
    assert not any(each.is_running() for each in below)
    assert list(tmp_path.glob("lowerscope/tuning/*/f-*.json"))


# Traces of TVM's search become histories that do the same, and name no trace


TARGET = tvm.target.Target({"kind": "llvm", "num-cores": 2, "mattr": ["+avx2", "+fma"]})


def product() -> tirx.PrimFunc:
    a, b = (te.placeholder((32, 32), name=name) for name in "AB")
    return te.create_prim_func([a, b, topi.nn.relu(topi.matmul(a, b))])


def convolution() -> tirx.PrimFunc:
    x, w = te.placeholder((1, 4, 8, 8), name="x"), te.placeholder((8, 4, 3, 3), name="w")
    return te.create_prim_func([x, w, topi.nn.relu(topi.nn.conv2d(x, w, 1, 1, 1, "NCHW"))])


def softmax() -> tirx.PrimFunc:
    x = te.placeholder((4, 64), name="x")
    return te.create_prim_func([x, topi.nn.softmax(x)])


@pytest.mark.parametrize("make", [softmax, *at_length(product, convolution)])
def test_a_history_does_what_the_trace_does(make: Any) -> None:
    function = make()
    database = meta_schedule.database.MemoryDatabase()
    source = TraceSource(function, TARGET, 2, database, 4, seed=0)
    proposals = source.propose(4)
    runner = Runner(TARGET)
    assert len(proposals) == 4
    for each in proposals:
        assert runner.difference("drawn", function, each.drawn.sch.mod["main"]) is None
        names = {primitive.name for primitive in each.primitives}
        # What the postprocessors have made of annotations is there, and what they read is not.
        assert "parallel" in names or "vectorize" in names or "unroll" in names
        keys = [str(step.arguments.get("ann_key", "")) for step in each.primitives]
        assert not any(key.startswith("meta_schedule.") for key in keys)
        replayed = Schedule(tvm.IRModule({"main": function}))
        outputs: dict[Any, Any] = dict(first_outputs(replayed))
        for step in each.primitives:
            applied = apply(replayed, step, outputs, TARGET)
            replayed, outputs = applied.sch, {**outputs, step.id: applied.outputs}
        assert runner.difference("drawn", function, function_of(replayed)) is None
        loops = [str(function_of(replayed)).count(kind) for kind in ("T.parallel", "T.vectorized")]
        drawn = str(each.drawn.sch.mod["main"])
        assert loops == [drawn.count(kind) for kind in ("T.parallel", "T.vectorized")]
    source.learn(proposals, [1e-3, 2e-3, None, 3e-3])
    assert source.propose(2)


# The traces of an earlier tuning are opened again


_PROGRAM = """
import tvm
from tvm import te
from tvm.s_tir import Schedule, meta_schedule

from lowerscope.core.build.targets import make_target
from lowerscope.core.lowering.legal_forms import extremum, make_known
from lowerscope.core.run.tuning.database import Database

make_known()
x = te.placeholder((16, 64), "float32")
k = te.reduce_axis((0, 64))
largest = te.compute((16,), lambda i: extremum(True)(x[i, k], axis=k), name="largest")
module = tvm.IRModule({"main": te.create_prim_func([x, largest])})
schedule = Schedule(module)
_, loop = schedule.get_loops(schedule.get_sblock("largest"))
_, inner = schedule.split(loop, (None, 4))
schedule.rfactor(inner, 1)
database = Database(make_target("llvm", 1), 1)
record = meta_schedule.database.TuningRecord(
    schedule.trace, database.traces.commit_workload(module), [1e-6]
)
database.traces.commit_tuning_record(record)
database.close()

records = database.folder / "database_tuning_record.json"
whole = records.read_text()
print(len(Database(make_target("llvm", 1), 1).traces))
# Nor do lines that are no traces stand in the way.
records.write_text(f'[9, []]\\n{whole}["no trace"]\\n')
print(len(Database(make_target("llvm", 1), 1).traces), records.read_text() == whole)
"""


def test_a_trace_with_a_reducer_from_python_is_opened_again(tmp_path: Path) -> None:
    ended = run_warm("-c", _PROGRAM, environment={**os.environ, "XDG_CACHE_HOME": str(tmp_path)})
    assert (ended.returncode, ended.stdout) == (0, "1\n1 True\n"), ended.stderr


# Candidates are measured whatever they do: they crash, never end, or compute something else


_FUNCTION = """
@T.prim_func(s_tir=True)
def main(x: T.Buffer((4096,), "float32"), y: T.Buffer((4096,), "float32")):
    T.func_attr({{"tirx.noalias": True}})
    for i in range(4096):
        with T.sblock("y"):
            v = T.axis.spatial(4096, i)
            {body}
"""

DOUBLES = "y[v] = x[v] * T.float32(2)"
TRIPLES = "y[v] = x[v] * T.float32(3)"
CRASHES = 'T.evaluate(T.call_extern("int32", "raise", 11))'
NEVER_ENDS = 'T.evaluate(T.call_extern("int32", "pause"))'


def sized(body: str) -> Sized:
    function = tvm.script.from_source(_FUNCTION.format(body=body))
    return Sized(str(tvm.ir.save_json(function)))


@pytest.fixture(scope="module")
def measurer() -> Iterator[LocalMeasurer]:
    with closing(LocalMeasurer(lambda: None, patience=4.0)) as made:
        yield made
    assert not psutil.pid_exists(made.process)


def measured(measurer: LocalMeasurer, body: str, **more: Any) -> Any:
    return measurer.measure(Candidate(subject=1, scheduled=sized(body), **more))


def test_a_candidate_that_crashes_or_hangs_is_survived(measurer: LocalMeasurer) -> None:
    subject = Subject(1, sized(DOUBLES), '{"kind": "llvm"}', seed=0, threads=1, seconds=30.0)
    begun = measurer.begin(subject)
    assert begun.seconds is not None, begun.reason
    good = measured(measurer, DOUBLES)
    assert good.seconds is not None
    assert good.reason == ""
    wrong = measured(measurer, TRIPLES, best=1.0)
    assert wrong.seconds is None
    assert "its result differs: " in wrong.reason
    first = measurer.process
    crashed = measured(measurer, CRASHES)
    assert crashed.seconds is None
    assert "SIGSEGV" in crashed.reason
    second = measurer.process
    assert second != first
    # The process that comes after it knows the subject again.
    assert measured(measurer, DOUBLES).seconds is not None
    hung = measured(measurer, NEVER_ENDS)
    assert hung.seconds is None
    assert "was stopped" in hung.reason
    assert not psutil.pid_exists(second)
