"""What system calls the sandbox refuses: a filter of the kernel's (seccomp), for bubblewrap.

A file system that is read-only does not keep a process from connecting to a socket in it, and the
socket of a terminal multiplexer, of a desktop or of a container service runs what it is told,
outside. So there are no sockets but those of the network that the sandbox has. Nor can the terminal
that a command was started from be typed into. This module imports neither torch nor TVM.
"""

from __future__ import annotations

import errno
import platform
import struct
from typing import NamedTuple

NO_SOCKET = errno.EAFNOSUPPORT
"""What a socket of another family fails with, as on a system that does not have that family."""


class _Calls(NamedTuple):
    """The numbers of an architecture and of its calls."""

    architecture: int
    socket: int
    ioctl: int


_CALLS = {"x86_64": _Calls(0xC000003E, 41, 16), "aarch64": _Calls(0xC00000B7, 198, 29)}
_IO_URING = range(425, 428)
"""On all architectures: it makes sockets and connects them without a call of its own for that."""
_X32 = 0x40000000
"""Calls from here on are those of another ABI of x86."""

_FAMILIES = (2, 10, 16)
"""AF_INET, AF_INET6, and AF_NETLINK, by which the names of hosts are looked up."""
_TYPING = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX."""

_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24
"""Where a filter finds them in its call; of arguments, the lower half."""

_LOAD, _IF_EQUAL, _IF_FROM, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000


def call_filter(machine: str | None = None) -> bytes:
    """Return the filter for a machine, as its kernel reads it; empty for one that is not known."""
    calls = _CALLS.get(machine or platform.machine())
    if calls is None:
        return b""
    allow, unknown = [_one(_RETURN, _ALLOW)], [_one(_RETURN, _ERRNO | errno.ENOSYS)]
    sockets = [_one(_LOAD, _FIRST), *_if_any(_FAMILIES, allow), _one(_RETURN, _ERRNO | NO_SOCKET)]
    typing = [_one(_RETURN, _ERRNO | errno.EPERM)]
    return b"".join(
        (
            _one(_LOAD, _ARCHITECTURE),
            *_unless_equal(calls.architecture, unknown),
            _one(_LOAD, _NUMBER),
            *_if(_IF_FROM, _X32, unknown),
            *_if_any(_IO_URING, unknown),
            *_if(_IF_EQUAL, calls.socket, sockets),
            *_if(_IF_EQUAL, calls.ioctl, [_one(_LOAD, _SECOND), *_if_any(_TYPING, typing)]),
            *allow,
        )
    )


def _one(code: int, value: int, equal: int = 0, other: int = 0) -> bytes:
    return struct.pack("=HBBI", code, equal, other, value)


def _if(code: int, value: int, then: list[bytes]) -> list[bytes]:
    return [_one(code, value, 0, len(then)), *then]


def _unless_equal(value: int, then: list[bytes]) -> list[bytes]:
    return [_one(_IF_EQUAL, value, len(then), 0), *then]


def _if_any(values: tuple[int, ...] | range, then: list[bytes]) -> list[bytes]:
    return [each for value in values for each in _if(_IF_EQUAL, value, then)]
