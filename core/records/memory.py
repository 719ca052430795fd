"""The memory plan of a run of ``main``: tensors that share a storage, and the times of its use.

This module imports neither torch nor TVM.
"""

from __future__ import annotations

import msgspec


class StoredTensor(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor that a run allocates.

    Attributes
    ----------
    name
        Name of its variable in the module that goes into the bytecode.
    shape, dtype, size
        Its extents, and its bytes.
    written, last
        Indices in `RunRecord.calls` of the call before which it is allocated, and of the last one
        that reads or writes it; ``last`` is that of the last call of all for what is returned.
    returned
        Whether it is an output, or a part of one.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    size: int
    written: int
    last: int
    returned: bool = False


class Storage(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of memory, and the tensors that are in it one after the other.

    Attributes
    ----------
    size
        In bytes.
    begin, end
        Indices in `RunRecord.calls` of the first and the last call during which it is in use.
    tensors
        In the order in which they are allocated.
    """

    size: int
    begin: int
    end: int
    tensors: tuple[StoredTensor, ...]


class MemoryRecord(msgspec.Struct, frozen=True, kw_only=True):
    """All that a run of ``main`` allocates, in bytes; the model's constants and inputs apart.

    Attributes
    ----------
    storages
        In the order in which they are allocated.
    live
        For each call of `RunRecord.calls`, the bytes of the storages in use while it runs.
    constants
        Bytes of the constants in the module, each counted once.
    reason
        Why nothing is known; empty where it is.
    """

    storages: tuple[Storage, ...] = ()
    live: tuple[int, ...] = ()
    constants: int = 0
    reason: str = ""

    @property
    def peak(self) -> int:
        """Maximum number of bytes in use at once."""
        return max(self.live, default=0)

    @property
    def tensors(self) -> int:
        """Total size of all tensors, as if none shared its storage with another."""
        return sum(each.size for storage in self.storages for each in storage.tensors)
