"""Every combination of parameters of which the ordinary tests run a diagonal; by hand only."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted(
    file.relative_to(ROOT).as_posix()
    for file in (ROOT / "tests").rglob("test_*.py")
    if "@pytest.mark.diagonal" in file.read_text("utf-8") and file != Path(__file__)
)


@pytest.mark.timeout(0)
@pytest.mark.parametrize("file", FILES)
def test_every_combination_passes(file: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "--full-product", file]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    print(done.stdout[-200:])
    assert done.returncode == 0, done.stdout
