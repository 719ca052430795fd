"""The parts of the workbench alone: its tree, its list of primitives, and its forms."""

from __future__ import annotations

import msgspec
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QLineEdit, QMenu, QWidget
from pytestqt.qtbot import QtBot

from lowerscope.app.kit.tables.choice_list import OrderList
from lowerscope.app.panes.schedule.metrics import work_rows
from lowerscope.app.panes.schedule.schedule_code import unscheduled_line
from lowerscope.app.panes.schedule.schedule_form import ScheduleForm
from lowerscope.app.panes.schedule.schedule_moves_page import (
    ScheduleMovesPage,
    ScheduleTree,
    tree_rows,
)
from lowerscope.app.panes.schedule.schedule_view import ScheduleHistory
from lowerscope.core.model.queries import ScheduleQuery
from lowerscope.core.model.recipe import ruled_in_model
from lowerscope.core.model.schedule import At
from lowerscope.core.model.schedule_records import (
    BufferNode,
    Field,
    LoopNode,
    Move,
    ScheduleRecord,
    Work,
)
from lowerscope.core.model.snapshot import TextRecord
from tests.app.panes.workbench import FACTORS, Workbench, move
from tests.app.plain_values import RECIPE, Bench

LEFT = Qt.MouseButton.LeftButton
NONE = Qt.KeyboardModifier.NoModifier
AXIS = Field(name="axis", label="Axis", kind="integer", low=0)
BUFFER = Field(name="buffer", label="Buffer", kind="buffer", choices=("A", "B"), default=0)
SCOPE = Field(name="scope", label="Scope", kind="choice", choices=("global", "local"))


@pytest.fixture
def work(bench: Bench) -> Workbench:
    work = Workbench(bench)
    work.document.select(("tir:dense/i",))
    work.settle()
    return work


def shown(qtbot: QtBot, widget: QWidget) -> None:
    qtbot.addWidget(widget)
    widget.resize(300, 400)
    widget.show()


# The form


def form_of(qtbot: QtBot, work: Workbench, offered: Move) -> ScheduleForm:
    form = ScheduleForm(work.document, work.scheduling, work.bench.features.measurements)
    shown(qtbot, form)
    work.trying.open(offered)
    return form


def line_of(form: ScheduleForm, field: str) -> QLineEdit:
    line = form.editors[field].findChild(QLineEdit)
    assert isinstance(line, QLineEdit)
    return line


def is_right(form: ScheduleForm, work: Workbench) -> bool:
    work.settle()
    return form.state.text().startswith("✓")


def test_what_is_typed_wrong_cannot_be_applied(qtbot: QtBot, work: Workbench) -> None:
    form = form_of(qtbot, work, move("split", FACTORS))
    factors = form.editors["factors"].factors  # type: ignore[attr-defined]
    QTest.mouseClick(factors.more, LEFT)
    first, second = factors.fields
    asked = work.bench.count(ScheduleQuery)
    for field, text in ((first, "2"), (second, "2")):
        field.selectAll()
        QTest.keyClicks(field, text)
    assert form.state.text().startswith("✕ 2 × 2 = 4")
    assert not form.apply.isEnabled()
    QTest.keyClick(first, Qt.Key.Key_Return)
    assert work.trying.draft is not None
    assert work.bench.count(ScheduleQuery) == asked
    second.selectAll()
    QTest.keyClicks(second, "4")
    qtbot.waitUntil(lambda: is_right(form, work))
    assert form.state.text() == "✓ legal · predicted 2.5 ms"
    QTest.keyClick(first, Qt.Key.Key_Return)
    assert work.scheduling.primitives[0].arguments["factors"] == (2, 4)


def test_the_price_is_there_after_the_primitive_was_pointed_at(
    qtbot: QtBot, work: Workbench
) -> None:
    offered = move("split", FACTORS)
    work.trying.show(offered.primitive)
    qtbot.waitUntil(lambda: work.settle() or work.trying.preview.record is not None)  # type: ignore[union-attr,func-returns-value]
    form = form_of(qtbot, work, offered)
    qtbot.waitUntil(lambda: is_right(form, work))
    assert "predicted 2.5 ms" in form.state.text()


@pytest.mark.parametrize(("text", "said"), [("9" * 30, "2147483647"), ("-1", "0"), ("one", "one")])
def test_numbers_that_nothing_takes_are_not_sent(
    qtbot: QtBot, work: Workbench, text: str, said: str
) -> None:
    form = form_of(qtbot, work, move("storage_align", AXIS))
    line = line_of(form, "axis")
    line.selectAll()
    QTest.keyClicks(line, text)
    assert form.state.text().startswith("✕")
    assert said in form.state.text()
    assert not form.apply.isEnabled()
    QTest.keyClick(line, Qt.Key.Key_Escape)
    assert work.trying.draft is None
    assert work.scheduling.primitives == ()


