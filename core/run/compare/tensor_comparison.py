"""Comparison of one tensor of a run with torch's: statistics, largest differences, and windows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal

import msgspec
import numpy as np
import torch

from lowerscope.core.model.comparison_records import Comparison, TensorPlace, Window
from lowerscope.core.model.tolerances import EXACT, Tolerance, Tolerances
from lowerscope.core.run.compare.tensor_values import as_array, histogram_of, statistics_of
from lowerscope.core.run.compare.verdicts import CHUNK, difference, elements, tolerance_for

_WHOLE_MOST = 2.0**63
"""Lower bound of integers that do not fit into signed 64 bits."""

_TOGETHER = 1 << 20
"""Number of elements processed at once, or those of one row of cells."""


def compared(
    place: TensorPlace,
    ours: torch.Tensor | None,
    theirs: torch.Tensor | None,
    tolerances: Tolerances,
    reason: str = "",
) -> Comparison:
    """Return the statistics of a tensor and of torch's.

    Parameters
    ----------
    ours, theirs
        Of any shapes and dtypes; ``None`` if missing.
    reason
        Why there is nothing to compare, although there may be values.
    """
    found = Comparison(
        place=place,
        kept=ours is not None,
        shape=() if ours is None else tuple(ours.shape),
        dtype="" if ours is None else _name(ours.dtype),
        torch_shape=() if theirs is None else tuple(theirs.shape),
        torch_dtype="" if theirs is None else _name(theirs.dtype),
        ours=None if ours is None else statistics_of(ours),
        torch=None if theirs is None else statistics_of(theirs),
        reason=reason,
    )
    if ours is None or theirs is None or reason:
        return found
    over_all = difference(ours, theirs, tolerances)
    is_measured = over_all.is_measured
    found = msgspec.structs.replace(
        found,
        verdict=over_all.verdict,
        matches=over_all.matches if is_measured else None,
        reason=over_all.reason,
        not_finite=over_all.not_finite,
        max_abs_error=over_all.max_abs if is_measured else None,
        max_rel_error=over_all.max_rel if is_measured else None,
    )
    if not comparable(ours, theirs):
        return found
    return _with_places(found, ours, theirs, tolerance_for(theirs.dtype, tolerances))


def comparable(ours: torch.Tensor, theirs: torch.Tensor) -> bool:
    """Return whether two tensors can be compared element by element."""
    return ours.shape == theirs.shape and ours.dtype == theirs.dtype


def signed_difference(ours: torch.Tensor, theirs: torch.Tensor) -> torch.Tensor:
    """Return ours - theirs: int64 for integers, the magnitudes for complex numbers."""
    signed = elements(ours, theirs, EXACT).signed
    return signed if _is_real(ours) else signed.to(torch.int64)


def _with_places(
    found: Comparison, ours: torch.Tensor, theirs: torch.Tensor, tolerance: Tolerance
) -> Comparison:
    """Add the figures of single elements."""
    flat = ours.reshape(-1), theirs.reshape(-1)
    farthest, relatively = _Largest(), _Largest()
    strange = -1
    outside, angle = 0, _Angle()
    pieces = []
    for start in range(0, ours.numel(), CHUNK):
        a, b = (each[start : start + CHUNK] for each in flat)
        each = elements(a, b, tolerance)
        farthest.take(each.gap, start)
        relatively.take(each.relative, start)
        outside += int(each.outside.sum())
        angle.take(a, b)
        broken = ~each.same & ~(a.isfinite() & b.isfinite())
        if strange < 0 and bool(broken.any()):
            strange = start + int(broken.to(torch.uint8).argmax())
        pieces.append(each.signed)
    signed = torch.cat(pieces) if pieces else torch.zeros(0, dtype=torch.float64)
    gaps = signed if _is_real(ours) else signed.to(torch.int64)
    figures = statistics_of(gaps)
    edges, counts = histogram_of(gaps, figures.low, figures.high)
    shape = tuple(ours.shape)
    return msgspec.structs.replace(
        found,
        not_finite_at=_index(strange, shape),
        max_abs_at=_index(farthest.at, shape),
        max_rel_at=_index(relatively.at, shape),
        outside=outside,
        outside_share=outside / ours.numel() if ours.numel() else 0.0,
        cosine=angle.cosine,
        edges=edges,
        counts=counts,
        rtol=tolerance.rtol,
        atol=tolerance.atol,
    )


class _Largest:
    """Running maximum with its position; the first of equal ones."""

    def __init__(self) -> None:
        self.value = -math.inf
        self.at = -1

    def take(self, numbers: torch.Tensor, start: int) -> None:
        place = int(numbers.argmax())
        if float(numbers[place]) > self.value:
            self.value, self.at = float(numbers[place]), start + place


class _Angle:
    """Accumulated angle between two vectors."""

    def __init__(self) -> None:
        self._product, self._squares = 0.0j, [0.0, 0.0]

    def take(self, a: torch.Tensor, b: torch.Tensor) -> None:
        finite = a.isfinite() & b.isfinite()
        wide = torch.complex128 if a.is_complex() else torch.float64
        one, other = a[finite].to(wide), b[finite].to(wide)
        self._product += complex(torch.vdot(other, one))
        self._squares[0] += float(one.abs().square().sum())
        self._squares[1] += float(other.abs().square().sum())

    @property
    def cosine(self) -> float | None:
        lengths = math.sqrt(self._squares[0]) * math.sqrt(self._squares[1])
        if lengths == 0 or not math.isfinite(lengths):
            return None
        return max(-1.0, min(1.0, self._product.real / lengths))


def window(
    place: TensorPlace,
    ours: torch.Tensor | None,
    theirs: torch.Tensor | None,
    tolerances: Tolerances,
    leading: Sequence[int],
    area: tuple[int, int, int, int],
    cells: int,
    reason: str = "",
) -> Window:
    """Return a window of a tensor, and of torch's, as a matrix.

    Parameters
    ----------
    leading, area, cells
        As in `WindowParams`; the area is top, left, rows and columns.
    """
    if not reason and ours is not None and theirs is not None and not comparable(ours, theirs):
        reason = difference(ours, theirs, tolerances).reason
    whole = ours if ours is not None else theirs
    assert whole is not None
    beside = None if reason or ours is None else theirs
    at = tuple(
        min(max(0, index), extent - 1) if extent else 0
        for index, extent in zip((*leading, *[0] * whole.ndim), whole.shape[:-2], strict=False)
    )
    piece, top, left = _piece(whole, at, area)
    reference = None if beside is None else _piece(beside, at, area)[0]
    rows, columns = _edges(piece.shape[0], cells), _edges(piece.shape[1], cells)
    kind: Literal["<f8", "<i8"] = "<f8" if _is_real(whole) or _is_huge(piece) else "<i8"
    tolerance = EXACT if beside is None else tolerance_for(beside.dtype, tolerances)
    bands = [
        _band(piece[a:b], None if reference is None else reference[a:b], edges, columns, tolerance)
        for (a, b), edges in _bands(rows, piece.shape[1])
    ]
    values, others, signed, outside = (
        b"".join(each[number].astype(form).tobytes() for each in bands)
        for number, form in enumerate((kind, kind, kind, "u1"))
    )
    return Window(
        place=place,
        shape=tuple(whole.shape),
        dtype=_name(whole.dtype),
        leading=at,
        row_edges=tuple(int(top + edge) for edge in rows),
        column_edges=tuple(int(left + edge) for edge in columns),
        format=kind,
        ours=values if ours is not None else b"",
        torch=others if ours is not None else values,
        difference=signed,
        outside=outside,
        rtol=tolerance.rtol,
        atol=tolerance.atol,
        reason=reason,
    )


_Array = np.ndarray[Any, Any]
_NOTHING = np.zeros(0)

_Band = tuple[_Array, _Array, _Array, _Array]
"""Ours, torch's, the difference, and whether it is out of tolerance, for each cell."""


