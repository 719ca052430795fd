"""Records of one tensor of a run beside torch's: figures, where it differs, and pieces of it.

This module imports neither torch nor TVM.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from lowerscope.core.records.run import OutputVerdict

CallSide = Literal["read", "written"]
Saved = Literal["tvm", "torch", "difference"]


class TensorPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Place of a tensor in the last run of a recipe.

    Attributes
    ----------
    entity
        ``"fx:relu"`` for that node's value, ``"relax:main/lv1"`` for that binding's; or empty,
    call
        and the index of a call in `RunRecord.calls`.
    item
        Index among the tensors of the value, or among those that the call has read or written.
    side
        Of a call.
    own
        Of a node: its value alone, on torch's values at its inputs.
    """

    entity: str = ""
    call: int | None = None
    item: int = 0
    side: CallSide = "written"
    own: bool = False


class TensorStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of a tensor; of a complex one, of its magnitudes.

    ``low``, ``high``, ``mean`` and ``deviation`` (of the whole population) are of the finite
    values, and ``None`` where there are none.
    """

    count: int
    low: float | None
    high: float | None
    mean: float | None
    deviation: float | None
    nans: int
    infinities: int
    zeros: int


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Comparison of one tensor of a run with torch's.

    Attributes
    ----------
    items
        Number of tensors at this place; ``place.item`` is one of them.
    shape, dtype
        Of ours; empty where it is not known.
    torch_shape, torch_dtype
        Of torch's; empty where there is none.
    kept
        Whether our values are kept, so that `Window` and ``.npy`` can be had. Beyond the budget,
        the figures of `ours` alone are.
    verdict
        ``"match"``, ``"differ"``, ``"inconclusive"`` where no element is finite on both sides, or
        ``"not-comparable"`` where there are none; ``None`` where a side is missing.
    matches
        Whether it matches; ``None`` for other verdicts.
    reason
        Description of the difference, values that are not finite first; or the reason why there is
        nothing to compare, or why the values are not kept.
    not_finite
        ``"3 NaN, 1 infinity"``: the number of our elements that are not finite where torch's are,
        or are so in another way, in the reference alone, and on both sides. Empty for none.
    not_finite_at
        Index of the first that is not the same on both sides; empty for none.
    max_abs_error, max_abs_at, max_rel_error, max_rel_at
        The largest ``|a - b|``, and the largest ``|a - b| / |b|`` where ``|b|`` is more than
        ``atol``, with their indices, one number a dimension. Infinite where one side alone is not
        finite.
    outside, outside_share
        How many elements are out of tolerance, and their share, 0 to 1.
    cosine
        Of the angle between both as vectors, of the elements that are finite on both sides;
        ``None`` where one of them is zero.
    edges, counts
        Histogram of ours - torch, of finite values: one edge more than counts. Of complex values,
        of the magnitudes of the differences.
    rtol, atol
        The tolerances that were used: 0 for integers and booleans, which have to be equal.
    """

    place: TensorPlace
    items: int = 1
    shape: tuple[int, ...] = ()
    dtype: str = ""
    torch_shape: tuple[int, ...] = ()
    torch_dtype: str = ""
    kept: bool = False
    ours: TensorStatistics | None = None
    torch: TensorStatistics | None = None
    verdict: OutputVerdict | None = None
    matches: bool | None = None
    reason: str = ""
    not_finite: str = ""
    not_finite_at: tuple[int, ...] = ()
    max_abs_error: float | None = None
    max_abs_at: tuple[int, ...] = ()
    max_rel_error: float | None = None
    max_rel_at: tuple[int, ...] = ()
    outside: int = 0
    outside_share: float = 0.0
    cosine: float | None = None
    edges: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()
    rtol: float = 0.0
    atol: float = 0.0


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a tensor as a matrix, for a heat map and for a table of values.

    Rows are the last dimension but one, columns the last one; a tensor of rank 1 has one row, one
    of rank 0 one element. A piece that is larger than the requested cells is reduced: each cell has
    the values of that of its elements at which |ours - torch| is largest (without torch's, |ours|),
    where a difference that is not finite counts as the largest.

    Attributes
    ----------
    shape, dtype
        Of the whole tensor.
    leading
        The index in each dimension before the last two.
    row_edges, column_edges
        The first row of each row of cells, and the end of the last; likewise of columns. A cell is
        one element where neighbouring edges differ by 1.
    format
        Of the values below: ``"<f8"``, or ``"<i8"`` for integers and booleans; a number for each
        cell, row by row. Of complex values, magnitudes.
    ours, torch, difference
        ``torch`` and ``difference`` (ours - torch) are empty where there is no value of torch's.
    outside
        A byte for each cell: 1 where any of its elements is out of tolerance.
    rtol, atol
        The tolerances that were used.
    reason
        Why there is nothing to compare; empty where there is.
    """

    place: TensorPlace
    shape: tuple[int, ...]
    dtype: str
    leading: tuple[int, ...]
    row_edges: tuple[int, ...]
    column_edges: tuple[int, ...]
    format: Literal["<f8", "<i8"]
    ours: bytes
    torch: bytes = b""
    difference: bytes = b""
    outside: bytes = b""
    rtol: float = 0.0
    atol: float = 0.0
    reason: str = ""
