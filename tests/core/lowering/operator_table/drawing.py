"""Strategies for the arguments of operators: tensors of many kinds, axes, indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from hypothesis import strategies as st

from tests.core.lowering.operator_table.entries import Drawn

F32 = ("float32",)
FLOATS = ("float32", "float64", "float16", "bfloat16")
WIDE_FLOATS = ("float32", "float64")
SIGNED = ("int64", "int32", "int16", "int8")
INTEGERS = (*SIGNED, "uint8")
BOOL = ("bool",)
NUMBERS = (*FLOATS, *SIGNED)
ALL = (*FLOATS, *INTEGERS, *BOOL)

LAYOUTS = ("contiguous", "transposed", "sliced", "expanded", "channels last")


class Tensors:
    """A strategy for tensors, with the dtypes that it draws from.

    Parameters
    ----------
    dtypes
        Any of them, or the dtype of the tensor of another name.
    shape
        A shape; or the name of a tensor that was drawn before, whose shape it takes; or a function
        of what was drawn.
    rank
        The least and the largest rank, where there is no shape.
    low, high
        Range of the values; integers include both.
    layouts
        How the elements may lie in memory.
    """

    def __init__(
        self,
        dtypes: Sequence[str] | str = F32,
        shape: Sequence[int] | str | Callable[[Drawn], Sequence[int]] | None = None,
        rank: tuple[int, int] = (0, 4),
        low: float = -4,
        high: float = 4,
        layouts: Sequence[str] = LAYOUTS,
        extents: tuple[int, int] = (1, 4),
    ) -> None:
        self.dtypes = () if isinstance(dtypes, str) else tuple(dtypes)
        self._dtypes = dtypes
        self._shape = shape
        self._rank = rank
        self._range = (low, high)
        self._layouts = layouts
        self._extents = extents

    def __call__(self, drawn: Drawn) -> st.SearchStrategy[torch.Tensor]:
        """Return the strategy, given what was drawn before."""
        if isinstance(self._dtypes, str):
            dtypes = st.just(str(drawn[self._dtypes].dtype)[6:])
        else:
            dtypes = st.sampled_from(self.dtypes)
        return st.builds(
            make_tensor,
            dtypes,
            self._shapes(drawn),
            st.just(self._range),
            st.sampled_from(self._layouts),
            st.integers(0, 1000),
        )

    def _shapes(self, drawn: Drawn) -> st.SearchStrategy[tuple[int, ...]]:
        if self._shape is None:
            extents = st.integers(*self._extents)
            least, most = self._rank
            return st.lists(extents, min_size=least, max_size=most).map(tuple)
        if isinstance(self._shape, str):
            return st.just(tuple(drawn[self._shape].shape))
        if callable(self._shape):
            return st.just(tuple(self._shape(drawn)))
        return st.just(tuple(self._shape))


def make_tensor(
    dtype: str, shape: tuple[int, ...], bounds: tuple[float, float], layout: str, seed: int
) -> torch.Tensor:
    """Return a tensor of random values whose elements lie in memory as `layout` says."""
    generator = torch.Generator().manual_seed(seed)
    kind = getattr(torch, dtype)
    low, high = bounds

    def fill(sizes: Sequence[int]) -> torch.Tensor:
        if kind is torch.bool:
            return torch.rand(tuple(sizes), generator=generator) > 0.5
        if kind.is_floating_point:
            return (torch.rand(tuple(sizes), generator=generator) * (high - low) + low).to(kind)
        least = max(int(low), torch.iinfo(kind).min)
        values = torch.randint(least, int(high) + 1, tuple(sizes), generator=generator)
        return values.to(kind)

    if layout == "transposed" and len(shape) >= 2:
        return fill((*shape[:-2], shape[-1], shape[-2])).transpose(-1, -2)
    if layout == "sliced" and shape:
        return fill((*shape[:-1], shape[-1] * 2 + 1))[..., 1::2]
    if layout == "expanded" and shape:
        return fill((1, *shape[1:])).expand(shape)
    if layout == "channels last" and len(shape) == 4:
        return fill(shape).contiguous(memory_format=torch.channels_last)
    return fill(shape)


def like(name: str, **options: Any) -> Tensors:
    """Draw a tensor of the dtype and shape of another."""
    return Tensors(name, name, **options)


def broadcast(name: str, dtypes: Sequence[str] | str | None = None, **options: Any) -> Any:
    """Draw a tensor that broadcasts with another: some extents are 1, leading ones are left out."""

    def draw(drawn: Drawn) -> st.SearchStrategy[torch.Tensor]:
        shape = tuple(drawn[name].shape)

        def shrunk(ones: list[bool], drop: int) -> st.SearchStrategy[torch.Tensor]:
            sizes = [1 if one else size for one, size in zip(ones, shape, strict=True)]
            return Tensors(dtypes or name, sizes[min(drop, len(sizes)) :], **options)(drawn)

        count = len(shape)
        ones = st.lists(st.booleans(), min_size=count, max_size=count)
        return st.tuples(ones, st.integers(0, 1)).flatmap(lambda pair: shrunk(*pair))

    draw.dtypes = tuple(dtypes or ())  # type: ignore[attr-defined]
    return draw


def axis(name: str = "x", extra: int = 0) -> Any:
    """Draw an axis of a tensor, from the front or from the end."""

    def draw(drawn: Drawn) -> st.SearchStrategy[int]:
        rank = max(drawn[name].dim() + extra, 1)
        return st.integers(-rank, rank - 1)

    return draw


def axes(name: str = "x") -> Any:
    """Draw one or more axes of a tensor, each once, from the front or from the end."""

    def draw(drawn: Drawn) -> st.SearchStrategy[tuple[int, ...]]:
        rank = drawn[name].dim()
        some = st.lists(st.integers(0, rank - 1), min_size=1, max_size=rank, unique=True)
        return some.flatmap(
            lambda chosen: st.tuples(*[st.sampled_from((each, each - rank)) for each in chosen])
        )

    return draw


def place(name: str = "x", along: str = "dim") -> Any:
    """Draw an index along an axis, from the front or from the end."""

    def draw(drawn: Drawn) -> st.SearchStrategy[int]:
        extent = drawn[name].shape[drawn[along]]
        return st.integers(-extent, extent - 1)

    return draw


def indices(
    name: str = "x",
    along: str | int = "dim",
    shape: Sequence[int] | Callable[[Drawn], Sequence[int]] = (3,),
    negative: bool = False,
) -> Any:
    """Draw a tensor of indices along an axis."""

    def draw(drawn: Drawn) -> st.SearchStrategy[torch.Tensor]:
        extent = drawn[name].shape[drawn[along] if isinstance(along, str) else along]
        low = -extent if negative else 0
        return Tensors(("int64",), shape, low=low, high=extent - 1)(drawn)

    draw.dtypes = ("int64",)  # type: ignore[attr-defined]
    return draw


def flag() -> st.SearchStrategy[bool]:
    """Draw a flag."""
    return st.booleans()


def one_of(*values: Any) -> st.SearchStrategy[Any]:
    """Draw one of some values."""
    return st.sampled_from(values)
