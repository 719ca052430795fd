"""What a machine may do: clocks that jump, quotas, children that are stopped, older files."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from lowerscope.core.files.paths import cache_folder
from tests.app.engine import practice_window
from tests.warm_processes import run_warm


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return cache_folder()


# Clocks


# Quotas


QUOTA = """
import resource, sys
# Else Python keeps the first 2,000 bytes of what it compiles.
sys.dont_write_bytecode = True
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
from lowerscope.app.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def test_an_export_beyond_a_quota_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    output = tmp_path / "output"
    command = ["export", "sample:fashion_mlp", "--what", "script,builder", "--output", str(output)]
    done = run_warm("-c", QUOTA, *command)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert os.strerror(errno.EFBIG) in line
    assert str(output) in line
    assert not [each for each in output.rglob("*") if each.name.startswith(".")]


# A child that is stopped


def test_a_child_that_is_stopped_in_the_middle_of_a_frame_is_restarted(qtbot: QtBot) -> None:
    window = practice_window.Window(qtbot)
    window.client.start()
    window.until_state("ready")
    family = window.family()
    request = window.ask("stop_in_reply")
    other = window.ask("echo", practice_window.practice.Text("still there"))
    window.until(lambda: family[0].status() == "stopped")
    # The window goes on; the user cancels, or restarts it.
    window.client.cancel(request)
    assert window.problem(request).code == "cancelled"
    assert window.result(other) == "still there"
    window.until_gone(family)
    window.client.stop()


# Older files
