"""Children killed at many random moments, and hundreds of changes of the recipe.

``LOWERSCOPE_SOAK_KILLS=200`` and ``LOWERSCOPE_SOAK_CHANGES=500`` run it.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import psutil
import pytest
from pytestqt.qtbot import QtBot

from tests.end_to_end.conftest import _look, open_window
from tests.end_to_end.driving import OpenWindow, wait_until
from tests.soak.killing import OF_ENGINE, OF_WORKER, PATIENCE, Killing, temporary_folder
from tests.soak.random_session import Activity

__all__ = ["_look", "open_window", "temporary_folder"]

KILLS = int(os.environ.get("LOWERSCOPE_SOAK_KILLS", "0"))
CHANGES = int(os.environ.get("LOWERSCOPE_SOAK_CHANGES", "0"))
SANDBOX = True
SEED = int(os.environ.get("LOWERSCOPE_SOAK_SEED", "0"))

ACTIVITIES: tuple[Activity, ...] = (*OF_ENGINE, *OF_ENGINE, *OF_WORKER, *OF_WORKER, "tuning")

ALONE = 25
"""After so many kills a first load is timed, beside whatever else the machine does."""


@pytest.fixture
def children() -> None:
    """Each window has children of its own, which end with it."""


@pytest.mark.skipif(not KILLS, reason="takes an hour")
def test_nothing_is_lost_whenever_a_child_is_killed(
    qtbot: QtBot, open_window: OpenWindow, temporary_folder: Path
) -> None:
    window = open_window("sample:matmul_relu", lowering="te")
    killing = Killing(window, temporary_folder, SEED)
    killing.settle()
    drawn = random.Random(SEED)
    for number in range(KILLS):
        if number % ALONE == 0:
            killing.first_load()
        print(number, killing.kill(drawn.choice(ACTIVITIES)), flush=True)
        assert wait_until(lambda: not killing.leftovers(), 30_000), killing.leftovers()
    print(killing.report(), flush=True)
    window.close()
    assert wait_until(lambda: not os.listdir(temporary_folder), PATIENCE)


@pytest.mark.skipif(not CHANGES, reason="takes minutes")
def test_the_window_does_not_grow(
    qtbot: QtBot, open_window: OpenWindow, temporary_folder: Path
) -> None:
    window = open_window("sample:matmul_relu", lowering="te")
    killing = Killing(window, temporary_folder, SEED)
    killing.settle()
    sizes = []
    for number in range(1, CHANGES + 1):
        killing.change()
        if number % 50 == 0:
            sizes.append(psutil.Process().memory_info().rss)
            print(number, sizes[-1] >> 20, "MB", flush=True)
    assert sizes[-1] <= 1.2 * sizes[0]
