"""The dialog of targets alone: what is typed is looked up, and taken once it is known."""

from __future__ import annotations

import msgspec
import pytest
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QDialogButtonBox, QPushButton
from pytestqt.qtbot import QtBot

from lowerscope.app.panes.remote.commands import RemoteDialog, TargetDialog, Targets
from lowerscope.core.model.machines import TargetRecord
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import RemoteQuery, TargetsQuery
from tests.app.conftest import bench
from tests.app.plain_values import RECIPE, Bench


def record(text: str, *, title: str = "", hindrance: str = "") -> TargetRecord:
    return TargetRecord(
        text=text,
        title=title,
        architecture="x86_64",
        cpu=text.rpartition("=")[2],
        vector_bits=256,
        lanes=8,
        registers=16,
        threads=3,
        hindrance=hindrance,
    )


KNOWN = (record("llvm -mcpu=skylake", title="Skylake"), record("llvm -mcpu=a76", hindrance="Arm"))


@pytest.fixture
def dialog(bench: Bench, qtbot: QtBot) -> TargetDialog:
    bench.open(RECIPE)
    dialog = TargetDialog(bench.document, Targets(bench.features.queries, bench.document))
    qtbot.addWidget(dialog)
    for each in list(bench.engine.sent):
        if isinstance(each.query, TargetsQuery) and not each.fate:
            each.answer(KNOWN if not each.query.texts else (record(each.query.texts[0]),))
    return dialog


def ok_of(dialog: TargetDialog) -> QPushButton:
    return dialog.buttons.button(QDialogButtonBox.StandardButton.Ok)


def type_in(bench: Bench, qtbot: QtBot, dialog: TargetDialog, text: str) -> None:
    """Type another target, and wait until it is looked up."""
    dialog.line.selectAll()
    QTest.keyClicks(dialog.line, text)
    assert not ok_of(dialog).isEnabled()

    def asked() -> bool:
        query = bench.engine.last().query
        return isinstance(query, TargetsQuery) and query.texts == (text,)

    qtbot.waitUntil(asked)


def test_what_is_typed_is_taken_once_it_is_known(
    bench: Bench, qtbot: QtBot, dialog: TargetDialog
) -> None:
    assert [row.cell(5).text for row in dialog.table.rows()] == ["yes", "no"]
    type_in(bench, qtbot, dialog, "llvm -mcpu=skylark")
    wrong = Problem(what="LLVM knows no skylark", todo="Did you mean skylake?")
    bench.engine.last().refuse(wrong)
    assert "Did you mean skylake" in dialog.about.text()
    assert not ok_of(dialog).isEnabled()
    text = "llvm -mcpu=skylake -num-cores=3"
    type_in(bench, qtbot, dialog, text)
    bench.engine.last().answer((record(text),))
    assert "256 bits, 8 float32" in dialog.about.text()
    ok_of(dialog).click()
    assert bench.document.wanted is not None
    assert bench.document.wanted.target == text


def test_a_target_of_the_list_is_taken_by_its_row(bench: Bench, dialog: TargetDialog) -> None:
    dialog.table.row_clicked.emit(KNOWN[0].text, None)
    assert dialog.line.text() == KNOWN[0].text
    dialog.table.row_activated.emit(KNOWN[1].text)
    assert bench.document.wanted is not None
    assert bench.document.wanted.target == KNOWN[1].text


# The form for another machine: what it answers is of the machine that was asked


__all__ = ["bench"]


@pytest.fixture
def form(qtbot: QtBot, bench: Bench) -> RemoteDialog:
    bench.open(RECIPE)
    targets = Targets(bench.features.queries, bench.document)
    form = RemoteDialog(bench.document, targets)
    qtbot.addWidget(form)
    form.show()
    form.tracker.setText("127.0.0.1:1")
    form.key.setText("none")
    return form


def test_an_answer_is_dropped_once_another_machine_is_typed(
    bench: Bench, form: RemoteDialog
) -> None:
    form.test.click()
    pending = bench.sent(RemoteQuery)
    assert not form.test.isEnabled()
    form.tracker.clear()
    assert pending.fate
    assert not form.test.isEnabled()
    assert "a key needs a tracker" in form.said.text()
    form.tracker.setText("127.0.0.1:2")
    assert form.test.isEnabled()
    form.test.click()
    bench.sent(RemoteQuery).refuse(Problem(what="nobody is there"))
    assert "nobody is there" in form.said.text()
    assert form.test.isEnabled()


def test_the_machine_is_a_part_of_the_recipe(bench: Bench, form: RemoteDialog) -> None:
    remote = form.remote()
    assert remote is not None
    assert (remote.tracker, remote.key) == ("127.0.0.1:1", "none")
    form.buttons.button(QDialogButtonBox.StandardButton.Ok).click()
    assert bench.document.wanted == msgspec.structs.replace(RECIPE, remote=remote)
