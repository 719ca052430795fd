"""The values that a run reads and writes, kept call by call as far as a budget reaches.

Memory is used again by later calls, so what is written is copied at once; what several calls read
is kept once, and weights and inputs not at all: they stay as they are.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import tvm

from lowerscope.core.comparing.tensor_values import statistics_of
from lowerscope.core.memory_limit import is_shortage
from lowerscope.core.records.comparison import CallSide, TensorStatistics

Source = tuple[int, int]
"""A call, and which of the tensors of its value."""


@dataclass(frozen=True, eq=False)
class KeptTensor:
    """A tensor as it was when it was read or written.

    Attributes
    ----------
    value
        ``None`` beyond the budget.
    statistics
        Of what is beyond the budget; of what is kept they are made when they are asked for.
    source
        What wrote it; ``None`` for what was given.
    checksum
        Of the bytes of what is beyond the budget.
    """

    shape: tuple[int, ...]
    dtype: str
    value: torch.Tensor | None
    statistics: TensorStatistics | None = None
    source: Source | None = None
    checksum: int = 0


@dataclass
class KeptCall:
    """What a call has read and written.

    Attributes
    ----------
    is_stale
        Whether something that it reads is no longer what was written: the memory was used again.
    """

    read: tuple[KeptTensor, ...] = ()
    written: tuple[KeptTensor, ...] = ()
    is_stale: bool = False

    def on(self, side: CallSide) -> tuple[KeptTensor, ...]:
        """Return what it has read, or what it has written."""
        return self.read if side == "read" else self.written

    @property
    def is_kept(self) -> bool:
        """Whether all of it is kept."""
        return all(each.value is not None for each in (*self.read, *self.written))


@dataclass
class KeptValues:
    """What is kept of one run: made while it is watched, see `calls.watched`.

    Attributes
    ----------
    budget
        Bytes that may be copied.
    sources_of
        Says which calls gave what a call reads, in order, as far as that is known.
    given
        Addresses of weights and inputs, which nothing is written to.
    calls
        By index.
    size
        Bytes that were copied.
    """

    budget: int
    sources_of: Callable[[int], Sequence[Source | None]]
    given: Collection[int] = ()
    calls: dict[int, KeptCall] = field(default_factory=dict)
    size: int = 0
    _at: dict[int, KeptTensor] = field(default_factory=dict)

    def begins(self, index: int, tensors: Sequence[Any]) -> None:
        """Keep what a call is about to read."""
        sources = self.sources_of(index)
        known = sources if len(sources) == len(tensors) else [None] * len(tensors)
        call = KeptCall()
        read = []
        for tensor, source in zip(tensors, known, strict=True):
            view = torch.utils.dlpack.from_dlpack(tensor)
            written = self._written(source)
            changed = written is not None and not _holds(written, view)
            before = None if source is None else self.calls.get(source[0])
            call.is_stale |= changed or (before is not None and before.is_stale)
            read.append(written if written and not changed else self._kept(view, source))
            self._at[view.data_ptr()] = read[-1]
        call.read = tuple(read)
        self.calls[index] = call

    def took(self, index: int, tensors: Sequence[Any]) -> bool:
        """Keep what a call has written; return whether all of it is kept."""
        written = []
        for item, tensor in enumerate(tensors):
            if not isinstance(tensor, tvm.runtime.Tensor):
                return False
            view = torch.utils.dlpack.from_dlpack(tensor)
            written.append(self._kept(view, (index, item)))
            self._at[view.data_ptr()] = written[-1]
        self.calls.setdefault(index, KeptCall()).written = tuple(written)
        return all(each.value is not None for each in written)

    @property
    def complete_calls(self) -> int:
        """How many calls are kept in whole."""
        return sum(each.is_kept for each in self.calls.values())

    def _written(self, source: Source | None) -> KeptTensor | None:
        call = None if source is None else self.calls.get(source[0])
        if call is None or source is None or source[1] >= len(call.written):
            return None
        return call.written[source[1]]

    def _kept(self, view: torch.Tensor, source: Source | None) -> KeptTensor:
        if view.data_ptr() in self.given:
            return KeptTensor(tuple(view.shape), _name(view), view, source=source)
        known = self._at.get(view.data_ptr())
        if known is not None and known.value is not None and _holds(known, view):
            # A reshape makes another tensor of the same memory.
            value = known.value.reshape(-1).view(view.dtype).reshape(view.shape)
            return KeptTensor(tuple(view.shape), _name(view), value, source=source)
        return self._copied(view, source)

    def _copied(self, view: torch.Tensor, source: Source | None) -> KeptTensor:
        size = view.numel() * view.element_size()
        shape, dtype = tuple(view.shape), _name(view)
        value = self._copy(view, size)
        if value is None:
            return KeptTensor(shape, dtype, None, statistics_of(view), source, _checksum(view))
        self.size += size
        return KeptTensor(shape, dtype, value, source=source)

    def _copy(self, view: torch.Tensor, size: int) -> torch.Tensor | None:
        if self.size + size > self.budget:
            return None
        try:
            return view.clone()
        except (RuntimeError, MemoryError) as error:
            if not is_shortage(error):
                raise
            # The worker has less left than there was to be for this.
            self.budget = self.size
            return None


def addresses_of(tensors: Sequence[Any]) -> frozenset[int]:
    """Return where tensors of TVM lie in memory."""
    return frozenset(
        torch.utils.dlpack.from_dlpack(each).data_ptr()
        for each in tensors
        if isinstance(each, tvm.runtime.Tensor) and math.prod(each.shape)
    )


def _holds(kept: KeptTensor, view: torch.Tensor) -> bool:
    """Return whether memory still has what was read or written."""
    if kept.value is None:
        return kept.checksum == _checksum(view)
    one, other = kept.value.reshape(-1), view.reshape(-1)
    if one.numel() * one.element_size() != other.numel() * other.element_size():
        return False
    return torch.equal(one.view(torch.uint8), other.view(torch.uint8))


def _checksum(view: torch.Tensor) -> int:
    return zlib.crc32(view.reshape(-1).view(torch.uint8).numpy().data)


def _name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
