"""The sandbox's policy, as ``resources/sandbox.toml`` says it."""

from functools import cache

import msgspec

from lowerscope.resources import SANDBOX


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
