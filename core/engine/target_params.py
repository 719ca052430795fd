"""What the window asks of its children about targets and other machines.

This module imports neither torch nor TVM, so that the window can use it.
"""

from __future__ import annotations

import msgspec

from lowerscope.core.records.remote import Remote


class TargetsParams(msgspec.Struct, frozen=True, kw_only=True):
    """What each of some targets changes; without one, of those that there are to choose from."""

    texts: tuple[str, ...] = ()
    threads: int = 0


class RemoteParams(msgspec.Struct, frozen=True, kw_only=True):
    """What a tracker has, and what a server with the key says of its machine."""

    remote: Remote
