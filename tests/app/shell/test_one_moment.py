"""One moment everywhere: the step that is current is that of every pane, in every mode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from lowerscope.app.document.stepping import ORDER, call_lines
from lowerscope.app.panes.common.script_page import FetchedPage
from lowerscope.app.panes.model.model_view import ModelView
from lowerscope.app.panes.steps.step_rows import moment_of
from lowerscope.app.shell.modes import MODES
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.module_steps import Moment, PassRecord, TranslationRecord
from lowerscope.core.model.queries import FunctionsQuery
from lowerscope.core.model.recipe import Recipe, Source, Step
from lowerscope.core.model.run_records import CallRun
from lowerscope.core.model.snapshot import FunctionRecord
from tests.app.plain_values import Sent, snapshot
from tests.app.shell.conftest import OpenPlainWindow

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


@pytest.fixture
def window(open_plain_window: OpenPlainWindow) -> MainWindow:
    window = open_plain_window(RECIPE, RECORDS)
    window.resize(1440, 900)
    window.show_panes()
    stepping = window.features.stepping
    stepping.take_build((PASSES[0], msgspec.structs.replace(PASSES[1], number=2)))
    stepping.take_run(call_lines(CALLS))
    QApplication.processEvents()
    return window


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


@pytest.mark.parametrize("mode", [mode.key for mode in MODES])
def test_every_pane_holds_the_current_step(window: MainWindow, mode: str) -> None:
    stepping, panes = window.features.stepping, window.panes
    panes.set_mode(mode)
    seen: set[str] = set()
    for moment in moments(window):
        before = counts(window)
        stepping.go(moment)
        QApplication.processEvents()
        module = None if moment.section == "run" else moment
        for each in list(since(window, before)):
            if isinstance(each.query, FunctionsQuery) and not each.fate:
                each.answer(FUNCTIONS)
        QApplication.processEvents()
        if module is not None:
            names = [each.name for each in FUNCTIONS]
            assert names == functions_of(panes.model)
        # What is fetched, by whichever pane, is of this step.
        for each in since(window, before):
            assert asked(each.query) <= {module}, each.query
        for page in panes.findChildren(FetchedPage):
            if page.isVisible() and page.moment is not None:
                assert page.moment == module
        assert window.document.moment == stepping.here == moment
        line = stepping.line
        assert line is not None
        # The chip, the list of steps and the difference name it.
        assert line.title in window.tool_bar.step.text()
        row = panes.pipeline.list.row(panes.pipeline.list.marked())
        assert row is not None
        assert moment_of(row) == (moment.section, moment.index)
        sides = window.features.pins.sides
        assert sides is not None
        assert sides[1].moment == module
        assert line.title in panes.difference.title.whole() or module is None
        seen.add(moment.section)
    assert seen == set(ORDER)
    stepping.leave()
    QApplication.processEvents()
    assert window.document.moment is None
    assert window.tool_bar.step.isHidden()
    assert panes.pipeline.list.marked() == ""
