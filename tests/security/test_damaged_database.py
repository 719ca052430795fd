"""A tuning database that holds something else, or a folder, and a disk that is full."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
import tvm
from tvm import te

from lowerscope.core.build.targets import make_target
from lowerscope.core.files.cache import TRACES
from lowerscope.core.run.tuning.database import Database
from lowerscope.core.sandbox import bubblewrap
from tests.problems import problem_of
from tests.sandboxes import needs_sandbox


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Database:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return Database(make_target("llvm", 1), 1)


def function() -> tvm.tirx.PrimFunc:
    x = te.placeholder((4,), "float32")
    return te.create_prim_func([x, te.compute((4,), lambda i: x[i] + 1)])


@pytest.mark.parametrize("name", TRACES)
def test_random_bytes_are_no_traces(database: Database, name: str) -> None:
    database.folder.mkdir(parents=True)
    noise = random.Random(0).randbytes(3000) + b"\n"
    (database.folder / name).write_bytes(noise)
    problem = problem_of(lambda: len(database.traces))
    assert problem.where == str(database.folder / name)
    assert "lowerscope cache --clear" in problem.todo
    assert (database.folder / name).read_bytes() == noise
    database.close()


@pytest.mark.parametrize("name", TRACES)
def test_a_torn_line_is_dropped(database: Database, name: str) -> None:
    database.folder.mkdir(parents=True)
    (database.folder / name).write_bytes('["é'.encode()[:-1])
    assert len(database.traces) == 0
    database.close()


OTHERS = (
    "5",
    "[]",
    "{}",
    "[0, []]",
    "[-1, []]",
    "[99, [[], [], [], []]]",
    '[0, "a"]',
    "[1e99, []]",
)
"""Lines of JSON that are no traces."""


@pytest.mark.parametrize("line", OTHERS)
def test_other_lines_are_no_traces(database: Database, line: str) -> None:
    database.traces.commit_workload(tvm.IRModule({"main": function()}))
    database.close()
    (database.folder / TRACES[0]).write_text(f"{line}\n")
    again = Database(make_target("llvm", 1), 1)
    assert len(again.traces) == 0
    again.close()


# The whole command

TUNE = ("tune", "sample:matmul_relu", "--function", "matmul", "--trials", "1")


def problem_in(said: str, where: Path) -> str:
    """Return the one line of what a command says that names a file below `where`."""
    (line,) = [each for each in said.splitlines() if str(where) in each]
    assert said.splitlines()[-1] == line
    return line


@needs_sandbox
def test_a_full_disk_ends_the_command(tmp_path: Path) -> None:
    program = bubblewrap.program()
    assert program is not None
    disk = ("--bind", "/", "/", "--dev", "/dev", "--size", "4096", "--tmpfs", str(tmp_path))
    done = subprocess.run(
        [program, *disk, sys.executable, "-m", "lowerscope.app", *TUNE],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    line = problem_in(done.stderr, tmp_path)
    assert os.strerror(errno.ENOSPC) in line
    assert "Free some disk space" in line
