"""The pipeline, edited in the window by mouse and keyboard."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication, QFileDialog, QLineEdit, QPushButton
from pytestqt.qtbot import QtBot

from lowerscope.app.panes.steps.pass_dialog import PassDialog
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.files.pipelines_and_schedules import PRESETS
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.recipe import Step
from tests.end_to_end.driving import PATIENCE, OpenWindow, wait_for_records

LEFT = Qt.MouseButton.LeftButton
FUSE = next(preset.steps for preset in PRESETS if preset.name == "fuse")


def names(window: MainWindow) -> list[str]:
    recipe = window.document.wanted
    assert recipe is not None
    return [step.name for step in recipe.steps]


def select(qtbot: QtBot, window: MainWindow, key: str) -> None:
    steps = window.panes.pipeline.list
    place = steps.row_rect(key).center().toPoint()
    qtbot.mouseClick(steps.viewport(), LEFT, pos=QPoint(120, place.y()))
    assert steps.current_key() == key


def open_dialog(qtbot: QtBot, window: MainWindow) -> PassDialog:
    """Wait until the dialog has its passes."""
    pipeline = window.panes.pipeline
    qtbot.waitUntil(lambda: pipeline.dialog is not None, timeout=PATIENCE)
    dialog = pipeline.dialog
    assert dialog is not None
    filled = lambda: bool(dialog.form.title.text())  # noqa: E731
    qtbot.waitUntil(filled, timeout=PATIENCE)
    return dialog


def test_the_list_shows_what_each_step_did(qtbot: QtBot, open_window: OpenWindow) -> None:
    window = open_window("sample:fashion_mlp", steps=FUSE)
    pipeline, stepping = window.panes.pipeline, window.features.stepping
    heads = [row for row in pipeline.list.rows() if row.place >= 0]
    assert [row.title for row in heads] == [step.name for step in FUSE]
    assert [row.number for row in heads] == ["1", "2", "3", "4", "5"]
    assert all(row.time.endswith("s") and row.on for row in heads)
    assert pipeline.context().startswith("5 steps · ")
    assert window.tool_bar.pipeline.text() == "Pipeline Fuse"

    # Double click goes to a step, Enter as well; the row of it is marked.
    place = pipeline.list.row_rect(heads[3].key).center().toPoint()
    qtbot.mouseClick(pipeline.list.viewport(), LEFT, pos=place)
    qtbot.mouseDClick(pipeline.list.viewport(), LEFT, pos=place)
    qtbot.waitUntil(lambda: pipeline.list.marked() == heads[3].key)
    assert stepping.line is not None
    assert stepping.line.title == "FuseOps"
    select(qtbot, window, heads[0].key)
    qtbot.keyClick(pipeline.list, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: stepping.moment == Moment(section="passes", index=1))


@pytest.mark.x
def test_steps_are_switched_moved_duplicated_and_removed(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:fashion_mlp", steps=FUSE)
    pipeline = window.panes.pipeline
    keys = [row.key for row in pipeline.list.rows() if row.place >= 0]

    box = pipeline.list.box_rect(keys[2]).center().toPoint()
    qtbot.mouseClick(pipeline.list.viewport(), LEFT, pos=box)
    wait_for_records(qtbot, window)
    row = next(row for row in pipeline.list.rows() if row.title == "FoldConstant")
    assert (row.on, row.changed) == (False, "switched off")
    assert window.tool_bar.pipeline.text() == "Pipeline 4 steps of your own"
    qtbot.keyClick(pipeline.list, Qt.Key.Key_Space)
    wait_for_records(qtbot, window)
    assert window.tool_bar.pipeline.text() == "Pipeline Fuse"

    # Dragged from the third place to the first.
    heads = [row for row in pipeline.list.rows() if row.place >= 0]
    viewport = pipeline.list.viewport()
    start = QPoint(160, pipeline.list.row_rect(heads[2].key).center().toPoint().y())
    end = QPoint(160, round(pipeline.list.row_rect(heads[0].key).top()) + 2)
    qtbot.mousePress(viewport, LEFT, pos=start)
    for share in (0.3, 0.7, 1.0):
        qtbot.mouseMove(viewport, start + (end - start) * share)
    qtbot.mouseRelease(viewport, LEFT, pos=end)
    assert names(window)[:3] == ["FoldConstant", "LegalizeOps", "AnnotateTIROpPattern"]
    wait_for_records(qtbot, window)
    assert pipeline.selected_place() == 0

    window.commands.action("move-step-down").trigger()
    assert names(window)[:2] == ["LegalizeOps", "FoldConstant"]
    wait_for_records(qtbot, window)
    window.commands.action("duplicate-step").trigger()
    assert names(window)[:3] == ["LegalizeOps", "FoldConstant", "FoldConstant"]
    wait_for_records(qtbot, window)
    qtbot.keyClick(pipeline.list, Qt.Key.Key_Delete)
    assert names(window)[:3] == ["LegalizeOps", "FoldConstant", "AnnotateTIROpPattern"]
    wait_for_records(qtbot, window)
    for _ in range(6):
        window.commands.action("undo").trigger()
        wait_for_records(qtbot, window)
    assert names(window) == [step.name for step in FUSE]
    window.commands.action("redo").trigger()
    wait_for_records(qtbot, window)
    assert window.document.recipe is not None
    assert not window.document.recipe.steps[2].on


def test_a_pass_is_added_from_the_catalogue_with_options(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:fashion_mlp")
    window.commands.action("add-pass").trigger()
    dialog = open_dialog(qtbot, window)
    assert "of" in dialog.count.text()
    qtbot.keyClicks(dialog.line, "fuseops")
    assert dialog.form.title.text() == "FuseOps"
    assert "fuse" in dialog.form.doc.toPlainText().lower()
    field = dialog.form.fields["fuse_opt_level"]
    assert isinstance(field, QLineEdit)
    qtbot.keyClicks(field, "much")
    assert dialog.wrong.text() == (
        "“much” is no value of fuse_opt_level. Give a whole number, such as 2."
    )
    assert not dialog.ok.isEnabled()
    field.clear()
    qtbot.keyClicks(field, "0")
    assert dialog.wrong.text() == ""
    qtbot.mouseClick(dialog.ok, LEFT)
    wait_for_records(qtbot, window)
    assert window.document.recipe is not None
    assert window.document.recipe.steps == (
        Step(name="LegalizeOps"),
        Step(name="FuseOps", options={"fuse_opt_level": 0}),
    )
    row = next(row for row in window.panes.pipeline.list.rows() if row.title == "FuseOps")
    assert row.note == "fuse_opt_level=0"

    select(qtbot, window, row.key)
    window.commands.action("step-options").trigger()
    dialog = open_dialog(qtbot, window)
    field = dialog.form.fields["fuse_opt_level"]
    assert isinstance(field, QLineEdit)
    assert field.text() == "0"
    field.clear()
    qtbot.keyClick(field, Qt.Key.Key_Return)
    wait_for_records(qtbot, window)
    assert window.document.recipe.steps[1] == Step(name="FuseOps")


def test_a_preset_is_chosen_saved_and_loaded(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = open_window("sample:fashion_mlp", steps=(Step(name="LegalizeOps", on=False),))
    file = tmp_path / "mine.json"
    # What the user answers to the system's own dialogs.
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(file), ""))
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(file), ""))
    window.commands.action("save-pipeline").trigger()
    window.commands.action("pipeline-fuse").trigger()
    wait_for_records(qtbot, window)
    assert names(window) == [step.name for step in FUSE]
    assert window.commands.action("pipeline-fuse").isChecked()
    window.commands.action("load-pipeline").trigger()
    wait_for_records(qtbot, window)
    assert window.document.recipe is not None
    assert window.document.recipe.steps == (Step(name="LegalizeOps", on=False),)
    file.write_text("{}")
    window.commands.action("load-pipeline").trigger()
    assert "no saved pipeline" in window.document.problems[0].what


def test_filters_choose_what_is_listed_and_gone_through(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:fashion_mlp", steps=FUSE)
    pipeline, stepping = window.panes.pipeline, window.features.stepping
    qtbot.keyClicks(pipeline.name, "fuse")
    titles = [row.title for row in pipeline.list.rows() if row.place >= 0]
    assert titles == ["FuseOps", "FuseTIR"]
    window.commands.action("first-step").trigger()
    window.commands.action("next-step").trigger()
    assert stepping.line is not None
    assert stepping.line.title == "FuseOps"
    pipeline.name.clear()
    qtbot.keyClicks(pipeline.function, "fused_matmul_add")
    titles = [row.title for row in pipeline.list.rows() if row.place >= 0]
    assert titles == ["FuseOps", "FuseTIR"]
    pipeline.function.clear()
    assert len([row for row in pipeline.list.rows() if row.place >= 0]) == 5
    assert pipeline.hide_unchanged.isChecked()
    before = len(pipeline.list.rows())
    qtbot.mouseClick(pipeline.hide_unchanged, LEFT, pos=QPoint(8, 10))
    assert len(pipeline.list.rows()) > before


def test_passes_inside_of_a_step_unfold_into_the_timeline(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:fashion_mlp", steps=FUSE)
    pipeline, slider = window.panes.pipeline, window.panes.timeline.slider
    before = len(slider.dots())
    key = next(row.key for row in pipeline.list.rows() if row.title == "FuseTIR")
    select(qtbot, window, key)
    qtbot.keyClick(pipeline.list, Qt.Key.Key_Right)
    qtbot.waitUntil(lambda: len(slider.dots()) > before)
    inside = [row for row in pipeline.list.rows() if row.parent == key]
    assert inside[0].number == "5.1"
    qtbot.keyClick(pipeline.list, Qt.Key.Key_Left)
    qtbot.waitUntil(lambda: len(slider.dots()) == before)


def test_the_passes_of_the_build_are_listed_below(qtbot: QtBot, open_window: OpenWindow) -> None:
    window = open_window("sample:fashion_mlp")
    pipeline, stepping = window.panes.pipeline, window.features.stepping
    segment = window.panes.timeline.sections.segment_rect("build").center().toPoint()
    qtbot.mouseClick(window.panes.timeline.sections, LEFT, pos=segment)
    qtbot.waitUntil(lambda: len(stepping.lines("build")) >= 40, timeout=PATIENCE)
    metal = pipeline.list.row("section:build")
    assert metal is not None
    assert metal.changed == f"{len(stepping.lines('build'))} passes"
    unchanged = metal.time.removesuffix(" unchanged")
    assert int(unchanged) > 0
    assert window.panes.timeline.hidden.text().startswith(f"{unchanged} of ")
    qtbot.keyClick(window.panes.timeline.slider, Qt.Key.Key_End)
    relax = window.panes.relax
    last = stepping.dots("build")[-1]
    assert last.depth >= 1
    assert relax.script.moment.text() == f"after {last.label} {last.title}"
    qtbot.waitUntil(lambda: "def main" in relax.script.code.text(), timeout=PATIENCE)


SCAN = """
import torch

