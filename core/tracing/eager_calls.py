"""What torch computes at once while the fx tracer runs ``forward``: it is no part of the graph."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

import torch
from torch import fx
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from lowerscope.core.records import Note, SourceLine
from lowerscope.core.tracing.failures import where_of
from lowerscope.core.tracing.source_lines import line_of_frame

_FROZEN = "forward draws random numbers here, and the graph has those of this one call"


class EagerCalls(TorchFunctionMode):
    """Watches the calls into torch that no proxy takes part in.

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
    """

    def __init__(self, boundary: CodeType) -> None:
        super().__init__()
        self.changes: list[tuple[int, SourceLine | None]] = []
        self.draws: dict[SourceLine | None, None] = {}
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
        if drawn and isinstance(result, torch.Tensor):
            self.draws[line] = None
        return result

    def notes(self) -> tuple[Note, ...]:
        """Return what the user should know of the calls."""
        return tuple(Note(text=_FROZEN, where=where_of(line)) for line in self.draws)
