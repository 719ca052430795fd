"""A test process that is lost is one failed test, and the run ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = """
from tests.by_file import pytest_testnodedown, pytest_xdist_make_scheduler
"""

TESTS = """
import os, signal
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_one(number):
    if number == {place}:
        {end}
"""


@pytest.mark.parametrize(
    ("file", "place", "end", "said"),
    [
        (0, 0, "os._exit(3)", "it ended with exit code 3"),
        (4, 2, "os.kill(os.getpid(), signal.SIGKILL)", "it was killed by signal 9"),
        (5, 0, "os._exit(0)", "it ended with exit code 0"),
    ],
)
def test_a_lost_process_is_one_failed_test(
    tmp_path: Path, file: int, place: int, end: str, said: str
) -> None:
    counts = (3, 1, 3, 3, 3, 1)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    for number, count in enumerate(counts):
        text = TESTS.format(count=count, place=place if number == file else -1, end=end)
        (tmp_path / f"test_{number}.py").write_text(text)
    arguments = ["-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"]
    # Nothing that imports Qt, which takes most of the time.
    arguments += ["-p", "no:cacheprovider", "-p", "no:pytest-qt", "--import-mode=importlib"]
    environment = {
        each: value for each, value in os.environ.items() if not each.startswith("PYTEST_")
    }
    done = subprocess.run(
        [sys.executable, *arguments, "."],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 1, done.stdout
    assert f"1 failed, {sum(counts) - 1} passed" in done.stdout
    assert f"was lost: {said}" in done.stdout
