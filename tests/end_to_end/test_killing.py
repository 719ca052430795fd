"""Children are killed at random moments, and die of parts of the recipe: nothing else is lost."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from lowerscope.app.shell.window import MainWindow
from lowerscope.core.files.pipelines_and_schedules import find_pipeline
from tests.diagonal import many
from tests.end_to_end.driving import OpenWindow, notices_of, wait_until
from tests.end_to_end.small_nets import write
from tests.soak.killing import OF_ENGINE, OF_WORKER, PATIENCE, Killing, temporary_folder

__all__ = ["temporary_folder"]

DEADLY = '''
import os
import signal
from pathlib import Path
import torch
from lowerscope.core.sandbox.running_call import CallWriter

class Net(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x @ torch.ones(16, 16)) + 1.0

def example_inputs():
    return (torch.ones(16, 16),)

begin = CallWriter.at_part
def at_part(self, part):
    """Die of the parts that stand in a file beside this one, as of a mistake in TVM."""
    begin(self, part)
    if part and part in Path(__file__).with_name("deadly").read_text().splitlines():
        os.kill(os.getpid(), signal.SIGKILL)
CallWriter.at_part = at_part
'''


@pytest.fixture
def children() -> None:
    """Each window has children of its own, which end with it."""


# Others kill them at chosen moments: `test_children.py`, `test_schedule_history.py`.
@pytest.mark.at_length
def test_children_are_killed_at_random_moments(
    qtbot: QtBot, open_window: OpenWindow, temporary_folder: Path
) -> None:
    window = open_window("sample:matmul_relu", lowering="te")
    killing = Killing(window, temporary_folder, seed=1)
    killing.settle()
    drawn = random.Random(1)
    for activity in [drawn.choice(each) for each in (OF_ENGINE, OF_WORKER) * many(1)]:
        killing.kill(activity)
        assert killing.leftovers() == []
    window.close()
    assert wait_until(lambda: not os.listdir(temporary_folder))


def wait_for_engine(window: MainWindow) -> None:
    """Wait until what is wanted is shown, however often the engine dies."""
    document = window.document
    assert wait_until(
        lambda: document.wanted == document.recipe and not document.job.text, PATIENCE
    ), document.problems
    assert document.problems == ()


@pytest.fixture
def deadly(qtbot: QtBot, open_window: OpenWindow, tmp_path: Path) -> MainWindow:
    """Return a window whose engine dies of the parts in a file."""
    (tmp_path / "deadly").write_text("")
    return open_window(write(tmp_path / "net.py", DEADLY), lowering="te")


# A primitive, a strategy: `tests/app/panes/test_schedule_model.py`, `tests/app/test_features.py`.
def test_what_two_engines_died_of_is_switched_off(
    qtbot: QtBot, deadly: MainWindow, tmp_path: Path
) -> None:
    document, said = deadly.document, []
    notices_of(deadly, lambda text, _role: said.append(text))
    before = document.recipe
    assert before is not None
    place = [step.name for step in find_pipeline("fuse").steps].index("FuseTIR")
    (tmp_path / "deadly").write_text(f"step {place} FuseTIR")
    # A pass.
    deadly.commands.action("pipeline-fuse").trigger()
    wait_for_engine(deadly)
    assert document.recipe is not None
    assert [step.name for step in document.recipe.steps if not step.on] == ["FuseTIR"]
    assert f"step {place + 1}, FuseTIR, which is now switched off" in deadly.banner.message()
    assert sum("was killed" in text for text in said) == 2
    rows = [row for row in deadly.panes.pipeline.list.rows() if row.title == "FuseTIR"]
    assert [(row.on, row.words) for row in rows] == [(False, "switched off")]
    # What is mended is switched on again, and all of it is undone.
    (tmp_path / "deadly").write_text("")
    deadly.panes.pipeline.select_place(place)
    deadly.commands.action("switch-step").trigger()
    wait_for_engine(deadly)
    assert document.recipe.steps == find_pipeline("fuse").steps
    for _ in range(2):
        deadly.commands.action("undo").trigger()
        wait_for_engine(deadly)
    assert document.recipe == before