def _band(
    ours: torch.Tensor,
    theirs: torch.Tensor | None,
    rows: _Array,
    columns: _Array,
    tolerance: Tolerance,
) -> _Band:
    numbers = ours.abs() if ours.is_complex() else ours
    if theirs is None:
        key = numbers.double().abs().nan_to_num(nan=torch.inf, posinf=torch.inf)
        cells = _largest_in_cells(key.numpy(), rows, columns)
        return as_array(numbers)[cells], _NOTHING, _NOTHING, _NOTHING
    each = elements(ours, theirs, tolerance)
    cells = _largest_in_cells(each.gap.numpy(), rows, columns)
    others = theirs.abs() if theirs.is_complex() else theirs
    return (
        as_array(numbers)[cells],
        as_array(others)[cells],
        each.signed.numpy()[cells],
        _any_in_cells(each.outside.numpy(), rows, columns),
    )


def _bands(rows: _Array, columns: int) -> Iterator[tuple[tuple[int, int], _Array]]:
    """Yield the range and the edges of rows of cells that are processed at once."""
    first = 0
    for last in range(1, len(rows)):
        is_full = (rows[last] - rows[first]) * columns >= _TOGETHER
        if is_full or last == len(rows) - 1:
            start = rows[first]
            yield (int(start), int(rows[last])), rows[first : last + 1] - start
            first = last


