"""A tracker that lies: one clear line, within the time and memory of an answer."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress

import pytest
from tvm.rpc import base

from lowerscope.core.model.machines import Remote
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.progress import Silent
from lowerscope.core.remote import session as trackers
from lowerscope.core.remote.session import Tracker

MAGIC = struct.pack("<i", base.RPC_TRACKER_MAGIC)
KEY = "board"
KNOWN = [0, {"server_info": [{"key": f"server:{KEY}", "addr": ["", 1]}], "queue_info": {}}]


def frame(value: object) -> bytes:
    data = json.dumps(value).encode()
    return struct.pack("<i", len(data)) + data


@contextmanager
def lying(*answers: bytes) -> Iterator[str]:
    """Yield the address of what sends the answers, one for each message that it gets."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                try:
                    for answer in answers:
                        connection.recv(1 << 16)
                        connection.sendall(answer)
                    while connection.recv(1 << 16):
                        pass
                except OSError:
                    pass  # who was lied to has hung up

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        host, port = server.getsockname()
        yield f"{host}:{port}"
        thread.join()


def keys(tracker: Tracker) -> object:
    return tracker.keys()


def server(tracker: Tracker) -> object:
    return tracker.server(Silent(), 1.0)


@pytest.mark.parametrize(
    ("answers", "call", "said"),
    [
        ([b"HTTP/1.1 400 Bad Request"], keys, "not a TVM tracker"),
        ([MAGIC, struct.pack("<i", 2**31 - 1) + b"[" * 100], keys, "not a TVM tracker"),
        ([MAGIC, struct.pack("<i", -1)], keys, "not a TVM tracker"),
        ([MAGIC, struct.pack("<i", 100_000) + b"[" * 100_000], keys, "not a TVM tracker"),
        ([MAGIC, frame([0, {}])], keys, "not a TVM tracker"),
        ([MAGIC, frame({"server_info": 1})], keys, "not a TVM tracker"),
        ([MAGIC, frame([0, {"server_info": [{"key": 1}], "queue_info": {}}])], keys, "TVM tracker"),
        (
            [MAGIC, b"\x08\x00\x00\x00[0"],
            keys,
            "the connection to the tracker was lost: it took longer than",
        ),
        ([MAGIC, frame(KNOWN), frame([0, ["host", "port", 1]])], server, "not a TVM tracker"),
        ([MAGIC, frame(KNOWN), frame([0])], server, "not a TVM tracker"),
        ([MAGIC, frame(KNOWN), frame([1, "no"])], server, "not a TVM tracker"),
        ([MAGIC, frame(KNOWN), frame([1, ["host", 1, "key"]])], server, "not a TVM tracker"),
        ([b"\0\0\0\0", frame(KNOWN)], keys, "not a TVM tracker"),
    ],
)
def test_what_is_no_answer_is_one_line(
    answers: list[bytes],
    call: Callable[[Tracker], object],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trackers, "CONNECT", 2.0)
    with (
        lying(*answers) as address,
        pytest.raises(LowerscopeError) as caught,
        closing(Tracker(Remote(tracker=address, key=KEY))) as tracker,
    ):
        call(tracker)
    line = caught.value.problem.line()
    assert said in line
    assert "\n" not in line
    assert address in line


def test_an_answer_that_trickles_has_no_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trackers, "CONNECT", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def trickle() -> None:
            connection, _ = listening.accept()
            with connection, suppress(OSError):
                connection.recv(4)
                connection.sendall(MAGIC)
                connection.recv(1 << 16)
                connection.sendall(struct.pack("<i", 1000))
                connection.settimeout(0.3)
                for _ in range(20):
                    with suppress(TimeoutError):
                        connection.recv(1)
                    connection.sendall(b" ")

        thread = threading.Thread(target=trickle, daemon=True)
        thread.start()
        host, port = listening.getsockname()
        with (
            pytest.raises(LowerscopeError, match="it took longer than 1 s"),
            closing(Tracker(Remote(tracker=f"{host}:{port}", key=KEY))) as tracker,
        ):
            tracker.keys()
        thread.join()
