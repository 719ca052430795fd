"""Supervisor of a sandbox: a program that starts bubblewrap, and kills it beyond its limits.

It stays outside of the sandbox, where code in there can neither see nor signal it. Its memory,
processes and threads are counted over its process namespace, which nothing can leave, not by a
session or a double fork.

It is run by path, in isolated mode, and imports the standard library alone: it starts in 20 ms, and
nothing in the user's folders is imported.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NoReturn, TypedDict

PERIOD = 0.1
"""Seconds between two counts."""

PATIENCE = 20
"""Wait before the next exact count of memory, in multiples of the duration of the last one."""

ORPHANED = 3.0
"""Seconds that the sandbox has to exit by itself after the window is gone."""

START = 10.0
"""Seconds that bubblewrap has to set the sandbox up."""

STOPPED = 2
"""Exit code of a command whose sandbox was killed for exceeding a limit."""

SAYS = "sandbox"
"""Prefix of the reason why there is no sandbox."""

SPARE_TASKS = 16
"""Processes that the kernel allows beyond the limit, so that the reason can be reported."""

_CHUNK = 1 << 16


class Options(TypedDict):
    """Options of the supervisor, as JSON."""

    filter: str  # The filter of system calls, in hexadecimal digits.
    # Bytes that all processes of the sandbox may hold together; ``None`` for any number.
    memory: int | None
    tasks: int  # Processes and threads that there may be.
    shared: str  # The folder of the sandbox that keeps its files in memory.
    # The descriptor of a file for the reason why the sandbox was killed, which the sandbox
    # inherits; ``None`` for none.
    report: int | None
    # Offset in that file of the bytes and the processes, as 64-bit integers.
    report_at: tuple[int, int]
    said: tuple[str, str]  # Messages for too much memory, and for too many processes.
    kept: list[int]  # Other descriptors that the sandbox inherits.
    of_window: bool  # Whether the sandbox ends with the process that has started this one.


def main(arguments: Sequence[str]) -> int:
    """Run bubblewrap and return its code; the first argument is the `Options`."""
    options: Options = json.loads(arguments[0])
    parent = os.getppid()
    report = options["report"]
    # Before anything is opened here that could get the number of one that is closed.
    kept = (*options["kept"], *(() if report is None else (report,)))
    inherited = list(filter(_is_open, kept))
    _hurry()
    streams = _Streams()
    calls = _pipe_with(bytes.fromhex(options["filter"]))
    info, said = os.pipe()
    program, *others = arguments[1:]
    command = (program, "--seccomp", str(calls), "--info-fd", str(said), *others)
    try:
        process = subprocess.Popen(
            command,
            stdin=streams.given.get("stdin"),
            stdout=streams.given.get("stdout"),
            stderr=streams.given.get("stderr"),
            pass_fds=(calls, said, *inherited),
        )
    except (OSError, subprocess.SubprocessError) as error:
        print(f"{SAYS}: {error}", file=sys.stderr)
        return 1
    os.close(calls)
    os.close(said)
    # Blocked from here on, the exit of the child cannot be missed between two checks.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    streams.start()
    stopped = _watch(process, info, options, parent, report)
    streams.finish()
    if stopped:
        return STOPPED
    code = process.wait()
    return code if code >= 0 else 128 - code


def _hurry() -> None:
    """Raise the priority of this process, where that is allowed: a fork bomb would starve it.

    What is started from here does not inherit it.
    """
    with contextlib.suppress(OSError):
        policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
        os.sched_setscheduler(0, policy, os.sched_param(1))


# The watch


def _watch(
    process: subprocess.Popen[bytes], info: int, options: Options, parent: int, report: int | None
) -> bool:
    """Wait until the sandbox has exited; return whether it was killed for exceeding a limit."""
    limit, most = options["memory"], options["tasks"]
    namespace = _Namespace.of(process, info, options["shared"])
    gone: float | None = None
    while process.poll() is None:
        if namespace is None:
            _end(process)
            print(f"{SAYS}: its processes cannot be counted", file=sys.stderr)
            return False
        held, tasks = namespace.look(limit, most)
        too_much = limit is not None and held > limit
        if too_much or tasks > most:
            _end(process, namespace.first)
            print(options["said"][0 if too_much else 1], file=sys.stderr)
            if report is not None:
                number, place = (held, 0) if too_much else (tasks, 1)
                os.pwrite(report, struct.pack("=q", number), options["report_at"][place])
            return True
        if options["of_window"] and os.getppid() != parent:
            gone = gone or time.monotonic()
            if time.monotonic() - gone > ORPHANED:
                _end(process, namespace.first)
        signal.sigtimedwait({signal.SIGCHLD}, PERIOD)
    return False


def _end(process: subprocess.Popen[bytes], first: int | None = None) -> None:
    """Kill bubblewrap, and the first process of the sandbox, with which all others end.

    In a fork bomb, either one alone would wait long for its turn to exit.
    """
    for pid in (first, process.pid):
        if pid is not None:
            with contextlib.suppress(OSError):
                os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(1))
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
    process.wait()


class _Namespace:
    """The processes of a sandbox, by its own view of them."""

    def __init__(self, first: int, processes: int, shared: int) -> None:
        self.first = first  # The process with which the namespace ends.
        self._processes = processes
        self._shared = shared
        # What was held together at the last exact count, which holds until then.
        self._exactly = 0
        self._until = 0.0

    @classmethod
    def of(cls, process: subprocess.Popen[bytes], info: int, shared: str) -> _Namespace | None:
        """Return the namespace of a sandbox that is being set up; ``None`` if it cannot be seen."""
        said = b""
        while b"}" not in said and (data := os.read(info, _CHUNK)):
            said += data
        os.close(info)
        if not said:
            process.wait()  # it has failed, and says so itself
            return None
        first = int(json.loads(said)["child-pid"])
        own = os.stat("/proc").st_dev
        end = time.monotonic() + START
        while process.poll() is None and time.monotonic() < end:
            for pid in (first, *_children(first)):
                # Not there yet, or, where bubblewrap is privileged, only by what it has started.
                with contextlib.suppress(OSError):
                    processes = os.open(f"/proc/{pid}/root/proc", os.O_RDONLY | os.O_DIRECTORY)
                    if os.fstat(processes).st_dev != own:
                        files = os.open(f"/proc/{pid}/root{shared}", os.O_RDONLY | os.O_DIRECTORY)
                        return cls(first, processes, files)
                    os.close(processes)
            time.sleep(0.005)
        return None

    def look(self, limit: int | None, most: int) -> tuple[int, int]:
        """Return the bytes of memory and the number of processes and threads of the sandbox.

        File-backed pages are not counted. Pages that processes share are counted once where that
        makes the difference to `limit`. Of more than `most` processes nothing else is known.
        """
        found = os.fstatvfs(self._shared)
        files = (found.f_blocks - found.f_bfree) * found.f_frsize
        pids = self._pids()
        if len(pids) > most:
            return 0, len(pids)  # in a hurry: each has one thread at least
        held, tasks = files, 0
        for text in self._each(pids, "status"):
            tasks += _number(text, "Threads:")
            for field in ("RssAnon:", "RssShmem:", "VmSwap:"):
                held += _number(text, field) << 10
        if limit is None or held <= limit:
            return held, tasks
        began = time.monotonic()
        if began < self._until:
            return self._exactly, tasks
        own = shared = 0
        for text in self._each(pids, "smaps_rollup"):
            own += (_number(text, "Pss_Anon:") + _number(text, "SwapPss:")) << 10
            shared += _number(text, "Pss_Shmem:") << 10
        # Files that are mapped are among both.
        self._exactly = own + max(files, shared)
        now = time.monotonic()
        self._until = now + PATIENCE * (now - began)
        return self._exactly, tasks

    def _pids(self) -> list[str]:
        # The position of a folder that was read is at its end.
        os.lseek(self._processes, 0, os.SEEK_SET)
        return [each for each in os.listdir(self._processes) if each.isdecimal()]

    def _each(self, pids: Sequence[str], name: str) -> Iterator[str]:
        """Yield the content of a file of each process, except of those that have exited."""
        for pid in pids:
            with contextlib.suppress(OSError):
                descriptor = os.open(f"{pid}/{name}", os.O_RDONLY, dir_fd=self._processes)
                with open(descriptor, encoding="utf-8", errors="replace") as file:
                    yield file.read()


def _children(pid: int) -> list[int]:
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _number(text: str, field: str) -> int:
    """Return the number behind a field; 0 where there is none."""
    _, found, rest = text.partition(f"\n{field}")
    return int(rest.split(None, 1)[0]) if found else 0


# Its input and output


class _Streams:
    """The standard streams of the sandbox: pipes, the null device or a terminal, and nothing else.

    A file or folder could be reopened by its descriptor, for writing too, and a socket passes
    further descriptors. So these are copied through a pipe.
    """

    def __init__(self) -> None:
        self.given: dict[str, int] = {}  # Those that are not inherited, for `subprocess.Popen`.
        self._opened: list[int] = []
        self._copies: list[Callable[[], None]] = []
        self._threads: list[threading.Thread] = []
        written: dict[tuple[int, int], int] = {}
        for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
            if _is_harmless(descriptor):
                continue
            source, sink = os.pipe()
            if name == "stdin":
                self.given[name] = source
                self._opened.append(source)
                self._copies.append(lambda sink=sink: _copy(0, sink))  # type: ignore[misc]
                continue
            # Both to one file stay in order.
            found = os.fstat(descriptor)
            place = found.st_dev, found.st_ino
            if place in written:
                os.close(source)
                os.close(sink)
                self.given[name] = written[place]
                continue
            written[place] = self.given[name] = sink
            self._opened.append(sink)
            self._copies.append(
                lambda source=source, to=descriptor: _copy(source, to)  # type: ignore[misc]
            )

    def start(self) -> None:
        """Start copying: the sandbox has its ends."""
        for each in self._opened:
            os.close(each)
        for copy in self._copies:
            thread = threading.Thread(target=copy, daemon=True)
            thread.start()
            self._threads.append(thread)

    def finish(self) -> None:
        """Wait until all output is written: no other process has the other end any more."""
        for thread in self._threads[1 if "stdin" in self.given else 0 :]:
            thread.join()


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _is_harmless(descriptor: int) -> bool:
    if not _is_open(descriptor):
        os.open(os.devnull, os.O_RDWR)  # the lowest that is free is this one
        return True
    found = os.fstat(descriptor)
    null = os.stat(os.devnull).st_rdev
    is_null = stat.S_ISCHR(found.st_mode) and found.st_rdev == null
    return stat.S_ISFIFO(found.st_mode) or is_null or os.isatty(descriptor)


def _copy(source: int, sink: int) -> None:
    with contextlib.suppress(OSError):
        while data := os.read(source, _CHUNK):
            view = memoryview(data)
            while view:
                view = view[os.write(sink, view) :]
    if sink > 2:
        os.close(sink)
    if source > 2:
        os.close(source)  # further writes fail, since nobody reads


def _pipe_with(data: bytes) -> int:
    """Return the reading end of a pipe with `data`; a file could change until it is read."""
    source, sink = os.pipe()
    os.write(sink, data)
    os.close(sink)
    return source


def _run() -> NoReturn:
    code = main(sys.argv[1:])
    sys.stderr.flush()
    # Threads that wait for input never end.
    os._exit(code)


if __name__ == "__main__":
    _run()
