"""The features' models together, with a test in the place of both children."""

from __future__ import annotations

import msgspec
from pytestqt.qtbot import QtBot

from lowerscope.app.engine.child_process import Ending
from lowerscope.core.model.module_steps import Moment, PassRecord
from lowerscope.core.model.queries import (
    BuildStepsQuery,
    LoweredQuery,
    MeasureQuery,
    MovesQuery,
    RunQuery,
    ScheduleQuery,
    SnapshotQuery,
)
from lowerscope.core.model.recipe import Override, Step, without_steps
from lowerscope.core.model.schedule import Primitive
from lowerscope.core.model.schedule_records import ScheduleRecord, ScheduleStep
from lowerscope.core.model.snapshot import TextRecord
from lowerscope.core.model.tolerances import Tolerance, Tolerances
from lowerscope.core.sandbox.running_call import RunningCall
from tests.app.plain_values import (
    CANCELLED,
    CRASHED,
    OTHER,
    RECIPE,
    RECORD,
    TE,
    WRONG,
    Bench,
    crash,
    snapshot,
)

# Changes of the recipe


def test_a_version_that_is_replaced_is_superseded_and_its_answer_never_shown(bench: Bench) -> None:
    bench.document.open(RECIPE)
    first = bench.engine.last()
    assert bench.document.job.text == "Opening"
    bench.document.change(TE)
    assert first.fate.startswith("killed")
    bench.derive()
    assert bench.document.recipe == TE
    assert not bench.document.job.text


def test_cancelling_keeps_the_problem_with_its_own_recipe(bench: Bench) -> None:
    bench.document.open(RECIPE)
    bench.sent(SnapshotQuery).refuse(WRONG)
    bench.document.open(OTHER)
    bench.sent(SnapshotQuery).refuse(CANCELLED)
    assert (bench.document.wanted, bench.document.rejected) == (None, RECIPE)
    assert bench.document.problems == (WRONG,)


def test_a_source_is_shown_before_its_passes_end(bench: Bench, qtbot: QtBot) -> None:
    document = bench.document
    steps = (Step(name="LegalizeOps"), Step(name="FoldConstant"))
    whole = msgspec.structs.replace(RECIPE, steps=steps)
    document.open(whole)
    qtbot.waitUntil(lambda: bench.count(LoweredQuery) == 1)
    # Not lowered yet: asked again at the next stage.
    bench.engine.part = "step 1 FoldConstant"
    bench.sent(SnapshotQuery).progress("Applying FoldConstant", 0.5)
    assert bench.count(LoweredQuery) == 2
    assert document.job.step == 2
    bench.sent(LoweredQuery).answer(snapshot("dense", "relu"))
    assert document.is_changing
    assert (document.recipe, document.wanted) == (without_steps(whole), whole)
    assert document.snapshot is not None
    bench.sent(SnapshotQuery).progress("Scheduling dense", 0.7)
    assert bench.count(LoweredQuery) == 2
    bench.derive()
    assert document.recipe == whole
    assert not document.is_changing
    # A change of what is open keeps it in view until the new records arrive.
    document.change_fields(lowering="te")
    bench.sent(SnapshotQuery).progress("Applying FoldConstant", 0.5)
    assert bench.count(LoweredQuery) == 2


# Crashes


def test_a_change_lost_in_a_crash_is_requested_once_more(bench: Bench) -> None:
    bench.open(RECIPE)
    bench.document.change(TE)
    lost = bench.sent(SnapshotQuery)
    crash(bench, bench.engine)
    lost.refuse(CRASHED)
    assert bench.engine.last() is not lost
    assert bench.document.wanted == TE
    bench.derive()
    assert (bench.document.recipe, bench.document.problems) == (TE, ())


def test_a_pass_that_crashes_two_engines_is_switched_off(bench: Bench) -> None:
    steps = RECIPE.steps
    assert steps
    part = f"step 0 {steps[0].name}"
    bench.document.open(RECIPE)
    for _ in range(2):
        lost = bench.sent(SnapshotQuery)
        crash(bench, bench.engine, part)
        lost.refuse(CRASHED)
    bench.derive()
    assert bench.document.recipe is not None
    assert not bench.document.recipe.steps[0].on
    assert bench.document.before == RECIPE
    assert any("switched off" in each for each in bench.notices)


def test_a_pass_that_crashes_two_workers_is_switched_off(bench: Bench) -> None:
    bench.open(RECIPE)
    for _ in range(2):
        crash(bench, bench.worker, f"step 0 {RECIPE.steps[0].name}")
    bench.derive()
    assert bench.document.recipe is not None
    assert not bench.document.recipe.steps[0].on
    assert any("switched off" in each for each in bench.notices)


