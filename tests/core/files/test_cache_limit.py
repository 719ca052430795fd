"""The user's cache has a limit, and can be cleared, also while others use it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tvm

from lowerscope.core.build.targets import make_target
from lowerscope.core.cli.main import main
from lowerscope.core.files import cache as limits
from lowerscope.core.files.cache import (
    IN_USE,
    TRACES,
    Cleared,
    adding_traces,
    cache_size,
    clear_cache,
    write_kept,
)
from lowerscope.core.model.schedule_records import Peaks
from lowerscope.core.run.function_metrics import keep_peaks, kept_peaks
from lowerscope.core.run.tuning.database import Database, Kept


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "lowerscope"


def add(file: Path, size: int, age: float) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"x" * size)
    at = time.time() - age
    os.utime(file, (at, at))
    return file


def files(folder: Path) -> set[str]:
    return {each.name for each in folder.rglob("*") if each.is_file()} - {IN_USE}


def test_the_oldest_goes_first_and_traces_go_together(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuned = cache / "tuning" / "a"
    add(tuned / "about.json", 1, 1000)
    for age, name in enumerate(("f-new.json", "f-older.json", "f-old.json"), start=1):
        add(tuned / name, 100, 100 * age)
    for name in TRACES:
        add(tuned / name, 300, 150)
    add(cache / "peaks-1.json", 100, 400)
    being_written = add(cache / ".lowerscope-0123456789ab.json", 50, 90)
    add(cache / "tuning" / "b" / "f-oldest.json", 100, 500)
    assert cache_size() == 1100
    being_written.unlink()

    monkeypatch.setattr(limits, "LIMIT", 850)
    write_kept(tuned / "f-more.json", b"y" * 150)
    assert files(cache) == {"about.json", "f-new.json", "f-more.json", *TRACES}
    # Neither of the traces without the other.
    monkeypatch.setattr(limits, "LIMIT", 800)
    write_kept(tuned / "f-more.json", b"y" * 150)
    assert files(cache) == {"about.json", "f-new.json", "f-more.json"}
    assert cache_size() == 250
    assert clear_cache() == Cleared(250, 0)
    assert (files(cache), cache_size()) == (set(), 0)


def test_peaks_and_tunings_are_within_the_limit(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Peaks(gflops=1, gbytes_per_second=2, threads=1, target="llvm", cache_bytes=3)
    keep_peaks("first", first)
    monkeypatch.setattr(limits, "LIMIT", cache_size())
    assert kept_peaks("first") == first
    keep_peaks("second", first)
    assert (kept_peaks("first"), kept_peaks("second")) == (None, first)
    database = Database(make_target("llvm", 1), 1)
    function = tvm.script.from_source(_FUNCTION)
    database.keep(function, Kept(function="main"))
    assert kept_peaks("second") is None
    assert database.kept(function) is None, "it is larger than all that may be kept"
    assert database.state == {}


@pytest.mark.parametrize("content", [b"\xff", b"[" * 100_000, b"{}", b'{"gflops": "x"}', b"\0"])
def test_what_is_damaged_counts_as_not_kept(cache: Path, content: bytes) -> None:
    keep_peaks("first", Peaks(gflops=1, gbytes_per_second=2, threads=1, target="", cache_bytes=3))
    database = Database(make_target("llvm", 1), 1)
    function = tvm.script.from_source(_FUNCTION)
    database.keep(function, Kept(function="main"))
    for file in (*cache.glob("peaks-*"), *database.folder.glob("f-*")):
        file.write_bytes(content)
    assert kept_peaks("first") is None
    assert database.kept(function) is None


_FUNCTION = """
@T.prim_func(s_tir=True)
def main(x: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.sblock("double"):
            j = T.axis.spatial(4, i)
            x[j] = x[j] * T.float32(2)
"""


def test_traces_stay_while_a_tuning_adds_to_them(cache: Path) -> None:
    database = Database(make_target("llvm", 1), 1)
    function = tvm.script.from_source(_FUNCTION)
    workload = database.traces.commit_workload(tvm.IRModule({"main": function}))
    database.keep(function, Kept(function="main"))
    size = (database.folder / TRACES[1]).stat().st_size
    cleared = clear_cache()
    assert cleared.in_use == size
    assert cleared.freed > 0
    assert files(cache) == {"about.json", *TRACES}
    # A second tuning of the same cannot add to them, and does without.
    second = Database(make_target("llvm", 1), 1)
    second.traces.commit_workload(tvm.IRModule({"main": function.with_attr("second", 1)}))
    assert (database.folder / TRACES[1]).stat().st_size == size
    second.close()
    # The first goes on where it was, whatever was cleared meanwhile.
    database.keep(function, Kept(function="main", trials=7))
    assert database.kept(function) == Kept(function="main", trials=7)
    assert database.traces.commit_workload(tvm.IRModule({"main": function})).same_as(workload)
    database.close()
    assert clear_cache().in_use == 0
    assert files(cache) == set()


_WRITER = """
import sys, random
from lowerscope.core.files.cache import clear_cache, read_kept, write_kept
from lowerscope.core.files import cache
from lowerscope.core.files.paths import cache_folder
cache.LIMIT = 5000
draw = random.Random(int(sys.argv[1]))
for turn in range(200):
    file = cache_folder() / "tuning" / "shared" / f"f-{draw.randrange(12)}.json"
    size = draw.randrange(1, 2000)
    write_kept(file, size.to_bytes(4, "big") + bytes([size % 251]) * size)
    try:
        data = read_kept(cache_folder() / "tuning" / "shared" / f"f-{draw.randrange(12)}.json")
    except FileNotFoundError:
        continue
    size = int.from_bytes(data[:4], "big")
    assert data[4:] == bytes([size % 251]) * size, "a part of a file"
    if turn % 50 == 49:
        clear_cache()
"""


def test_two_processes_at_once_write_whole_files_within_the_limit(cache: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(seed)], stderr=subprocess.PIPE)
        for seed in (1, 2)
    ]
    while any(each.poll() is None for each in writers):
        # One more, and it may see a file that is over the limit for as long as it is written.
        assert cache_size() <= 5000 + 2 * 2004
        time.sleep(0.002)
    assert [each.communicate()[1] for each in writers] == [b"", b""]
    assert cache_size() <= 5000
    assert not [name for name in files(cache) if not name.endswith(".json")]


def test_a_tuning_that_is_killed_leaves_nothing_locked(cache: Path) -> None:
    folder = cache / "tuning" / "a"
    for name in TRACES:
        add(folder / name, 10, 0)
    code = (
        "import sys, time; from pathlib import Path\n"
        "from lowerscope.core.files.cache import adding_traces\n"
        "with adding_traces(Path(sys.argv[1])) as free: print(free, flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(folder)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "True\n"
    with adding_traces(folder) as free:
        assert not free
    assert clear_cache() == Cleared(0, 20)
    child.kill()
    child.communicate()
    assert clear_cache() == Cleared(20, 0)


def test_the_command_says_and_clears(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(cache / "peaks-1.json", 2000, 10)
    add(cache / "peaks-2.json", 1000, 5)
    assert main(["cache"]) == 0
    assert capsys.readouterr().out == f"{cache}\n3 kB of 1 GB\n"
    assert main(["cache", "--clear"]) == 0
    assert capsys.readouterr().out == f"{cache}\nremoved 3 kB\n0 B of 1 GB\n"
