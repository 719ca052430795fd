"""The moment that is looked at, breakpoints on steps, and pinned sides of a comparison."""

from __future__ import annotations

import msgspec
import pytest
from pytestqt.qtbot import QtBot

from lowerscope.app.document.document import Document
from lowerscope.app.document.pins import Pins
from lowerscope.app.document.stepping import StepFilter, Stepping, call_lines, node_lines
from lowerscope.core.model.module_steps import ComparedModule, Moment, PassRecord, TranslationRecord
from lowerscope.core.model.queries import SnapshotQuery, TouchingStepsQuery
from lowerscope.core.model.recipe import Source
from lowerscope.core.model.run_records import CallRun
from tests.app.conftest import bench
from tests.app.plain_values import OTHER, RECIPE, TE, Bench, document_of, show, snapshot

SOURCE = Source(spec="sample:fashion_mlp")
PASSES = tuple(
    PassRecord(number=number, name=f"Pass{number}", changed=("main",)) for number in range(1, 5)
)
NODES = tuple(
    TranslationRecord(
        number=number, node=f"fx:n{number}", bindings=("relax:main/lv",), changed=("main",)
    )
    for number in range(1, 3)
)
SNAPSHOT = msgspec.structs.replace(snapshot(), passes=PASSES, translation=NODES)


def after(index: int) -> Moment:
    return Moment(section="passes", index=index)


@pytest.fixture
def stepping() -> Stepping:
    stepping = Stepping(Document())
    stepping.take(SOURCE, SNAPSHOT)
    return stepping


def test_steps_go_from_either_end_and_stop_at_the_ends(stepping: Stepping) -> None:
    assert stepping.moment is None
    stepping.step(1)
    assert stepping.moment == after(1)
    stepping.step(-5)
    assert stepping.moment == after(0)
    stepping.step(99)
    assert stepping.moment == after(4)
    stepping.leave()
    assert stepping.moment is None
    stepping.step(-1)
    assert stepping.moment == after(4)


def test_a_moment_is_told_once(stepping: Stepping) -> None:
    seen: list[Moment | None] = []
    stepping.moment_changed.connect(lambda: seen.append(stepping.moment))
    stepping.go(after(2))
    stepping.go(after(2))
    stepping.go(Moment(section="translate", index=9))
    assert seen == [after(2), Moment(section="translate", index=2)]


def test_a_shorter_list_clamps_and_an_empty_one_leaves(stepping: Stepping) -> None:
    stepping.go(after(4))
    stepping.take(SOURCE, msgspec.structs.replace(SNAPSHOT, passes=PASSES[:2]))
    assert stepping.moment == after(2)
    stepping.take(SOURCE, msgspec.structs.replace(SNAPSHOT, passes=()))
    assert stepping.moment is None
    stepping.go(after(1))
    assert stepping.moment is None


def test_a_step_is_found_again_in_another_list(stepping: Stepping) -> None:
    stepping.go(after(3))
    inner = PassRecord(number=2, name="Inner", changed=("main",), parent=1, depth=1, label="1.1")
    moved = [
        msgspec.structs.replace(record, number=number, label=label)
        for record, number, label in zip(PASSES, (1, 3, 4, 5), "1234", strict=True)
    ]
    passes = (moved[0], inner, *moved[1:])
    stepping.take(SOURCE, msgspec.structs.replace(SNAPSHOT, passes=passes))
    assert stepping.moment == after(4)
    assert stepping.line is not None
    assert stepping.line.title == "Pass3"
    without = tuple(record for record in passes if record.name != "Pass3")
    without = tuple(
        msgspec.structs.replace(record, number=number)
        for number, record in enumerate(without, start=1)
    )
    stepping.take(SOURCE, msgspec.structs.replace(SNAPSHOT, passes=without))
    assert stepping.line.depth == 0


def test_a_step_of_the_build_is_found_again_in_the_next_build(stepping: Stepping) -> None:
    build = tuple(
        PassRecord(number=number, name=name, label=str(number), changed=("main",))
        for number, name in enumerate(("A", "B", "C"), start=1)
    )
    stepping.take_build(build)
    stepping.go(Moment(section="build", index=2))
    # Another recipe: its build is not there yet.
    stepping.take(SOURCE, SNAPSHOT)
    assert stepping.moment is None
    moved = msgspec.structs.replace(build[1], number=3, label="3")
    stepping.take_build((build[0], msgspec.structs.replace(build[2], number=2), moved))
    assert stepping.moment == Moment(section="build", index=3)
    assert stepping.line is not None
    assert stepping.line.title == "B"
    # What is looked at in between stays.
    stepping.take(SOURCE, SNAPSHOT)
    stepping.go(after(1))
    stepping.take_build(build)
    assert stepping.moment == after(1)


