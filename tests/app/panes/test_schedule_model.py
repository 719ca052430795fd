"""The scheduled function: its history, previews, forms and variants, and how it is measured."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from pytestqt.qtbot import QtBot

from lowerscope.app.kit import theme
from lowerscope.app.kit.tables.choice_list import CHOICE
from lowerscope.app.kit.theme import DARK, LIGHT
from lowerscope.app.panes.schedule.measurements import Measurements
from lowerscope.app.panes.schedule.metrics import AdviceList
from lowerscope.app.panes.schedule.schedule_moves_page import ScheduleMovesPage
from lowerscope.core.files.pipelines_and_schedules import save_schedules
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.queries import (
    ByRuleQuery,
    CheckQuery,
    MeasureQuery,
    MovesQuery,
    PeaksQuery,
    RulesQuery,
    ScheduleProgramQuery,
    ScheduleQuery,
    SnapshotQuery,
)
from lowerscope.core.model.recipe import Recipe, applies_schedules
from lowerscope.core.model.schedule import Made, Primitive, Schedule
from lowerscope.core.model.schedule_records import (
    Advice,
    ByRule,
    Checked,
    Coaching,
    Measured,
    Peaks,
    RuledFunction,
)
from tests.app.panes.workbench import FACTORS, LOOP, Workbench, move, primitive
from tests.app.plain_values import CRASHED, OTHER, RECIPE, WRONG, Bench, crash, snapshot


@pytest.fixture
def work(bench: Bench) -> Workbench:
    return Workbench(bench)


# The history


def test_steps_are_inserted_moved_and_removed_where_one_is(work: Workbench) -> None:
    work.apply("split")
    work.apply("parallel")
    work.do(lambda: work.scheduling.go(1))
    assert work.scheduling.place == 1
    work.apply("unroll")
    assert work.ids == ["s1", "s3", "s2"]
    # What was inserted is shown, and what comes after it is not.
    assert work.scheduling.index == 2
    work.do(lambda: work.editing.move(1, 2))
    assert work.ids == ["s1", "s2", "s3"]
    work.do(lambda: work.editing.remove("s1"))
    assert work.ids == ["s2", "s3"]
    assert work.scheduling.index == 1
    for _ in range(3):
        work.do(work.document.undo)
    assert work.ids == ["s1", "s2"]


def test_a_step_that_fails_is_shown_where_it_stands_and_can_be_forced(work: Workbench) -> None:
    work.failing = {"loop_partition"}
    work.apply("loop_partition")
    assert work.statuses == ["failed"]
    assert work.scheduling.step is not None
    assert work.scheduling.step.error is not None
    work.do(lambda: work.editing.force("s1"))
    assert work.statuses == ["done"]
    assert work.scheduling.primitives[0].forced


def test_what_a_step_made_is_selected_in_place_of_what_it_replaced(work: Workbench) -> None:
    work.document.select(("tir:dense/i",))
    work.settle()
    work.apply("split")
    assert [each.reference for each in work.scheduling.chosen] == [Made(step="s1", output=1)]


def test_the_files_read_again_may_have_another_function(work: Workbench) -> None:
    work.document.select(("tir:dense/i",))
    work.settle()
    asked = work.bench.count(ScheduleQuery), work.bench.count(MovesQuery)
    work.document.reload()
    work.bench.derive(key="2")
    assert work.scheduling.moves.are_coming
    work.settle()
    assert work.scheduling.moves.all == work.moves
    assert (work.bench.count(ScheduleQuery), work.bench.count(MovesQuery)) == (
        asked[0] + 1,
        asked[1] + 1,
    )


def test_the_function_of_the_selection_is_scheduled(bench: Bench) -> None:
    bench.open(RECIPE)
    scheduling, document = bench.features.scheduling, bench.document
    # There are two, and neither is selected.
    assert [each.name for each in scheduling.functions] == ["relu", "dense"]
    assert scheduling.function == ""
    document.select(("fx:relu",))
    assert scheduling.function == "relu"
    document.select(("tir:dense/i",))
    assert scheduling.function == "dense"
    # It stays while nothing is selected.
    document.select(())
    assert scheduling.function == "dense"


def test_a_primitive_is_chosen_by_name_as_soon_as_it_is_known(work: Workbench) -> None:
    work.document.select(("tir:dense/i",))
    assert work.scheduling.moves.are_coming
    work.trying.choose_named("split")
    assert work.trying.draft is None
    work.settle()
    assert work.trying.draft is not None
    assert work.trying.draft.primitive.name == "split"
    # One that needs no form is applied at once, and one that is not offered says so.
    work.do(lambda: work.trying.choose_named("unroll"))
    assert work.ids == ["s1"]
    work.trying.choose_named("vectorize")
    assert any("vectorize does not apply" in each for each in work.bench.notices)


def test_a_primitive_that_crashes_two_engines_is_switched_off_and_undo_drops_it(
    work: Workbench,
) -> None:
    work.apply("unroll")
    before = work.document.recipe
    work.editing.apply(primitive("parallel"))
    for _ in range(2):
        lost = work.bench.sent(ScheduleQuery)
        crash(work.bench, work.bench.engine, "primitive 0 s2 parallel")
        lost.refuse(CRASHED)
        assert work.scheduling.problem is None
        work.bench.derive()
    work.settle()
    assert work.statuses == ["done", "off"]
    assert any("switched off" in each for each in work.bench.notices)
    work.do(work.document.undo)
    assert work.document.recipe == before


def test_primitives_on_which_two_engines_crash_are_not_requested_again(work: Workbench) -> None:
    work.document.select(("tir:dense/i",))
    for _ in range(2):
        crash(work.bench, work.bench.engine)
        work.bench.sent(MovesQuery).refuse(CRASHED)
        work.bench.derive()
        for each in work.bench.engine.sent:
            if isinstance(each.query, ScheduleQuery) and not each.fate:
                each.answer(work.applied(each.query))
    assert work.scheduling.moves.are_deadly
    asked = work.bench.count(MovesQuery)
    work.scheduling.moves.follow()
    assert work.bench.count(MovesQuery) == asked


# Previews and forms


def test_what_is_pointed_at_is_previewed_until_the_function_is_another(
    work: Workbench, qtbot: QtBot
) -> None:
    work.apply("unroll")
    trying, asked = work.trying, work.bench.count(ScheduleQuery)

    def point() -> None:
        trying.show(primitive("parallel"))
        qtbot.waitUntil(lambda: _pending(work) is not None)
        query = _pending(work)
        assert query is not None
        assert [each.name for each in query.recipe.schedules[0].primitives] == [
            "unroll",
            "parallel",
        ]
        work.settle()
        assert trying.preview is not None
        assert trying.preview.record is not None
        assert trying.preview.base == work.scheduling.record

    point()
    assert work.document.recipe is not None
    assert len(work.scheduling.primitives) == 1
    # A second time, the answer is known.
    trying.show(None)
    assert trying.preview is None
    trying.show(primitive("parallel"))
    qtbot.waitUntil(lambda: trying.preview is not None and trying.preview.record is not None)
    assert work.bench.count(ScheduleQuery) == asked + 1
    work.do(work.document.undo)
    assert trying.preview is None
    work.do(work.document.redo)
    trying.show(primitive("parallel"))
    work.bench.open(OTHER)
    work.settle()
    assert trying.preview is None


def _pending(work: Workbench) -> ScheduleQuery | None:
    queries = [each.query for each in work.bench.engine.sent if not each.fate]
    return next((each for each in queries if isinstance(each, ScheduleQuery)), None)


def test_a_preview_that_crashed_the_engine_is_not_repeated(work: Workbench, qtbot: QtBot) -> None:
    work.trying.show(primitive("unroll"))
    qtbot.waitUntil(lambda: _pending(work) is not None)
    work.bench.sent(ScheduleQuery).refuse(CRASHED)
    assert any("unroll" in each for each in work.bench.notices)
    assert work.trying.preview is not None
    assert work.trying.preview.error is not None
    work.trying.show(None)
    asked = work.bench.count(ScheduleQuery)
    work.trying.show(primitive("unroll"))
    assert work.trying.preview is not None
    assert work.trying.preview.error is not None
    work.trying.show(primitive("parallel"))
    qtbot.waitUntil(lambda: _pending(work) is not None)
    assert work.bench.count(ScheduleQuery) == asked + 1
    # Chosen all the same, it has a form first.
    work.trying.choose(move("unroll"))
    assert work.scheduling.primitives == ()
    assert work.trying.draft is not None


def test_only_what_leaves_a_choice_has_a_form(work: Workbench) -> None:
    trying = work.trying
    work.do(lambda: trying.choose(move("unroll")))
    assert [each.name for each in work.scheduling.primitives] == ["unroll"]
    for asks in (move("split", FACTORS), move("parallel", legal=False), move("reorder")):
        trying.choose(asks)
        assert trying.draft is not None
        assert trying.draft.move is asks
        trying.cancel_draft()
    assert len(work.scheduling.primitives) == 1


def test_a_form_is_applied_once_it_is_right_and_forced_only_if_asked(work: Workbench) -> None:
    trying = work.trying
    trying.open(move("split", FACTORS))
    trying.fill_in({"factors": (2, 2)}, wrong="2 × 2 = 4 does not cover 8")
    assert trying.preview is None
    trying.apply_draft()
    assert work.scheduling.primitives == ()
    assert trying.draft is not None
    trying.fill_in({"loop": LOOP, "factors": (2, None)})
    work.do(trying.apply_draft)
    assert trying.draft is None
    (split,) = work.scheduling.primitives
    assert (split.id, split.arguments["factors"], split.forced) == ("s1", (2, None), False)
    trying.open(move("unsafe_set_dtype"))
    work.do(lambda: trying.apply_draft(forced=True))
    assert work.scheduling.primitives[-1].forced


def test_a_step_is_edited_with_the_names_of_before_it(work: Workbench) -> None:
    work.apply("split", factors=(None, 2))
    work.apply("unroll")
    work.trying.edit("s1")
    # It is edited where it stands, with what is offered there.
    place = work.bench.sent(MovesQuery).query
    assert isinstance(place, MovesQuery)
    assert (place.index, place.chosen) == (0, (LOOP,))
    work.settle()
    draft = work.trying.draft
    assert draft is not None
    assert draft.edits
    # By then the loop is gone from the tree.
    assert work.scheduling.name_of(LOOP) == "i"
    work.trying.fill_in({"loop": LOOP, "factors": (None, 4)})
    work.do(work.trying.apply_draft)
    assert work.ids == ["s1", "s2"]
    assert work.scheduling.primitives[0].arguments["factors"] == (None, 4)


def test_a_step_that_is_not_offered_any_more_cannot_be_edited(work: Workbench) -> None:
    work.apply("split")
    work.moves = ()
    work.do(lambda: work.trying.edit("s1"))
    assert work.trying.draft is None
    assert any("split" in each for each in work.bench.notices)


# Variants


def test_variants_are_added_chosen_renamed_and_removed(work: Workbench) -> None:
    def names() -> list[str]:
        return [each.variant for each in work.variants.all]

    work.apply("parallel")
    work.do(lambda: work.variants.add("wide"))
    assert (names(), work.ids) == (["", "wide"], [])
    work.apply("vectorize")
    work.do(lambda: work.variants.add("wide", copied=True))
    assert (names(), work.ids) == (["", "wide", "wide 2"], ["s1"])
    work.do(lambda: work.variants.rename("wider"))
    assert names() == ["", "wide", "wider"]
    work.do(work.variants.remove)
    assert names() == ["", "wide"]
    assert [each.name for each in work.scheduling.primitives] == ["vectorize"]
    work.do(lambda: work.variants.choose(""))
    assert [each.name for each in work.scheduling.primitives] == ["parallel"]
    work.do(lambda: work.variants.choose(None))
    assert work.scheduling.schedule is None
    assert work.ids == []
    work.do(work.document.undo)
    assert work.ids == ["s1"]


def test_schedules_are_applied_to_the_model_and_undo_takes_them_out(work: Workbench) -> None:
    work.apply("parallel")
    unapplied = work.document.recipe
    work.variants.set_in_model(True)
    assert work.document.wanted is not None
    assert applies_schedules(work.document.wanted)
    # Other than a change of the schedule alone, that derives the model anew.
    work.bench.sent(SnapshotQuery)
    work.bench.derive()
    work.settle()
    # The history takes back changes of the schedule alone.
    assert not work.scheduling.can_undo
    work.document.undo()
    assert not work.variants.in_model
    assert work.document.wanted == unapplied
    work.bench.derive()
    work.settle()
    assert work.scheduling.can_undo
    work.do(work.document.undo)
    assert work.scheduling.primitives == ()
    assert not work.scheduling.can_undo


def test_a_file_becomes_a_variant_and_a_broken_one_changes_nothing(
    work: Workbench, tmp_path: Path
) -> None:
    path = tmp_path / "mine.json"
    steps = (Primitive(id="s1", name="unroll"),)
    save_schedules(
        [
            Schedule(function="relu", structure="other", primitives=()),
            Schedule(function="dense", structure="structure", primitives=steps),
        ],
        str(path),
    )
    # Of several, the one that fits.
    work.do(lambda: work.variants.load(str(path)))
    assert work.ids == ["s1"]
    assert work.scheduling.schedule is not None
    assert work.scheduling.schedule.variant == "mine"
    before = work.document.recipe
    for content in (b'{"version": 1, "schedules": [{', b"\xff\xfe\x00", b"[]", b""):
        path.write_bytes(content)
        with pytest.raises(LowerscopeError, match=r"mine\.json"):
            work.variants.load(str(path))
        assert work.document.recipe == before


def test_a_rule_writes_a_variant_of_the_function_it_was_asked_for(work: Workbench) -> None:
    steps = (Primitive(id="s1", name="unroll", comment="it is short"),)
    ruled = ByRule(rule="elementwise", primitives=steps)
    for name in ("auto-schedule", "auto-schedule 2"):
        work.variants.by_rule.ask()
        work.bench.sent(ByRuleQuery).answer(ruled)
        work.settle()
        assert work.scheduling.schedule is not None
        assert (work.scheduling.schedule.variant, work.scheduling.primitives) == (name, steps)
    work.variants.by_rule.ask()
    work.bench.sent(ByRuleQuery).answer(ByRule(reason="a single value"))
    assert "a single value" in work.bench.notices[-1]
    before = work.document.recipe
    work.variants.by_rule.ask()
    asked = work.bench.sent(ByRuleQuery)
    work.do(lambda: work.scheduling.look("relu"))
    asked.answer(ruled)
    assert work.document.recipe == before


def test_the_rules_of_a_model_are_requested_once_for_its_records(work: Workbench) -> None:
    rules = work.variants.rules
    rules.set_in_model(True)
    assert rules.in_model
    work.bench.derive()
    rules.ask()
    work.bench.sent(RulesQuery).answer((RuledFunction(function="dense", rule="matmul", steps=3),))
    assert [each.rule for each in rules.functions] == ["matmul"]
    rules.ask()
    assert work.bench.count(RulesQuery) == 1
    work.document.reload()
    work.bench.derive(key="2")
    rules.ask()
    assert work.bench.count(RulesQuery) == 2
    work.bench.sent(RulesQuery).refuse(WRONG)
    assert (rules.functions, rules.problem) == ((), WRONG)
    rules.set_in_model(False)
    assert not rules.in_model


def test_a_schedule_that_fits_no_function_is_kept_until_it_is_deleted(work: Workbench) -> None:
    work.apply("unroll")
    work.document.reload()
    records = msgspec.structs.replace(
        snapshot("dense", "relu"), key="2", structures={"dense": "another", "relu": "third"}
    )
    work.bench.sent(SnapshotQuery).answer(records)
    orphans = work.variants.left_over
    (orphan,) = orphans.all
    assert len(work.bench.notices) == 1
    assert "dense" in orphans.notes[0]
    orphans.copy(orphan)
    assert work.bench.sent(ScheduleProgramQuery).query == ScheduleProgramQuery(schedule=orphan)
    recipe = work.document.recipe
    orphans.remove(orphan)
    assert orphans.all == ()
    work.document.undo()
    assert orphans.all == (orphan,)
    assert work.document.recipe == recipe
    # Its steps can be tried on another function.
    work.do(lambda: work.scheduling.look("relu"))
    work.do(lambda: orphans.try_here(orphan))
    assert work.scheduling.primitives == orphan.primitives


# Measurements


PEAKS = Peaks(gflops=100.0, gbytes_per_second=10.0, threads=2, target="llvm")


def measured(
    milliseconds: float, torch: float | None = None, *, disturbed: bool = False
) -> Measured:
    return Measured(
        milliseconds=milliseconds,
        low=milliseconds,
        high=milliseconds,
        repeats=9,
        build_ms=1.0,
        torch_ms=torch,
        disturbed=disturbed,
    )


class Worker:
    """Answers the jobs of the worker one by one.

    `times` are by the names of the primitives; `wrong` are those that change the values.
    """

    def __init__(self, work: Workbench, qtbot: QtBot) -> None:
        self.work = work
        self.qtbot = qtbot
        self.found = work.bench.features.measurements
        self.times: dict[tuple[str, ...], float | Measured] = {}
        self.wrong: set[str] = set()

    def next(self) -> CheckQuery | MeasureQuery:
        """Wait for the next job."""
        self.qtbot.waitUntil(lambda: self.found.doing is not None)
        if isinstance(self.found.doing, PeaksQuery):
            self.work.bench.worker.last().answer(PEAKS)
            return self.next()
        query = self.work.bench.worker.last().query
        assert isinstance(query, CheckQuery | MeasureQuery)
        return query

    def answer(self) -> str:
        """Answer the next job; return its kind and what is measured."""
        query = self.next()
        names = names_of(query.recipe)
        sent = self.work.bench.worker.last()
        if isinstance(query, CheckQuery):
            differs = self.wrong.intersection(names)
            sent.answer(Checked(verdict="differs" if differs else "same"))
            return f"check {' '.join(names)}"
        time = self.times.get(names, 2.0)
        sent.answer(time if isinstance(time, Measured) else measured(time))
        return f"measure {' '.join(names)}"

    def answer_all(self) -> list[str]:
        """Answer until nothing is missing at the current step."""
        jobs = []
        here = self.found.here
        assert here is not None
        while any(
            self.found.is_coming(job) for job in (*here.jobs, here.unscheduled.measure)
        ) or isinstance(self.found.doing, CheckQuery | MeasureQuery):
            jobs.append(self.answer())
        return jobs


def names_of(recipe: Recipe) -> tuple[str, ...]:
    (schedule,) = recipe.schedules
    return tuple(each.name for each in schedule.primitives)


def verdicts(found: Measurements) -> dict[str, str]:
    """Return the verdicts on the function after each step, as far as known."""
    after = {step: found.checked(of) for step, of in found.prefixes().items() if of.primitives}
    return {step: each.verdict for step, each in after.items() if each is not None}


@pytest.fixture
def worker(work: Workbench, qtbot: QtBot) -> Worker:
    return Worker(work, qtbot)


def test_each_step_is_checked_and_measured_and_what_is_off_does_not_count(
    work: Workbench, worker: Worker
) -> None:
    found = worker.found
    work.apply("unroll")
    assert worker.answer_all() == ["check unroll", "measure unroll", "measure "]
    assert verdicts(found) == {"s1": "same"}
    # The unscheduled function is known by now; a step that is off is no other function.
    work.apply("parallel")
    assert worker.answer_all() == ["check unroll parallel", "measure unroll parallel"]
    work.do(lambda: work.editing.switch("s2"))
    assert worker.answer_all() == []
    assert found.here is not None
    assert [each.name for each in found.here.primitives] == ["unroll"]
    # Neither is the one whose schedule the model uses, or no longer uses.
    for on in (True, False):
        work.variants.set_in_model(on)
        work.bench.derive()
        work.settle()
        assert work.document.recipe is not None
        assert applies_schedules(work.document.recipe) == on
        assert verdicts(found) == {"s1": "same"}
        assert worker.answer_all() == []


def test_primitives_are_sorted_by_their_prices_measured_ones_before_predicted(
    work: Workbench, worker: Worker, qtbot: QtBot
) -> None:
    offered = {"unroll": 1.0, "parallel": 3.0, "fuse": 2.0}
    prices = (
        msgspec.structs.replace(move(name), predicted_ms=price) for name, price in offered.items()
    )
    illegal = msgspec.structs.replace(move("rfactor"), legal=False, reason="no reduction")
    work.moves = (illegal, *prices)
    page = ScheduleMovesPage(work.document, work.scheduling, worker.found)
    qtbot.addWidget(page)
    page.show()
    work.document.select(("tir:dense/i",))
    work.settle()
    assert titles(page) == ["unroll", "fuse", "parallel", "rfactor"]
    worker.found.set_automatic(False)
    worker.times = {("parallel",): 0.5, ("unroll",): 2.5}
    page.measure.click()
    jobs = [worker.answer() for _turn in range(6)]
    assert sorted(jobs) == [
        *("check fuse", "check parallel", "check unroll"),
        *("measure fuse", "measure parallel", "measure unroll"),
    ]
    assert titles(page) == ["parallel", "fuse", "unroll", "rfactor"]


def test_there_is_one_time_of_torch_the_shortest_reliable_one(
    work: Workbench, worker: Worker
) -> None:
    worker.times = {
        (): measured(8.0, 2.0, disturbed=True),
        ("unroll",): measured(6.0, 4.0),
        ("unroll", "parallel"): measured(3.0, 3.0),
    }
    seen = []
    for name in ("unroll", "parallel"):
        work.apply(name)
        worker.answer_all()
        torch = worker.found.torch
        assert torch is not None
        seen.append(torch.torch_ms)
    assert seen == [4.0, 3.0]


def test_predictions_are_scaled_to_what_was_measured(
    work: Workbench, worker: Worker, qtbot: QtBot
) -> None:
    found, scheduling = worker.found, work.scheduling
    assert found.scale == 1.0
    worker.times = {(): measured(8.0, disturbed=True)}
    worker.answer_all()
    # Without a prediction for the function itself, the others say nothing.
    assert found.scale is None
    work.settle()
    assert found.scale == 8.0 / 1.5
    work.moves = (msgspec.structs.replace(move("unroll"), predicted_ms=0.75),)
    page = ScheduleMovesPage(work.document, scheduling, found)
    qtbot.addWidget(page)
    page.show()
    work.document.select(("tir:dense/i",))
    work.settle()
    assert marks(page) == ["4 ms"]
    worker.times = {("unroll",): measured(3.0, disturbed=True)}
    found.set_automatic(False)
    page.measure.click()
    for _turn in range(2):
        worker.answer()
    assert marks(page) == ["≈ 3 ms measured"]
    work.apply("parallel")
    assert found.scale == 1.0


def test_advice_is_back_after_other_steps_behind_another_page(
    work: Workbench, worker: Worker, qtbot: QtBot
) -> None:
    found, bench = worker.found, work.bench
    page = AdviceList(work.document, bench.features.queries, work.scheduling, found)
    qtbot.addWidget(page)
    page.show()
    bench.engine.sent[-1].answer(Coaching(predicted_ms=2.0, advice=()))
    assert page.text.text()
    page.hide()
    work.apply("unroll")
    work.do(work.document.undo)
    page.show()
    assert "No warnings · predicted 2 ms" in page.text.text()


def test_links_of_advice_take_the_colours_of_another_scheme(
    work: Workbench, worker: Worker, qtbot: QtBot
) -> None:
    page = AdviceList(work.document, work.bench.features.queries, work.scheduling, worker.found)
    qtbot.addWidget(page)
    page.resize(300, 200)
    page.show()
    advice = Advice(
        code="serial", block="C", place=0, text="Too slow", cure="run it", primitive="parallel"
    )
    work.bench.engine.sent[-1].answer(Coaching(predicted_ms=2.0, advice=(advice,)))

    def colours() -> set[str]:
        picture = page.grab().toImage()
        across, down = range(picture.width()), range(picture.height())
        return {picture.pixelColor(x, y).name() for x in across for y in down}

    assert LIGHT.accent in colours()
    theme.set_scheme("dark")
    qtbot.waitUntil(lambda: DARK.accent in colours())
    assert LIGHT.accent not in colours()


def marks(page: ScheduleMovesPage) -> list[str]:
    """Return the times in the list of primitives, in order."""
    rows = (page.choices.list.item(row) for row in range(page.choices.list.count()))
    return [each.data(CHOICE).mark for each in rows if each.data(CHOICE).key]


def titles(page: ScheduleMovesPage) -> list[str]:
    """Return the primitives in the list, in order."""
    rows = (page.choices.list.item(row) for row in range(page.choices.list.count()))
    return [key for each in rows if (key := each.data(CHOICE).key)]


def test_the_fastest_that_does_not_differ_is_the_best(work: Workbench, worker: Worker) -> None:
    worker.times = {("reorder",): 0.5, ("reorder", "loop_partition"): 0.1}
    worker.wrong = {"loop_partition"}
    work.apply("reorder")
    worker.answer_all()
    work.apply("loop_partition")
    worker.answer_all()
    best = worker.found.best
    assert best is not None
    assert [each.name for each in best[0].primitives] == ["reorder"]
    assert verdicts(worker.found) == {"s1": "same", "s2": "differs"}
    # It is had back as a variant.
    work.do(lambda: work.variants.add_with("best", best[0].primitives))
    assert [each.name for each in work.scheduling.primitives] == ["reorder"]
    assert worker.answer_all() == []


def test_what_is_unsafe_is_checked_at_once_even_where_nothing_is_measured(
    work: Workbench, worker: Worker
) -> None:
    worker.found.set_automatic(False)
    worker.wrong = {"loop_partition"}
    work.apply("parallel")
    assert worker.found.doing is None
    work.editing.apply(Primitive(id="", name="loop_partition", forced=True))
    work.settle()
    assert isinstance(worker.found.doing, CheckQuery)
    assert worker.answer() == "check parallel loop_partition"
    assert verdicts(worker.found) == {"s2": "differs"}
    assert worker.found.doing is None


def test_a_measurement_that_is_stopped_begins_again_on_demand_alone(
    work: Workbench, worker: Worker
) -> None:
    work.apply("unroll")
    worker.next()
    sent = work.bench.worker.last()
    worker.found.cancel()
    assert sent.fate == "cancelled"
    sent.refuse(msgspec.structs.replace(WRONG, code="cancelled"))
    assert worker.found.here is not None
    assert worker.found.checked(worker.found.here) is None
    assert (worker.found.automatic, worker.found.doing) == (False, None)
    worker.found.measure()
    assert [worker.answer(), worker.answer()] == ["check unroll", "measure unroll"]


def test_a_function_that_crashed_is_measured_again_on_demand_alone(
    work: Workbench, worker: Worker
) -> None:
    work.apply("vectorize")
    worker.next()
    work.bench.worker.last().refuse(CRASHED)
    here = worker.found.here
    assert here is not None
    assert worker.found.problem(here.check) == CRASHED
    assert worker.answer_all() == ["measure "]
    worker.found.measure()
    assert worker.answer_all() == ["check vectorize", "measure vectorize"]
    assert worker.found.problem(here.check) is None


def test_a_check_that_goes_on_beyond_its_time_costs_the_worker(
    work: Workbench, worker: Worker
) -> None:
    work.apply("unroll")
    worker.next()
    work.bench.worker.last().answer(Checked(verdict="unknown", running=True))
    assert work.bench.worker.restarts == 1
    # What hangs is not measured.
    assert worker.answer_all() == ["measure "]


def test_the_next_step_cancels_what_is_measured_of_this_one(
    work: Workbench, worker: Worker
) -> None:
    work.apply("unroll")
    assert names_of(worker.next().recipe) == ("unroll",)
    sent = work.bench.worker.last()
    work.apply("parallel")
    assert sent.fate == "cancelled"
    sent.refuse(msgspec.structs.replace(WRONG, code="cancelled"))
    assert worker.answer() == "check unroll parallel"


def test_all_variants_are_measured_unless_they_are_known(work: Workbench, worker: Worker) -> None:
    work.apply("unroll")
    worker.answer_all()
    work.do(lambda: work.variants.add("other"))
    work.apply("parallel")
    worker.found.set_automatic(False)
    worker.found.measure_all(tuple(each.primitives for each in work.variants.all))
    assert worker.answer_all() == ["check parallel", "measure parallel"]
