"""The pages on runs alone: the result, the variants, and the values of a call."""

from __future__ import annotations

import msgspec
import pytest
from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from lowerscope.app.kit import theme
from lowerscope.app.kit.charts.plots import Group
from lowerscope.app.kit.theme import DARK, LIGHT
from lowerscope.app.panes.common.run_figures import figures_of, run_facts, short_claim
from lowerscope.app.panes.inputs.inputs_page import InputPanel
from lowerscope.app.panes.log.log_view import ProblemsView
from lowerscope.app.panes.run.commands import TolerancesDialog
from lowerscope.app.panes.run.compare_page import ComparePage
from lowerscope.app.panes.run.run_view import FOLDED, RunView
from lowerscope.app.panes.run.tensor_page import TensorPage, errors_text
from lowerscope.app.panes.run.time_page import TimePage, groups_of, memory_rows
from lowerscope.app.panes.run.variants_page import VariantsPage
from lowerscope.core.files.pipelines_and_schedules import find_pipeline
from lowerscope.core.model.comparison_records import beside_reference
from lowerscope.core.model.formatting import beside_text, claims, duration_text, error_text
from lowerscope.core.model.graph import Box
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import ComparisonQuery, RunEstimateQuery, RunQuery, SnapshotQuery
from lowerscope.core.model.run_records import (
    CallRun,
    ClassScore,
    MemoryRecord,
    NodeRun,
    Prediction,
    RunEstimate,
    RunTimes,
    SizeRecord,
    Storage,
    StoredTensor,
    side_times,
)
from lowerscope.core.model.snapshot import Note
from lowerscope.core.model.tolerances import Tolerance
from tests.app.panes.test_run_model import TIMED, times
from tests.app.plain_values import CANCELLED, OTHER, RECIPE, RECORD, TE, WRONG, Bench, snapshot

FAST = msgspec.structs.replace(TIMED, tvm_ms=0.5, times=times(0.5))
DIFFERS = msgspec.structs.replace(
    TIMED, verdict="differ", tvm_ms=0.1, times=times(0.1), first_difference="fx:relu"
)
DIFFERS_AT_DENSE = msgspec.structs.replace(
    DIFFERS,
    first_difference="fx:dense",
    nodes=tuple(
        NodeRun(
            id=f"fx:{name}",
            status="differs",
            milliseconds=1.0,
            torch_ms=torch_ms,
            max_abs_error=0.5,
            matches=False,
            own_status="matches" if matches else "differs",
            own_matches=matches,
            own_abs_error=0.0 if matches else 0.5,
            calls=(number,),
        )
        for number, (name, matches, torch_ms) in enumerate(
            (("dense", False, 0.1), ("relu", True, 2.0))
        )
    ),
)


def shown(qtbot: QtBot, widget: QWidget, width: int = 1200) -> None:
    qtbot.addWidget(widget)
    widget.resize(width, 400)
    widget.show()


# The result


@pytest.fixture
def view(bench: Bench, qtbot: QtBot) -> RunView:
    """Return the pane of a recipe that has not run."""
    bench.open(RECIPE)
    features = bench.features
    view = RunView(bench.document, features.runs, features.faults, features.bisecting)
    page = ComparePage(
        bench.document, features.queries, features.stepping, features.runs, view.set_busy
    )
    view.add_page("compare", "Compare", page)
    shown(qtbot, view, FOLDED)
    return view


def test_a_run_is_started_and_stopped_where_nothing_has_run(bench: Bench, view: RunView) -> None:
    assert view.empty.accessibleName() == "Not run yet"
    view.run.click()
    assert view.empty.accessibleName() == "Run in progress"
    bench.sent(RunQuery).progress("Compiling dense")
    assert view.empty.accessibleDescription() == "Compiling dense…"
    view.run.click()
    bench.worker.last().refuse(CANCELLED)
    assert view.empty.accessibleName() == "Not run yet"
    assert not view.summary.isVisible()
    bench.run(TIMED)
    assert not view.empty.isVisible()
    assert view.calls.isVisible()
    assert [bar.name for bar in view.summary.times.bars.bars()] == ["TVM", "torch"]
    times = view.summary.times
    for button in (times.again, times.settings):
        assert button.width() >= button.sizeHint().width()
        assert times.rect().contains(button.geometry())