def test_a_failed_step_shows_what_went_into_it(stepping: Stepping) -> None:
    failed = msgspec.structs.replace(PASSES[2], status="failed", error="no", changed=())
    skipped = msgspec.structs.replace(PASSES[3], status="skipped", changed=())
    passes = (*PASSES[:2], failed, skipped)
    stepping.take(SOURCE, msgspec.structs.replace(SNAPSHOT, passes=passes))
    stepping.step(99)
    for _ in range(2):
        assert stepping.moment == after(2)
        assert stepping.line is not None
        assert (stepping.line.number, stepping.line.error) == (3, "no")
        stepping.go(after(4))
    stepping.step(-1)
    assert stepping.line is not None
    assert stepping.line.number == 2


def test_unchanged_steps_and_those_of_other_names_are_passed_over(stepping: Stepping) -> None:
    same = msgspec.structs.replace(PASSES[1], changed=())
    other = msgspec.structs.replace(PASSES[2], changed=("main", "Fused_Add"))
    passes = (PASSES[0], same, other, PASSES[3])
    stepping.take(SOURCE, msgspec.structs.replace(SNAPSHOT, passes=passes))

    def gone_through() -> list[int]:
        stepping.first()
        numbers = []
        for _ in passes:
            stepping.step(1)
            assert stepping.moment is not None
            numbers.append(stepping.moment.index)
        return sorted(set(numbers))

    assert gone_through() == [1, 3, 4]
    stepping.set_filter(StepFilter(hide_unchanged=False))
    assert gone_through() == [1, 2, 3, 4]
    stepping.set_filter(StepFilter(text="PASS4"))
    assert gone_through() == [4]
    stepping.set_filter(StepFilter(text="fused"))
    assert gone_through() == [3]


def test_nested_steps_are_gone_through_once_they_are_unfolded(stepping: Stepping) -> None:
    inner = [msgspec.structs.replace(PASSES[number - 1], parent=2, depth=1) for number in (3, 4)]
    passes = (*PASSES[:2], *inner)
    stepping.take(SOURCE, msgspec.structs.replace(SNAPSHOT, passes=passes))
    assert [line.number for line in stepping.dots("passes")] == [1, 2]
    stepping.set_unfolded("passes", 2, True)
    assert [line.number for line in stepping.dots("passes")] == [1, 3, 4]
    stepping.set_unfolded("passes", 2, False)
    assert [line.number for line in stepping.dots("passes")] == [1, 2]


CALLS = tuple(
    CallRun(function=name, milliseconds=time, nodes=(f"fx:{node}",), bindings=(f"relax:main/{lv}",))
    for name, time, node, lv in (
        ("dense", 6.0, "one", "lv"),
        ("add", 0.5, "one", "lv1"),
        ("relu", 0.5, "relu", "lv2"),
        ("dense", 3.0, "two", "lv3"),
    )
)


def on_call(index: int) -> Moment:
    return Moment(section="run", index=index)


def test_a_node_tells_the_number_of_its_functions_and_of_those_it_leaves_out() -> None:
    def note(*functions: str) -> str:
        record = msgspec.structs.replace(NODES[0], functions=functions)
        return node_lines((record,))[0].note

    assert note("dense").endswith("1 function: dense")
    assert note("a", "b").endswith("2 functions: a, b")
    assert note(*"abcdefg").endswith("7 functions: a, b, c, d and 3 more")


def test_the_calls_that_take_most_of_the_time_are_heavy() -> None:
    assert [line.heavy for line in call_lines(CALLS)] == [True, False, False, True]
    assert [line.is_break for line in call_lines(CALLS, {"fx:one", "relax:main/lv2"})] == [
        *(True, True, True),
        False,
    ]
    assert not call_lines(())


def test_a_run_goes_from_break_to_break_and_to_the_ends(stepping: Stepping) -> None:
    stepping.take_run(call_lines(CALLS, {"relax:main/lv1"}))
    stepping.go(after(2))
    stepping.to_break(1)
    assert stepping.here == on_call(2)
    # The module is looked at as a whole.
    assert stepping.moment is None
    stepping.to_break(1)
    assert stepping.here == on_call(4)
    stepping.to_break(-1)
    assert stepping.here == on_call(2)
    stepping.to_break(-1)
    assert stepping.here == on_call(0)
    assert stepping.line is None


def test_another_run_is_looked_at_where_this_one_was(stepping: Stepping) -> None:
    stepping.take_run(call_lines(CALLS))
    stepping.go(on_call(4))
    # One is under way, and has no calls yet.
    stepping.take_run(())
    assert stepping.here is None
    stepping.take_run(call_lines(CALLS))
    assert stepping.here == on_call(4)
    # Fewer of them: the first of the same function.
    stepping.take_run(call_lines(CALLS[:3]))
    assert stepping.here == on_call(1)
    stepping.take_run(())
    stepping.set_section("passes")
    stepping.take_run(call_lines(CALLS))
    assert stepping.here is None
    assert stepping.run_index is None


