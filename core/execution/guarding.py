"""Guard pages around tensors, to find out-of-bounds writes at once.

A tensor of a guarded call lies in pages of its own::

    | no access | pattern, a page or more | tensor | pattern | no access |

A write close to the tensor changes the pattern, and is found after the call. A write far from it
hits pages without access, which kills the process in that very call.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
import tvm

PATTERN = 0xA5
"""Fill byte around a tensor."""

NO_ACCESS = 0
"""Protection flag of ``mprotect``."""

Side = Literal["before", "behind", "inside"]


@dataclass(frozen=True)
class Breach:
    """Illegally changed bytes of a call.

    Attributes
    ----------
    argument
        Index of the argument that they belong to, from 0.
    written
        Whether that is an output of the call, and not a read-only argument.
    side
        ``"before"`` or ``"behind"`` the tensor, or ``"inside"`` a read-only one.
    count
        Number of changed bytes.
    distance
        Bytes between the tensor and the nearest of them; inside, of the first from its begin.
    """

    argument: int
    written: bool
    side: Side
    count: int
    distance: int


class _Pages:
    """Memory for a tensor between pages without access."""

    def __init__(self, size: int) -> None:
        page = mmap.PAGESIZE
        # Patterns as large as the tensor, within bounds: an extra row is the usual mistake.
        around = page * max(1, min(16, -(-size // page)))
        self.size = size
        self._start = page + around
        room = around + size + around
        self._length = page + -(-room // page) * page + page
        self.map = mmap.mmap(-1, self._length)
        self._bytes = torch.frombuffer(self.map, dtype=torch.uint8)
        inner = self._bytes[page : self._length - page]
        inner.fill_(PATTERN)
        self.before = self._bytes[page : self._start]
        self.tensor = self._bytes[self._start : self._start + size]
        self.behind = self._bytes[self._start + size : self._length - page]
        address = self._bytes.data_ptr()
        _protect(address, page)
        _protect(address + self._length - page, page)


def _protect(address: int, length: int) -> None:
    """Remove all access to a page, if the system supports it."""
    if sys.platform == "win32":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(length), NO_ACCESS) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class _Guarded:
    """A copy of a tensor of TVM's in guarded pages, passed to a call in its place."""

    def __init__(self, original: tvm.runtime.Tensor) -> None:
        self._original = torch.utils.dlpack.from_dlpack(original)
        plain = self._original.contiguous()
        self._pages = _Pages(plain.numel() * plain.element_size())
        self._copy = self._pages.tensor.view(plain.dtype).view(plain.shape)
        self._copy.copy_(plain)
        self._was = self._pages.tensor.clone()
        self.value = tvm.runtime.from_dlpack(self._copy)

    def breaches(self, argument: int, written: bool) -> list[Breach]:
        """Return the changes around the tensor, and inside it if it is read-only."""
        pages = self._pages
        ahead = (pages.before != PATTERN).nonzero().flatten()
        after = (pages.behind != PATTERN).nonzero().flatten()
        found = []
        if len(ahead):
            distance = len(pages.before) - 1 - int(ahead[-1])
            found.append(Breach(argument, written, "before", len(ahead), distance))
        if len(after):
            found.append(Breach(argument, written, "behind", len(after), int(after[0])))
        if not written:
            changed = (pages.tensor != self._was).nonzero().flatten()
            if len(changed):
                found.append(Breach(argument, written, "inside", len(changed), int(changed[0])))
        return found

    def give_back(self) -> None:
        """Copy the results back to the original tensor."""
        self._original.copy_(self._copy)


def call_guarded(
    function: Callable[..., Any], arguments: Sequence[Any], written: Sequence[int]
) -> tuple[Breach, ...]:
    """Call a function with its tensors in guarded pages, and return its illegal writes.

    Parameters
    ----------
    written
        The arguments that it writes. The others must stay unchanged.

    Raises
    ------
    OSError
        If the system cannot allocate the pages.
    """
    guarded: Mapping[int, _Guarded] = {
        index: _Guarded(value)
        for index, value in enumerate(arguments)
        if isinstance(value, tvm.runtime.Tensor) and _size(value)
    }
    function(
        *(
            guarded[index].value if index in guarded else value
            for index, value in enumerate(arguments)
        )
    )
    found = []
    for index, each in guarded.items():
        found += each.breaches(index, index in written)
        if index in written:
            each.give_back()
    return tuple(found)


def _size(value: tvm.runtime.Tensor) -> int:
    size = 1
    for extent in value.shape:
        size *= int(extent)
    return size