def test_the_table_of_sizes_is_painted_in_its_final_widths_at_once(
    bench: Bench, view: RunView
) -> None:
    bench.run(TIMED)
    QApplication.processEvents()
    widths, sizes = set[int](), view.summary.sizes

    class Watch(QObject):
        def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
            if event.type() == QEvent.Type.Paint:
                widths.add(sizes.columnWidth(0))
            return False

    watch = Watch()
    sizes.viewport().installEventFilter(watch)
    bench.run(msgspec.structs.replace(TIMED, sizes=tuple(map(_size, (1, 8, 64)))))
    for _turn in range(4):
        QApplication.processEvents()
    assert len(widths) == 1


def _size(extent: int) -> SizeRecord:
    return SizeRecord(
        sizes={"n": extent},
        verdict="match",
        reason="",
        max_abs_error=1e-6,
        max_rel_error=1e-6,
        torch_ms=1.0,
        tvm_ms=2.0,
    )


def test_a_run_that_takes_long_says_so_before_and_offers_a_pipeline(
    bench: Bench, view: RunView, qtbot: QtBot
) -> None:
    assert not view.optimise.isVisible()
    slow = RunEstimate(seconds=22.4, unscheduled=42, functions=42)
    bench.sent(RunEstimateQuery).answer(slow)
    assert "3 min" in view.empty.accessibleDescription()
    assert view.optimise.isVisible()
    view.run.click()
    assert not view.optimise.isVisible()
    bench.sent(RunEstimateQuery).answer(slow)
    assert "3 min" in bench.notices[-1]
    notice = bench.document.state.notice
    assert notice is not None
    ((_label, optimise),) = notice.actions
    view.run.click()
    bench.worker.last().refuse(CANCELLED)
    view.optimise.click()
    assert bench.document.wanted is not None
    assert bench.document.wanted.steps == find_pipeline("optimise-cpu").steps
    # The estimate is of another recipe now.
    bench.derive()
    assert not view.optimise.isVisible()
    # The message about a run that takes long stops it, and runs the other pipeline.
    bench.document.change_fields(steps=())
    bench.derive()
    view.run.click()
    asked = bench.sent(RunQuery)
    optimise()
    bench.derive()
    qtbot.waitUntil(lambda: bench.count(RunQuery) == 3)
    assert asked.fate.startswith("killed")
    assert bench.sent(RunQuery).query.recipe == bench.document.recipe


def test_the_last_outcome_stays_marked_as_that_of_another_recipe(
    bench: Bench, view: RunView
) -> None:
    bench.run(TIMED)
    assert not view.summary.notice.isVisible()
    native = msgspec.structs.replace(RECIPE, target="native")
    bench.change(native)
    assert bench.document.run_record is None
    assert view.summary.isVisible()
    notice = view.summary.notice
    assert notice.isVisible()
    assert "llvm" in notice.text()
    assert "native" in notice.text()
    bench.run(FAST)
    assert not notice.isVisible()
    bench.document.reload()
    bench.derive(key="2")
    assert "files have changed" in notice.text()
    # Another source has nothing to do with it.
    bench.open(OTHER)
    assert not view.summary.isVisible()
    assert view.empty.isVisible()


def test_a_failed_run_is_said_beside_the_figures_of_the_one_before(
    bench: Bench, view: RunView
) -> None:
    bench.run(TIMED)
    bench.change(TE)
    bench.features.runs.run()
    bench.sent(RunQuery).refuse(WRONG)
    assert "It is wrong" in view.summary.verdict.text()
    assert view.summary.notice.isVisible()
    bench.run(FAST)
    assert not view.summary.notice.isVisible()
    assert "It is wrong" not in view.summary.verdict.text()


