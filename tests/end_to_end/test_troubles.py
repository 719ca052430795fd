"""What goes wrong: bad files, open questions, changed files. What was open stays open."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from lowerscope.app.kit.dialogs import LineQuestion
from lowerscope.app.panes.inputs.inputs_dialog import InputsDialog
from lowerscope.app.panes.sessions.opening import EntryDialog
from lowerscope.core.model.recipe import Recipe, Source, to_json
from tests.end_to_end.driving import (
    PATIENCE,
    OpenWindow,
    run_and_wait,
    wait_for_problem,
    wait_for_records,
)
from tests.end_to_end.small_nets import EXAMPLES, NET, write


def test_a_bad_file_leaves_what_was_open(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    window = open_window("sample:matmul_relu")
    before = window.panes.relax.script.code.text()
    bad = write(tmp_path / "bad.py", "import torch\nraise ValueError('not today')\n")
    window.open_source(bad)
    line = wait_for_problem(qtbot, window)
    assert "not today" in line
    assert "bad.py:2" in line
    assert window.panes.outcome.current() == "problems"
    assert window.panes.relax.script.code.text() == before
    assert window.document.recipe is not None
    assert window.document.recipe.source.spec == "sample:matmul_relu"
    run_and_wait(qtbot, window)
    assert window.tool_bar.verdict.role() == "right"


def test_a_recent_file_is_trusted_anew(qtbot: QtBot, open_window: OpenWindow) -> None:
    window = open_window("sample:matmul_relu")
    trusted = Recipe(source=Source(spec="sample:matmul_relu", trust=True), lowering="te")
    window.opening.open_recent("sample:matmul_relu", to_json(trusted))
    wait_for_records(qtbot, window)
    recipe = window.document.recipe
    assert recipe is not None
    assert (recipe.source.trust, recipe.lowering) == (False, "te")


def test_several_models_in_a_file_are_asked_about(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    window = open_window()
    text = NET.format(name="First") + NET.format(name="Second") + EXAMPLES
    window.open_source(write(tmp_path / "two.py", text))
    wait_for_problem(qtbot, window)
    dialog = window.findChild(EntryDialog)
    assert dialog is not None
    shown = [dialog.list.item(row).text() for row in range(dialog.list.count())]
    assert shown == ["First", "Second"]
    dialog.list.setCurrentRow(1)
    qtbot.keyClick(dialog.list, Qt.Key.Key_Return)
    wait_for_records(qtbot, window)
    assert window.document.recipe is not None
    assert window.document.recipe.source.entry == "Second"


def test_missing_inputs_are_asked_for(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    window = open_window()
    window.open_source(write(tmp_path / "net.py", NET.format(name="Net")))
    assert "--input x=" in wait_for_problem(qtbot, window)
    dialog = window.findChild(InputsDialog)
    assert dialog is not None
    # Escape leaves the question; the problem offers it again.
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    assert not dialog.isVisible()
    again = next(
        each for each in window.panes.problems.findChildren(QPushButton) if "inputs" in each.text()
    )
    qtbot.mouseClick(again, Qt.MouseButton.LeftButton)
    dialog = next(each for each in window.findChildren(InputsDialog) if each.isVisible())
    shape = dialog.row("x").shape
    qtbot.keyClicks(shape, "1,4.5")
    dialog.buttons.button(dialog.buttons.StandardButton.Ok).click()
    assert dialog.isVisible()
    assert dialog.error.isVisible()
    shape.clear()
    qtbot.keyClicks(shape, "2,4")
    dialog.buttons.button(dialog.buttons.StandardButton.Ok).click()
    wait_for_records(qtbot, window)
    run_and_wait(qtbot, window)
    assert window.document.run_record is not None
    assert window.document.run_record.outputs[0].shape == (2, 3)


def test_what_symbolic_trace_cannot_trace_is_offered_to_export(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    text = NET.format(name="Net").replace(
        "return self.linear(x)",
        "return self.linear(x) if x.sum() > 1e9 else self.linear(x) + x.shape[0]",
    )
    text = text.replace("x.sum() > 1e9", "len(x) > 5") + EXAMPLES
    window = open_window(write(tmp_path / "net.py", text), tracer="fx", wait=False)
    line = wait_for_problem(qtbot, window)
    assert "net.py:10" in line
    assert "--tracer export" in line
    problems = window.panes.problems
    button = next(
        each for each in problems.findChildren(QPushButton) if "torch.export" in each.text()
    )
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    wait_for_records(qtbot, window)
    run_and_wait(qtbot, window)
    assert window.tool_bar.verdict.role() == "right"


def test_what_a_file_prints_is_in_the_log(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    text = NET.format(name="Net") + EXAMPLES + "print('hello from the file')\n"
    window = open_window(write(tmp_path / "net.py", text))
    qtbot.waitUntil(
        lambda: "hello from the file" in window.panes.log.toPlainText(), timeout=PATIENCE
    )


def test_a_source_that_changed_is_reloaded(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    path = tmp_path / "net.py"
    window = open_window(write(path, NET.format(name="Net") + EXAMPLES))
    write(path, NET.format(name="Net").replace("4, 3", "4, 8") + EXAMPLES)
    window.commands.action("reload").trigger()
    wait_for_records(qtbot, window)
    assert "(1, 8)" in window.panes.relax.script.code.text()


def test_the_same_question_is_asked_again(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    window = open_window()
    path = write(
        tmp_path / "two.py", NET.format(name="First") + NET.format(name="Second") + EXAMPLES
    )
    for _ in range(2):
        window.open_source(path)
        qtbot.waitUntil(
            lambda: any(each.isVisible() for each in window.findChildren(EntryDialog)),
            timeout=PATIENCE,
        )
        for dialog in window.findChildren(EntryDialog):
            dialog.reject()


def test_a_verdict_goes_with_the_code_that_it_was_about(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    path = tmp_path / "net.py"
    window = open_window(write(path, NET.format(name="Net") + EXAMPLES))
    window.commands.action("watch").trigger()
    run_and_wait(qtbot, window)
    write(path, NET.format(name="Net").replace("self.linear(x)", "self.linear(x) * 0") + EXAMPLES)
    window.commands.action("reload").trigger()
    wait_for_records(qtbot, window)
    assert window.document.run_record is None
    assert not window.tool_bar.verdict.isVisible()
    # Run without a reload: what was run is shown, and said.
    write(path, NET.format(name="Net").replace("self.linear(x)", "self.linear(x) + 7") + EXAMPLES)
    run_and_wait(qtbot, window)
    wait_for_records(qtbot, window)
    assert "opened anew" in window.banner.message()
    assert "R.const(7.0" in window.panes.relax.script.code.text()
    assert window.document.run_record is not None


def test_a_model_that_writes_a_file_when_it_is_first_opened_has_a_verdict(
    qtbot: QtBot, open_window: OpenWindow, writable: Path
) -> None:
    # The engine sees it written, the worker sees it read.
    remembers = """
