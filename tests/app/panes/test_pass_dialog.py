"""The dialog that adds a pass."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from lowerscope.app.panes.steps.pass_dialog import FusionDialog, PassDialog
from lowerscope.core.model.explanation_records import Change, Explanation
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import WhyFusedQuery
from lowerscope.core.model.recipe import Step
from lowerscope.core.model.snapshot import PassType
from tests.app.plain_values import RECIPE, Bench


def test_only_passes_that_would_change_something_are_listed_once_they_are_known(
    qtbot: QtBot,
) -> None:
    dialog = PassDialog(None)
    qtbot.addWidget(dialog)
    names = ["FoldConstant", "FuseOps", "LegalizeOps"]
    dialog.show_catalogue([PassType(name=name, dialect="relax") for name in names])
    with qtbot.waitSignal(dialog.changing_wanted):
        dialog.only_changing.click()
    assert dialog.shown() == names
    dialog.show_changing(["FuseOps", "LegalizeOps"])
    assert dialog.shown() == names[1:]
    dialog.line.setText("leg")
    assert dialog.shown() == ["LegalizeOps"]
    dialog.line.clear()
    with qtbot.assertNotEmitted(dialog.changing_wanted):
        dialog.only_changing.click()
        assert dialog.shown() == names
        dialog.only_changing.click()
    assert dialog.shown() == names[1:]


# The dialog on fusion, with answers as plain values


STEPS = (Step(name="LegalizeOps"), Step(name="FuseOps"))
MISSING = Explanation(
    fused=False,
    cause="pass-missing",
    text="FuseOps is not in the pipeline",
    cites=("fx:dense", "fx:relu"),
    change=Change(text="Add FuseOps", steps=STEPS),
)


@pytest.fixture
def dialog(qtbot: QtBot, bench: Bench) -> FusionDialog:
    bench.open(RECIPE)
    dialog = FusionDialog(bench.document, bench.features.queries, "fx:dense", "fx:relu")
    qtbot.addWidget(dialog)
    dialog.show()
    return dialog


def test_the_change_is_one_step_that_can_be_undone(bench: Bench, dialog: FusionDialog) -> None:
    sent = bench.engine.last()
    assert sent.query == WhyFusedQuery(bench.document.recipe, "fx:dense", "fx:relu")
    assert dialog.apply.isHidden()
    sent.answer(MISSING)
    assert dialog.head.text() == "Not fused"
    assert dialog.text.text() == "FuseOps is not in the pipeline."
    assert dialog.apply.text() == "Add FuseOps"
    dialog.apply.click()
    assert bench.document.wanted.steps == STEPS
    bench.document.undo()
    assert bench.document.wanted == RECIPE


def test_other_names_are_explained_in_their_turn(
    qtbot: QtBot, bench: Bench, dialog: FusionDialog
) -> None:
    bench.engine.last().answer(MISSING)
    dialog.other.setText("head")
    qtbot.keyClick(dialog.other, Qt.Key.Key_Return)
    sent = bench.engine.last()
    assert isinstance(sent.query, WhyFusedQuery)
    assert sent.query.other == "head"
    sent.refuse(Problem(what="there is no node, binding or function head", where="why"))
    assert "there is no node" in dialog.text.text()
    assert dialog.apply.isHidden()
    dialog.other.setText("")
    qtbot.keyClick(dialog.other, Qt.Key.Key_Return)
    assert "type their names" in dialog.text.text()
