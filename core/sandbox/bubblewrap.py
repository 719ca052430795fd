"""The sandbox of the window's child processes, where the system has one: bubblewrap, on Linux.

In it the file system is read-only but for a folder of the window's sandboxes and a temporary
folder of the child's own; there is no network, and no other process can be seen, or reached by a
socket. This module imports neither torch nor TVM.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import re
import shutil
import socket
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import msgspec

from lowerscope.core.model.formatting import bytes_text
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.texts import _
from lowerscope.core.sandbox import running_call
from lowerscope.core.sandbox.memory_limit import task_limit
from lowerscope.core.sandbox.supervisor import SPARE_TASKS, Options
from lowerscope.resources import SANDBOX

# --- The policy, as ``resources/sandbox.toml`` says it ---


class Files(msgspec.Struct, frozen=True):
    """Folders: the one of temporary files, those that are empty, and those that stay in these."""

    temporary: str
    hidden: tuple[str, ...]
    shown: tuple[str, ...]


class Variables(msgspec.Struct, frozen=True):
    """Environment variables that are unset."""

    hidden: tuple[str, ...]


class Sockets(msgspec.Struct, frozen=True):
    """Families of sockets, and types of connected pairs, by their numbers."""

    families: tuple[int, ...]
    pairs: tuple[int, ...]


class Machine(msgspec.Struct, frozen=True):
    """The numbers of an architecture and of its calls."""

    architecture: int
    socket: int
    socketpair: int
    ioctl: int
    clone: int
    refused: tuple[int, ...]


class Calls(msgspec.Struct, frozen=True):
    """System calls; `refused` has the numbers of a call in the order of `machines`."""

    newer: int
    namespace_flags: int
    typing_requests: tuple[int, ...]
    machines: dict[str, Machine]
    refused: dict[str, tuple[int, int]]

    def refused_on(self, name: str) -> tuple[int, ...]:
        """Return the numbers of all refused calls on a machine."""
        place = list(self.machines).index(name)
        return (*(each[place] for each in self.refused.values()), *self.machines[name].refused)


class Policy(msgspec.Struct, frozen=True):
    """All of the policy."""

    files: Files
    variables: Variables
    sockets: Sockets
    calls: Calls


@cache
def policy() -> Policy:
    """Return the policy; it is read once."""
    return msgspec.toml.decode(SANDBOX.read_bytes(), type=Policy)


# --- The filter of system calls ---
#
# A read-only file system does not keep a process from connecting to a socket in it, and the socket
# of a terminal multiplexer, of a desktop or of a container service runs commands outside. So there
# are only sockets of the network that the sandbox has, and connected pairs of this process's own.
# Calls that make namespaces, that inspect other processes, that the kernel keeps outside of the
# sandbox (keyrings) or that take memory nobody can count are as on a kernel without them, and so
# are calls that are newer than this list.

NO_SOCKET = errno.EAFNOSUPPORT
"""Error of a socket of another family, as on a system without that family."""


_UNIX = 1
_TYPE = 0xF
"""Bits of a socket's type that are not flags."""

_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24
"""Offsets of these fields in the data that a filter receives. Of arguments this is the lower half,
which is all that the kernel reads of those that are filtered here."""

_LOAD, _AND, _IF_EQUAL, _IF_FROM, _IF_BITS, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000


def call_filter(machine: str | None = None) -> bytes:
    """Return the filter for a machine, as its kernel reads it; empty for one that is not known."""
    name = machine or platform.machine()
    allowed, listed = policy().sockets, policy().calls
    calls = listed.machines.get(name)
    if calls is None:
        return b""
    allow = [_instruction(_RETURN, _ALLOW)]
    unknown, refused = _fail(errno.ENOSYS), _fail(errno.EPERM)
    no_socket = _fail(NO_SOCKET)
    sockets = [_instruction(_LOAD, _FIRST), *_if_any(allowed.families, allow), *no_socket]
    pairs = [
        *(_instruction(_LOAD, _FIRST), *_unless_equal(_UNIX, no_socket)),
        *(
            _instruction(_LOAD, _SECOND),
            _instruction(_AND, _TYPE),
            *_if_any(allowed.pairs, allow),
            *no_socket,
        ),
    ]
    # Every branch ends with a return: the number has to be loaded again otherwise.
    typing = [_instruction(_LOAD, _SECOND), *_if_any(listed.typing_requests, refused), *allow]
    cloning = [_instruction(_LOAD, _FIRST), *_if(_IF_BITS, listed.namespace_flags, refused), *allow]
    return b"".join(
        (
            _instruction(_LOAD, _ARCHITECTURE),
            *_unless_equal(calls.architecture, unknown),
            _instruction(_LOAD, _NUMBER),
            # Another ABI of x86 has calls of still greater numbers.
            *_if(_IF_FROM, listed.newer, unknown),
            *_if_any(listed.refused_on(name), unknown),
            *_if(_IF_EQUAL, calls.socket, sockets),
            *_if(_IF_EQUAL, calls.socketpair, pairs),
            *_if(_IF_EQUAL, calls.clone, cloning),
            *_if(_IF_EQUAL, calls.ioctl, typing),
            *allow,
        )
    )


