"""Seccomp filter of the system calls that the sandbox allows, for bubblewrap.

A read-only file system does not keep a process from connecting to a socket in it, and the socket of
a terminal multiplexer, of a desktop or of a container service runs commands outside. So there are
only sockets of the network that the sandbox has, and connected pairs of this process's own. Calls
that make namespaces, that inspect other processes, that the kernel keeps outside of the sandbox
(keyrings) or that take memory nobody can count are as on a kernel without them, and so are calls
that are newer than this list. This module imports neither torch nor TVM.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterable

from lowerscope.core.sandbox.policy import policy

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
    allow = [_one(_RETURN, _ALLOW)]
    unknown, refused = _fail(errno.ENOSYS), _fail(errno.EPERM)
    no_socket = _fail(NO_SOCKET)
    sockets = [_one(_LOAD, _FIRST), *_if_any(allowed.families, allow), *no_socket]
    pairs = [
        *(_one(_LOAD, _FIRST), *_unless_equal(_UNIX, no_socket)),
        *(_one(_LOAD, _SECOND), _one(_AND, _TYPE), *_if_any(allowed.pairs, allow), *no_socket),
    ]
    # Every branch ends with a return: the number has to be loaded again otherwise.
    typing = [_one(_LOAD, _SECOND), *_if_any(listed.typing_requests, refused), *allow]
    cloning = [_one(_LOAD, _FIRST), *_if(_IF_BITS, listed.namespace_flags, refused), *allow]
    return b"".join(
        (
            _one(_LOAD, _ARCHITECTURE),
            *_unless_equal(calls.architecture, unknown),
            _one(_LOAD, _NUMBER),
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


def _one(code: int, value: int, equal: int = 0, other: int = 0) -> bytes:
    return struct.pack("=HBBI", code, equal, other, value)


def _fail(number: int) -> list[bytes]:
    return [_one(_RETURN, _ERRNO | number)]


def _if(code: int, value: int, then: list[bytes]) -> list[bytes]:
    return [_one(code, value, 0, len(then)), *then]


def _unless_equal(value: int, then: list[bytes]) -> list[bytes]:
    return [_one(_IF_EQUAL, value, len(then), 0), *then]


def _if_any(values: Iterable[int], then: list[bytes]) -> list[bytes]:
    return [each for value in values for each in _if(_IF_EQUAL, value, then)]