def test_a_call_of_several_nodes_is_held_against_all_of_them(bench: Bench, view: RunView) -> None:
    ours, torch = {"milliseconds": 3.0}, {"torch_ms": 2.0}
    nodes = (
        NodeRun(id="fx:dense", shared_with=("fx:relu",), **ours, **torch),
        NodeRun(id="fx:relu", shared_with=("fx:dense",), **ours, **torch),
    )
    bench.run(msgspec.structs.replace(FAST, nodes=nodes))
    page = view.page("compare")
    assert isinstance(page, ComparePage)
    assert [row.cell(7).value for row in page.nodes.table.rows()] == [3 / 4, 3 / 4]
    assert [each.label for each in page.nodes.sorts.segments()] == ["All 2", "Not compared 2"]


def test_a_narrow_pane_has_the_verdict_in_its_header(bench: Bench, view: RunView) -> None:
    bench.run(DIFFERS_AT_DENSE)
    assert not view.verdict.isVisible()
    view.resize(FOLDED - 1, 500)
    assert view.verdict.isVisible()
    assert view.verdict.role() == "wrong"
    assert not view.summary.isVisible()


def test_nodes_that_start_a_difference_are_told_from_those_that_inherit_it(
    bench: Bench, view: RunView
) -> None:
    bench.run(DIFFERS_AT_DENSE)
    page = view.page("compare")
    assert isinstance(page, ComparePage)
    rows = {row.key: row for row in page.nodes.table.rows()}
    status = {key: row.cell(8).text for key, row in rows.items()}
    assert status == {"fx:dense": "✕ starts here", "fx:relu": "inherited"}
    assert [key for key, row in rows.items() if row.wrong] == ["fx:dense"]
    gauges = [row.cell(3).gauge for row in rows.values()]
    assert [each and each.role for each in gauges] == ["wrong", "pale-wrong"]
    counts = [each.label for each in page.nodes.sorts.segments()]
    assert counts == ["All 2", "✕ Starts here 1", "Differs 2", "Slower 1"]
    difference = view.summary.first_difference
    assert difference.isVisible()
    difference.node.click()
    assert bench.document.selection.chosen == ("fx:dense",)
    assert page.tensor.isVisible()
    bench.document.select(())
    assert not page.tensor.isVisible()


def test_a_node_that_differs_by_rounding_is_amber(bench: Bench, view: RunView) -> None:
    dense, relu = DIFFERS_AT_DENSE.nodes
    rounded = msgspec.structs.replace(dense, status="rounding", matches=True)
    bench.run(msgspec.structs.replace(TIMED, verdict="rounding", nodes=(rounded, relu)))
    page = view.page("compare")
    assert isinstance(page, ComparePage)
    row = page.nodes.table.rows()[0]
    gauge, status = row.cell(3).gauge, row.cell(8)
    assert gauge is not None
    assert (gauge.role, status.role) == ("unsure", "unsure")
    assert (status.text, status.spoken) == ("≈ rounding", "differs by rounding")


def test_a_problem_takes_the_colours_of_another_scheme(bench: Bench, qtbot: QtBot) -> None:
    bench.open(RECIPE)
    features = bench.features
    problems = ProblemsView(bench.document, features.variants.notes, features.faults.remedies)
    shown(qtbot, problems)
    bench.document.report(Problem(what="It is wrong"))

    def headline() -> str:
        labels = problems.findChildren(QLabel)
        label = next(each for each in labels if each.text().startswith("✕"))
        return label.palette().windowText().color().name()

    assert headline() == LIGHT.wrong
    theme.set_scheme("dark")
    qtbot.waitUntil(lambda: headline() == DARK.wrong)


def test_a_note_names_no_option_of_the_command_line(bench: Bench, qtbot: QtBot) -> None:
    missing = "load the file that registers it: --library FILE"
    notes = (
        Note(text="env.relu is not registered", todo=missing, code="missing-function"),
        Note(text="it matches no node", where="--override conv*=te"),
    )
    bench.document.open(RECIPE)
    records = msgspec.structs.replace(snapshot("dense"), notes=notes, key="1")
    bench.sent(SnapshotQuery).answer(records)
    features = bench.features
    problems = ProblemsView(bench.document, features.variants.notes, features.faults.remedies)
    shown(qtbot, problems)
    texts = [each.text() for each in problems.findChildren(QLabel)]
    assert "Load the file that registers it: Explore → Load a library file…" in texts
    assert "the lowering of conv*=te: it matches no node" in texts


