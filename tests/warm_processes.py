"""Python programs in processes that have imported torch and TVM before they begin.

The import takes seconds of a processor, and a test that is about what a program does needs none of
its own: one process has imported the libraries, though nothing of Lowerscope, and each program is a
fork of it. What is about the start of a program starts it by `subprocess`.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

SERVER = """
import atexit, gc, json, os, runpy, signal, socket, sys, threading, types
import networkx, torch, tvm, tvm.relax, tvm.s_tir, tvm.topi

# A collection, and the end of the interpreter, would visit all that the fork shares, and copy it.
gc.collect()
gc.freeze()
orders = socket.socket(fileno=int(sys.argv[1]))
while True:
    data, files, _, _ = socket.recv_fds(orders, 2**20, 4)
    if not data:
        os._exit(0)
    if os.fork() == 0:
        break
    for each in files:
        os.close(each)
    os.waitpid(-1, os.WNOHANG)
orders.close()
# The program tells its number once it leads its group, and who waits for it tells its end.
program = os.fork()
if program:
    for each in files[:3]:
        os.close(each)
    os.write(files[3], b"%d\\n" % os.waitpid(program, 0)[1])
    os._exit(0)
os.setsid()
os.write(files[3], b"%d\\n" % os.getpid())
for number, each in enumerate(files[:3]):
    os.dup2(each, number)
for each in files:
    os.close(each)
sys.stdout = open(1, "w", closefd=False)
sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)
signal.signal(signal.SIGINT, signal.default_int_handler)
order = json.loads(data)
os.environ.clear()
os.environ.update(order["environment"])
os.chdir(order["folder"])
kind, *sys.argv = order["words"]
code = 0
try:
    if kind == "-m":
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        text, sys.argv[0] = sys.argv[0], "-c"
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(text, "<string>", "exec"), main.__dict__)
    else:
        sys.argv = [kind, *sys.argv]
        sys.path[0] = os.path.dirname(os.path.abspath(kind))
        runpy.run_path(kind, run_name="__main__")
except SystemExit as end:
    code = end.code
    if not isinstance(code, int | None):
        print(code, file=sys.stderr)
        code = 1
except Exception:
    sys.excepthook(*sys.exc_info())
    code = 1
threading._shutdown()
atexit._run_exitfuncs()
for stream in (sys.stdout, sys.stderr):
    stream.flush()
os._exit((code or 0) & 255)
"""


@cache
def _orders() -> socket.socket:
    """Start the process that has the libraries, once."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        server = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )

    def end() -> None:
        server.kill()
        server.wait()
        ours.close()

    atexit.register(end)
    return ours


class WarmProcess:
    """A program in a session of its own: ``python WORDS``.

    Attributes
    ----------
    stdin
        What it reads; ``None`` if that is nothing.
    stdout, stderr
        What it prints, as it comes; ``None`` if it goes into a file.
    returncode
        As of `subprocess.Popen`.
    """

    def __init__(
        self,
        *words: str,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        output: IO[bytes] | None = None,
        errors: IO[bytes] | None = None,
        reads: bool = False,
    ) -> None:
        self.returncode: int | None = None
        self.stdin: IO[bytes] | None = None
        self.stdout: IO[str] | None = None
        self.stderr: IO[str] | None = None
        order = {
            "words": words,
            "environment": dict(os.environ if environment is None else environment),
            "folder": str(folder or Path.cwd()),
        }
        told, tells = os.pipe()
        if reads:
            source, sink = os.pipe()
            self.stdin = os.fdopen(sink, "wb")
        else:
            source = os.open(os.devnull, os.O_RDONLY)
        self.stdout, prints = _end(output)
        self.stderr, says = _end(errors)
        given = (source, prints, says, tells)
        socket.send_fds(_orders(), [json.dumps(order).encode()], given)
        for each in given:
            os.close(each)
        self._told = os.fdopen(told)
        self.pid = int(self._told.readline())

    def wait(self) -> int:
        """Wait for its end, and return its code."""
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(int(self._told.readline()))
            self._told.close()
        return self.returncode

    def kill(self) -> None:
        """Kill its process group, unless it has been waited for."""
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    def end(self) -> None:
        """End it with its process group, unless it has ended."""
        self.kill()
        self.wait()

    def close(self) -> None:
        """End it, and close what it reads and prints to."""
        self.end()
        for each in (self.stdin, self.stdout, self.stderr):
            if each is not None:
                each.close()


def _end(file: IO[bytes] | None) -> tuple[IO[str] | None, int]:
    """Return what a test reads, and the descriptor that a program writes to."""
    if file is not None:
        return None, os.dup(file.fileno())
    reads, writes = os.pipe()
    return os.fdopen(reads), writes


def run_warm(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run ``python WORDS`` to its end, and return what it has printed."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        code = WarmProcess(*words, output=out, errors=err, **options).wait()
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(words, code, out.read().decode(), err.read().decode())


_MEASURES = """
import os, sys
from lowerscope.core.run.tuning import measuring_process

sys.argv.insert(1, str(os.getppid()))
measuring_process.main()
"""


def start_measuring(words: Sequence[str]) -> WarmProcess:
    """Start a process that measures candidates, as `LocalMeasurer` does."""
    with open(os.devnull, "wb") as nowhere:
        return WarmProcess("-c", _MEASURES, *words, errors=nowhere, reads=True)