def _piece(
    tensor: torch.Tensor, leading: tuple[int, ...], area: tuple[int, int, int, int]
) -> tuple[torch.Tensor, int, int]:
    """Return a part of a tensor as a matrix, with its first row and column."""
    if any(extent == 0 for extent in tensor.shape):
        return tensor.new_zeros((0, 0)), 0, 0
    matrix = tensor[leading] if leading else tensor
    matrix = matrix.reshape((1,) * (2 - matrix.ndim) + tuple(matrix.shape))
    top, left, rows, columns = area
    top, left = max(0, min(top, matrix.shape[0])), max(0, min(left, matrix.shape[1]))
    rows, columns = rows or matrix.shape[0], columns or matrix.shape[1]
    return matrix[top : top + rows, left : left + columns], top, left


def _edges(extent: int, cells: int) -> _Array:
    """Return the bounds of at most `cells` cells."""
    count = min(extent, max(1, cells))
    return np.arange(count + 1) * extent // max(1, count)


def _largest_in_cells(key: _Array, rows: _Array, columns: _Array) -> tuple[_Array, _Array]:
    """Return row and column of the element with the largest key in each cell."""
    shape = len(rows) - 1, len(columns) - 1
    if 0 in shape:
        return np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    if key.shape == shape:
        row, column = np.indices(shape)
        return row, column
    column_of = np.stack([key[:, a:b].argmax(axis=1) + a for a, b in pairwise(columns)], axis=1)
    best = np.take_along_axis(key, column_of, axis=1)
    row_of = np.stack([best[a:b].argmax(axis=0) + a for a, b in pairwise(rows)])
    return row_of, np.take_along_axis(column_of, row_of, axis=0)


def _any_in_cells(mask: _Array, rows: _Array, columns: _Array) -> _Array:
    """Return whether any element is marked, for each cell."""
    if mask.size == 0:
        return mask
    by_row = np.logical_or.reduceat(mask, rows[:-1], axis=0)
    return np.logical_or.reduceat(by_row, columns[:-1], axis=1)


def _index(place: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    if place < 0 or not shape:
        return ()
    return tuple(int(each) for each in np.unravel_index(place, shape))


def _is_real(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _is_huge(tensor: torch.Tensor) -> bool:
    return bool((tensor.double() >= _WHOLE_MOST).any())


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