def test_words_are_chosen_as_they_are_and_buffers_by_their_place(
    qtbot: QtBot, work: Workbench
) -> None:
    form = form_of(qtbot, work, move("cache_read", BUFFER, SCOPE))
    for field in ("buffer", "scope"):
        box = form.editors[field].findChild(QComboBox)
        assert isinstance(box, QComboBox)
        QTest.keyClick(box, Qt.Key.Key_End)
    qtbot.waitUntil(lambda: is_right(form, work))
    QTest.mouseClick(form.apply, LEFT)
    arguments = work.scheduling.primitives[0].arguments
    assert (arguments["buffer"], arguments["scope"]) == (1, "local")


def test_tab_goes_through_the_fields_to_the_button_below(qtbot: QtBot, work: Workbench) -> None:
    form = form_of(qtbot, work, move("cache_read", BUFFER, SCOPE))
    chain: list[QWidget] = [form.back]
    while chain[-1] is not form.apply:
        following = chain[-1].nextInFocusChain()
        assert following is not None
        chain.append(following)
    boxes = [form.editors[field].findChild(QComboBox) for field in ("buffer", "scope")]
    assert [each for each in chain if isinstance(each, QComboBox)] == boxes


def test_axes_are_put_in_order_and_an_index_map_is_a_text(qtbot: QtBot, work: Workbench) -> None:
    order = Field(name="order", label="Order", kind="order", choices=("v_i", "v_j", "v_k"))
    index_map = Field(name="map", label="Map", kind="index map", choices=("v_i", "v_j"))
    form = form_of(qtbot, work, move("transform", order, index_map))
    names = form.editors["order"].findChild(OrderList)
    assert isinstance(names, OrderList)
    names.setCurrentRow(2)
    # At the top, it stays.
    for _ in range(3):
        QTest.keyClick(names, Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
    QTest.keyClicks(line_of(form, "map"), "v_i, v_j -> v_j, v_i")
    qtbot.waitUntil(lambda: is_right(form, work))
    QTest.mouseClick(form.apply, LEFT)
    arguments = work.scheduling.primitives[0].arguments
    assert (arguments["order"], arguments["map"]) == ((2, 0, 1), "v_i, v_j -> v_j, v_i")


def test_what_fails_can_be_kept_and_what_is_unsafe_applied_anyway(
    qtbot: QtBot, work: Workbench
) -> None:
    work.failing = {"loop_partition"}
    form = form_of(qtbot, work, move("loop_partition"))
    qtbot.waitUntil(lambda: not is_right(form, work) and form.state.text().startswith("⚠"))
    assert not form.apply.isEnabled()
    assert form.force.isVisible()
    assert not form.keep.isVisible()
    QTest.mouseClick(form.force, LEFT)
    assert work.scheduling.primitives[0].forced


# The list of primitives


def page_of(qtbot: QtBot, work: Workbench) -> ScheduleMovesPage:
    page = ScheduleMovesPage(work.document, work.scheduling, work.bench.features.measurements)
    shown(qtbot, page)
    return page


def place_of(page: ScheduleMovesPage, name: str) -> QPoint:
    item = page.choices.item_of(name)
    assert item is not None
    return page.choices.list.visualItemRect(item).center()


def test_a_double_click_applies_once(qtbot: QtBot, work: Workbench) -> None:
    page = page_of(qtbot, work)
    viewport = page.choices.list.viewport()
    place = place_of(page, "unroll")
    QTest.mouseClick(viewport, LEFT, NONE, place)
    QTest.mouseDClick(viewport, LEFT, NONE, place)
    QTest.mouseRelease(viewport, LEFT, NONE, place)
    work.settle()
    assert work.ids == ["s1"]


def test_the_second_click_of_a_double_click_is_none_on_what_came_in_its_place(
    qtbot: QtBot, work: Workbench
) -> None:
    form = form_of(qtbot, work, move("split", FACTORS))
    qtbot.waitUntil(lambda: is_right(form, work))
    QTest.mouseDClick(form.apply, LEFT)
    QTest.mouseRelease(form.apply, LEFT)
    assert work.trying.draft is not None
    assert work.scheduling.primitives == ()


def test_what_is_pointed_at_is_tried_again_when_other_primitives_come(
    qtbot: QtBot, work: Workbench
) -> None:
    page = page_of(qtbot, work)
    page.choices.pointed.emit("unroll")
    assert work.trying.preview is not None
    work.document.reload()
    work.bench.derive(key="2")
    assert work.trying.preview is None
    work.settle()
    assert work.trying.preview is not None
    assert work.trying.preview.primitive.name == "unroll"
    # What is chosen is not tried once more on what came of it.
    QTest.mouseClick(page.choices.list.viewport(), LEFT, NONE, place_of(page, "unroll"))
    work.settle()
    assert work.ids == ["s1"]
    assert work.trying.preview is None


def test_the_filter_ends_with_the_choice(qtbot: QtBot, work: Workbench) -> None:
    page = page_of(qtbot, work)
    QTest.keyClicks(page.choices.line, "unr")
    assert [each.key for each in page.choices.shown()] == ["unroll"]
    QTest.keyClick(page.choices.line, Qt.Key.Key_Return)
    work.settle()
    assert work.ids == ["s1"]
    assert page.choices.line.text() == ""


# The history


@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
def test_the_menu_of_a_step_edits_it(qtbot: QtBot, work: Workbench) -> None:
    features = work.bench.features
    history = ScheduleHistory(
        work.document, features.stepping, work.scheduling, features.measurements
    )
    shown(qtbot, history)
    for name in ("split", "unroll", "parallel"):
        work.apply(name)

    def choose(step: str, text: str) -> None:
        history.strip.select(step)
        history.strip.menu_wanted.emit(step, QPoint(5, 5))
        menu = QApplication.activePopupWidget()
        assert isinstance(menu, QMenu)
        next(each for each in menu.actions() if each.text() == text).trigger()
        menu.close()
        work.settle()

    choose("s2", "Delete")
    assert work.ids == ["s1", "s3"]
    choose("s1", "Switch off")
    assert work.statuses == ["off", "done"]
    choose("s1", "Switch on")
    choose("s3", "Insert before it")
    assert work.scheduling.place == 1
    history.strip.moved.emit(0, 1)
    qtbot.waitUntil(lambda: [each.id for each in work.scheduling.primitives] == ["s3", "s1"])
    work.settle()
    choose("s1", "Edit…")
    assert work.trying.draft is not None


# The tree


def test_the_tree_says_what_loops_blocks_and_buffers_are() -> None:
    loop = LoopNode(
        id="tir:f/j",
        kind="loop",
        name="j",
        depth=0,
        parent=-1,
        reference=At(block="b", loop=0),
        extent="128",
        loop_kind="parallel",
        annotations=(("note", "1"),),
    )
    block = LoopNode(
        id="tir:f/b",
        kind="block",
        name="b",
        depth=1,
        parent=0,
        reference=At(block="b"),
        axes=(("v_i", "S", "1"), ("v_k", "R", "128")),
        reads=("A[v_i, v_k]",),
        writes=("C[v_i]",),
    )
    buffer = BufferNode(
        name="C", shape="1 × 128", dtype="float32", scope="local", role="output", size=512
    )
    record = ScheduleRecord(
        function="f",
        structure="",
        index=0,
        script=TextRecord(text="", language="python"),
        tree=(loop, block),
        buffers=(buffer,),
    )
    rows = tree_rows(record)
    words = {row.key: [cell.text for cell in row.cells] for row in rows}
    assert words["tir:f/j"] == ["j", "128", "parallel · note=1"]
    assert words["tir:f/b"] == ["b", "", "block · SR"]
    assert words["buffer:C"] == ["C", "512 B", "local · output"]
    assert [row.parent for row in rows[:2]] == ["", "tir:f/j"]
    assert "reads A[v_i, v_k]" in rows[1].tooltip
    assert "writes C[v_i]" in rows[1].tooltip
    assert rows[-1].note == "1×128"
    assert "float32" in rows[-1].tooltip


def test_the_keys_of_the_tree_begin_at_its_first_row(qtbot: QtBot, work: Workbench) -> None:
    work.document.select(("tir:dense",))
    work.settle()
    tree = ScheduleTree(work.document, work.scheduling)
    shown(qtbot, tree)
    tree.setFocus()
    QTest.keyClicks(tree, "s")
    assert "split" in work.bench.notices[-1]
    QTest.keyClick(tree, Qt.Key.Key_Down)
    assert work.document.selection.chosen == ("tir:dense/i",)
    work.settle()
    QTest.keyClicks(tree, "s")
    assert work.trying.draft is not None
    assert work.trying.draft.primitive.name == "split"


def test_a_function_that_the_model_schedules_by_rules_says_so() -> None:
    assert "ApplyRules" not in unscheduled_line(RECIPE)
    for on in (True, False):
        assert ("ApplyRules" in unscheduled_line(ruled_in_model(RECIPE, on))) == on


# The numbers


def test_a_function_of_any_size_says_at_which_its_numbers_are() -> None:
    work = Work(calls=2, flops=640.0, read=None, written=512, intensity=None, at="n = 5")
    rows = {row.key: row.cell(1).text for row in work_rows(work)}
    assert (rows["at"], rows["calls"], rows["flops"]) == ("n = 5", "2", "640 FLOP")
    assert (rows["read"], rows["written"]) == ("not known", "512 B")
    assert "at" not in {row.key for row in work_rows(msgspec.structs.replace(work, at=""))}
