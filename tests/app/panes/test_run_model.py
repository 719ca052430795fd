"""Runs: how they are timed, what is kept of them, their calls, and those that fail."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace

import msgspec
import pytest
from pytestqt.qtbot import QtBot

from lowerscope.app.document.stepping import StepLine
from lowerscope.app.panes.run.run_variants import variants_of
from lowerscope.app.panes.run.variants_page import variant_row
from lowerscope.app.panes.schedule.metrics import measured_rows, standing
from lowerscope.app.panes.tuning.tune_page import points_of, tuned_row
from lowerscope.core.cli.tune import _end, _table
from lowerscope.core.files.pipelines_and_schedules import find_pipeline, variant_names
from lowerscope.core.model.formatting import UNRELIABLE
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import RunQuery, VariantTimesQuery
from lowerscope.core.model.recipe import Recipe, Source, Step
from lowerscope.core.model.run_records import (
    MEASURING,
    CallRun,
    Measuring,
    RunTimes,
    SideTimes,
    is_disturbed,
)
from lowerscope.core.model.schedule import Schedule
from lowerscope.core.model.schedule_records import Measured
from lowerscope.core.model.tuning_records import Tuned, TunedFunction, TunedPoint, TuneState
from tests.app.plain_values import CANCELLED, RECIPE, RECORD, TE, WRONG, Bench

FASTER = msgspec.structs.replace(RECORD, tvm_ms=0.5)


def times(milliseconds: float = 1.0) -> RunTimes:
    sides = tuple(
        SideTimes(
            side=side,
            milliseconds=milliseconds,
            low=milliseconds,
            high=milliseconds,
            fastest=milliseconds,
            slowest=milliseconds,
            repeats=9,
            threads=2,
        )
        for side in ("TVM", "torch")
    )
    return RunTimes(sides=sides, warm_up=1)


TIMED = msgspec.structs.replace(RECORD, times=times())


def run_query(bench: Bench) -> RunQuery:
    query = bench.sent(RunQuery).query
    assert isinstance(query, RunQuery)
    return query


# Times


def test_the_same_executable_is_measured_again_and_shown_meanwhile(bench: Bench) -> None:
    bench.open(RECIPE)
    runs = bench.features.runs
    runs.measure_again()
    assert bench.count(RunQuery) == 0
    bench.run()
    runs.measure_again()
    assert (run_query(bench).part, run_query(bench).before) == ("times", RECORD)
    assert bench.document.run_record is RECORD
    bench.sent(RunQuery).answer(FASTER)
    assert bench.document.run_record == FASTER


def test_other_repeats_measure_again_and_other_threads_run_again(
    bench: Bench, qtbot: QtBot
) -> None:
    bench.open(RECIPE)
    runs = bench.features.runs
    bench.run()
    runs.measure_as(RECIPE.threads, Measuring(repeats=5))
    bench.derive()
    qtbot.waitUntil(lambda: bench.count(RunQuery) == 2)
    assert (run_query(bench).part, run_query(bench).before) == ("times", RECORD)
    assert run_query(bench).recipe.measuring.repeats == 5
    bench.sent(RunQuery).answer(FASTER)
    runs.measure_as(3, Measuring(repeats=5))
    bench.derive()
    qtbot.waitUntil(lambda: bench.count(RunQuery) == 3)
    # With other threads, its values may differ.
    assert (run_query(bench).part, run_query(bench).before) == ("all", None)
    assert run_query(bench).recipe.threads == 3


def test_what_the_engine_disturbs_is_measured_again_once(
    bench: Bench, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A clock that goes on by a second each time that it is read.
    clock = SimpleNamespace(monotonic=count().__next__)
    monkeypatch.setattr("lowerscope.app.panes.run.outcomes.time", clock)
    bench.open(RECIPE)
    bench.features.runs.run()
    for part in ("all", "times"):
        qtbot.waitUntil(lambda part=part: run_query(bench).part == part)  # type: ignore[misc]
        running = bench.sent(RunQuery)
        running.progress(f"{MEASURING}: TVM")
        bench.engine.be("busy")
        bench.engine.be("ready")
        running.answer(TIMED)
        record = bench.document.run_record
        assert record is not None
        assert is_disturbed(record.times)
    assert bench.count(RunQuery) == 2
    assert not bench.document.running


# Variants


def test_a_row_is_named_removed_and_outdated_with_its_files(bench: Bench) -> None:
    bench.open(RECIPE)
    variants = bench.features.runs.variants
    bench.run()
    bench.change(TE)
    bench.run(FASTER)
    bench.run(FASTER)
    assert [each.name for each in variants.all] == ["high-level", "TE"]
    first, second = variants.kept
    assert variants.shown == second.id
    variants.rename(first.id, " as it came ")
    assert [each.name for each in variants.all] == ["as it came", "TE"]
    variants.rename(first.id, "")
    assert [each.name for each in variants.all] == ["high-level", "TE"]
    bench.document.reload()
    bench.derive(key="2")
    assert [each.outdated for each in variants.kept] == [True, True]
    row = variant_row(variants.kept[0], variants.all[0], shown=False, best=False)
    assert row.cell(3).text.endswith("earlier version")
    bench.run(msgspec.structs.replace(FASTER, key="2"))
    assert [each.outdated for each in variants.kept] == [True, False]
    variants.remove([first.id])
    assert [each.id for each in variants.kept] == [second.id]


def test_runs_of_a_batch_are_timed_by_turns_at_its_end(bench: Bench) -> None:
    bench.open(RECIPE)
    variants = bench.features.runs.variants
    variants.run((RECIPE, TE))
    bench.sent(RunQuery).answer(TIMED)
    bench.sent(RunQuery).answer(TIMED)
    query = bench.sent(VariantTimesQuery)
    assert query.query == VariantTimesQuery(recipes=(RECIPE, TE))
    # One that was deleted meanwhile does not come back.
    variants.remove([variants.kept[1].id])
    query.answer(((times(2.0),), (times(3.0),)))
    (kept,) = variants.kept
    assert kept.record is not None
    assert kept.record.tvm_ms == 2.0
    assert bench.document.run_record == kept.record
    assert not bench.document.running


def test_a_batch_that_is_stopped_keeps_what_has_run(bench: Bench) -> None:
    bench.open(RECIPE)
    variants = bench.features.runs.variants
    bench.run()
    variants.run((TE, RECIPE))
    bench.sent(RunQuery).answer(FASTER)
    bench.features.cancel()
    bench.worker.last().refuse(CANCELLED)
    assert [each.record for each in variants.kept] == [RECORD, FASTER]
    assert not bench.document.running
    assert bench.document.problems == ()


def test_a_run_that_fails_leaves_the_figures_of_the_one_before(bench: Bench) -> None:
    bench.open(RECIPE)
    variants = bench.features.runs.variants
    bench.run()
    variants.run((RECIPE, TE))
    for _ in range(2):
        bench.sent(RunQuery).refuse(WRONG)
    assert [(each.record, each.problem) for each in variants.kept] == [
        (RECORD, WRONG),
        (None, WRONG),
    ]
    assert bench.document.problems == ()
    rows = [
        variant_row(kept, named, shown=False, best=False)
        for kept, named in zip(variants.kept, variants.all, strict=True)
    ]
    assert [row.cell(3).role for row in rows] == ["wrong", "wrong"]
    assert [row.cell(2).text for row in rows] == ["1 ms", "–"]


# Calls


def lines(bench: Bench) -> tuple[StepLine, ...]:
    return bench.features.stepping.lines("run")


def test_breakpoints_are_at_the_calls_that_compute_a_node(bench: Bench) -> None:
    bench.open(RECIPE)
    steps = bench.features.run_steps
    steps.toggle(("fx:relu", "fx:dense"))
    assert steps.breaks == {"fx:relu", "fx:dense"}
    bench.run()
    assert [each.is_break for each in lines(bench)] == [True, True]
    steps.toggle(("fx:dense",))
    assert [each.is_break for each in lines(bench)] == [False, True]
    # A fused call computes both.
    bench.change(TE)
    fused = CallRun(function="fused", milliseconds=1.0, nodes=("fx:dense", "fx:relu"))
    bench.run(msgspec.structs.replace(RECORD, calls=(fused,)))
    assert [each.is_break for each in lines(bench)] == [True]
    bench.document.undo()
    bench.derive()
    assert [each.is_break for each in lines(bench)] == [False, True]
    # What no call computes is told, as one would wait for it.
    steps.toggle(("fx:gone",))
    assert len(bench.notices) == 1
    steps.clear()
    assert not any(each.is_break for each in lines(bench))


def test_the_bytecode_of_a_call_begins_after_that_of_the_one_before(bench: Bench) -> None:
    bench.open(RECIPE)
    calls = tuple(
        CallRun(function="linear", milliseconds=1.0, entity="tir:linear", line=line)
        for line in (4, 9)
    )
    bench.run(msgspec.structs.replace(RECORD, calls=calls))
    steps, stepping = bench.features.run_steps, bench.features.stepping
    found = []
    for index in (1, 2):
        stepping.go(Moment(section="run", index=index))
        found.append(steps.lines)
    assert found == [(2, 4), (5, 9)]
    stepping.leave()
    assert steps.lines == (0, 0)


def test_after_the_next_run_the_call_is_the_one_of_that_run(bench: Bench) -> None:
    bench.open(RECIPE)
    bench.run()
    bench.features.stepping.go(Moment(section="run", index=2))
    again = msgspec.structs.replace(RECORD, calls=(RECORD.calls[0], RECORD.calls[1]))
    bench.run(msgspec.structs.replace(again, tvm_ms=3.0))
    assert bench.features.run_steps.call is not None
    assert bench.features.run_steps.call.function == "relu"


# Runs that fail


def test_a_run_that_fails_ends_at_the_call_that_it_failed_in(bench: Bench) -> None:
    bench.open(RECIPE)
    bench.run()
    bench.change(TE)
    bench.features.stepping.set_section("run")
    bench.features.runs.run()
    failed = Problem(what="It failed", calls=("dense (dense)", "env.faulty (relu)"))
    bench.sent(RunQuery).refuse(failed)
    assert [(each.title, each.status) for each in lines(bench)] == [
        ("dense", "done"),
        ("env.faulty", "failed"),
    ]
    steps = bench.features.run_steps
    assert steps.failed == failed
    assert steps.call is not None
    assert steps.call.function == "env.faulty"
    assert bench.document.selection.chosen == ("fx:relu",)
    assert bench.features.faults.nodes == ("fx:relu",)
    bench.document.undo()
    bench.derive()
    assert steps.failed is None
    assert [each.title for each in lines(bench)] == ["dense", "relu"]


def test_a_run_that_had_to_be_killed_names_the_call_that_it_hung_in(bench: Bench) -> None:
    bench.open(RECIPE)
    bench.features.runs.run()
    calls = ("env.faulty (relu)",)
    bench.sent(RunQuery).refuse(
        Problem(what="", where="in call 1 of 7", code="cancelled", calls=calls)
    )
    (problem,) = bench.document.problems
    assert (problem.code, problem.calls) == ("stopped", calls)
    assert "in call 1 of 7" in problem.what
    assert bench.features.faults.nodes == ("fx:relu",)


@pytest.mark.parametrize("verdict", ["differ", "inconclusive"])
def test_only_what_matched_is_gone_back_to(bench: Bench, verdict: str) -> None:
    bench.open(RECIPE)
    faults = bench.features.faults
    assert not faults.can_go_back
    bench.run()
    bench.change(TE)
    failing = msgspec.structs.replace(RECORD, verdict=verdict)
    bench.run(failing)
    assert faults.can_go_back
    faults.go_back()
    assert bench.document.wanted == RECIPE
    bench.derive()
    assert not faults.can_go_back
    assert bench.document.run_record is RECORD


# Recipes that are run as variants of another one


PLAIN = Recipe(source=Source(spec="sample:fashion_mlp"), target="native")
FUSED = find_pipeline("fuse").steps


def test_both_lowerings_as_they_are_and_fused() -> None:
    four = variants_of(PLAIN, ("high-level", "te"))
    assert [(each.lowering, each.steps == FUSED) for each in four] == [
        ("high-level", False),
        ("te", False),
        ("high-level", True),
        ("te", True),
    ]
    # The rest is as it was, and a schedule that is not applied makes no other run.
    assert {each.target for each in four} == {"native"}
    schedules = (Schedule(function="matmul"),)
    assert len(variants_of(msgspec.structs.replace(PLAIN, schedules=schedules), ("te",))) == 3
    same = msgspec.structs.replace(PLAIN, schedules=schedules)
    assert len(variants_of(same, ("high-level", "te"))) == 4


def test_what_is_shown_is_among_them_with_its_schedules_and_passes() -> None:
    shown = msgspec.structs.replace(
        PLAIN,
        steps=(*PLAIN.steps, Step(name="ApplySchedules")),
        schedules=(Schedule(function="matmul"),),
    )
    recipes = variants_of(shown, ("high-level", "te"))
    assert recipes[-1] == shown
    assert variant_names(recipes)[-1] == "high-level · legalised · matmul scheduled"


def test_a_source_without_torch_has_its_pipelines_alone() -> None:
    recipes = variants_of(PLAIN, (PLAIN.lowering,))
    assert variant_names(recipes) == ("legalised", "fused")


# Ratios of times that other programs disturbed


def measured(
    milliseconds: float, *, disturbed: bool = False, torch: float | None = None
) -> Measured:
    return Measured(
        torch_ms=torch,
        milliseconds=milliseconds,
        low=milliseconds,
        high=milliseconds,
        repeats=9,
        build_ms=1.0,
        disturbed=disturbed,
    )


def tuned(*disturbed: str) -> TunedFunction:
    point = TunedPoint(trials=1, seconds_spent=1.0, best=0.001)
    return TunedFunction(
        name="f",
        unscheduled=0.01,
        torch=0.002,
        best=0.001,
        points=(point,),
        state="done",
        disturbed=disturbed,  # type: ignore[arg-type]
    )


def test_a_ratio_of_either_time_that_was_disturbed_is_marked() -> None:
    fast, slow = measured(2), measured(24)
    assert standing(fast, slow, None)[-1] == "12.0× faster than unscheduled"
    held = measured(24, disturbed=True)
    assert standing(fast, held, None)[-1] == "≈ 12.0× faster than unscheduled"
    assert standing(measured(2, disturbed=True), slow, None)[-1].startswith("≈ 12.0× faster")
    assert standing(fast, measured(2.1), None)[-1] == "as fast as unscheduled"


def test_the_time_of_torch_is_marked_as_well() -> None:
    ours, torch = measured(2), measured(3, disturbed=True, torch=4)
    cell = next(iter(measured_rows(ours, None, torch))).cell(2)
    assert (cell.text, cell.role) == ("4 ms", "unsure")
    assert UNRELIABLE in cell.tooltip
    assert standing(ours, None, torch)[-1].startswith("≈ 2.00×")
    torch = measured(3, torch=4)
    assert next(iter(measured_rows(ours, None, torch))).cell(2).role == ""
    assert standing(ours, None, torch)[-1].startswith("2.00×")


def test_tuning_states_no_ratio_of_disturbed_times() -> None:
    assert "10.0× faster" in points_of(tuned())[0].tooltip
    assert "faster" not in points_of(tuned("unscheduled"))[0].tooltip
    assert "10.0× faster" in points_of(tuned("torch"))[0].tooltip
    assert "≈ 2.00× faster" in str(tuned_row(tuned("torch")).cells)
    assert "2.00× faster" in str(tuned_row(tuned()).cells)
    assert UNRELIABLE in str(tuned_row(tuned("torch")).cells[-1])
    assert "≈" not in str(tuned_row(tuned()).cells)


def test_the_command_says_so_beside_the_function_and_at_the_end() -> None:
    for function, said in ((tuned(), False), (tuned("best"), True)):
        end = "\n".join(_end(Tuned(state=TuneState(functions=(function,)))))
        assert ("unreliable" in end and "--fresh" in end) == said
        assert ("unreliable" in "\n".join(_table((function,)))) == said