from pathlib import Path
path = Path(__file__).parent / ("first" + "_time")
if not path.exists():
    path.write_text("seen")
path.read_text()
"""
    window = open_window(write(writable / "net.py", NET.format(name="Net") + EXAMPLES + remembers))
    run_and_wait(qtbot, window)
    wait_for_records(qtbot, window)
    assert window.document.run_record is not None
    assert window.tool_bar.verdict.isVisible()
    assert "opened anew" not in window.banner.message()


def test_inputs_that_were_not_touched_stay_what_they_are(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:fashion_mlp")
    snapshot = window.document.snapshot
    assert snapshot is not None
    known = snapshot.model.inputs
    dialog = InputsDialog([each.name for each in known], known, (), 0, parent=window)
    qtbot.addWidget(dialog)
    dialog.buttons.button(dialog.buttons.StandardButton.Ok).click()
    assert dialog.specs() == ()


def test_a_problem_comes_forward_over_a_result(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    window = open_window("sample:matmul_relu")
    run_and_wait(qtbot, window)
    assert window.panes.outcome.current() == "result"
    window.open_source(write(tmp_path / "bad.py", "def broken(:\n"))
    wait_for_problem(qtbot, window)
    assert window.panes.outcome.current() == "problems"
    assert window.panes.problems.isVisible()


def test_a_target_that_tvm_does_not_know_is_refused_when_it_is_chosen(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:matmul_relu")
    window.document.change_fields(target="gpu9000")
    assert "gpu9000" in wait_for_problem(qtbot, window)
    assert window.document.recipe is not None
    assert window.document.recipe.target == "llvm"
    chosen = window.commands.action("target-llvm")
    chosen.trigger()
    assert chosen.isChecked(), "what is chosen once more stays marked"


def test_missing_arguments_are_asked_for(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    window = open_window()
    text = NET.format(name="Net").replace("__init__(self)", "__init__(self, width)")
    text = text.replace("nn.Linear(4, 3)", "nn.Linear(4, width)") + EXAMPLES
    window.open_source(write(tmp_path / "net.py", text))
    assert "width" in wait_for_problem(qtbot, window)
    dialog = next(each for each in window.findChildren(LineQuestion) if each.isVisible())
    assert "width" in dialog.answer()
    dialog.line.clear()
    assert not dialog.act.isEnabled()
    dialog.line.setText('{"width": 7}')
    dialog.act.click()
    wait_for_records(qtbot, window)
    assert "(1, 7)" in window.panes.relax.script.code.text()
