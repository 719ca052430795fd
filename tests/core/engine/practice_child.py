"""A child for the tests: the real server with methods that misbehave on purpose, and no torch.

Run as a program, ``practice_child.py ROLE [WARM]``, it serves; imported, it gives the table.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import msgspec

from lowerscope.core.engine.protocol import Reply, encode_frame, to_raw
from lowerscope.core.engine.server import Context, serve
from lowerscope.core.model.problems import LowerscopeError, Problem
from lowerscope.core.model.queries import LaneName, Query


class Nothing(msgspec.Struct, frozen=True):
    """No parameters."""


class Text(msgspec.Struct, frozen=True):
    text: str


class Count(msgspec.Struct, frozen=True):
    count: int


class Hoard(msgspec.Struct, frozen=True):
    processes: int
    each: int


class Whereabouts(msgspec.Struct, frozen=True):
    folder: str
    path: list[str]
    arguments: list[str]
    main_thread: bool
    read: str


def echo(params: Text, context: Context) -> str:
    return params.text


def big(params: Count, context: Context) -> bytes:
    return bytes(params.count)


def wrong_type(params: Nothing, context: Context) -> str:
    return "not a number"


def report(params: Count, context: Context) -> int:
    for number in range(params.count):
        context.report(f"Number {number}", number / params.count)
    threading.Event().wait(0.2)  # a job goes on after its last report
    return params.count


def wait(params: Text, context: Context) -> NoReturn:
    """Run until cancelled."""
    context.report(params.text)
    pause = threading.Event()
    while True:
        context.check()
        pause.wait(0.005)


def spin(params: Nothing, context: Context) -> NoReturn:
    context.report("Spinning")
    while True:
        pass


def hold_lock(params: Nothing, context: Context) -> None:
    """Hold the interpreter lock in C, for ever as far as a test can tell."""
    context.report("Matching")
    re.match("(a+)+$", "a" * 60 + "b")


def abort(params: Nothing, context: Context) -> None:
    context.report("Tracing")
    os.abort()


def segfault(params: Nothing, context: Context) -> None:
    ctypes.string_at(0)


def leave(params: Count, context: Context) -> None:
    os._exit(params.count)


def err(params: Text, context: Context) -> None:
    raise LowerscopeError(params.text, where="model.py:3", todo="Write it anew")


def fail(params: Text, context: Context) -> None:
    raise ZeroDivisionError(params.text)


def answer_with_an_odd_problem(params: Text, context: Context) -> None:
    """Fail with a problem that cannot be sent."""
    error = LowerscopeError("")
    error.problem = Problem(what=object())  # type: ignore[arg-type]
    raise error


def flood(params: Count, context: Context) -> None:
    sys.stderr.write("ü" * params.count)


def utter(params: Text, context: Context) -> NoReturn:
    """Write to the window's pipe itself."""
    os.write(_pipe_to_window(), params.text.encode())
    threading.Event().wait()
    raise AssertionError


def die_in_reply(params: Nothing, context: Context) -> None:
    frame = encode_frame(Reply(1, to_raw("x" * 100_000)))
    os.write(_pipe_to_window(), frame[:50_000])
    os.kill(os.getpid(), signal.SIGKILL)


def stop_in_reply(params: Nothing, context: Context) -> None:
    frame = encode_frame(Reply(1, to_raw("x" * 100_000)))
    os.write(_pipe_to_window(), frame[:50_000])
    os.kill(os.getpid(), signal.SIGSTOP)


def start_sleeper(params: Nothing, context: Context) -> int:
    return subprocess.Popen(["sleep", "1000"]).pid


def start_session(params: Nothing, context: Context) -> int:
    """Start a process that leaves the group."""
    return subprocess.Popen(["sleep", "1000"], start_new_session=True).pid


def start_fork(params: Nothing, context: Context) -> int:
    """Fork without exec, so that the copy holds all pipes."""
    pid = os.fork()
    if pid == 0:
        while True:
            signal.pause()
    return pid


def hoard(params: Hoard, context: Context) -> NoReturn:
    """Hold memory in processes that leave the group and this process, and go on for long."""
    for _ in range(params.processes):
        with contextlib.suppress(BlockingIOError):
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    _held = b"x" * params.each
                    time.sleep(60)
                os._exit(0)
    threading.Event().wait()
    raise AssertionError


