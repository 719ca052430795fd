"""Functions that crash, never end, hog memory or write beside it: the call is named, the way back
offered, and what was measured stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from lowerscope.app.shell.settings_dialog import SettingsDialog
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.cli.main import recipe_of_command
from lowerscope.core.model.recipe import Extension, InputSpec
from tests.end_to_end.driving import (
    PATIENCE,
    OpenWindow,
    changes,
    run_and_wait,
    wait_for_problem,
    wait_for_records,
)
from tests.faulty_functions import (
    ASKS_FOR_MUCH,
    CRASHES,
    NEVER_ENDS,
    STARTS_HOGS,
    WRITES_BEHIND,
    faulty_relu,
)
from tests.soak.seeding import FAULTS


@pytest.fixture
def worked(qtbot: QtBot, open_window: OpenWindow) -> MainWindow:
    """A window with a run that worked."""
    window = open_window("sample:fashion_mlp")
    run_and_wait(qtbot, window)
    return window


def run_faulty(qtbot: QtBot, window: MainWindow, folder: Path, body: str) -> None:
    """Let a function of a library stand in for ReLU, and run."""
    window.document.change_fields(extensions=faulty_relu(folder, body))
    wait_for_records(qtbot, window)
    window.commands.action("run").trigger()


def button(window: MainWindow, text: str) -> QPushButton | None:
    found = window.panes.problems.findChildren(QPushButton)
    return next((each for each in found if each.text() == text and each.isVisible()), None)


def go_back(qtbot: QtBot, window: MainWindow) -> None:
    """Press the button in Problems, and look that what was measured is there again."""
    text = "Go back to what worked"
    qtbot.waitUntil(lambda: button(window, text) is not None, timeout=PATIENCE)
    qtbot.mouseClick(button(window, text), Qt.MouseButton.LeftButton)
    wait_for_records(qtbot, window)
    assert window.document.recipe is not None
    assert window.document.recipe.extensions == ()
    assert window.tool_bar.verdict.role() == "right"
    assert window.document.run_record is not None
    assert not window.commands.action("go-back").isEnabled()


def test_a_function_that_crashes_is_named_and_the_way_back_offered(
    qtbot: QtBot, worked: MainWindow, tmp_path: Path
) -> None:
    run_faulty(qtbot, worked, tmp_path, CRASHES)
    line = wait_for_problem(qtbot, worked)
    assert "crashed with SIGSEGV while running, in call 4 of 7, env.faulty (relu)" in line
    assert worked.tool_bar.verdict.text() == "✕ crashed"
    assert "in call 4 of 7" in worked.banner.message()
    # It is run once more by itself, and crashes in the same call.
    problems = worked.document.problems
    qtbot.waitUntil(lambda: worked.document.problems is not problems, timeout=PATIENCE)
    assert "guarded memory, in call 4 of 7" in worked.document.problems[0].where
    go_back(qtbot, worked)


INCONCLUSIVE = """
import torch


class Net(torch.nn.Module):
    def forward(self, x):
        return x / (x.shape[0] - 2)


def example_inputs():
    return (torch.ones(3, 4),)
"""


def test_an_inconclusive_run_is_nothing_to_go_back_to(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    path = tmp_path / "net.py"
    path.write_text(INCONCLUSIVE)
    window = open_window(str(path))
    run_and_wait(qtbot, window)
    assert window.tool_bar.verdict.role() == "right"
    worked = window.document.recipe
    window.document.change_fields(inputs=(InputSpec(name="x", shape=(2, 4), dtype="float32"),))
    wait_for_records(qtbot, window)
    run_and_wait(qtbot, window)
    assert window.tool_bar.verdict.role() == "unsure"
    window.commands.action("go-back").trigger()
    wait_for_records(qtbot, window)
    assert window.document.recipe == worked


SHIFTED = """
import torch
from tvm import relax

from lowerscope.core.rules import rule


@rule(torch.nn.ReLU)
def shifted(builder, node, x):
    return relax.op.add(relax.op.nn.relu(x), relax.const(1.0, "float32"))
"""

NOTHING_FINITE = """
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.relu = torch.nn.ReLU()

    def forward(self, x):
        return torch.log(-1 - self.relu(x) ** 2)


def example_inputs():
    return (torch.ones(3, 4),)
