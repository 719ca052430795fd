"""Frames and folders that were changed at random."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from lowerscope.core.sandbox.folder import SandboxFolder
from tests.diagonal import many
from tests.soak.hostile_bytes import changed_frame, fill_at_random, left_over, read_frames

FRAMES, FOLDERS = many(2_000), many(60)


def test_changed_frames_are_messages_within_bounds_or_refused() -> None:
    draw = random.Random(0)
    taken = sum(read_frames(changed_frame(draw), draw) for _ in range(FRAMES))
    assert 0 < taken < FRAMES


def test_whatever_is_left_in_the_folder_stays_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(FOLDERS):
        draw = random.Random(seed)
        home = tmp_path / f"home{seed}"
        home.mkdir()
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / f"cache{seed}"))
        sandbox = SandboxFolder()
        fill_at_random(sandbox, home, draw)
        assert not list(left_over(sandbox, home, draw)), seed
