"""A sandbox's folder that was filled at random, as a hostile process leaves it."""

from __future__ import annotations

import contextlib
import os
import random
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from lowerscope.core.files.cache import SANDBOXED, TRACES
from lowerscope.core.files.paths import user_cache_folder
from lowerscope.core.sandbox.folder import SandboxFolder, folders
from tests.diagonal import many


def fill_at_random(folder: SandboxFolder, home: Path, draw: random.Random) -> None:
    """Leave in a sandbox's folder what a hostile process may, which leads to `home` by links."""
    (home / "f-1.json").write_text("mine")
    names = ("tuning", "key", "f-1.json", "about.json", "peaks-1.json", "..x", "limit", *TRACES)
    places = [folder.path, folder.cache]
    for _ in range(draw.randint(3, 15)):
        place = draw.choice(places) / draw.choice(names)
        if os.path.lexists(place):
            continue
        with contextlib.suppress(OSError):
            match draw.randrange(8):
                case 0 | 1:
                    place.mkdir()
                    places.append(place)
                case 2:
                    place.write_bytes(draw.randbytes(draw.randrange(200)))
                case 3:
                    place.symlink_to(draw.choice((home, home / "f-1.json", "/dev/zero", "/proc")))
                case 4:
                    os.mkfifo(place)
                case 5:
                    with place.open("wb") as file:
                        file.truncate(draw.choice((0, 1 << 20, 1 << 40)))
                case 6:
                    with socket.socket(socket.AF_UNIX) as bound:
                        bound.bind(str(place))
                case _:
                    place.touch()
                    place.chmod(draw.choice((0, 0o4777, 0o200)))


def left_over(folder: SandboxFolder, home: Path, draw: random.Random) -> Iterator[str]:
    """Close the folder, and yield what is wrong after that."""
    before = sorted(home.rglob("*"))
    if draw.random() < 0.5:
        folder.take_over()
    folder.close()
    if list(folders()):
        yield "the folder is still there"
    if sorted(home.rglob("*")) != before or (home / "f-1.json").read_text() != "mine":
        yield "the user's folder has changed"
    cache = user_cache_folder()
    for each in cache.rglob("*"):
        if each.is_symlink() or not (each.is_dir() or each.is_file()):
            yield f"{each} is no plain file"
        elif each.is_file() and each.name not in ("lock", "in-use"):
            name = str(each.relative_to(cache)).removeprefix(f"{SANDBOXED}/")
            if not name.startswith(("peaks-", "tuning/key/", "tuning/tuning/")):
                yield f"{name} was taken over"
            if b"mine" in each.read_bytes():
                yield f"{name} was read through a link"


def test_whatever_is_left_in_the_folder_stays_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(many(60)):
        draw = random.Random(seed)
        home = tmp_path / f"home{seed}"
        home.mkdir()
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / f"cache{seed}"))
        sandbox = SandboxFolder()
        fill_at_random(sandbox, home, draw)
        assert not list(left_over(sandbox, home, draw)), seed
