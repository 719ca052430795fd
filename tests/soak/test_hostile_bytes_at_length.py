"""Frames and folders of sandboxes that were changed at random, many of them.

``LOWERSCOPE_SOAK_FRAMES=N`` reads another number of frames, and a hundredth of that as folders.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.security.test_hostile_bytes import check_folders
from tests.soak.hostile_bytes import changed_frame, read_frames

COUNT = int(os.environ.get("LOWERSCOPE_SOAK_FRAMES", "200000"))


def test_changed_frames() -> None:
    draw = random.Random(1)
    taken = sum(read_frames(changed_frame(draw), draw) for _ in range(COUNT))
    print(f"{COUNT} streams, {taken} messages taken")


def test_changed_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_folders(tmp_path, monkeypatch, range(1_000, 1_000 + COUNT // 100))
