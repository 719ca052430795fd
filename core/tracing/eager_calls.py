"""Eager torch calls during symbolic tracing, which are not part of the graph."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

import torch
from torch import fx
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from lowerscope.core.records.snapshot import Note, SourceLine
from lowerscope.core.tracing.failures import where_of
from lowerscope.core.tracing.source_lines import line_of_frame

_FROZEN = "forward draws random numbers here, and the graph has those of this one call"


class EagerCalls(TorchFunctionMode):
    """Recorder of calls into torch that involve no proxy.

    Parameters
    ----------
    boundary
        The code of the function that runs the tracer.

    Attributes
    ----------
    changes
        For each tensor that was changed in place, its memory and the user's line.
    draws
        Lines that have drawn random numbers.
    drawn
        Tensors that were drawn or computed from drawn ones, each with the name of the random
        operator.
    """

    def __init__(self, boundary: CodeType) -> None:
        super().__init__()
        self.changes: list[tuple[int, SourceLine | None]] = []
        self.draws: dict[SourceLine | None, None] = {}
        self.drawn: list[tuple[torch.Tensor, str]] = []
        self._boundary = boundary

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        leaves = pytree.tree_leaves((args, kwargs))
        if any(isinstance(leaf, fx.Proxy) for leaf in leaves):
            return func(*args, **(kwargs or {}))
        tensors = [
            leaf
            for leaf in leaves
            if isinstance(leaf, torch.Tensor)
            and leaf.layout is torch.strided
            and not leaf.is_inference()
        ]
        versions = [tensor._version for tensor in tensors]
        generators = [leaf for leaf in leaves if isinstance(leaf, torch.Generator)]
        state = torch.random.get_rng_state()
        result = func(*args, **(kwargs or {}))
        line = line_of_frame(sys._getframe(1), self._boundary)
        for tensor, version in zip(tensors, versions, strict=True):
            if tensor._version != version:
                self.changes.append((tensor.untyped_storage().data_ptr(), line))
        drawn = generators or not torch.equal(state, torch.random.get_rng_state())
        made = [each for each in pytree.tree_leaves(result) if isinstance(each, torch.Tensor)]
        if drawn and made:
            self.draws[line] = None
            source = getattr(func, "__name__", "forward").strip("_")
        else:
            source = next(filter(None, map(self.drawn_by, tensors)), "")
        if source:
            self.drawn += [(each, source) for each in made]
        return result

    def drawn_by(self, tensor: torch.Tensor) -> str:
        """Return the random operator that a tensor's memory depends on; empty for none."""
        return next((name for each, name in self.drawn if _shares_memory(each, tensor)), "")

    def notes(self) -> tuple[Note, ...]:
        """Return the notes on the calls."""
        return tuple(Note(text=_FROZEN, where=where_of(line)) for line in self.draws)


def _shares_memory(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one is other:
        return True
    if one.layout is not torch.strided or other.layout is not torch.strided:
        return False
    memory = one.untyped_storage().data_ptr()
    return bool(memory) and memory == other.untyped_storage().data_ptr()
