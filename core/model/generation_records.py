"""Records of a generation: a prefill and decode steps, token by token, beside torch."""

from __future__ import annotations

from typing import Literal

import msgspec

from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.run_records import FAILING, OutputVerdict

Entry = Literal["prefill", "decode"]


class TokenRun(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a generation, and the token that it gives.

    ``token`` and ``torch_token`` are those of TVM and of torch, one for each sequence of the batch.
    ``verdict`` is that on all outputs of the call, with the cache, as in `RunRecord`; ``reason``
    names the outputs. ``cache_bytes`` is the size of the cache after it.
    """

    entry: Entry
    token: tuple[int, ...]
    torch_token: tuple[int, ...]
    verdict: OutputVerdict
    reason: str = ""
    max_abs_error: float | None = None
    tvm_ms: float
    torch_ms: float
    cache_bytes: int

    @property
    def is_same(self) -> bool:
        """Return whether both sides give the same token."""
        return self.token == self.torch_token


class CacheTensor(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor of the cache: an output of one call that is an input of the next."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int


class TokenFault(msgspec.Struct, frozen=True, kw_only=True):
    """The first token whose call differs from torch's.

    ``node`` is the id of the first node that differs on torch's inputs of that call, ``layer`` the
    path of its module, and ``where`` its line; all are empty if no node differs on these inputs.
    """

    token: int  # from 0
    entry: Entry
    node: str = ""
    layer: str = ""
    where: str = ""
    reason: str = ""


class GenerationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The calls of a generation up to the first that differs, by one executable.

    ``prefill`` and ``decode`` are the recipes of its two functions, with the dimensions that grow.
    """

    prefill: Recipe
    decode: Recipe
    verdict: OutputVerdict
    tokens: tuple[TokenRun, ...]
    cache: tuple[CacheTensor, ...]  # after the last call
    fault: TokenFault | None = None
    build_ms: float

    @property
    def same(self) -> int:
        """Number of tokens that are equal on both sides."""
        return sum(each.is_same for each in self.tokens)

    @property
    def fails(self) -> bool:
        """Return whether the verdict is a failing one."""
        return self.verdict in FAILING