def _instruction(code: int, value: int, equal: int = 0, other: int = 0) -> bytes:
    return struct.pack("=HBBI", code, equal, other, value)


def _fail(number: int) -> list[bytes]:
    return [_instruction(_RETURN, _ERRNO | number)]


def _if(code: int, value: int, then: list[bytes]) -> list[bytes]:
    return [_instruction(code, value, 0, len(then)), *then]


def _unless_equal(value: int, then: list[bytes]) -> list[bytes]:
    return [_instruction(_IF_EQUAL, value, len(then), 0), *then]


def _if_any(values: Iterable[int], then: list[bytes]) -> list[bytes]:
    return [each for value in values for each in _if(_IF_EQUAL, value, then)]


# --- The sandbox ---

PROGRAM = "bwrap"

MARK = "/dev/lowerscope-sandbox"
"""Symbolic link that exists in the sandbox alone, and stands for its `Network`. Not an environment
variable, which a user could set outside of a sandbox."""

Network = Literal["none", "open"]

_SUPERVISOR = os.path.join(os.path.dirname(__file__), "supervisor.py")

_COUNTED_APART = (5, 14)
"""First version of Linux that counts processes in each user namespace."""

_UNREACHABLE = (
    *(errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTUNREACH),
    *(errno.EADDRNOTAVAIL, errno.ECONNREFUSED),
)

_SAID_NO_NETWORK = re.compile(r"Network is unreachable|Temporary failure in name resolution")
_SAID_NO_SOCKET = re.compile(r"Address family not supported|received 0 items of ancdata")
"""Messages of a missing socket; the second is that of processes that pass files by such a
socket."""
_SAID_READ_ONLY = re.compile(r"Read-only file system(?:: '(?P<path>[^']+)')?")
"""Python's message for a file that cannot be written; torch does not name the file."""


class NoSandbox(Exception):
    """No sandbox is available, for the reason in the message."""


def program() -> str | None:
    """Return the path of the program that makes sandboxes; ``None`` where there is none."""
    return shutil.which(PROGRAM) if sys.platform == "linux" else None


