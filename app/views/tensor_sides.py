"""The sides of a tensor, in the heat map's format."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from lowerscope.app.widgets.charts.heat_map import HeatPiece, HeatScale
from lowerscope.core.records.comparison import Comparison, Window

Side = Literal["tvm", "torch", "difference"]
SIDES: tuple[Side, ...] = ("tvm", "torch", "difference")
"""Ours, torch's, and ours - torch."""


def values_of(window: Window, side: Side) -> Sequence[float]:
    """Return the values of the cells of a side, row by row; none if it has none."""
    data = {"tvm": window.ours, "torch": window.torch, "difference": window.difference}[side]
    return memoryview(data).cast("d" if window.format == "<f8" else "q")


def piece_of(window: Window, side: Side) -> HeatPiece:
    """Return a side of a window in the heat map's format."""
    values = values_of(window, side)
    return HeatPiece(window.row_edges, window.column_edges, values, window.outside)


def scale_of(record: Comparison, side: Side) -> HeatScale:
    """Return the colour scale of a side: the same for all slices, and for both sides."""
    if side == "difference":
        most = max((abs(each) for each in record.edges), default=0.0)
        return HeatScale(-most, most, diverging=True) if most else _zero(record)
    known = [each for each in (record.ours, record.torch) if each is not None]
    low = min((each.low for each in known if each.low is not None), default=0.0)
    high = max((each.high for each in known if each.high is not None), default=1.0)
    if low < 0 < high:
        most = max(-low, high)
        return HeatScale(-most, most, diverging=True)
    return HeatScale(low, high)


def _zero(record: Comparison) -> HeatScale:
    most = record.atol or 1.0
    return HeatScale(-most, most, diverging=True)


def matrix_of(shape: Sequence[int]) -> tuple[int, int]:
    """Return the rows and columns of a tensor viewed as a matrix."""
    return (shape[-2] if len(shape) > 1 else 1), (shape[-1] if shape else 1)


def grey_of(values: Sequence[float], scale: HeatScale) -> bytes:
    """Return a byte for each value, from the lowest of a scale to the highest."""
    span = (scale.high - scale.low) or 1.0
    return bytes(
        min(255, max(0, round(255 * (each - scale.low) / span))) if math.isfinite(each) else 0
        for each in values
    )


def channels_of(shape: Sequence[int]) -> int:
    """Return the number of channels of a tensor that can be a picture: 1 or 3; otherwise 0."""
    if len(shape) < 3 or shape[-3] not in (1, 3) or min(shape[-2:]) < 2:
        return 0
    return shape[-3]
