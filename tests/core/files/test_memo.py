"""Results kept under keys."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from lowerscope.core.files import cache as limits
from lowerscope.core.files.cache import IN_USE, TRACES, Cleared, cache_size, clear_cache, write_kept
from lowerscope.core.files.memo import FileHashes, Memo


def test_the_least_recently_used_goes_first() -> None:
    memo = Memo(100)
    for key in ("a", "b"):
        memo.get(key, lambda: "x", lambda _: 50)
    memo.get("a", lambda: "never", lambda _: 50)
    memo.get("c", lambda: "x", lambda _: 50)
    assert ("a" in memo, "b" in memo, "c" in memo) == (True, False, True)


def test_a_failure_is_not_shared_and_nothing_is_counted_twice() -> None:
    memo, made, begun, go_on = Memo(1000), [], threading.Event(), threading.Event()

    def fail() -> str:
        begun.set()
        assert go_on.wait(10)
        raise ValueError("no")

    def make() -> str:
        made.append(1)
        return "value"

    def first() -> None:
        with pytest.raises(ValueError, match="no"):
            memo.get("key", fail, len)

    threads = [threading.Thread(target=first)]
    threads += [threading.Thread(target=memo.get, args=("key", make, len)) for _ in range(4)]
    threads[0].start()
    assert begun.wait(10)
    for thread in threads[1:]:
        thread.start()
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert made == [1]
    assert memo.get("key", fail, len) == "value"


def test_a_file_is_known_by_its_content(tmp_path: Path) -> None:
    hashes, path = FileHashes(), tmp_path / "model.py"
    assert hashes.of(path) == ""
    path.write_text("a = 1")
    first = hashes.of(path)
    path.write_text("a = 2")
    os.utime(path, ns=(1, 1))
    assert hashes.of(path) != first
    path.write_text("a = 1")
    os.utime(path, ns=(2, 2))
    assert hashes.of(path) == first


# The user's cache has a limit, and can be cleared, also while others use it


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
