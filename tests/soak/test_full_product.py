"""Every combination of parameters of which the ordinary tests run a diagonal, and properties with
many more examples; by hand only."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted(
    file.relative_to(ROOT).as_posix()
    for file in (ROOT / "tests").rglob("test_*.py")
    if re.search(r"^@(pytest.mark.diagonal|given)", file.read_text("utf-8"), re.MULTILINE)
)


@pytest.mark.timeout(0)
@pytest.mark.parametrize("file", FILES)
def test_every_combination_passes(file: str) -> None:
    options = ["-q", "-n", "0", "--full-product", "--hypothesis-profile", "at length"]
    command = [sys.executable, "-m", "pytest", *options, file]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    print(done.stdout[-200:])
    assert done.returncode == 0, done.stdout
