"""One moment everywhere: the step that is current is that of every pane, in every mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QPushButton

from lowerscope.app.document.stepping import ORDER, call_lines
from lowerscope.app.engine.child_process import Ending
from lowerscope.app.panes.common.script_page import FetchedPage
from lowerscope.app.panes.model.model_view import ModelView
from lowerscope.app.panes.steps.pipeline_view import moment_of
from lowerscope.app.shell.modes import MODES
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.module_steps import Moment, PassRecord, TranslationRecord
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import DifferenceQuery, FunctionsQuery, RunQuery, TextQuery
from lowerscope.core.model.recipe import Recipe, Source, Step
from lowerscope.core.model.run_records import CallRun
from lowerscope.core.model.snapshot import FunctionRecord
from tests.app.plain_values import RECORD, Sent, snapshot
from tests.app.shell.conftest import OpenPlainWindow, sent
from tests.diagonal import at_length

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)

NAMES = ("LegalizeOps", "FoldConstant", "FuseOps")
RECIPE = Recipe(
    source=Source(spec="sample:fashion_mlp"), steps=tuple(Step(name=name) for name in NAMES)
)
PASSES = tuple(
    PassRecord(number=number, label=str(number), name=name, step=number, changed=("main",))
    for number, name in enumerate(NAMES, start=1)
)
TRANSLATION = tuple(
    TranslationRecord(number=number, node=node, bindings=(f"relax:main/{lv}",), changed=("main",))
    for number, (node, lv) in enumerate((("fx:dense", "lv"), ("fx:relu", "lv1")), start=1)
)
RECORDS = msgspec.structs.replace(snapshot("dense", "relu"), passes=PASSES, translation=TRANSLATION)
CALLS = (CallRun(function="dense", milliseconds=2.0), CallRun(function="relu", milliseconds=1.0))
FUNCTIONS = (FunctionRecord(id="tir:dense", name="dense", kind="tensorir"),)


@pytest.fixture(scope="module")
def shared(open_shared_window: OpenPlainWindow) -> MainWindow:
    window = open_shared_window(RECIPE, RECORDS)
    window.resize(1440, 900)
    window.show_panes()
    return window


@pytest.fixture
def window(shared: MainWindow) -> MainWindow:
    open_with_all_steps(shared)
    return shared


def open_with_all_steps(window: MainWindow) -> None:
    window.document.open(RECIPE)
    sent(window).answer(RECORDS)
    window.features.stepping.take_build((PASSES[0], msgspec.structs.replace(PASSES[1], number=2)))
    window.features.stepping.take_run(call_lines(CALLS))
    QApplication.processEvents()


def moments(window: MainWindow) -> Iterator[Moment]:
    """Yield the steps of all sections."""
    for section in ORDER:
        for line in window.features.stepping.lines(section):
            yield Moment(section=section, index=line.number)


def since(window: MainWindow, count: dict[str, int]) -> Iterator[Sent]:
    """Yield the queries that the children were sent after some."""
    processes: Any = window.features.processes
    for role in ("engine", "worker"):
        yield from getattr(processes, role).sent[count[role] :]


def counts(window: MainWindow) -> dict[str, int]:
    processes: Any = window.features.processes
    return {role: len(getattr(processes, role).sent) for role in ("engine", "worker")}


def functions_of(outline: ModelView) -> list[str]:
    """Return the functions that the outline lists."""
    (section,) = outline.tree.findItems("Functions", Qt.MatchFlag.MatchExactly)
    return [section.child(number).text(0) for number in range(section.childCount())]


def asked(query: Any) -> set[Moment | None]:
    """Return the moments that a query is about; none if it is about none."""
    if hasattr(query, "old") and hasattr(query, "new"):
        return {query.new.moment}
    return {query.moment} if hasattr(query, "moment") else set()


def agree(window: MainWindow, before: dict[str, int], moment: Moment | None) -> None:
    """Check that whatever shows or requests something of a step does it of this one."""
    stepping, panes = window.features.stepping, window.panes
    module = None if moment is None or moment.section == "run" else moment
    for each in list(since(window, before)):
        if isinstance(each.query, FunctionsQuery) and not each.fate:
            each.answer(FUNCTIONS)
    QApplication.processEvents()
    if module is not None:
        assert functions_of(panes.model) == [each.name for each in FUNCTIONS]
    # What is fetched, by whichever pane, is of this step.
    for each in since(window, before):
        assert each.fate or asked(each.query) <= {module}, each.query
    windows = [panes, *window.panes.area._windows.values()]
    for page in {page for each in windows for page in each.findChildren(FetchedPage)}:
        if page.isVisible() and page._query() is not None:
            assert page.moment == module
    assert window.document.moment == stepping.here == moment
    # The chip, the list of steps and the difference name it.
    row = panes.pipeline.list.row(panes.pipeline.list.marked())
    assert (None if row is None else moment_of(row)) == (
        None if moment is None else (moment.section, moment.index)
    )
    assert window.tool_bar.step.isHidden() == (moment is None)
    sides = window.features.pins.sides
    assert sides is None or sides[1].moment == module
    if moment is not None:
        line = stepping.line
        assert line is not None
        assert line.title in window.tool_bar.step.text()
        assert module is None or line.title in panes.difference.title.whole()


@pytest.mark.parametrize("mode", [mode.key for mode in MODES])
def test_every_pane_holds_the_current_step(window: MainWindow, mode: str) -> None:
    stepping, panes = window.features.stepping, window.panes
    panes.set_mode(mode)
    seen: set[str] = set()
    for moment in moments(window):
        before = counts(window)
        stepping.go(moment)
        QApplication.processEvents()
        agree(window, before, moment)
        seen.add(moment.section)
    assert seen == set(ORDER)
    before = counts(window)
    stepping.leave()
    QApplication.processEvents()
    agree(window, before, None)


def run(window: MainWindow) -> None:
    window.features.runs.run()
    worker: Any = window.features.processes.worker
    query = [each for each in worker.sent if isinstance(each.query, RunQuery)][-1]
    query.answer(msgspec.structs.replace(RECORD, calls=CALLS))


def lose_the_engine(window: MainWindow) -> None:
    processes: Any = window.features.processes
    processes.engine.crashed.emit(Ending(role="engine", how="signal"))
    sent(window).answer(RECORDS)


def change(window: MainWindow, **fields: Any) -> None:
    recipe = window.document.recipe
    assert recipe is not None
    window.document.change(msgspec.structs.replace(recipe, **fields))
    steps = fields.get("steps", RECIPE.steps)
    records = msgspec.structs.replace(RECORDS, passes=PASSES[: len(steps)], key="2")
    sent(window).answer(records)


def undo(window: MainWindow) -> None:
    change(window, steps=())
    window.document.undo()
    sent(window).answer(RECORDS)


def open_another(window: MainWindow) -> None:
    window.document.open(msgspec.structs.replace(RECIPE, source=Source(spec="sample:matmul")))
    sent(window).answer(msgspec.structs.replace(RECORDS, key="3"))


CHANGES: dict[str, Callable[[MainWindow], object]] = {
    "run": run,
    "crash": lose_the_engine,
    "preset": lambda window: change(window, steps=RECIPE.steps[:1]),
    "target": lambda window: change(window, target="llvm -mcpu=skylake"),
    "lowering": lambda window: change(window, lowering="te"),
    "model": open_another,
    "undo": undo,
}


@pytest.mark.parametrize("name", [*tuple(CHANGES)[:3], *at_length(*tuple(CHANGES)[3:])])
def test_after_a_change_there_is_one_moment_in_all_windows(window: MainWindow, name: str) -> None:
    stepping, panes = window.features.stepping, window.panes
    for pane in ("relax", "tensorir"):
        if not panes.area.is_in_window(pane):
            panes.switch_window(pane)
    QApplication.processEvents()
    for section, number in (("translate", 2), ("passes", 3), ("build", 1), ("run", 1)):
        open_with_all_steps(window)
        moment, before = Moment(section=section, index=number), counts(window)
        stepping.go(moment)
        QApplication.processEvents()
        agree(window, before, moment)
        before = counts(window)
        CHANGES[name](window)
        QApplication.processEvents()
        agree(window, before, stepping.here)
        # Esc leaves it, wherever the focus is.
        before = counts(window)
        QTest.keyClick(panes.relax.window(), Qt.Key.Key_Escape)
        QApplication.processEvents()
        agree(window, before, None)


@pytest.mark.parametrize("mode", ["step", "explore"])
def test_what_was_cancelled_can_be_tried_again(window: MainWindow, mode: str) -> None:
    window.panes.set_mode(mode)
    window.features.stepping.go(Moment(section="passes", index=2))
    QApplication.processEvents()
    engine: Any = window.features.processes.engine
    kind = DifferenceQuery if mode == "step" else TextQuery
    asked = [each for each in engine.sent if isinstance(each.query, kind) and not each.fate]
    assert asked
    for each in asked:
        each.refuse(Problem(what="Cancelled", code="cancelled"))
    QApplication.processEvents()
    buttons = [each for each in window.findChildren(QPushButton) if each.text() == "Try again"]
    (again,) = [each for each in buttons if each.isVisible()]
    count = len(engine.sent)
    QTest.mouseClick(again, Qt.MouseButton.LeftButton)
    QApplication.processEvents()
    assert [each.query for each in engine.sent[count:]] == [asked[-1].query]
    assert not again.isVisible()


def test_a_double_click_on_run_runs_once(window: MainWindow) -> None:
    worker: Any = window.features.processes.worker
    before = len(worker.sent)
    button, left = window.tool_bar.run, Qt.MouseButton.LeftButton
    QTest.mouseClick(button, left)
    QTest.mouseDClick(button, left)
    QTest.mouseRelease(button, left)
    begun = [each for each in worker.sent[before:] if isinstance(each.query, RunQuery)]
    assert len(begun) == 1
    assert not begun[0].fate
    assert window.document.running
    assert button.text() == "Stop"
    begun[0].answer(msgspec.structs.replace(RECORD, calls=CALLS))


def test_a_selected_relax_function_is_not_said_to_call_nothing(window: MainWindow) -> None:
    main = FunctionRecord(id="relax:main", name="main", kind="relax")
    window.panes.set_mode("explore")
    window.features.stepping.leave()
    window.document.open(msgspec.structs.replace(RECIPE, lowering="te"))
    functions = (main, *RECORDS.functions)
    sent(window).answer(msgspec.structs.replace(RECORDS, functions=functions))
    QApplication.processEvents()
    window.document.select(("relax:main",))
    QApplication.processEvents()
    texts = [label.text() for label in window.panes.tensorir.findChildren(QLabel)]
    assert "Select one of its bindings to see the function that it calls." in texts
    assert "It calls no function of the module." not in texts
