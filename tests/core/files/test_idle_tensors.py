"""Tensors of an idle process in files: the same values at the same place, in other memory."""

from __future__ import annotations

import os
from mmap import PAGESIZE
from pathlib import Path

import numpy as np
import pytest

from lowerscope.core.files import idle_tensors
from lowerscope.core.files.idle_tensors import LEAST, Block, move_to_files
from lowerscope.core.files.paths import CACHE

SIZE = 3 * LEAST + 1000


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CACHE, str(tmp_path))
    monkeypatch.setattr(idle_tensors, "_DISKS", idle_tensors._DISKS | {"tmpfs"})
    return tmp_path


def block(array: np.ndarray) -> Block:
    return array.ctypes.data, array.nbytes


def in_memory(array: np.ndarray) -> int:
    """Return how much of an array is in memory, in bytes, by the page table of this process."""
    first, last = array.ctypes.data // PAGESIZE, (array.ctypes.data + array.nbytes) // PAGESIZE
    with open("/proc/self/pagemap", "rb") as pages:
        pages.seek(8 * first)
        entries = np.frombuffer(pages.read(8 * (last - first)), np.uint64)
    return int((entries >> np.uint64(63)).sum()) * PAGESIZE


def test_values_and_addresses_stay_and_memory_is_free(folder: Path) -> None:
    array = np.random.default_rng(0).integers(0, 256, SIZE, dtype=np.uint8)
    copy, at = array.copy(), array.ctypes.data
    assert in_memory(array) >= SIZE - PAGESIZE
    moved = move_to_files([block(array), block(array)], lambda: False)
    assert SIZE - 2 * PAGESIZE <= moved <= SIZE
    assert in_memory(array) < SIZE / 2
    assert array.ctypes.data == at
    np.testing.assert_array_equal(array, copy)
    assert not list(folder.iterdir())
    assert in_memory(array) >= SIZE / 2
    # It is in a file already, and leaves the memory again once that is written.
    os.sync()
    assert move_to_files([block(array)], lambda: False) == 0
    assert in_memory(array) < SIZE / 2
    # It can be written to.
    array[::PAGESIZE] += 1
    copy[::PAGESIZE] += 1
    assert move_to_files([block(array)], lambda: False) == 0
    np.testing.assert_array_equal(array, copy)
    del array


def test_what_is_wanted_or_small_or_without_room_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = [np.ones(SIZE, np.uint8) for _ in range(3)]
    asked: list[None] = []

    def in_the_second() -> bool:
        asked.append(None)
        return len(asked) > 2

    assert 0 < move_to_files([block(each) for each in arrays], in_the_second) <= SIZE
    assert move_to_files([(arrays[0].ctypes.data, LEAST // 2)], lambda: False) == 0
    monkeypatch.setattr(idle_tensors, "_DISKS", frozenset())
    assert move_to_files([block(each) for each in arrays], lambda: False) == 0
    assert all((each == 1).all() for each in arrays)