def test_a_strategy_that_crashes_two_engines_is_switched_off(bench: Bench) -> None:
    chosen = (Override(pattern="fx:relu", strategy="te"),)
    recipe = msgspec.structs.replace(RECIPE, overrides=chosen)
    bench.document.open(recipe)
    for _ in range(2):
        lost = bench.sent(SnapshotQuery)
        crash(bench, bench.engine, "override 0 fx:relu")
        lost.refuse(CRASHED)
    bench.derive()
    assert bench.document.recipe is not None
    assert [each.on for each in bench.document.recipe.overrides] == [False]
    assert bench.document.before == recipe
    assert any("relu" in each and "switched off" in each for each in bench.notices)


def test_what_is_shown_is_replayed_in_the_next_engine(bench: Bench, qtbot: QtBot) -> None:
    bench.open(RECIPE)
    before = bench.count(SnapshotQuery)
    with qtbot.waitSignal(bench.features.recovering.replayed):
        crash(bench, bench.engine)
        assert bench.count(SnapshotQuery) == before + 1
        bench.derive()
    shown = bench.document.snapshot
    crash(bench, bench.engine)
    bench.sent(SnapshotQuery).refuse(WRONG)
    assert (bench.document.rejected, bench.document.problems) == (RECIPE, (WRONG,))
    assert bench.document.snapshot is shown
    bench.features.recovering.replay()
    bench.derive()
    assert bench.document.problems == ()


def test_the_notification_of_a_crash_says_when_the_child_is_back(bench: Bench) -> None:
    bench.open(RECIPE)
    for client in (bench.engine, bench.worker):
        client.be("starting")
        crash(bench, client)
        before = bench.document.state.notice
        client.be("ready")
        notice = bench.document.state.notice
        assert before is not None
        assert notice is not None
        assert "being" in before.text
        assert "has been restarted" in notice.text
    # One that was dismissed, or followed by another one, does not come back.
    crash(bench, bench.worker)
    bench.document.set(notice=None)
    bench.worker.be("busy")
    bench.worker.be("ready")
    assert bench.document.state.notice is None


# Runs


def test_a_run_waits_for_the_engine_and_its_outcome_is_the_documents(
    bench: Bench, qtbot: QtBot
) -> None:
    bench.document.open(RECIPE)
    bench.features.runs.run()
    assert bench.document.running
    assert bench.count(RunQuery) == 0
    bench.derive()
    qtbot.waitUntil(lambda: bench.count(RunQuery) == 1)
    bench.sent(RunQuery).answer(RECORD)
    assert (bench.document.run_record, bench.document.running) == (RECORD, False)
    assert not bench.document.job.text


def test_undo_brings_the_outcome_back_and_other_code_has_none(bench: Bench) -> None:
    bench.open(RECIPE)
    bench.run()
    bench.change(TE)
    assert bench.document.run_record is None
    bench.document.undo()
    bench.derive()
    assert bench.document.run_record is RECORD
    bench.document.reload()
    bench.derive(key="2")
    assert bench.document.run_record is None


def test_other_tolerances_judge_the_same_run_anew(bench: Bench, qtbot: QtBot) -> None:
    bench.open(RECIPE)
    bench.run()
    strict = Tolerances(float32=Tolerance(1e-9, 1e-9))
    bench.change(msgspec.structs.replace(RECIPE, tolerances=strict))
    qtbot.waitUntil(lambda: bench.count(RunQuery) == 2)
    query = bench.sent(RunQuery).query
    assert isinstance(query, RunQuery)
    assert (query.part, query.before) == ("verdict", RECORD)


def test_a_stopped_run_leaves_the_outcome_of_before(bench: Bench) -> None:
    bench.open(RECIPE)
    bench.run()
    bench.features.runs.run()
    assert bench.document.run_record is None
    bench.features.cancel()
    pending = bench.worker.last()
    assert pending.fate == "cancelled"
    pending.refuse(CANCELLED)
    assert (bench.document.run_record, bench.document.running) == (RECORD, False)
    assert bench.document.problems == ()


def test_a_change_supersedes_the_run(bench: Bench) -> None:
    bench.open(RECIPE)
    bench.features.runs.run()
    running = bench.worker.last()
    bench.document.open(OTHER)
    assert running.fate.startswith("killed")
    assert not bench.document.running


def test_a_run_of_files_that_changed_is_shown_once_they_are_read_again(
    bench: Bench, qtbot: QtBot
) -> None:
    bench.open(RECIPE)
    bench.run(msgspec.structs.replace(RECORD, key="2"))
    assert bench.document.pending is not None
    assert bench.document.pending.reads_files
    bench.derive(key="2")
    assert bench.document.run_record is not None
    assert any("reopened" in each for each in bench.notices)


def test_a_recipe_whose_run_crashed_is_left_for_the_last_that_worked(bench: Bench) -> None:
    bench.open(RECIPE)
    bench.run()
    bench.change(TE)
    bench.features.runs.run()
    lost = bench.worker.last()
    call = RunningCall(index=0, count=2, names=("dense",))
    bench.worker.crashed.emit(Ending(role="worker", how="signal", signal_name="SIGSEGV", call=call))
    lost.refuse(msgspec.structs.replace(CRASHED, what="The worker crashed"))
    faults = bench.features.faults
    assert faults.failed is not None
    assert faults.can_go_back
    faults.go_back()
    assert bench.document.wanted == RECIPE