def test_tolerances_are_checked_as_they_are_typed(bench: Bench, qtbot: QtBot) -> None:
    bench.open(RECIPE)
    bench.run(TIMED)
    dialog = TolerancesDialog(bench.document)
    qtbot.addWidget(dialog)
    row = dialog.rows["float16"]
    for wrong in ("-1", "one", "1"):
        row.rtol.setText(wrong)
        assert "float16, rtol" in dialog.error.text()
        assert not dialog.buttons.act.isEnabled()
    row.rtol.setText("1e-7")
    row.atol.setText("0")
    assert "float16" in row.means.text()
    dialog.buttons.act.click()
    assert bench.document.wanted is not None
    assert bench.document.wanted.tolerances.float16 == Tolerance(1e-7, 0.0)
    bench.document.undo()
    assert bench.document.wanted == RECIPE


# Variants


@pytest.fixture
def page(bench: Bench, qtbot: QtBot) -> VariantsPage:
    """Return the page with two runs, the faster of which differs."""
    bench.open(RECIPE)
    features = bench.features
    page = VariantsPage(bench.document, features.queries, features.runs, lambda _busy: None)
    shown(qtbot, page)
    assert page.table.empty.accessibleName() == "No run yet"
    bench.run(DIFFERS)
    bench.change(TE)
    bench.run(FAST)
    return page


def texts(page: VariantsPage, column: int) -> list[str]:
    return [row.cell(column).text for row in page.table.rows()]


def choose(page: VariantsPage, place: int, keys: Qt.KeyboardModifier) -> None:
    index = page.table.table_model().index(place, 1)
    where = page.table.visualRect(index).center()
    QTest.mouseClick(page.table.viewport(), Qt.MouseButton.LeftButton, keys, where)


def test_what_differs_is_marked_and_never_the_best(page: VariantsPage) -> None:
    assert texts(page, 1) == ["high-level", "TE"]
    assert texts(page, 0) == ["", "●★"]
    assert [row.cell(3).role for row in page.table.rows()] == ["wrong", "right"]
    assert "relu" in page.table.rows()[0].cell(3).tooltip
    assert [(bar.name, bar.best) for bar in page.bars.bars()] == [
        ("high-level", False),
        ("TE", True),
        ("torch", False),
    ]


def test_a_name_that_is_being_written_stays_while_other_runs_come(
    page: VariantsPage, bench: Bench, qtbot: QtBot
) -> None:
    choose(page, 0, Qt.KeyboardModifier.NoModifier)
    page.rename.click()
    editor = page.table.viewport().findChild(QLineEdit)
    assert isinstance(editor, QLineEdit)
    bench.features.runs.variants.changed.emit()
    assert page.table.viewport().findChild(QLineEdit) is editor
    editor.setText("as it came")
    QTest.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: texts(page, 1) == ["as it came", "TE"])
    assert page.bars.bars()[0].name == "as it came"


def test_a_row_is_deleted_or_gone_back_to(page: VariantsPage, bench: Bench) -> None:
    choose(page, 0, Qt.KeyboardModifier.NoModifier)
    page.go_back.click()
    assert bench.document.wanted == RECIPE
    bench.derive()
    assert texts(page, 0) == ["●", "★"]
    page.delete.click()
    assert texts(page, 1) == ["TE"]


def test_two_rows_that_ran_are_compared_by_their_functions(
    page: VariantsPage, bench: Bench
) -> None:
    choose(page, 0, Qt.KeyboardModifier.NoModifier)
    assert page.functions.sides is None
    choose(page, 1, Qt.KeyboardModifier.ControlModifier)
    sides = page.functions.sides
    assert sides is not None
    assert [each.name for each in sides] == ["high-level", "TE"]
    # One that could not run has no functions to compare.
    bench.features.runs.variants.remove([bench.features.runs.variants.kept[0].id])
    bench.features.runs.variants.run((RECIPE,))
    bench.worker.last().refuse(WRONG)
    choose(page, 0, Qt.KeyboardModifier.NoModifier)
    choose(page, 1, Qt.KeyboardModifier.ControlModifier)
    assert page.functions.sides is None


