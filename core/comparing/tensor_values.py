"""Statistics of the values of a tensor: range, histogram, first elements."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from lowerscope.core.records.comparison import TensorStatistics
from lowerscope.core.records.model import ValuesRecord

BINS = 48
"""Bars of a histogram; fewer for integers of a small range."""

FIRST = 32
"""Number of first values that are returned."""

_CHUNK = 1 << 21
"""Number of elements processed at once, to avoid copies of a large tensor."""


def values_of(name: str, tensor: torch.Tensor) -> ValuesRecord:
    """Describe the values of `tensor`, or the magnitudes of complex ones.

    Range, mean, deviation and histogram are of finite values. The deviation is that of the whole
    population, as in ``numpy.std``.
    """
    found = statistics_of(tensor)
    edges, counts = histogram_of(tensor, found.low, found.high)
    return ValuesRecord(
        name=name,
        shape=tuple(tensor.shape),
        dtype=str(tensor.dtype).removeprefix("torch."),
        size=tensor.numel() * tensor.element_size(),
        count=tensor.numel(),
        low=found.low,
        high=found.high,
        mean=found.mean,
        deviation=found.deviation,
        nans=found.nans,
        infinities=found.infinities,
        zeros=found.zeros,
        edges=edges,
        counts=counts,
        first=first_of(tensor, FIRST),
    )


def statistics_of(tensor: torch.Tensor) -> TensorStatistics:
    """Return statistics of `tensor`."""
    nans = infinities = zeros = finite = 0
    low, high, mean, squares = math.inf, -math.inf, 0.0, 0.0
    for chunk in _chunks(_flat(tensor)):
        nans += int(np.isnan(chunk).sum())
        infinities += int(np.isinf(chunk).sum())
        zeros += int((chunk == 0).sum())
        numbers = chunk[np.isfinite(chunk)]
        if numbers.size:
            low, high = min(low, float(numbers.min())), max(high, float(numbers.max()))
            # Combine mean and squares of two sets, which keeps numbers far from zero exact.
            own = float(numbers.mean())
            together = finite + numbers.size
            squares += float(((numbers - own) ** 2).sum())
            squares += (own - mean) ** 2 * finite * numbers.size / together
            mean += (own - mean) * numbers.size / together
            finite = together
    return TensorStatistics(
        count=tensor.numel(),
        low=low if finite else None,
        high=high if finite else None,
        mean=mean if finite else None,
        deviation=math.sqrt(squares / finite) if finite else None,
        nans=nans,
        infinities=infinities,
        zeros=zeros,
    )


def histogram_of(
    tensor: torch.Tensor, low: float | None, high: float | None
) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Return edges and counts of a histogram of the finite values, which lie in `low` to `high`."""
    if low is None or high is None:
        return (), ()
    whole = not (tensor.is_floating_point() or tensor.is_complex())
    edges = _edges(low, high, whole=whole)
    counts = np.zeros(len(edges) - 1, dtype=np.int64)
    for chunk in _chunks(_flat(tensor)):
        counts += np.histogram(chunk[np.isfinite(chunk)], edges)[0]
    return tuple(float(edge) for edge in edges), tuple(int(count) for count in counts)


def first_of(tensor: torch.Tensor, count: int, digits: int = 6) -> tuple[str, ...]:
    """Format the first elements of a tensor to some significant digits."""
    return tuple(_text(value, digits) for value in tensor.detach().reshape(-1)[:count].tolist())


def as_array(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """Return a tensor as an array; bfloat16 as float32, which represents all its values."""
    data = tensor.detach().cpu().resolve_conj().resolve_neg()
    if data.layout is not torch.strided:
        data = data.to_dense()
    return (data.float() if data.dtype is torch.bfloat16 else data).numpy()


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    data = tensor.detach().cpu()
    if data.layout is not torch.strided:
        data = data.to_dense()
    return data.reshape(-1)


def _chunks(flat: torch.Tensor) -> Iterator[np.ndarray[Any, Any]]:
    for start in range(0, flat.numel(), _CHUNK):
        chunk = flat[start : start + _CHUNK]
        yield (chunk.abs() if chunk.is_complex() else chunk).double().numpy()


def _edges(low: float, high: float, *, whole: bool) -> np.ndarray[Any, Any]:
    """Return the edges of the bars: one bar an integer if these are few."""
    if whole and high - low < BINS:
        return np.arange(low, high + 2) - 0.5
    if low == high:
        half = abs(low) / 2 or 0.5
        return np.array([low - half, high + half])
    return np.linspace(low, high, BINS + 1)


def _text(value: complex | float | int | bool, digits: int) -> str:
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)
