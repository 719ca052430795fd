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
from typing import NamedTuple

NO_SOCKET = errno.EAFNOSUPPORT
"""Error of a socket of another family, as on a system without that family."""


class _Calls(NamedTuple):
    """The numbers of an architecture and of its calls."""

    architecture: int
    socket: int
    socketpair: int
    ioctl: int
    clone: int
    refused: tuple[int, ...]


_NEWER = 463
"""Calls from here on are newer than this list. From 424 on, numbers are those of every
architecture; the list goes up to ``mseal``."""

_REFUSED = {
    # Other processes: their memory and their activity.
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "perf_event_open": (298, 241),
    # Namespaces and file systems. What a program needs of `clone` is filtered by its flags, which
    # those of `clone3` cannot be: they are in memory.
    "unshare": (272, 97),
    "setns": (308, 268),
    "clone3": (435, 435),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    # Keyrings are those of the session, outside of all namespaces.
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # Memory that belongs to no process, and is thus not counted.
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    # The kernel itself.
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    # It makes sockets and connects them without a call of its own for that.
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
}
"""Calls that do not exist in the sandbox: their numbers on x86-64 and on 64-bit ARM."""

_X86_ONLY = (134, 156, 172, 173)
"""``uselib``, ``_sysctl``, ``iopl`` and ``ioperm``."""

_CALLS = {
    "x86_64": _Calls(
        0xC000003E, 41, 53, 16, 56, (*(x86 for x86, _ in _REFUSED.values()), *_X86_ONLY)
    ),
    "aarch64": _Calls(0xC00000B7, 198, 199, 29, 220, tuple(arm for _, arm in _REFUSED.values())),
}

_FAMILIES = (2, 10, 16)
"""AF_INET, AF_INET6, and AF_NETLINK, by which the names of hosts are looked up."""
_UNIX = 1
_PAIRS = (1, 5)
"""SOCK_STREAM and SOCK_SEQPACKET: one of a pair of datagram sockets can be sent to any address, and
descriptors with it."""
_TYPE = 0xF
"""Bits of a socket's type that are not flags."""
_NAMESPACES = 0x7E020080
"""The flags of ``clone`` that make namespaces."""
_TYPING = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX."""

_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24
"""Offsets of these fields in the data that a filter receives. Of arguments this is the lower half,
which is all that the kernel reads of those that are filtered here."""

_LOAD, _AND, _IF_EQUAL, _IF_FROM, _IF_BITS, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000


def call_filter(machine: str | None = None) -> bytes:
    """Return the filter for a machine, as its kernel reads it; empty for one that is not known."""
    calls = _CALLS.get(machine or platform.machine())
    if calls is None:
        return b""
    allow = [_one(_RETURN, _ALLOW)]
    unknown, refused = _fail(errno.ENOSYS), _fail(errno.EPERM)
    no_socket = _fail(NO_SOCKET)
    sockets = [_one(_LOAD, _FIRST), *_if_any(_FAMILIES, allow), *no_socket]
    pairs = [
        *(_one(_LOAD, _FIRST), *_unless_equal(_UNIX, no_socket)),
        *(_one(_LOAD, _SECOND), _one(_AND, _TYPE), *_if_any(_PAIRS, allow), *no_socket),
    ]
    # Every branch ends with a return: the number has to be loaded again otherwise.
    typing = [_one(_LOAD, _SECOND), *_if_any(_TYPING, refused), *allow]
    cloning = [_one(_LOAD, _FIRST), *_if(_IF_BITS, _NAMESPACES, refused), *allow]
    return b"".join(
        (
            _one(_LOAD, _ARCHITECTURE),
            *_unless_equal(calls.architecture, unknown),
            _one(_LOAD, _NUMBER),
            # Another ABI of x86 has calls of still greater numbers.
            *_if(_IF_FROM, _NEWER, unknown),
            *_if_any(calls.refused, unknown),
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
