"""Bytes that are no message end the child, and not the window: real processes that send them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lowerscope.core.engine.protocol import (
    FRAME_LIMIT,
    MAGIC,
    VERSION,
    Hello,
    Ready,
    Reply,
    encode_frame,
    to_raw,
)
from tests.app.engine.practice_window import Window, practice

HELLO = encode_frame(Hello(VERSION, 1, "engine"))
NESTED = encode_frame(Reply(1, to_raw(None)))[8:-1] + b"\x91" * 100_000
BAD_TEXT = encode_frame(Ready(1.0)).replace(b"ready", b"r\xffady")


def framed(payload: bytes) -> bytes:
    return MAGIC + len(payload).to_bytes(4, "big") + payload


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (HELLO + MAGIC + (FRAME_LIMIT + 1).to_bytes(4, "big"), "is 268435457 bytes long"),
        (
            encode_frame(Hello(VERSION + 1, 1, "engine")),
            f"it speaks version {VERSION + 1}, and not {VERSION}",
        ),
        (encode_frame(Hello(VERSION, 1, "worker")), "it says that it is 'worker'"),
        (encode_frame(Ready(1.0)), "unexpected message Ready"),
        (HELLO + HELLO, "unexpected message Hello"),
        (HELLO + bytes(range(7, 200, 3)), "expected a frame, found b'\\x07\\n"),
        (HELLO + framed(b"\xc1\x00\xff"), "a frame holds no message"),
        (HELLO + framed(NESTED), "maximum recursion depth"),
        (HELLO + BAD_TEXT, "a frame holds no message"),
        (HELLO + encode_frame(Ready(1.0)) + framed(b""), "a frame holds no message"),
    ],
    ids=[
        *("too-long", "version", "role", "no-greeting", "two-greetings", "bytes"),
        *("no-message", "nested", "bad-text", "empty"),
    ],
)
def test_garbage_ends_the_child_at_once(
    open_window: Callable[..., Window], sent: bytes, said: str, tmp_path: Path
) -> None:
    window = open_window(sys.executable, "-c", _program(sent, "time.sleep(1000)", tmp_path))
    window.client.start()
    family = window.family()
    window.until(lambda: bool(window.endings))
    assert window.endings[0].how == "garbage"
    assert said in str(window.endings[0])
    window.client.stop()
    window.until_gone(family)


def test_a_frame_that_ends_in_the_middle_is_the_end_of_the_child(
    open_window: Callable[..., Window], tmp_path: Path
) -> None:
    cut = HELLO + encode_frame(Ready(1.0)) + encode_frame(Reply(1, to_raw("x" * 1000)))[:500]
    window = open_window(sys.executable, "-c", _program(cut, "sys.exit(3)", tmp_path))
    request = window.ask("echo", practice.Text("a"))
    window.client.start()
    window.until(lambda: bool(window.endings))
    assert str(window.endings[0]).startswith("The engine exited with code 3")
    assert window.problem(request).code == "crashed"


def _program(sent: bytes, then: str, folder: Path) -> str:
    file = f"{folder}/sent"
    with open(file, "wb") as stream:
        stream.write(sent)
    return f"import os, sys, time; os.write(1, open({file!r}, 'rb').read()); {then}"