class Scan(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        return torch.cumsum(self.linear(x), dim=1)

example_inputs = (torch.ones(4, 8),)
"""


def test_functions_that_a_step_leaves_out_stand_beside_it(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    file = tmp_path / "scan.py"
    file.write_text(SCAN)
    steps = next(preset.steps for preset in PRESETS if preset.name == "optimise-cpu")
    window = open_window(str(file), steps=steps)
    timeline, pipeline = window.panes.timeline, window.panes.pipeline
    row = next(each for each in pipeline.list.rows() if each.title == "SplitLayoutRewritePreproc")
    assert row.unsure
    assert row.note.startswith("⚠ leaves out cumsum")
    window.features.stepping.go(Moment(section="passes", index=row.value))
    assert timeline.left_out.whole().startswith("⚠ leaves out cumsum")
    window.features.stepping.first()
    assert not timeline.left_out.whole()


def test_a_link_to_a_step_is_copied(qtbot: QtBot, open_window: OpenWindow) -> None:
    window = open_window("sample:fashion_mlp", lowering="te", steps=FUSE)
    key = next(row.key for row in window.panes.pipeline.list.rows() if row.title == "FuseOps")
    select(qtbot, window, key)
    window.commands.action("copy-link").trigger()
    assert QApplication.clipboard().text() == (
        "lowerscope passes sample:fashion_mlp --lowering te --pipeline fuse --step 4"
    )


OWN_PASSES = """
import tvm


@tvm.transform.module_pass(opt_level=0)
class KeepAsItIs:
    \"\"\"Leaves everything as it is.\"\"\"

    def transform_module(self, module, context):
        return module
"""


def test_a_pass_of_the_users_own_is_in_the_catalogue(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = open_window("sample:fashion_mlp")
    file = tmp_path / "own.py"
    file.write_text(OWN_PASSES)
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(file), ""))
    window.commands.action("load-passes").trigger()
    wait_for_records(qtbot, window)
    window.commands.action("extensions").trigger()
    listed = window.extensions.dialog
    assert listed is not None
    item = listed.list.topLevelItem(0)
    assert item is not None
    assert (item.text(0), item.text(1)) == ("own.py", "passes")
    window.commands.action("add-pass").trigger()
    dialog = open_dialog(qtbot, window)
    qtbot.keyClicks(dialog.line, "own keepas")
    assert dialog.shown() == ["own.KeepAsItIs"]
    qtbot.keyClick(dialog.line, Qt.Key.Key_Return)
    wait_for_records(qtbot, window)
    assert names(window) == ["LegalizeOps", "own.KeepAsItIs"]
    assert window.panes.pipeline.list.rows()[1].changed == "–"


def test_two_steps_are_pinned_and_compared(qtbot: QtBot, open_window: OpenWindow) -> None:
    window = open_window("sample:fashion_mlp", steps=FUSE)
    pipeline, pins = window.panes.pipeline, window.features.pins
    select(qtbot, window, "step:0")
    pipeline.pin()
    row = pipeline.list.row("step:0")
    assert row is not None
    assert row.note == "pinned"
    select(qtbot, window, "step:3")
    pipeline.compare()
    assert window.panes.outcome.current() == "difference"
    assert pins.sides is not None
    old, new = pins.sides
    assert old.moment == Moment(section="passes", index=1)
    assert new.moment is not None
    line = window.features.stepping.lines("passes")[new.moment.index - 1]
    assert line.title == "FuseOps"


def test_the_step_that_failed_is_found_from_its_problem(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    wrong = Step(name="FuseOps", options={"fuse_opt_level": "high"})
    window = open_window("sample:fashion_mlp", steps=(*FUSE[:2], wrong, FUSE[4]))
    pipeline = window.panes.pipeline
    rows = {row.key: row for row in pipeline.list.rows()}
    assert rows["step:2"].changed == "✕ failed"
    assert "fuse_opt_level" in rows["step:2"].note
    assert rows["step:3"].changed == "not reached"
    assert rows["step:1"].changed == "7 functions"
    buttons = window.panes.problems.findChildren(QPushButton)
    show = next(button for button in buttons if button.text() == "Show the step")
    qtbot.mouseClick(show, LEFT)
    assert pipeline.list.current_key() == pipeline.list.marked() == "step:2"
    window.commands.action("step-options").trigger()
    dialog = open_dialog(qtbot, window)
    assert "is no value of fuse_opt_level" in dialog.wrong.text()