def test_the_calls_of_a_run_are_steps_and_select_what_they_compute(bench: Bench) -> None:
    bench.open(RECIPE)
    bench.run()
    stepping, steps = bench.features.stepping, bench.features.run_steps
    stepping.go(Moment(section="run", index=2))
    assert steps.call is RECORD.calls[1]
    assert bench.document.selection.chosen == ("fx:relu",)
    steps.toggle(("fx:dense",))
    stepping.to_break(-1)
    assert steps.call is RECORD.calls[0]
    bench.change(TE)
    assert steps.call is None
    assert steps.breaks == {"fx:dense"}
    bench.open(OTHER)
    assert steps.breaks == frozenset()


# Steps


def test_the_passes_of_the_build_are_listed_while_they_are_shown(bench: Bench) -> None:
    bench.open(RECIPE)
    assert bench.count(BuildStepsQuery) == 0
    stepping = bench.features.stepping
    stepping.set_section("build")
    listed = bench.sent(BuildStepsQuery)
    listed.answer((PassRecord(number=1, name="Simplify", changed=("main",)),))
    assert [each.title for each in stepping.lines("build")] == ["Simplify"]
    bench.change(TE)
    assert stepping.lines("build") == ()
    bench.sent(BuildStepsQuery).refuse(WRONG)
    assert bench.features.build.problem is WRONG


def scheduled(count: int) -> ScheduleRecord:
    """Return the record of a function after some steps."""
    return ScheduleRecord(
        function="dense",
        structure="s",
        index=count,
        script=TextRecord(text=f"after {count}", language="python"),
        steps=tuple(
            ScheduleStep(id=f"s{each}", title="unroll", code="") for each in range(1, count + 1)
        ),
    )


def test_a_primitive_is_one_step_of_undo_whose_record_is_cached(bench: Bench) -> None:
    bench.open(RECIPE)
    scheduling, stepping = bench.features.scheduling, bench.features.stepping
    scheduling.look("dense")
    stepping.set_section("schedule")
    bench.sent(ScheduleQuery).answer(scheduled(0))
    assert scheduling.record == scheduled(0)
    assert bench.sent(MovesQuery).query == MovesQuery(RECIPE, "dense", None, ())
    scheduling.editing.apply(Primitive(id="", name="unroll"))
    # The model is the same: there is nothing else to derive.
    assert bench.document.pending is None
    assert len(scheduling.primitives) == 1
    bench.sent(ScheduleQuery).answer(scheduled(1))
    assert [each.title for each in stepping.lines("schedule")] == ["unroll"]
    asked = bench.count(ScheduleQuery)
    bench.document.undo()
    assert (scheduling.record, bench.document.recipe) == (scheduled(0), RECIPE)
    bench.document.redo()
    assert scheduling.record == scheduled(1)
    assert bench.count(ScheduleQuery) == asked


def test_a_query_of_the_schedule_is_repeated_once_after_a_crash(bench: Bench) -> None:
    bench.open(RECIPE)
    scheduling = bench.features.scheduling
    scheduling.look("dense")
    bench.features.stepping.set_section("schedule")
    for _ in range(2):
        lost = bench.sent(ScheduleQuery)
        crash(bench, bench.engine)
        lost.refuse(CRASHED)
        # The recipe shown is replayed in the next engine; then the query is sent once more.
        bench.derive()
    assert scheduling.problem == CRASHED
    assert bench.count(ScheduleQuery) == 2


def test_the_function_is_measured_unless_a_run_has_the_worker(bench: Bench, qtbot: QtBot) -> None:
    bench.open(RECIPE)
    bench.features.scheduling.look("dense")
    bench.features.stepping.set_section("schedule")
    bench.sent(ScheduleQuery).answer(scheduled(0))
    measurements = bench.features.measurements
    measurements.measure()
    measuring = bench.sent(MeasureQuery)
    bench.features.runs.run()
    assert measuring.fate == "cancelled"
    measuring.refuse(CANCELLED)
    measurements.measure()
    assert bench.count(MeasureQuery) == 1
    bench.sent(RunQuery).answer(RECORD)
    qtbot.waitUntil(lambda: bench.count(MeasureQuery) == 2)


# Variants


def test_a_batch_goes_on_after_a_reload_that_fails(bench: Bench) -> None:
    bench.open(RECIPE)
    bench.features.runs.variants.run((RECIPE, TE))
    bench.document.reload()
    bench.sent(RunQuery).answer(RECORD)
    assert bench.count(RunQuery) == 1
    bench.sent(SnapshotQuery).refuse(WRONG)
    assert bench.count(RunQuery) == 2