def enclosed(
    program: str,
    command: Sequence[str],
    writable: Sequence[Path],
    network: Network,
    variables: Mapping[str, str] = MappingProxyType({}),
    *,
    memory: int | None = None,
    calls_file: int | None = None,
    kept: Sequence[int] = (),
) -> tuple[str, ...]:
    """Return the command that runs another one in a sandbox, and kills it on its own exit.

    It starts `core.sandbox.supervisor`, which kills a sandbox that exceeds a limit.

    Args:
        program: What `program` has returned.
        command: The program that is run, with its arguments.
        writable: Folders that may be written to, besides the temporary one.
        network: The network that it has.
        variables: Environment variables in addition to those of this process.
        memory: Bytes that all its processes may hold together; ``None`` for any number.
        calls_file: The descriptor of a file of `running_call`, which the program inherits, and to
            which the reason for killing the sandbox is written. With one, the sandbox ends with the
            process that has started it.
        kept: Other descriptors that the program inherits.

    Raises:
        NoSandbox: If this machine has no safe one.
    """
    files = policy().files
    services = [each for each in files.hidden if os.path.isdir(each)]
    calls = call_filter()
    if not calls:
        raise NoSandbox(
            _("no filter of system calls is known for {machine}", machine=platform.machine())
        )
    return (
        *(sys.executable, "-I", "-S", _SUPERVISOR),
        json.dumps(_options(calls, memory, calls_file, kept)),
        program,
        *("--ro-bind", "/", "/"),
        *("--dev", "/dev"),
        *("--symlink", network, MARK),
        *("--proc", "/proc"),
        *(("--size", str(max(1, memory // 2))) if memory is not None else ()),
        *("--tmpfs", files.temporary),
        *(word for each in services for word in ("--tmpfs", each)),
        *(word for each in files.shown for word in ("--ro-bind-try", each, each)),
        *(word for each in writable for word in ("--bind", *2 * (os.path.realpath(each),))),
        # Files below /proc that control the whole system belong to root.
        *(word for each in ("/dev", "/proc", *services) for word in ("--remount-ro", each)),
        *("--unshare-user-try", "--unshare-pid", "--unshare-ipc"),
        *(("--unshare-net",) if network == "none" else ()),
        *("--cap-drop", "ALL"),
        "--die-with-parent",
        *("--setenv", "TMPDIR", files.temporary),
        *(word for each in variables.items() for word in ("--setenv", *each)),
        *(word for each in policy().variables.hidden for word in ("--unsetenv", each)),
        "--",
        *command,
    )


def _options(
    calls: bytes, memory: int | None, calls_file: int | None, kept: Sequence[int]
) -> Options:
    limit = "" if memory is None else bytes_text(memory)
    most = task_limit()
    return Options(
        filter=calls.hex(),
        memory=memory,
        tasks=most,
        shared=policy().files.temporary,
        report=calls_file,
        report_at=(running_call.MEMORY_AT, running_call.TASKS_AT),
        said=(
            _(
                "lowerscope: stopped: processes in the sandbox used more than the memory "
                "limit, {limit}. Make the inputs smaller, or allow more memory",
                limit=limit,
            ),
            _(
                "lowerscope: stopped: the sandbox had more processes and threads than the "
                "limit, {most}. Start fewer",
                most=most,
            ),
        ),
        kept=list(kept),
        of_window=calls_file is not None,
    )


def is_inside() -> bool:
    """Return whether this process is in the sandbox."""
    return os.path.islink(MARK)


def _has_network() -> bool:
    return not is_inside() or os.readlink(MARK) == "open"


def enter() -> None:
    """Set this process up for the sandbox, if it is inside.

    Processes of `multiprocessing` connect to it over the sandbox's own network, since there are no
    sockets in the file system.
    """
    if is_inside():
        from multiprocessing import connection

        connection.default_family = "AF_INET"  # type: ignore[attr-defined]
        _limit_tasks()


def _limit_tasks() -> None:
    """Limit processes in the kernel, long before there are enough to slow the machine.

    Only in a user namespace whose processes are counted apart from the user's other ones.
    """
    import resource

    version = tuple(int(each) for each in re.findall(r"\d+", os.uname().release)[:2])
    with open("/proc/self/uid_map", encoding="ascii") as file:
        is_own = file.read().split() != ["0", "0", str(2**32 - 1)]
    if is_own and version >= _COUNTED_APART:
        most = task_limit() + SPARE_TASKS
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))


def explained(problem: Problem, error: BaseException, without: str = "") -> Problem:
    """Return the problem of an action that the sandbox prevented, or `problem`.

    `without` says how to go on without one; by default, that of the window.
    """
    if not is_inside():
        return problem
    refused = next(filter(None, map(_refused, _chain(error))), "")
    if not refused:
        return problem
    way = without or _("let code run without it (Tools, Run code in a sandbox)")
    if refused == _PROGRAMS:
        todo = _(
            "If you trust the file, {way}; or start no processes (num_workers=0 of a DataLoader)",
            way=way,
        )
    elif refused == _NETWORK:
        todo = _("If you trust the file, {way}; or give it the data as a file", way=way)
    else:
        todo = _(
            "If you trust the file, {way}; or let it write temporary files below {folder}",
            way=way,
            folder=policy().files.temporary,
        )
    details = "\n\n".join(each for each in (problem.what, problem.details) if each)
    return msgspec.structs.replace(
        problem, what=refused, todo=todo, code="sandbox", details=details
    )


_NETWORK = _("the sandbox does not let it reach the network")
_PROGRAMS = _("the sandbox does not let it connect to other processes by a socket")


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes."""
    seen: set[int] = set()
    waiting: list[object] = [error]
    while waiting:
        each = waiting.pop(0)
        if isinstance(each, BaseException) and id(each) not in seen:
            seen.add(id(each))
            yield each
            # The last is how `urllib` passes on the error of a socket.
            waiting += [each.__cause__, each.__context__, getattr(each, "reason", None)]


def _refused(error: BaseException) -> str:
    """Return what the sandbox prevented; empty for nothing."""
    if isinstance(error, OSError):
        if error.errno == errno.EROFS:
            return _to_write(error.filename)
        if error.errno == NO_SOCKET:
            return _PROGRAMS
        if not _has_network() and (
            isinstance(error, socket.gaierror) or error.errno in _UNREACHABLE
        ):
            return _NETWORK
    said = str(error)
    if found := _SAID_READ_ONLY.search(said):
        return _to_write(found["path"])
    if _SAID_NO_SOCKET.search(said):
        return _PROGRAMS
    if not _has_network() and _SAID_NO_NETWORK.search(said):
        return _NETWORK
    return ""


def _to_write(path: object) -> str:
    if not path:
        return _("the sandbox does not let it write files other than temporary ones")
    return _("the sandbox does not let it write to {path}", path=os.path.abspath(str(path)))
