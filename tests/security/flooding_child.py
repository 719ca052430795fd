"""A child that says far too much: ``flooding_child.py ROLE FLOOD`` floods upon each request.

It speaks the protocol, and does nothing else: no torch, no guard, no limit of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping

import msgspec

from lowerscope.core.engine.protocol import (
    FRAME_LIMIT,
    MAGIC,
    TO_CHILD,
    VERSION,
    Failure,
    FrameReader,
    Hello,
    Progress,
    Ready,
    Reply,
    Request,
    ToWindow,
    encode_frame,
    to_raw,
)
from lowerscope.core.model.graph import Box, GraphRecord
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.snapshot import FxNode, ModelRecord, Note, Snapshot, TextRecord

CHUNK = 2**16
CHUNKS = 150
LINES = 450_000


def details(size: int) -> str:
    """Return a text of `size` bytes."""
    return "".join(f"{number:09d}\n" for number in range(100_000)) * (size // 1_000_000)


def write(data: bytes, descriptor: int = 1) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def send(message: ToWindow) -> None:
    write(encode_frame(message))


def problem(name: str) -> Problem:
    """Return the problem of a flood: its text is what the test expects in a file."""
    match name:
        case "huge-error":
            return Problem(what="x" * 10_000_000, details=details(40_000_000))
        case "choices":
            names = tuple(map(str, range(1_000_000)))
            return Problem(what="which one?", code="choose-entry", choices=names, calls=names)
        case "long-choices":
            return Problem(what="which?", code="give-args", choices=("{" * 500_000, "a"))
    raise AssertionError(name)


def fail(id: int, name: str) -> None:
    send(Failure(id, problem(name)))


def too_long_error(id: int, _: str) -> None:
    send(Failure(id, Problem(what="x" * 70_000_000)))


def progress(id: int, _: str) -> None:
    """Report 20 MB of progress: short, long, and of requests that are none."""
    size = 20_000_000
    short = encode_frame(Progress(id, "step", 0.5)) * 20_000
    others = b"".join(encode_frame(Progress(other, "step", None)) for other in range(10_000))
    long = encode_frame(Progress(id, "\u202ex\x00" * 300_000, None))
    for _turn in range(size // len(short + others + long)):
        write(short + others + long)
    send(Reply(id, to_raw("done")))


def large(id: int, _: str) -> None:
    """Answer with 100 MB."""
    send(Reply(id, to_raw(bytes(100_000_000))))


def snapshot(name: str) -> Snapshot:
    """Return the snapshot of a model of one node, of which one part is far too large."""
    long, title, text = "x" * 60_000, "n", "def main():\n    pass\n"
    size, notes = 46.0, 0
    match name:
        case "long-names":
            title = long
        case "code-lines":
            text = "\n" * 8_000_000
        case "long-notes":
            notes = 400
        case "far-box":
            size = 4e6
    ids = [f"fx:n{number}" for number in range(40)]
    node = FxNode(
        id="",
        name=title,
        opcode="call_module",
        target=title,
        args=title,
        kwargs=title,
        shape=None,
        dtype=title,
        type=title,
        label=title,
    )
    box = Box(
        id="",
        title=title,
        operator=title,
        rows=((title, title),),
        kind="call",
        strategy="",
        x=0,
        y=0,
        width=120,
        height=46,
    )
    boxes = [msgspec.structs.replace(box, id=each, y=80.0 * y) for y, each in enumerate(ids)]
    boxes[-1] = msgspec.structs.replace(boxes[-1], width=size, height=size)
    model = ModelRecord(title="m", path="", kind="torch", description="", inputs=())
    return Snapshot(
        model=model,
        fx=tuple(msgspec.structs.replace(node, id=each) for each in ids),
        tracer="fx",
        fx_graph=GraphRecord(boxes=tuple(boxes), edges=(), width=120, height=3_200),
        relax=TextRecord(text=text, language="tvmscript"),
        functions=(),
        links=(),
        notes=tuple(Note(text=f"{number} {long}") for number in range(notes)),
    )


SNAPSHOTS = ("long-names", "code-lines", "long-notes", "far-box")


def show(id: int, name: str) -> None:
    """Answer with the snapshot of a flood, and nothing else."""
    send(Reply(id, to_raw(snapshot(name))))


def wrong_kind(id: int, _: str) -> None:
    """Say that a report of progress is 250 MB long."""
    start = encode_frame(Progress(id, "x" * 100, None))[8:]
    write(MAGIC + (FRAME_LIMIT - 1).to_bytes(4, "big") + start)


def line(id: int, _: str) -> None:
    """Print a line without an end, with what a terminal would obey."""
    for _ in range(CHUNKS):
        write(("\u202e\x1b[31mü\x00ab" * 6_000).encode()[:CHUNK], 2)
    send(Reply(id, to_raw("done")))


def lines(id: int, _: str) -> None:
    for start in range(0, LINES, 3000):
        write(b"".join(b"%d\n" % number for number in range(start, start + 3000)), 2)
    send(Reply(id, to_raw("done")))


def empty_lines(id: int, _: str) -> None:
    """Print nothing but ends of lines."""
    for _ in range(200):
        write(b"\n" * CHUNK, 2)
    send(Reply(id, to_raw("done")))


FLOODS: Mapping[str, Callable[[int, str], None]] = {
    **dict.fromkeys(("huge-error", "choices", "long-choices"), fail),
    "too-long-error": too_long_error,
    "progress": progress,
    **dict.fromkeys(SNAPSHOTS, show),
    "large": large,
    "wrong-kind": wrong_kind,
    "line": line,
    "lines": lines,
    "empty-lines": empty_lines,
}


def main() -> None:
    """Serve until the window closes the pipe."""
    role, name = sys.argv[1:]
    send(Hello(VERSION, os.getpid(), role))
    send(Ready(1.0))
    reader = FrameReader(TO_CHILD)
    while data := os.read(0, CHUNK):
        for message in reader.feed(data):
            if isinstance(message, Request):
                FLOODS[name](message.id, name)


if __name__ == "__main__":
    main()
