"""A server as a process of its own, spoken to by plain pipes, with methods for practice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import psutil

from lowerscope.core.engine.protocol import (
    TO_WINDOW,
    Cancel,
    Failure,
    FrameReader,
    Progress,
    Reply,
    Request,
    ToWindow,
    encode_frame,
    to_raw,
)
from tests.core.engine import practice_child as practice

PRACTICE_FILE = Path(practice.__file__)
TIMEOUT = 20

NOTHING = practice.Nothing()


class Child:
    """A server, spoken to by plain pipes."""

    def __init__(self, *arguments: str) -> None:
        command = arguments or (sys.executable, str(PRACTICE_FILE), "engine")
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._watchdog = threading.Timer(TIMEOUT, self.kill)
        self._watchdog.start()
        self._log = b""
        self._log_thread = threading.Thread(target=self._read_log)
        self._log_thread.start()
        self._messages = self._read()

    def _read(self) -> Iterator[ToWindow]:
        assert self.process.stdout is not None
        reader = FrameReader(TO_WINDOW)
        while data := os.read(self.process.stdout.fileno(), 2**20):
            yield from reader.feed(data)

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        while data := os.read(self.process.stderr.fileno(), 2**16):
            self._log += data

    def next(self) -> ToWindow | None:
        """Return the next message; `None` at the end of the stream."""
        return next(self._messages, None)

    def answer(self) -> Reply | Failure:
        """Return the next message that is an answer."""
        while isinstance(message := self.next(), Progress):
            pass
        assert isinstance(message, Reply | Failure)
        return message

    def result(self) -> Any:
        answer = self.answer()
        assert isinstance(answer, Reply), answer
        return msgspec.msgpack.decode(answer.result)

    def ask(self, id: int, method: str, params: msgspec.Struct = NOTHING) -> None:
        self.write(encode_frame(Request(id, method, to_raw(params))))

    def cancel(self, id: int) -> None:
        self.write(encode_frame(Cancel(id)))

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def family(self) -> list[psutil.Process]:
        """Return the child and all that it has started."""
        leader = psutil.Process(self.process.pid)
        return [leader, *leader.children(recursive=True)]

    def log(self) -> str:
        """Return all that it has written to stderr, once it has ended."""
        self.process.wait(TIMEOUT)
        self._log_thread.join(TIMEOUT)
        return self._log.decode()

    def kill(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)

    def close(self) -> None:
        self._watchdog.cancel()
        self.kill()
        self.process.wait(TIMEOUT)
        self._log_thread.join(TIMEOUT)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()
