"""Results kept under keys."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

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
