"""The export dialog and its commands, with a test in the place of the worker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from lowerscope.app.panes.export.commands import ExportDialog
from lowerscope.core.model.artifacts import EXISTS, ExportRecord
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import ExportQuery
from tests.app.conftest import bench
from tests.app.plain_values import CANCELLED, RECIPE, TE, WRONG, Bench

__all__ = ["bench"]


@pytest.fixture
def dialog(qtbot: QtBot, bench: Bench, tmp_path: Path) -> Iterator[ExportDialog]:
    bench.open(RECIPE)
    dialog = ExportDialog(bench.document, bench.features.queries, str(tmp_path / "out"))
    qtbot.addWidget(dialog)
    dialog.show()
    tick(dialog, "module")
    yield dialog
    dialog.close()


def tick(dialog: ExportDialog, *names: str) -> None:
    for name, box in dialog.boxes.items():
        box.setChecked(name in names)


def query(bench: Bench) -> ExportQuery:
    found = bench.sent(ExportQuery).query
    assert isinstance(found, ExportQuery)
    return found


def test_nothing_is_exported_without_a_choice_and_a_folder(dialog: ExportDialog) -> None:
    assert dialog.export.isEnabled()
    dialog.folder.clear()
    assert not dialog.export.isEnabled()
    dialog.folder.setText("out")
    tick(dialog)
    assert not dialog.export.isEnabled()
    # A graph is written as a picture: of some kind.
    tick(dialog, "fx-graph")
    assert dialog.export.isEnabled()
    for box in dialog.pictures.values():
        box.setChecked(False)
    assert not dialog.export.isEnabled()


def test_the_recipe_that_is_shown_is_exported_and_what_was_left_out_is_said(
    bench: Bench, dialog: ExportDialog, tmp_path: Path
) -> None:
    bench.document.change(TE)
    dialog.export.click()
    assert (query(bench).recipe, query(bench).folder) == (RECIPE, str(tmp_path / "out"))
    assert [each.name for each in query(bench).wanted] == ["module"]
    assert (dialog.export.isEnabled(), dialog.stop.isEnabled()) == (False, True)
    left_out = ("schedule: there is none", "parameters: none. Give them: --params-as-inputs.")
    record = ExportRecord(paths=("out/module.py",), left_out=left_out)
    bench.sent(ExportQuery).answer(record)
    assert (dialog.export.isEnabled(), dialog.stop.isEnabled()) == (True, False)
    assert dialog.show_folder.isVisible()
    place = "Edit → Parameters → Parameters as inputs."
    for part in ("module.py", "✕ schedule: there is none", place):
        assert part in dialog.status.text()


def test_files_are_replaced_once_that_is_confirmed(bench: Bench, dialog: ExportDialog) -> None:
    dialog.export.click()
    there = Problem(what="there", code=EXISTS, choices=("module.py",))
    bench.sent(ExportQuery).refuse(there)
    assert bench.count(ExportQuery) == 1
    assert "module.py" in dialog.banner.message()
    # What has been filled in since is no part of the question.
    tick(dialog, "report")
    (overwrite,) = dialog.banner.actions_offered()
    overwrite.click()
    assert query(bench).replacing == ("module.py",)
    assert [each.name for each in query(bench).wanted] == ["module"]


def test_an_export_that_fails_or_is_stopped_can_be_repeated(
    bench: Bench, dialog: ExportDialog
) -> None:
    dialog.export.click()
    bench.sent(ExportQuery).refuse(WRONG)
    assert WRONG.what in dialog.banner.message()
    dialog.export.click()
    pending = bench.sent(ExportQuery)
    dialog.stop.click()
    assert pending.fate == "cancelled"
    pending.refuse(CANCELLED)
    assert dialog.status.text().startswith("Stopped")
    assert not dialog.show_folder.isVisible()
    dialog.export.click()
    assert bench.count(ExportQuery) == 3


def test_a_dialog_that_is_closed_gives_its_export_up(bench: Bench, dialog: ExportDialog) -> None:
    dialog.export.click()
    pending = bench.sent(ExportQuery)
    dialog.close()
    assert pending.fate.startswith("killed")