# Calls and memory


def test_consecutive_calls_of_a_part_of_the_model_are_a_group() -> None:
    modules = {"a": "net.stem", "b": "net.layer1.0", "c": "net.layer1.1", "d": "net.head"}
    records = snapshot(*modules)
    nodes = tuple(msgspec.structs.replace(node, module=modules[node.name]) for node in records.fx)
    calls = tuple(
        CallRun(function=f"f{name}", milliseconds=1.0, nodes=(f"fx:{name}",)) for name in modules
    )
    record = msgspec.structs.replace(RECORD, calls=calls)
    groups = groups_of(msgspec.structs.replace(records, fx=nodes), record)
    assert groups == (Group(0, 0, "stem"), Group(1, 2, "layer1"), Group(3, 3, "head"))
    # Without parts, the calls say as much.
    assert groups_of(records, record) == ()


def test_every_way_to_share_out_the_time_adds_up(bench: Bench, qtbot: QtBot) -> None:
    modules = {"norm": "norm", "query": "attention.query", "key": "attention.key"}
    records = snapshot(*modules)
    fx = tuple(msgspec.structs.replace(node, module=modules[node.name]) for node in records.fx)
    bench.document.open(RECIPE)
    bench.sent(SnapshotQuery).answer(msgspec.structs.replace(records, fx=fx, key="1"))
    # The second one computes two nodes, and has the time of both.
    calls = tuple(
        CallRun(function=name, milliseconds=time, nodes=nodes, entity=f"tir:{name}")
        for name, time, nodes in (
            ("norm", 1.0, ("fx:norm",)),
            ("query", 4.0, ("fx:query", "fx:key")),
            ("norm", 3.0, ("fx:key",)),
        )
    )
    nodes = tuple(
        NodeRun(id=f"fx:{name}", torch_ms=2.0, shared_with=others)
        for name, others in (("norm", ()), ("query", ("fx:key",)), ("key", ("fx:query",)))
    )
    bench.run(msgspec.structs.replace(RECORD, calls=calls, nodes=nodes))
    page = TimePage(bench.document, bench.features.runs)
    shown(qtbot, page)

    def choose(by: str) -> None:
        place = page.by.segment_rect(by).center().toPoint()
        qtbot.mouseClick(page.by, Qt.MouseButton.LeftButton, pos=place)

    def values(by: str) -> dict[str, tuple[float | None, ...]]:
        choose(by)
        return {row.key: tuple(row.cell(at).value for at in (2, 3, 4)) for row in page.table.rows()}

    assert values("call") == {
        "call:0": (1, 1, 1 / 8),
        "call:1": (1, 4, 4 / 8),
        "call:2": (1, 3, 3 / 8),
    }
    assert values("function") == {"norm": (2, 4.0, 0.5), "query": (1, 4.0, 0.5)}
    choose("node")
    # Torch takes 2 ms for each: a call of two nodes is held against both.
    assert {row.key: row.cell(6).value for row in page.table.rows()} == {
        "fx:norm": 1 / 2,
        "fx:query": 4 / 4,
        "fx:key": 7 / 4,
    }
    assert values("node") == {
        "fx:norm": (1, 1.0, 1 / 8),
        "fx:query": (1, 4.0, 4 / 8),
        "fx:key": (2, 7.0, 7 / 8),
    }
    notes = {row.key: row.cell(7).text for row in page.table.rows()}
    assert (notes["fx:norm"], notes["fx:query"]) == ("", "fused with key")
    assert values("module")["module:"] == (3, 8.0, 1.0)
    # In the order of the model, each below what it is a part of.
    titles = [row.cell(0).text for row in page.table.rows()]
    assert titles[1:] == ["    norm", "    attention", "        query", "        key"]
    assert page.summary.whole().startswith("3 calls")
    choose("call")
    page.table.row_clicked.emit("call:1", Qt.KeyboardModifier.NoModifier)
    assert bench.document.selection.chosen == ("fx:query", "fx:key")
    # So is the other call of one of these nodes.
    assert page.table.selected_keys() == ["call:1", "call:2"]
    choose("function")
    page.table.row_clicked.emit("query", Qt.KeyboardModifier.NoModifier)
    assert bench.document.selection.chosen == ("tir:query",)