# Playing until something of a node changes, and breakpoints on nodes


__all__ = ["bench"]

OF_NODES = tuple(
    PassRecord(number=number, label=str(number), name=f"Pass{number}", step=number, changed=("f",))
    for number in range(1, 6)
)


@pytest.fixture
def opened(bench: Bench) -> Bench:
    bench.document.open(RECIPE)
    records = msgspec.structs.replace(snapshot("dense", "relu"), passes=OF_NODES)
    bench.sent(SnapshotQuery).answer(records)
    return bench


def test_playing_goes_on_until_the_selection_changes(qtbot: QtBot, opened: Bench) -> None:
    features, stepping = opened.features, opened.features.stepping
    opened.document.select(("fx:dense",))
    stepping.go(after(2))
    features.node_steps.play_until_changed()
    sent = opened.sent(TouchingStepsQuery)
    assert sent.query == TouchingStepsQuery(RECIPE, ("fx:dense",))
    sent.answer((1, 4, 5))
    qtbot.waitUntil(lambda: not stepping.playing)
    assert stepping.moment == after(4)
    features.node_steps.play_until_changed()
    opened.sent(TouchingStepsQuery).answer((1, 4))
    assert stepping.moment == after(4)
    assert opened.notices[-1:] == ["No later pass changes the selection."]


def test_a_breakpoint_on_a_node_holds_for_the_passes_that_change_it(
    qtbot: QtBot, opened: Bench
) -> None:
    features, stepping = opened.features, opened.features.stepping
    features.run_steps.toggle(("fx:relu",))
    opened.sent(TouchingStepsQuery).answer((3,))
    stepping.play()
    qtbot.waitUntil(lambda: not stepping.playing)
    assert stepping.moment == after(3)
    stepping.to_break(-1)
    assert stepping.moment == after(0)
    stepping.to_break(1)
    assert stepping.moment == after(3)
    features.run_steps.clear()
    assert not any(stepping.stops_at(line) for line in stepping.lines("passes"))


# The two sides of a comparison


START = Moment(section="passes", index=0)
AFTER_ONE = Moment(section="passes", index=1)


def test_nothing_pinned_compares_all_passes(qtbot: QtBot) -> None:
    document = document_of(RECIPE)
    pins = Pins(document)
    assert pins.sides == (
        ComparedModule(recipe=RECIPE, moment=START),
        ComparedModule(recipe=RECIPE),
    )
    assert Pins(Document()).sides is None


def test_one_pin_is_compared_with_what_is_shown_and_two_stay(qtbot: QtBot) -> None:
    document = document_of(RECIPE)
    pins = Pins(document)
    pins.pin(AFTER_ONE)
    assert pins.sides == (
        ComparedModule(recipe=RECIPE, moment=AFTER_ONE),
        ComparedModule(recipe=RECIPE),
    )
    show(document, TE)
    assert pins.sides == (
        ComparedModule(recipe=RECIPE, moment=AFTER_ONE),
        ComparedModule(recipe=TE),
    )
    with qtbot.waitSignal(pins.wanted):
        pins.compare(AFTER_ONE)
    show(document, RECIPE)
    assert pins.sides == (
        ComparedModule(recipe=RECIPE, moment=AFTER_ONE),
        ComparedModule(recipe=TE, moment=AFTER_ONE),
    )
    pins.swap()
    assert pins.sides == (
        ComparedModule(recipe=TE, moment=AFTER_ONE),
        ComparedModule(recipe=RECIPE, moment=AFTER_ONE),
    )
    pins.clear()
    assert pins.sides == (
        ComparedModule(recipe=RECIPE, moment=START),
        ComparedModule(recipe=RECIPE),
    )


def test_another_lowering_and_another_pipeline(qtbot: QtBot) -> None:
    pins = Pins(document_of(RECIPE))
    pins.compare_lowering("te")
    assert pins.sides == (ComparedModule(recipe=TE), ComparedModule(recipe=RECIPE))
    pins.compare_steps(())
    bare = msgspec.structs.replace(RECIPE, steps=())
    assert pins.sides == (ComparedModule(recipe=bare), ComparedModule(recipe=RECIPE))


def test_pins_on_another_source_are_gone(qtbot: QtBot) -> None:
    document = document_of(RECIPE)
    pins = Pins(document)
    pins.pin(AFTER_ONE)
    show(document, OTHER)
    assert pins.first is None
