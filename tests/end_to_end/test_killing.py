"""Children are killed at random moments: nothing else is lost."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from tests.diagonal import many
from tests.end_to_end.driving import OpenWindow, wait_until
from tests.soak.killing import OF_ENGINE, OF_WORKER, Killing, temporary_folder

__all__ = ["temporary_folder"]


OWN_CHILDREN = True
"""They are killed."""


# Others kill them at chosen moments: `test_children.py`.
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