def test_the_tensors_of_the_largest_storage_come_first() -> None:
    def storage(size: int, *tensors: StoredTensor) -> Storage:
        return Storage(size=size, begin=0, end=1, tensors=tensors)

    small = StoredTensor(name="x", shape=(2,), dtype="float32", size=8, written=0, last=1)
    large = StoredTensor(
        name="y", shape=(1, 784), dtype="float32", size=3136, written=1, last=1, returned=True
    )
    memory = MemoryRecord(storages=(storage(8, small), storage(3136, large)), live=(8, 3144))
    rows = list(memory_rows(memory, RECORD))
    assert [row.cell(0).text for row in rows] == ["y", "x"]
    texts = [rows[0].cell(place).text for place in range(8)]
    assert texts[1:] == ["1×784 float32", "3.14 kB", "1", "3.14 kB", "2", "relu", "returned"]


# Figures of nodes


def node(name: str, calls: tuple[int, ...], error: float, *, matches: bool = True) -> NodeRun:
    return NodeRun(
        id=f"fx:{name}",
        milliseconds=1.0,
        max_abs_error=error,
        max_rel_error=error,
        matches=matches,
        calls=calls,
    )


def box(id: str, *members: str) -> Box:
    kind = "group" if members else "call"
    return Box(
        id=id, title=id, kind=kind, strategy="", x=0, y=0, width=1, height=1, members=members
    )


def test_a_module_has_the_time_of_its_calls_and_its_worst_error() -> None:
    calls = tuple(CallRun(function="f", milliseconds=each) for each in (1.0, 2.0, 4.0))
    # The first two nodes share a call.
    nodes = (node("a", (0,), 1e-7), node("b", (0, 1), 1e-5), node("c", (2,), 0.5, matches=False))
    record = msgspec.structs.replace(TIMED, calls=calls, nodes=nodes)
    boxes = (box("module:m", "fx:a", "fx:b"), *(box(f"fx:{each}") for each in "abc"))
    figures = figures_of(record, boxes)
    texts_of = {
        by: {name: shade.text for name, shade in each.shades.items()}
        for by, each in figures.items()
    }
    assert texts_of["time"]["module:m"] == duration_text(3.0)
    assert texts_of["time"]["fx:c"] == duration_text(4.0)
    assert texts_of["error"]["module:m"] == texts_of["error"]["fx:b"] == error_text(1e-5)
    assert texts_of["error"]["fx:c"].startswith("✕")
    assert [kind for kind, _ in figures["error"].legend] == ["ramp", "wrong"]
    assert figures["error"].shades["fx:c"].wrong
    facts = dict(run_facts(record, ("fx:c",)))
    assert facts["time"].startswith(duration_text(4.0))
    assert facts["error"].startswith("✕ differs")
    assert figures_of(None, boxes) == {}


# The values of a node


def test_values_that_are_not_there_are_said_to_be_so(bench: Bench, qtbot: QtBot) -> None:
    bench.open(RECIPE)
    page = TensorPage(bench.document, bench.features.queries, lambda _busy: None)
    shown(qtbot, page)
    assert page.empty.accessibleName() == "Not run yet"
    bench.run(msgspec.structs.replace(TIMED, nodes=(node("relu", (1,), 0.0),)))
    bench.document.select(("fx:relu",))
    qtbot.waitUntil(lambda: bench.count(ComparisonQuery) == 1)
    gone = Problem(what="These values are not kept", todo="Run it again", code="not-kept")
    bench.sent(ComparisonQuery).refuse(gone)
    assert "not kept" in page.empty.accessibleName()
    assert "Run it again" in page.empty.accessibleDescription()
    # Stopped, it can be tried once more.
    bench.run(msgspec.structs.replace(FAST, nodes=(node("relu", (1,), 0.0),)))
    qtbot.waitUntil(lambda: bench.count(ComparisonQuery) == 2)
    bench.sent(ComparisonQuery).refuse(CANCELLED)
    assert page.again.isVisible()
    page.again.click()
    assert bench.count(ComparisonQuery) == 3
    bench.document.set(reference="float64")
    assert bench.count(ComparisonQuery) == 4
    assert bench.sent(ComparisonQuery).query.place.reference == "float64"


