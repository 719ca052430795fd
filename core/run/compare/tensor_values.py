"""Values of tensors: lookup by name, statistics, files, and comparison with torch's in windows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal

import msgspec
import numpy as np
import torch
import tvm
from tvm import relax

from lowerscope.core.files.atomic_write import atomic_file
from lowerscope.core.files.memo import key_of
from lowerscope.core.files.paths import cannot_write, user_path
from lowerscope.core.lowering.partial_module import constants_of, name_constants
from lowerscope.core.lowering.types import NamedConstant
from lowerscope.core.model.comparison_records import (
    Comparison,
    TensorPlace,
    Window,
    WorstElement,
)
from lowerscope.core.model.problems import LowerscopeError, listed
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.queries import SaveValuesQuery, ValuesQuery, answers
from lowerscope.core.model.snapshot import ParameterRecord, TensorStatistics, ValuesRecord
from lowerscope.core.model.texts import _
from lowerscope.core.model.tolerances import EXACT, Tolerance, Tolerances
from lowerscope.core.run.compare.verdicts import CHUNK, difference, elements, tolerance_for
from lowerscope.core.run.execution import to_torch
from lowerscope.core.sources.pytree import identifier
from lowerscope.core.stages import Pipeline, Stages

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
        **msgspec.structs.asdict(found),
        name=name,
        shape=tuple(tensor.shape),
        dtype=str(tensor.dtype).removeprefix("torch."),
        size=tensor.numel() * tensor.element_size(),
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


KINDS = ("param", "const", "input")
"""Prefixes of the ids of tensors."""


def constants_by_name(stages: Stages) -> tuple[NamedConstant, ...]:
    """Return the constants of the Relax module before the passes, each once."""
    lowered, traced = stages.lowered, stages.traced
    if lowered is not None and traced is not None:
        return name_constants(lowered.module, traced.graph_module, lowered)
    functions = [
        function
        for function in stages.module.functions.values()
        if isinstance(function, relax.Function)
    ]
    found = dict.fromkeys(each for function in functions for each in constants_of(function))
    return tuple(
        NamedConstant(f"constant_{number}", False, each) for number, each in enumerate(found)
    )


def constant_records(stages: Stages) -> tuple[ParameterRecord, ...]:
    """Return the constants of the Relax module that are no parameters of the model."""
    own = {name for name, _other in _parameters(stages)}
    return tuple(
        ParameterRecord(
            id=f"const:{each.name}",
            name=each.name,
            shape=tuple(each.data.shape),
            dtype=str(each.data.dtype),
            size=each.data.numpy().nbytes,
            kind="constant",
        )
        for each in constants_by_name(stages)
        if each.name not in own
    )


def find_tensor(stages: Stages, name: str) -> torch.Tensor:
    """Return the tensor `name`: ``linear0.weight``, ``linear0_weight`` or ``constant_0``.

    Raises a `LowerscopeError` if there is none of this name, with the existing names.

    Args:
        name: Of a parameter or buffer of the model, of a constant of the Relax module, or of an
            input; or its id, such as ``param:linear0.weight``.
    """
    kind, _sep, rest = name.partition(":")
    wanted = rest if kind in KINDS else name
    known: list[str] = []
    for title, tensor in _tensors(stages):
        if wanted in (title, identifier(title, ())):
            return tensor if isinstance(tensor, torch.Tensor) else to_torch(tensor)
        known.append(title)
    raise LowerscopeError(
        _("there is no parameter or constant {wanted}", wanted=wanted),
        where="--constant",
        todo=_("Available: {listed}", listed=listed(tuple(dict.fromkeys(known))))
        if known
        else _("The model has no parameters"),
    )


def _tensors(stages: Stages) -> Iterator[tuple[str, torch.Tensor | tvm.runtime.Tensor]]:
    yield from _parameters(stages)
    yield from ((each.name, each.data) for each in constants_by_name(stages))
    yield from ((each.name, each.value) for each in stages.loaded.inputs)


def _parameters(stages: Stages) -> Iterator[tuple[str, torch.Tensor]]:
    model = stages.loaded.model
    if model is not None:
        yield from model.named_parameters(remove_duplicate=False)
        yield from model.named_buffers(remove_duplicate=False)


def _is_cached(query: ValuesQuery, pipeline: Pipeline, job: Progress) -> bool:
    return pipeline.stages(query.recipe, job).has_module()


@answers(ValuesQuery, _is_cached)
def values(query: ValuesQuery, pipeline: Pipeline, job: Progress) -> ValuesRecord:
    """Return statistics of the values of a parameter, a buffer, a constant or an input.

    Raises a `LowerscopeError` if there is none of that name.
    """
    stages, name = pipeline.stages(query.recipe, job), query.name
    stages.loaded  # noqa: B018 - an input is known by its values
    key = key_of("values", stages.lower_key, stages.load_key, name)
    return stages.keep("values", key, lambda: values_of(name, find_tensor(stages, name)))


@answers(SaveValuesQuery)
def save_values(query: SaveValuesQuery, pipeline: Pipeline, job: Progress) -> str:
    """Write a tensor to a ``.npy`` file, replacing an existing one; return the file's path.

    Raises a `LowerscopeError` if there is no such tensor, or the file cannot be written.
    """
    tensor = find_tensor(pipeline.stages(query.recipe, job), query.name)
    return save_array(as_array(tensor), query.file)


def save_array(array: np.ndarray[Any, Any], file: str) -> str:
    """Write `array` as ``.npy``, replacing an existing file; return its absolute path.

    Raises a `LowerscopeError` if the file cannot be written.
    """
    path = user_path(file).absolute()
    try:
        with atomic_file(path) as made, made.open("wb") as stream:
            np.save(stream, array, allow_pickle=False)
    except OSError as error:
        raise cannot_write(error, path) from error
    return str(path)


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

    Args:
        ours, theirs: Of any shapes and dtypes; ``None`` if missing.
        reason: Why there is nothing to compare, although there may be values.
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
    outside, equal, angle = 0, 0, _Angle()
    gaps, worst = [], torch.zeros(0, dtype=torch.int64)
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
        equal += int((each.gap == 0).sum())
        gaps.append(each.gap[each.gap.isfinite() & (each.gap > 0)])
        found_here = each.gap.topk(min(WORST, each.gap.numel())).indices
        worst = torch.cat((worst, found_here[each.gap[found_here] > 0] + start))
    edges, counts = _error_histogram(torch.cat(gaps) if gaps else torch.zeros(0))
    shape = tuple(ours.shape)
    return msgspec.structs.replace(
        found,
        not_finite_at=_index(strange, shape),
        max_abs_at=_index(farthest.at, shape),
        max_rel_at=_index(relatively.at, shape),
        outside=outside,
        outside_share=outside / ours.numel() if ours.numel() else 0.0,
        cosine=angle.cosine,
        worst=_worst(worst, flat, tolerance, shape),
        equal=equal,
        edges=edges,
        counts=counts,
        rtol=tolerance.rtol,
        atol=tolerance.atol,
    )


WORST = 8
"""Number of elements with the largest errors that are returned."""

PER_DECADE, DECADES = 4, 12
"""Bars of a histogram of errors for each power of ten, and the most powers that it covers."""


def _error_histogram(errors: torch.Tensor) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Return edges and counts of a histogram of positive errors, on a logarithmic scale."""
    if not errors.numel():
        return (), ()
    last = math.floor(math.log10(float(errors.max()))) + 1
    first = max(math.floor(math.log10(float(errors.min()))), last - DECADES)
    edges = 10.0 ** (np.arange((last - first) * PER_DECADE + 1) / PER_DECADE + first)
    counts = np.zeros(len(edges) - 1, dtype=np.int64)
    for chunk in _chunks(errors):
        counts += np.histogram(chunk.clip(edges[0], edges[-1]), edges)[0]
    return tuple(float(edge) for edge in edges), tuple(int(count) for count in counts)


def _worst(
    places: torch.Tensor,
    flat: tuple[torch.Tensor, torch.Tensor],
    tolerance: Tolerance,
    shape: tuple[int, ...],
) -> tuple[WorstElement, ...]:
    """Return the elements with the largest errors of those at some places."""
    if not places.numel():
        return ()
    a, b = (each[places] for each in flat)
    gaps = elements(a, b, tolerance).gap
    order = gaps.argsort(descending=True, stable=True)[:WORST]
    ours, theirs = ((each.abs() if each.is_complex() else each).double() for each in (a, b))
    return tuple(
        WorstElement(
            index=_index(int(places[number]), shape),
            ours=float(ours[number]),
            torch=float(theirs[number]),
            error=float(gaps[number]),
        )
        for number in order.tolist()
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

    Args:
        leading, area, cells: As in `WindowParams`; the area is top, left, rows and columns.
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
    rows, columns = _cell_bounds(piece.shape[0], cells), _cell_bounds(piece.shape[1], cells)
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


def _cell_bounds(extent: int, cells: int) -> _Array:
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
