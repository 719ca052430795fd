"""What a machine may do: clocks that jump, quotas, children that are stopped, older files."""

from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from lowerscope.core.files.atomic_write import atomic_file, remove_leftovers
from lowerscope.core.files.cache import cache_size, read_kept, write_kept
from lowerscope.core.files.memo import Hashes, key_of
from lowerscope.core.files.paths import cache_folder
from lowerscope.core.files.sessions import load_session, save_session
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import Recipe, Source, WindowLayout
from tests.app.engine import practice_window

YEARS = 10 * 365 * 86400


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return cache_folder()


# Clocks


@pytest.mark.parametrize("jump", [-YEARS, YEARS])
def test_a_clock_that_jumps_loses_nothing(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: int
) -> None:
    write_kept(cache / "f-1.json", b"before")
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + jump)
    monkeypatch.setattr(time, "time_ns", lambda: int((now() + jump) * 1e9))
    write_kept(cache / "f-2.json", b"after")
    assert (read_kept(cache / "f-1.json"), read_kept(cache / "f-2.json")) == (b"before", b"after")
    monkeypatch.setattr("lowerscope.core.files.cache.LIMIT", 6)
    write_kept(cache / "f-3.json", b"later")
    assert cache_size() <= 6
    # What is being written when the clock jumps is not swept by another process.
    target = tmp_path / "report.html"
    with atomic_file(target) as made:
        made.write_text("report")
        code = "from lowerscope.core.files import atomic_write; atomic_write.remove_leftovers()"
        subprocess.run([sys.executable, "-c", code], check=True)
        remove_leftovers()
        assert made.exists()
    assert target.read_text() == "report"


# Quotas


QUOTA = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
from lowerscope.app.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def test_an_export_beyond_a_quota_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    output = tmp_path / "output"
    command = ["export", "sample:fashion_mlp", "--what", "script,builder", "--output", str(output)]
    done = subprocess.run(
        [sys.executable, "-c", QUOTA, *command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert os.strerror(errno.EFBIG) in line
    assert str(output) in line
    assert not [each for each in output.rglob("*") if each.name.startswith(".")]


@pytest.fixture
def quota() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_session_beyond_a_quota_is_as_it_was(tmp_path: Path, quota: None) -> None:
    path = tmp_path / "a.lowerscope"
    path.write_text("as it was")
    with pytest.raises(LowerscopeError) as caught:
        save_session(
            path, Recipe(source=Source(spec="sample:matmul")), WindowLayout(), {}, Hashes()
        )
    assert os.strerror(errno.EFBIG) in caught.value.problem.line()
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".low")] == []
    assert path.read_text() == "as it was"


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


def test_a_session_of_the_first_version_is_opened(tmp_path: Path) -> None:
    """Its fields are those that the first version wrote."""
    path = tmp_path / "old.lowerscope"
    recipe = {
        "source": {"spec": "sample:fashion_mlp"},
        "lowering": "te",
        "version": 1,
        "tolerances": {"rtol": 0.001, "atol": 0.01},
    }
    path.write_text(json.dumps({"recipe": recipe, "version": 1, "unknown": {"of": "later"}}))
    session = load_session(path, Hashes())
    assert session.recipe.lowering == "te"
    assert session.recipe.source.spec == "sample:fashion_mlp"
    save_session(path, session.recipe, WindowLayout(), session.written, Hashes())
    assert json.loads(path.read_text())["unknown"] == {"of": "later"}
    assert load_session(path, Hashes()).recipe == session.recipe


def test_keys_of_the_cache_do_not_depend_on_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key_of("tuning", 1, "machine")
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert key_of("tuning", 1, "machine") == before