"""


def test_an_inconclusive_run_names_the_node_that_differs_above(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    path, rules = tmp_path / "net.py", tmp_path / "shifted.py"
    path.write_text(NOTHING_FINITE)
    rules.write_text(SHIFTED)
    window = open_window(str(path), extensions=(Extension(path=str(rules), kind="rules"),))
    run_and_wait(qtbot, window)
    assert window.tool_bar.verdict.role() == "unsure"
    line = window.panes.result.first_difference
    assert not line.isHidden()
    assert "First difference: relu  ·" in line.text()
    window.commands.action("first-difference").trigger()
    assert window.document.selection.of_kind("fx") == ("fx:relu",)


def test_who_writes_beside_its_memory_is_named_by_the_second_run(
    qtbot: QtBot, worked: MainWindow, tmp_path: Path
) -> None:
    run_faulty(qtbot, worked, tmp_path, WRITES_BEHIND)
    first = wait_for_problem(qtbot, worked)
    assert "crashed with SIG" in first
    named = "Call 4, env.faulty (relu), wrote 32 bytes behind its output, (1, 128) float32"
    qtbot.waitUntil(lambda: worked.document.problems[0].what == named, timeout=PATIENCE)
    assert "crashed with SIG" in worked.document.problems[0].where
    # The timeline ends at the call that did it, however far the run came.
    worked.features.stepping.set_section("run")
    failed = [dot.tooltip for dot in worked.panes.timeline.slider.dots() if dot.state == "wrong"]
    assert [text.split(" · ")[0] for text in failed] == ["4 env.faulty"]
    qtbot.mouseClick(button(worked, "Select what was called"), Qt.MouseButton.LeftButton)
    assert worked.document.selection.of_kind("fx") == ("fx:relu",)
    go_back(qtbot, worked)


def test_a_function_that_never_ends_is_stopped_and_named(
    qtbot: QtBot, worked: MainWindow, tmp_path: Path
) -> None:
    run_faulty(qtbot, worked, tmp_path, NEVER_ENDS)
    document = worked.document
    qtbot.waitUntil(lambda: document.job.text == "Running", timeout=PATIENCE)
    qtbot.waitUntil(
        lambda: "call 4" in worked.features.processes.worker.call.text, timeout=PATIENCE
    )
    worked.commands.action("stop").trigger()
    with qtbot.waitSignal(document.changed, check_params_cb=changes("problems"), timeout=1500):
        pass
    assert document.problems[0].what == "The run was stopped in call 4 of 7, env.faulty (relu)"
    assert worked.tool_bar.verdict.text() == "✕ stopped"
    qtbot.mouseClick(button(worked, "Select what was called"), Qt.MouseButton.LeftButton)
    assert document.selection.of_kind("fx") == ("fx:relu",)
    go_back(qtbot, worked)


def test_memory_that_does_not_suffice_is_an_error_of_its_call(
    qtbot: QtBot, worked: MainWindow, tmp_path: Path
) -> None:
    worker = worked.features.processes.worker
    pid = worker.pid
    run_faulty(qtbot, worked, tmp_path, ASKS_FOR_MUCH)
    line = wait_for_problem(qtbot, worked)
    assert "in call 4 of 7, env.faulty (relu): the memory does not suffice" in line
    assert worker.pid == pid, "the worker lives on"
    go_back(qtbot, worked)


def test_what_the_worker_starts_is_under_the_limit_that_is_typed(
    qtbot: QtBot, worked: MainWindow, tmp_path: Path
) -> None:
    worked.commands.action("memory-limit").trigger()
    dialog = next(each for each in worked.findChildren(SettingsDialog) if each.isVisible())
    dialog.memory_limit.setText("1.5 GB")
    dialog.accept()
    assert worked.settings.memory_limit() == 1_500_000_000
    assert "1.5 GB" in worked.status.worker.toolTip()
    run_faulty(qtbot, worked, tmp_path, STARTS_HOGS)
    line = wait_for_problem(qtbot, worked)
    assert "in call 4 of 7, env.faulty (relu): it and what it had started held" in line
    assert worked.document.problems[0].code == "memory"
    go_back(qtbot, worked)


# Each of them from the command line: `tests/core/test_seeded_faults.py`.
@pytest.mark.parametrize("fault", ["partitioned reduction", "half overflow", "not a number"])
def test_the_node_where_a_fault_starts_is_named(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path, fault: str
) -> None:
    options, node = FAULTS[fault]("fashion_mlp", tmp_path, "high-level")
    recipe = recipe_of_command(("run", *options))
    fields = {
        name: getattr(recipe, name) for name in ("lowering", "steps", "extensions", "schedules")
    }
    window = open_window(recipe.source.spec, **fields)
    run_and_wait(qtbot, window)
    assert window.tool_bar.verdict.role() == "wrong"
    line = window.panes.result.first_difference
    assert f"First difference: {node}  ·" in line.text()
    if fault in ("half overflow", "not a number"):
        assert line.text().split("  ·  ")[1].endswith(("NaN", "infinities"))
    window.commands.action("first-difference").trigger()
    assert window.document.selection.of_kind("fx") == (f"fx:{node}",)
    # Of those that differ, it is the first, and the others come from it.
    window.document.select(())
    window.commands.action("next-difference").trigger()
    assert window.document.selection.of_kind("fx") == (f"fx:{node}",)
