"""Protocol frames and folders of a sandbox, changed at random, as a hostile child leaves them."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

from lowerscope.app.engine.messages import (
    DETAILS_HEAD,
    DETAILS_TAIL,
    LINE_CHARACTERS,
    MOST_NAMES,
    PROGRESS_CHARACTERS,
    Incoming,
)
from lowerscope.core.engine.protocol import (
    MAGIC,
    TO_CHILD,
    Cancel,
    Failure,
    FrameReader,
    Hello,
    Progress,
    ProtocolError,
    Ready,
    Reply,
    Request,
    encode_frame,
    to_raw,
)
from lowerscope.core.files.cache import SANDBOXED, TRACES
from lowerscope.core.files.paths import user_cache_folder
from lowerscope.core.model.problems import Problem
from lowerscope.core.sandbox.folder import SandboxFolder, folders

_PROBLEM = Problem(what="w" * 5000, where="model.py:3", choices=("a", "b"), details="d" * 100_000)
_FRAMES = tuple(
    map(
        encode_frame,
        (
            Hello(1, 7, "engine"),
            Ready(3.5),
            Reply(1, to_raw({"name": "x" * 300, "numbers": list(range(300))})),
            Failure(2, _PROBLEM),
            Progress(3, "p" * 500, 0.5),
            Request(1, "snapshot", to_raw({"recipe": 1})),
            Cancel(1),
        ),
    )
)
_INSERTED = (
    b"\x91" * 3000,
    b"\x81\xa1a" * 3000,
    b"\xdd\xff\xff\xff\xff",
    b"\xdb\xff\xff\xff\xff",
    b"\xc1",
    b"\xd9\xff",
    b"\xcf" + b"\xff" * 8,
    b"\xcb\x7f\xf8" + bytes(6),
    b"\xa4type\xa7failure",
    MAGIC,
)


# Frames


def changed_frame(draw: random.Random) -> bytes:
    """Return one or two frames with some of their bytes changed."""
    data = bytearray(b"".join(draw.choices(_FRAMES, k=draw.choice((1, 1, 2)))))
    for _ in range(draw.randint(1, 3)):
        place = draw.randrange(len(data) + 1)
        match draw.randrange(6):
            case 0 if data:
                data[place % len(data)] ^= 1 << draw.randrange(8)
            case 1:
                data[place:place] = draw.choice(_INSERTED)
            case 2:
                del data[place : place + draw.randrange(1, 50)]
            case 3 if len(data) >= 8:
                data[4:8] = struct.pack(">I", draw.choice((0, 1, len(data), 2**28, 2**32 - 1)))
            case 4:
                del data[place:]
            case _:
                data[place:place] = draw.randbytes(draw.randrange(1, 20))
    return bytes(data)


def read_frames(data: bytes, draw: random.Random) -> int:
    """Give a window, and a child, the bytes in parts; return how many messages were taken.

    Whatever comes of it, it is messages within their bounds, or a `ProtocolError`.
    """
    taken = 0
    incoming, child = Incoming(), FrameReader(TO_CHILD)
    parts = [data]
    if len(data) > 2:
        cut = draw.randrange(1, len(data))
        parts = [data[:cut], data[cut:]]
    with contextlib.suppress(ProtocolError):
        for part in parts:
            for message in incoming.read(part):
                check_bounds(message)
                taken += 1
    with contextlib.suppress(ProtocolError):
        for part in parts:
            taken += sum(1 for _ in child.feed(part))
    return taken


def check_bounds(message: object) -> None:
    if isinstance(message, Progress):
        assert len(message.text) <= PROGRESS_CHARACTERS + 3
    if isinstance(message, Failure):
        problem = message.problem
        assert max(len(problem.what), len(problem.where), len(problem.todo)) <= LINE_CHARACTERS + 99
        assert len(problem.details) <= DETAILS_HEAD + DETAILS_TAIL + 999
        assert len(problem.choices) <= MOST_NAMES
        assert problem.line().isprintable()


# Folders


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
