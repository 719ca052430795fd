"""Records of a generation: a prefill and decode steps, token by token, beside torch."""

from __future__ import annotations

import statistics
from typing import Literal

import msgspec

from lowerscope.core.model.formatting import error_text, verdict_words
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.run_records import OutputVerdict
from lowerscope.core.model.texts import _, _n

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
    def text(self) -> str:
        """The token; of both sides where they differ."""
        ours, theirs = (",".join(map(str, each)) for each in (self.token, self.torch_token))
        return ours if self.is_same else f"{ours}≠{theirs}"

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

    ``prefill`` and ``decode`` are the recipes of its functions, with the dimensions that grow.
    ``later`` are those of decode steps that need a function of their own, such as from where the
    window of a cache is full: `Source.after` says from which step on.
    """

    verdict: OutputVerdict
    tokens: tuple[TokenRun, ...]
    fault: TokenFault | None = None
    cache: tuple[CacheTensor, ...]  # after the last call
    build_ms: float
    prefill: Recipe
    decode: Recipe
    later: tuple[Recipe, ...] = ()

    @property
    def steps(self) -> tuple[Recipe, ...]:
        """The recipes of the decode steps, in order."""
        return (self.decode, *self.later)

    def recipe_of(self, token: int) -> Recipe:
        """Return the recipe of the function that gives a token, from 0."""
        begun = (each for each in self.steps if each.source.after < token)
        return max(begun, key=lambda each: each.source.after, default=self.prefill)

    @property
    def same(self) -> int:
        """Number of tokens that are equal on both sides."""
        return sum(each.is_same for each in self.tokens)

    @property
    def max_abs_error(self) -> float | None:
        """The largest absolute error over all calls."""
        return max(
            (e for each in self.tokens if (e := each.max_abs_error) is not None), default=None
        )

    def prefill_ms(self, side: str) -> float:
        """Return the time of the prefill of ``"TVM"`` or ``"torch"``."""
        return self._times(side)[0]

    def decode_ms(self, side: str) -> float | None:
        """Return the median time of a decode step; ``None`` without any."""
        times = self._times(side)[1:]
        return statistics.median(times) if times else None

    def _times(self, side: str) -> list[float]:
        return [each.tvm_ms if side == "TVM" else each.torch_ms for each in self.tokens]


def generation_text(record: GenerationRecord) -> str:
    """Return the outcome of a generation, in one line."""
    return _n(
        "{verdict}: {same} of {count} token equals torch's; largest absolute error {error}",
        "{verdict}: {same} of {count} tokens equal torch's; largest absolute error {error}",
        len(record.tokens),
        same=record.same,
        verdict=verdict_words(record.verdict)[0],
        error=error_text(record.max_abs_error),
    )


def fault_text(fault: TokenFault) -> str:
    """Return where a generation first differs, in one line."""
    if not fault.node:
        return _(
            "First difference: token {token} ({entry}): no node differs on torch's inputs, so the "
            "error is of the tokens before; {reason}",
            token=fault.token + 1,
            entry=fault.entry,
            reason=fault.reason,
        )
    place = _(", ").join(each for each in (fault.layer, fault.where) if each)
    return _(
        "First difference: token {token} ({entry}), node {node} ({place}): {reason}",
        token=fault.token + 1,
        entry=fault.entry,
        node=fault.node.removeprefix("fx:"),
        place=place or "main",
        reason=fault.reason,
    )
