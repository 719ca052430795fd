"""Values that the calls of a run read and write, cached within a memory budget.

Memory is reused by later calls, so outputs are copied at once; a tensor that several calls read is
stored once, and weights and inputs are not copied, as they do not change.
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
"""A call, and the index of a tensor of its value."""


@dataclass(frozen=True, eq=False)
class KeptTensor:
    """A tensor at the time that it was read or written.

    Attributes
    ----------
    value
        ``None`` beyond the budget.
    statistics
        Of a tensor beyond the budget; for others they are computed on demand.
    source
        The call that wrote it; ``None`` for inputs and weights.
    """

    shape: tuple[int, ...]
    dtype: str
    value: torch.Tensor | None
    statistics: TensorStatistics | None = None
    source: Source | None = None
    checksum: int = 0


@dataclass
class KeptCall:
    """Inputs and outputs of a call.

    Attributes
    ----------
    is_stale
        Whether an input differs from the value that was written: the memory was reused.
    """

    read: tuple[KeptTensor, ...] = ()
    written: tuple[KeptTensor, ...] = ()
    is_stale: bool = False

    def on(self, side: CallSide) -> tuple[KeptTensor, ...]:
        """Return its inputs, or its outputs."""
        return self.read if side == "read" else self.written

    @property
    def is_kept(self) -> bool:
        """Return whether all of it is cached."""
        return all(each.value is not None for each in (*self.read, *self.written))


@dataclass
class KeptValues:
    """Cached values of one run, filled during an instrumented run: see `calls.watched`.

    Attributes
    ----------
    sources_of
        Returns the calls that gave the inputs of a call, in order, if known.
    given
        Addresses of weights and inputs, which are never written.
    """

    budget: int
    sources_of: Callable[[int], Sequence[Source | None]]
    given: Collection[int] = ()
    calls: dict[int, KeptCall] = field(default_factory=dict)
    size: int = 0
    _at: dict[int, KeptTensor] = field(default_factory=dict)

    def begins(self, index: int, tensors: Sequence[Any]) -> None:
        """Store the inputs of a call that is about to begin."""
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
        """Store the outputs of a call; return whether all of it is cached."""
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
        """Number of calls that are cached in full."""
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
            # reshape makes another tensor object of the same memory.
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
            # The worker has less memory left than the budget.
            self.budget = self.size
            return None


def addresses_of(tensors: Sequence[Any]) -> frozenset[int]:
    """Return the memory addresses of TVM tensors."""
    return frozenset(
        torch.utils.dlpack.from_dlpack(each).data_ptr()
        for each in tensors
        if isinstance(each, tvm.runtime.Tensor) and math.prod(each.shape)
    )


def _holds(kept: KeptTensor, view: torch.Tensor) -> bool:
    """Return whether memory still has the value that was read or written."""
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
