"""The process that compiles and runs candidates, which may crash or hang it.

It is started as ``python -m lowerscope.core.run.tuning.measuring_process PARENT`` and exits
with its parent. With a `Remote` as JSON and a number of threads besides, it compiles here, and the
result is run on another machine.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator

import msgspec

from lowerscope.core.model.processors import prepare
from lowerscope.core.run.tuning.measurers import LENGTH, Bench, Message, frame

_DIE_WITH_PARENT = 1
"""Linux's ``prctl`` option for the signal that a process gets when its parent has ended."""


def main() -> None:
    """Answer messages on descriptors 0 and 1 until the other end is closed."""
    source, sink = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    _end_with(int(sys.argv[1]))
    # An interrupt at the terminal reaches all of its processes; the first one ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    prepare()
    bench = Bench() if len(sys.argv) < _THERE else _bench_there(sys.argv[2], int(sys.argv[3]))
    for message in _messages(source):
        answer = frame(bench.take(message))
        while answer:
            answer = answer[os.write(sink, answer) :]


_THERE = 4
"""Number of arguments from which on they name another machine."""


def _bench_there(remote: str, threads: int) -> Bench:
    from lowerscope.core.model.machines import Remote
    from lowerscope.core.remote.bench import RemoteBench

    return RemoteBench(msgspec.json.decode(remote, type=Remote), threads)


def _end_with(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, name="parent", daemon=True).start()


def _messages(source: int) -> Iterator[Message]:
    decoder = msgspec.msgpack.Decoder(Message)
    while head := _exactly(source, LENGTH.size):
        yield decoder.decode(_exactly(source, *LENGTH.unpack(head)))


def _exactly(source: int, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = os.read(source, size - len(data))
        if not more:
            return b""
        data += more
    return data


if __name__ == "__main__":
    main()
