"""Results kept under keys."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from lowerscope.core.files.memo import FileHashes, Memo, key_of
from lowerscope.core.model.recipe import Recipe, Source


def test_the_least_recently_used_goes_first() -> None:
    memo = Memo(100)
    for key in ("a", "b"):
        memo.get(key, lambda: "x", lambda _: 50)
    memo.get("a", lambda: "never", lambda _: 50)
    memo.get("c", lambda: "x", lambda _: 50)
    assert ("a" in memo, "b" in memo, "c" in memo) == (True, False, True)


def test_the_newest_stays_however_large() -> None:
    memo = Memo(10)
    memo.get("small", lambda: "x", lambda _: 5)
    memo.get("large", lambda: "x", lambda _: 500)
    assert "large" in memo
    assert "small" not in memo


def test_what_fails_is_not_kept() -> None:
    memo = Memo(100)

    def fail() -> str:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        memo.get("key", fail, len)
    assert memo.get("key", lambda: "yes", len) == "yes"


def test_two_threads_get_one_computation() -> None:
    memo, made, begun, go_on = Memo(100), [], threading.Event(), threading.Event()

    def make() -> str:
        begun.set()
        assert go_on.wait(10)
        made.append(1)
        return "value"

    results: list[str] = []
    threads = [
        threading.Thread(target=lambda: results.append(memo.get("key", make, len)))
        for _ in range(2)
    ]
    threads[0].start()
    assert begun.wait(10)
    threads[1].start()
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert results == ["value", "value"]
    assert made == [1]


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


def test_keys_tell_recipes_apart() -> None:
    recipe = Recipe(source=Source(spec="sample:a"))
    other = Recipe(source=Source(spec="sample:b"))
    assert key_of(recipe) == key_of(Recipe(source=Source(spec="sample:a")))
    assert key_of(recipe) != key_of(other)


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


def test_a_value_that_takes_the_place_of_another_counts_alone() -> None:
    memo = Memo(100)
    for key in ("a", "b", "c"):
        memo.get(key, lambda: "x", lambda _: 30)
    memo.rename("a", "b")
    memo.get("d", lambda: "x", lambda _: 30)
    assert all(key in memo for key in ("b", "c", "d"))