def test_the_classes_of_another_source_are_not_shown(bench: Bench, qtbot: QtBot) -> None:
    bench.open(RECIPE)
    features = bench.features
    page = InputPanel(bench.document, features.queries, features.inputs)
    shown(qtbot, page)
    top = (ClassScore(name="Bag", tvm=1.0, torch=1.0),)
    found = Prediction(torch="Bag", tvm="Bag", scores="softmax", top=top)
    bench.run(msgspec.structs.replace(TIMED, prediction=found))
    assert [each.name for each in page.bars.bars()] == ["Bag"]
    assert not page.bars.is_faded()
    # Until it has run again, the same model shows what it said before.
    bench.change(TE)
    assert page.bars.isVisible()
    assert page.bars.is_faded()
    bench.open(OTHER)
    assert not page.bars.isVisible()


def test_a_source_without_torch_has_no_nodes_to_compare(bench: Bench, qtbot: QtBot) -> None:
    bench.document.open(RECIPE)
    records = msgspec.structs.replace(snapshot("dense", kind="tvm"), fx=(), key="1")
    bench.sent(SnapshotQuery).answer(records)
    features = bench.features
    page = ComparePage(
        bench.document, features.queries, features.stepping, features.runs, lambda _busy: None
    )
    shown(qtbot, page)
    bench.run(msgspec.structs.replace(TIMED, nodes=()))
    assert page.nodes.table.empty.accessibleName() == "No nodes to compare"
    # What was computed is there all the same.
    bench.document.select(("relax:main/lv",))
    assert "calls of the run" in page.tensor.empty.accessibleDescription()


def test_the_errors_are_said_of_all_elements() -> None:
    assert "3 of 1,003 " in errors_text("TVM - torch", 3, 1000)
    assert "1,003 elements" in errors_text("TVM - torch", 0, 1003)


def test_a_ratio_of_times_says_which_is_faster() -> None:
    assert beside_text(2.0, 1.0) == "2.00× slower"
    assert beside_text(1.0, 2.0, about=True) == "≈ 2.00× faster"
    assert beside_text(2.0, 1.0, "torch") == "2.00× slower than torch"
    # Times of unknown spread are told apart by their ratio alone.
    assert beside_text(1.02, 1.0) == beside_text(1.0, 1.02) == "as fast"
    assert beside_text(1.02, 1.0, told=True) == "1.02× slower"
    assert beside_text(1.3, 1.0, "torch", told=False) == "as fast as torch"


def test_the_top_bar_the_table_and_the_claim_agree_on_which_side_is_faster() -> None:
    torch = side_times("torch", [0.001, 0.0011, 0.0012], 2)

    def said(milliseconds: float, threads: int = 2) -> tuple[str, str, str]:
        ours = side_times("TVM", [milliseconds / 1000] * 3, threads)
        times = RunTimes(sides=(ours, torch), warm_up=1, processors=2)
        changed = {"tvm_ms": milliseconds, "torch_ms": torch.milliseconds, "times": times}
        record = msgspec.structs.replace(RECORD, **changed)
        return short_claim(times), beside_reference(record), claims(times)[0]

    assert said(2.2) == (
        "2.00× slower than torch",
        "2.00× slower",
        "TVM is 2.00× slower than torch",
    )
    assert said(1.2) == (
        "as fast as torch",
        "as fast",
        "TVM is as fast as torch, within measurement noise",
    )
    # With other numbers of threads, nothing is said.
    short, cell, claim = said(2.2, threads=1)
    assert (short, cell) == ("torch 1.1 ms", "–")
    assert "not compared" in claim