def whereabouts(params: Nothing, context: Context) -> Whereabouts:
    return Whereabouts(
        os.getcwd(),
        sys.path,
        sys.argv,
        threading.current_thread() is threading.main_thread(),
        sys.stdin.read(),
    )


def _pipe_to_window() -> int:
    log = os.fstat(2)
    for descriptor in range(3, 20):
        try:
            status = os.fstat(descriptor)
        except OSError:
            continue
        writable = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY
        if stat.S_ISFIFO(status.st_mode) and writable and status.st_ino != log.st_ino:
            return descriptor
    raise AssertionError


def _kind(
    name: str, fields: type[msgspec.Struct], answer: Any, lane: LaneName, doing: str
) -> type[Query[Any]]:
    """Return a class of queries with the fields of another."""
    parts = {
        "__annotations__": fields.__annotations__,
        "__module__": __name__,
        "lane": lane,
        "doing": doing,
    }
    return types.new_class(
        name, (Query[answer],), {"frozen": True}, lambda body: body.update(parts)
    )


KINDS: Mapping[str, type[Query[Any]]] = {
    "echo": _kind("echo", Text, str, "light", "echoing"),
    "heavy_echo": _kind("heavy_echo", Text, str, "heavy", "echoing"),
    "big": _kind("big", Count, bytes, "heavy", "counting"),
    "wrong_type": _kind("wrong_type", Nothing, int, "heavy", "answering"),
    "report": _kind("report", Count, int, "heavy", "counting"),
    "wait": _kind("wait", Text, str, "heavy", "waiting"),
    "spin": _kind("spin", Nothing, str, "heavy", "spinning"),
    "hold_lock": _kind("hold_lock", Nothing, None, "heavy", "matching"),
    "abort": _kind("abort", Nothing, None, "heavy", "aborting"),
    "segfault": _kind("segfault", Nothing, None, "heavy", "reading a string"),
    "leave": _kind("leave", Count, None, "heavy", "leaving"),
    "err": _kind("err", Text, None, "heavy", "erring"),
    "fail": _kind("fail", Text, None, "heavy", "failing"),
    "answer_with_an_odd_problem": _kind(
        "answer_with_an_odd_problem", Text, None, "light", "erring"
    ),
    "flood": _kind("flood", Count, None, "heavy", "talking"),
    "utter": _kind("utter", Text, None, "heavy", "talking"),
    "die_in_reply": _kind("die_in_reply", Nothing, str, "heavy", "answering"),
    "stop_in_reply": _kind("stop_in_reply", Nothing, str, "heavy", "answering"),
    "start_sleeper": _kind("start_sleeper", Nothing, int, "light", "starting a process"),
    "start_session": _kind("start_session", Nothing, int, "light", "starting a process"),
    "start_fork": _kind("start_fork", Nothing, int, "light", "starting a process"),
    "hoard": _kind("hoard", Hoard, None, "heavy", "hoarding"),
    "rests": _kind("rests", Nothing, int, "heavy", "counting"),
    "whereabouts": _kind("whereabouts", Nothing, Whereabouts, "heavy", "looking around"),
}


def query(name: str, fields: msgspec.Struct) -> Query[Any]:
    """Return a query by its name."""
    return KINDS[name](*msgspec.structs.astuple(fields))


class Practice:
    """Answers queries by the functions of this module."""

    _rests = 0

    def answer(self, query: Query[Any], context: Context) -> Any:
        own = {"heavy_echo": echo, "rests": lambda *_: self._rests}
        return {**globals(), **own}[type(query).__name__](query, context)

    def is_cached(self, query: Query[Any], context: Context) -> bool:
        raise AssertionError

    def rest(self, is_wanted: Callable[[], bool]) -> None:
        """Rest until something is asked."""
        while not is_wanted():
            time.sleep(0.01)
        self._rests += 1


def _warm(manner: str) -> Practice:
    match manner:
        case "missing":
            import no_such_package  # noqa: F401
        case "abort":
            os.abort()
        case "hold":
            threading.Event().wait()
        case "chat":
            os.write(_pipe_to_window(), b"Welcome!\n")
    return Practice()


if __name__ == "__main__":
    role, manner = sys.argv[1], " ".join(sys.argv[2:])
    assert role in ("engine", "worker")
    for kind in KINDS.values():
        kind.runs_on = role
    serve(role, lambda: _warm(manner))
