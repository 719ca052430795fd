"""Comparison of two tensors, and the verdict over all outputs of a model."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from lowerscope.core.model.formatting import exact_text
from lowerscope.core.model.run_records import FAILING, ExactErrors, OutputRecord, OutputVerdict
from lowerscope.core.model.texts import _, _n, joined, labelled
from lowerscope.core.model.tolerances import DTYPES, EXACT, Tolerance, Tolerances

CHUNK = 1 << 16
"""Number of elements processed at once, so that intermediate results fit the cache."""

_FAR = float(2**62)
"""Distance from which integers are subtracted as float64."""


@dataclass(frozen=True)
class PreciseRun:
    """The outputs in float64, and the rounding of the model itself.

    `coarsest`: the coarsest of the dtypes that it computes in.
    `sums`: relative rounding of its longest sums, as they are built: see `core.run.float64`.
    """

    outputs: tuple[torch.Tensor, ...]
    coarsest: torch.dtype
    sums: float = 0.0
    # The outputs with one rounding at each element of the inputs; ``None`` where that is unknown.
    shaken: tuple[torch.Tensor, ...] | None = None
    # Runs the model with more roundings, several times; ``None`` if no function of it jumps.
    sides: Callable[[], Sequence[tuple[torch.Tensor, ...]]] | None = None


@dataclass(frozen=True)
class Exact:
    """A tensor in float64, and the rounding of what computes it, as in `PreciseRun`.

    `noise`: the change of its elements by one rounding at each of its inputs, if that is known.
    `computed_in`: as in `coarser`.
    `sides`: computes it with more roundings, several times; ``None`` if no function before it
    jumps, as `torch.remainder` does.
    """

    value: torch.Tensor
    coarsest: torch.dtype
    sums: float = 0.0
    noise: torch.Tensor | None = None
    computed_in: torch.dtype | None = None
    sides: Callable[[], Sequence[torch.Tensor]] | None = None


@dataclass(frozen=True)
class Elements:
    """Elements of a tensor and of its reference, all in float64 and of the same shape."""

    # Ours - the reference's; for complex numbers, the magnitude of that. NaN if that is undefined,
    # 0 if both are the same, where NaN equals NaN.
    signed: torch.Tensor
    gap: torch.Tensor  # the absolute value of `signed`; infinite where it is NaN
    # The gap divided by the magnitude of the reference, 0 where that is at most ``atol``; infinite
    # where the gap is.
    relative: torch.Tensor
    outside: torch.Tensor
    same: torch.Tensor
    finite: torch.Tensor


def elements(actual: torch.Tensor, expected: torch.Tensor, tolerance: Tolerance) -> Elements:
    """Return the distance of each element from its reference; see `Elements`."""
    same = actual == expected
    if expected.dtype.is_complex:
        a, b = actual.to(torch.complex128), expected.to(torch.complex128)
        signed = (a - b).abs()
    elif expected.dtype.is_floating_point:
        a, b = actual.double(), expected.double()
        signed = a - b
    else:
        a, b = actual.double(), expected.double()
        signed = _whole_difference(actual, expected, a - b)
    same = same | (a.isnan() & b.isnan())
    signed = torch.where(same, 0.0, signed)
    gap = signed.abs().nan_to_num_(nan=torch.inf, posinf=torch.inf)
    size = b.abs()
    is_small = (size <= tolerance.atol) & gap.isfinite()
    relative = torch.where(same | is_small, 0.0, gap / size)
    relative.nan_to_num_(nan=torch.inf, posinf=torch.inf)
    allowed = tolerance.atol + tolerance.rtol * size
    return Elements(
        signed=signed,
        gap=gap,
        relative=relative,
        outside=~(same | (gap.isfinite() & (gap <= allowed))),
        same=same,
        finite=a.isfinite() & b.isfinite(),
    )


def _whole_difference(
    actual: torch.Tensor, expected: torch.Tensor, far: torch.Tensor
) -> torch.Tensor:
    """Subtract integers or booleans, exactly where float64 would round."""
    if actual.dtype is torch.uint64:
        a, b = actual.view(torch.int64), expected.view(torch.int64)
    else:
        a, b = actual.to(torch.int64), expected.to(torch.int64)
    # Differences that overflow are too large for their last digits to matter.
    return torch.where(far.abs() >= _FAR, far, (a - b).double())


@dataclass
class NotFinite:
    """Counts of NaN and infinite elements: ours, only in the reference, or on both sides."""

    ours: tuple[int, int] = (0, 0)
    theirs: tuple[int, int] = (0, 0)
    both: tuple[int, int] = (0, 0)

    def count(self, actual: torch.Tensor, expected: torch.Tensor, same: torch.Tensor) -> None:
        """Count those of some elements; ``same`` as in `Elements`."""
        # Eight-bit floats do not support isinf.
        actual, expected = (
            each.double() if each.is_floating_point() else each for each in (actual, expected)
        )
        self.ours = _added(self.ours, actual, ~same)
        self.theirs = _added(self.theirs, expected, ~same & actual.isfinite())
        self.both = _added(self.both, actual, same)

    @property
    def text(self) -> str:
        """The counts in words: ``"3 NaN, 1 infinity"``; empty for none."""
        ours, theirs, both = map(_count_text, (self.ours, self.theirs, self.both))
        parts = (
            ours,
            theirs and _("{numbers} in the reference only", numbers=theirs),
            both and _("{numbers} on both sides", numbers=both),
        )
        return _("; ").join(filter(None, parts))


def _added(so_far: tuple[int, int], values: torch.Tensor, among: torch.Tensor) -> tuple[int, int]:
    # A complex number can have NaN in one part and infinity in the other.
    is_nan = values.isnan()
    nans, infinities = (is_nan & among).sum(), (values.isinf() & ~is_nan & among).sum()
    return so_far[0] + int(nans), so_far[1] + int(infinities)


def _count_text(count: tuple[int, int]) -> str:
    nans, infinities = count
    words = [f"{nans:,} NaN"] if nans else []
    if infinities:
        words.append(_n("{count:,} infinity", "{count:,} infinities", infinities))
    return _(", ").join(words)


@dataclass(frozen=True)
class Difference:
    """Difference of a tensor from its reference."""

    # max_abs, max_rel: the largest ``|a - b|``, and the largest ``|a - b| / |b|`` where ``|b|`` is
    # more than the absolute tolerance. Infinite where one side is NaN or infinite and the other is
    # not.
    max_abs: float
    max_rel: float
    # Whether ``|a - b| <= atol + rtol * |b|`` for every element; integers and booleans must be
    # equal.
    matches: bool
    # One line on the difference, or on why the result is inconclusive, non-finite values first;
    # empty if all elements are finite and match.
    reason: str
    finite: int = 0
    # Counts of NaN and infinity, ``"3 NaN, 1 infinity"``, and those of the reference; empty for
    # none.
    not_finite: str = ""
    not_finite_count: int = 0  # number of elements that are NaN or infinite on either side
    # Distances of both sides from float64; ``None`` where that was not needed, or is unknown.
    exact: ExactErrors | None = None
    # Whether it is more than roundings of the result in another place usually are: on average, or
    # of 16-bit floats as in `has_structure`.
    is_far: bool = False

    @property
    def verdict(self) -> OutputVerdict:
        """The verdict on the tensor alone; ``"not-comparable"`` if it has no elements.

        If no element is finite on both sides, nothing was compared, even if both sides are the
        same.
        """
        if not self.matches:
            return "rounding" if self.exact and self.exact.is_rounding else "differ"
        if not self.finite + self.not_finite_count:
            return "not-comparable"
        return "match" if self.finite else "inconclusive"

    @property
    def is_measured(self) -> bool:
        """Return whether elements were compared, so that there are errors."""
        return self.verdict in ("match", "rounding", "differ")


def verdict_over(found: Sequence[Difference]) -> OutputVerdict:
    """Return the worst verdict on some tensors, ignoring those without elements."""
    verdicts = {each.verdict for each in found}
    worst_first: tuple[OutputVerdict, ...] = (*FAILING, "rounding", "match")
    return next((each for each in worst_first if each in verdicts), "not-comparable")


_PARTS = {
    torch.complex128: torch.float64,
    torch.complex64: torch.float32,
    torch.complex32: torch.float16,
}


def tolerance_for(dtype: torch.dtype, tolerances: Tolerances) -> Tolerance:
    """Return the tolerance for values of `dtype`; integers and booleans have none.

    That of a float of eight bits is four units in its last place, at least that of float16.
    """
    if not dtype.is_floating_point and not dtype.is_complex:
        return EXACT
    part = _PARTS.get(dtype, dtype)
    name = str(part).removeprefix("torch.")
    if name in DTYPES:
        found: Tolerance = getattr(tolerances, name)
        return found
    floor = 4 * torch.finfo(part).eps
    half = tolerances.float16
    return Tolerance(max(half.rtol, floor), max(half.atol, floor * 1e-1))


def coarser(dtype: torch.dtype, computed_in: torch.dtype | None) -> torch.dtype:
    """Return the dtype whose rounding a value has.

    Args:
        dtype: Its own.
        computed_in: The coarsest dtype of floats in which a node that it depends on is computed;
            ``None`` if that is not known. A value in float64 that was made of one in float16 has
            no more digits than that.
    """
    if computed_in is None or not (dtype.is_floating_point or dtype.is_complex):
        return dtype
    return max(dtype, computed_in, key=lambda each: torch.finfo(each).eps)


def difference(
    actual: torch.Tensor,
    expected: torch.Tensor,
    tolerances: Tolerances,
    computed_in: torch.dtype | None = None,
) -> Difference:
    """Compare a tensor with its reference, elementwise, by the tolerance of its `coarser` dtype."""
    if actual.shape != expected.shape:
        return _incomparable(
            _(
                "shape {shape} instead of {shape2}",
                shape=tuple(actual.shape),
                shape2=tuple(expected.shape),
            )
        )
    if actual.dtype != expected.dtype:
        return _incomparable(
            _("dtype {dtype} instead of {dtype2}", dtype=actual.dtype, dtype2=expected.dtype)
        )
    tolerance = tolerance_for(coarser(expected.dtype, computed_in), tolerances)
    figures, not_finite = _Figures(), NotFinite()
    ours, theirs = actual.reshape(-1), expected.reshape(-1)
    for start in range(0, ours.numel(), CHUNK):
        a, b = ours[start : start + CHUNK], theirs[start : start + CHUNK]
        found = _finite_difference(a, b, tolerance) if a.dtype.is_floating_point else None
        if found is None:
            each = elements(a, b, tolerance)
            not_finite.count(a, b, each.same)
            found = _Figures(
                largest=float(each.gap.max()),
                farthest=float(each.relative.max()),
                outside=int(each.outside.sum()),
                finite=int(each.finite.sum()),
            )
        figures = figures.joined(found)
    count, outside, finite = actual.numel(), figures.outside, figures.finite
    said = ""
    if outside:
        said = _n(
            "{outside:,} of {count:,} element differs",
            "{outside:,} of {count:,} elements differ",
            count,
            outside=outside,
        )
    if not count:
        said = _("has no elements to compare")
    elif not outside and not finite:
        said = _("no element is finite on both sides, so nothing was compared")
    return Difference(
        max_abs=figures.largest,
        max_rel=figures.farthest,
        matches=outside == 0,
        # Non-finite values come first: they are the cause of the rest.
        reason=_("; ").join(each for each in (not_finite.text, said) if each),
        finite=finite,
        not_finite=not_finite.text,
        not_finite_count=count - finite,
        is_far=figures.is_far(expected.dtype)
        or (expected.dtype in HALVES and outside == 0 and has_structure(actual, expected)),
    )


@dataclass(frozen=True)
class _Figures:
    """Figures of the differences of some elements.

    `largest`, `farthest`: the largest absolute and relative difference.
    `outside`: number of elements out of tolerance.
    `finite`: number of elements that are finite on both sides.
    `summed`: number of elements whose squares are in the sums: those of parts without others.
    `gaps`: sum of the squares of their differences.
    `unequal`, `sizes`: number of those that differ, and sum of the squares of their references.
    """

    largest: float = 0.0
    farthest: float = 0.0
    outside: int = 0
    finite: int = 0
    summed: int = 0
    gaps: float = 0.0
    unequal: int = 0
    sizes: float = 0.0

    def joined(self, other: _Figures) -> _Figures:
        """Return the figures of these and other elements."""
        return _Figures(
            max(self.largest, other.largest),
            max(self.farthest, other.farthest),
            self.outside + other.outside,
            self.finite + other.finite,
            self.summed + other.summed,
            self.gaps + other.gaps,
            self.unequal + other.unequal,
            self.sizes + other.sizes,
        )

    def is_far(self, dtype: torch.dtype) -> bool:
        """Return whether the differences are larger than those of rounding usually are."""
        if not self.sizes:
            return False
        # Equal elements, such as those of a mask, may be large.
        return self.gaps / self.summed > self.sizes / self.unequal * _far_from(dtype) ** 2


def _far_from(dtype: torch.dtype) -> float:
    """Return the relative difference beyond which values of a dtype of floats are far apart."""
    return float(torch.finfo(dtype).eps) / 2 * (1 if dtype in HALVES else _FAR_SUMMED)


HALVES = (torch.bfloat16, torch.float16)
"""The dtypes whose values are summed in float32."""

_FAR_SUMMED = 16
"""Roundings of values that are summed in their own dtype, such as float32, that are usual."""


def _finite_difference(
    actual: torch.Tensor, expected: torch.Tensor, tolerance: Tolerance
) -> _Figures | None:
    """Return the figures of `elements` in fewer steps; ``None`` unless all values are finite."""
    # A model may return a parameter.
    size = expected.detach().to(torch.float64, copy=True)
    gap = actual.to(torch.float64, copy=True).sub_(size).abs_()
    largest = float(gap.max())
    if not math.isfinite(largest):
        return None
    size.abs_()
    is_unequal = gap > 0
    unequal = size * is_unequal
    gaps, sizes = float(gap.dot(gap)), float(unequal.dot(unequal))
    outside = int(torch.count_nonzero(gap > tolerance.atol + tolerance.rtol * size))
    size.masked_fill_(size <= tolerance.atol, torch.inf)
    return _Figures(
        largest=largest,
        farthest=float(gap.div_(size).max()),
        outside=outside,
        finite=actual.numel(),
        summed=actual.numel(),
        gaps=gaps,
        unequal=int(is_unequal.sum()),
        sizes=sizes,
    )


def has_structure(actual: torch.Tensor, expected: torch.Tensor) -> bool:
    """Return whether differences of 16-bit floats have what those of rounding have not.

    Roundings are about as likely up as down, independent of the values and of where they are, and
    nowhere large. A wrong term may be hidden among them on average, and not in its structure: one
    sign, a factor, a value for each index of an axis, or a few elements that are far apart.
    """
    if not expected.numel():
        return False
    wide = expected.detach().float()
    gap = actual.float() - wide
    finite = gap.isfinite()
    gap, wide = gap.where(finite, 0), wide.where(finite, 0)
    if not bool(gap.any()):
        return False
    eps = torch.finfo(expected.dtype).eps
    sizes = wide.abs()
    usual = float(sizes.square().mean().sqrt())
    if bool((gap.abs() > _FAR_AT_ONE * eps * (sizes + usual)).any()):
        return True
    factors = wide - wide.mean()
    factors /= factors.square().mean().sqrt().clamp(min=1e-30)
    whole = [each.reshape(1, -1) for each in (gap, gap * factors)]
    along = (gap.movedim(axis, 0).flatten(1) for axis in range(gap.ndim) if gap.ndim > 1)
    return any(_is_shared(each, _SHARED * eps * usual) for each in itertools.chain(whole, along))


_FAR_AT_ONE = 2.0
"""Difference of one element by rounding, in units of the last place, that is usual at most."""

_SHARED = 1 / 16
"""Common part of the differences at an index by rounding, in units of the last place.

It is not 0, as roundings of equal values are equal.
"""

_UNLIKELY = 4.0
"""Standard deviations that independent roundings seldom get to."""


def _is_shared(slices: torch.Tensor, least: float) -> bool:
    """Return whether the differences in each slice have more in common than by chance.

    Args:
        least: Root mean square of what they have in common; less is nothing.
    """
    length, whole = slices.shape[1], slices.numel()
    if not whole:
        return False
    slices = slices[(slices != 0).any(1)]
    count = len(slices)
    squares, sums = (each.sum(1, dtype=torch.float64) for each in (slices.square(), slices))
    shared = float((sums.square() - squares).sum()) / length
    if not count or shared <= least**2 * whole:
        return False
    # Of random signs, the square of a sum is the sum of the squares on average, and the sum of
    # these ratios has a chi-squared distribution, whose cube root is about normal.
    ratio = float((sums.square() / squares).mean())
    spread = 2 / (9 * count)
    return math.pow(ratio, 1 / 3) > 1 - spread + _UNLIKELY * math.sqrt(spread)


def _incomparable(reason: str) -> Difference:
    return Difference(float("inf"), float("inf"), matches=False, reason=reason)


@dataclass(frozen=True)
class Verdict:
    """The verdict over all outputs, with the tolerance of the output that needs the widest.

    See `core.records.run.RunRecord`.
    """

    verdict: OutputVerdict
    reason: str
    max_abs: float | None
    max_rel: float | None
    tolerance: Tolerance
    outputs: tuple[OutputRecord, ...]

    @property
    def not_finite_count(self) -> int:
        """Number of elements of all outputs that are not finite on either side."""
        return sum(each.not_finite_count for each in self.outputs)


def judge(
    actual: Sequence[torch.Tensor],
    expected: Sequence[torch.Tensor] | None,
    tolerances: Tolerances,
    random: Sequence[Sequence[str]] = (),
    names: Sequence[str] = (),
    precise: Callable[[], PreciseRun | None] | None = None,
    *,
    drew_the_same: bool = False,
    computed_in: Sequence[torch.dtype | None] = (),
) -> Verdict:
    """Compare the outputs of a run with torch's.

    Args:
        random: For each output, the names of the random operators that it depends on. Where its
            values differ, TVM may have drawn other numbers: nothing is said of them.
        drew_the_same: Whether both sides are known to have drawn the same numbers.
        precise: Runs the reference in float64; called if an output is out of tolerance: see
            `beside_float64`.
        computed_in: For each output, as in `coarser`.
    """
    if len(names) != len(actual):
        numbered = len(actual) > 1
        names = [f"output[{index}]" if numbered else "output" for index in range(len(actual))]
    if expected is None or len(actual) != len(expected):
        if expected is None:
            reason = _("there is no torch side, and no function reference in the file")
            judgement, error = Judged("no-reference"), None
        else:
            reason = _n(
                "{count} output instead of {expected}",
                "{count} outputs instead of {expected}",
                len(actual),
                expected=len(expected),
            )
            judgement, error = Judged("differ", reason), math.inf
        outputs = tuple(
            _record(name, value, judgement) for name, value in zip(names, actual, strict=True)
        )
        return Verdict(judgement.verdict, reason, error, error, tolerances.float32, outputs)
    judged = [_judge_output(*values, tolerances) for values in zip(actual, expected, strict=True)]
    sources, rounded = random or [()] * len(actual), computed_in or [None] * len(actual)
    run = precise() if precise and any(each.verdict == "differ" for each in judged) else None
    if run is not None and len(run.outputs) == len(judged):
        judged = [
            _again(each, beside_float64, ours, theirs, exact, tolerances)
            for each, ours, theirs, exact in zip(
                judged, actual, expected, _exact(run, sources, rounded), strict=True
            )
        ]
    judged = [
        _again(each, without_float64, *values, tolerances)
        for each, *values in zip(judged, actual, expected, rounded, strict=True)
    ]
    if not drew_the_same:
        judged = [
            _or_random(*values) for values in zip(judged, actual, expected, sources, strict=True)
        ]
    return _over_all(names, actual, expected, judged, tolerances)


@dataclass(frozen=True)
class Judged:
    """The verdict on one output, as in `core.records.run.OutputRecord`."""

    verdict: OutputVerdict
    reason: str = ""
    found: Difference | None = None


def _judge_output(actual: torch.Tensor, expected: torch.Tensor, tolerances: Tolerances) -> Judged:
    found = difference(actual, expected, tolerances)
    return Judged(found.verdict, found.reason, found)


def _or_random(
    judged: Judged, actual: torch.Tensor, expected: torch.Tensor, operators: Sequence[str]
) -> Judged:
    """Return the verdict, or none on a difference that other random numbers may have made."""
    # The extents may be random as well, rank and dtype are not.
    same_type = actual.ndim == expected.ndim and actual.dtype == expected.dtype
    if operators and same_type and judged.verdict == "differ":
        return Judged("not-comparable", depends_on_random(*operators))
    return judged


def depends_on_random(*operators: str) -> str:
    """Return the reason why a value that random operators go into cannot be compared."""
    names = joined(_(", "), operators)
    return _n(
        "depends on {operators}, which draws random numbers, and may have drawn others than torch",
        "depends on {operators}, which draw random numbers, and may have drawn others than torch",
        len(operators),
        operators=names,
    )


def _exact(
    run: PreciseRun,
    random: Sequence[Sequence[str]],
    computed_in: Sequence[torch.dtype | None],
) -> Iterator[Exact]:
    """Yield the outputs of a run in float64.

    What depends on random numbers may change by others, and not by rounding.
    """

    def sides_of(place: int) -> list[torch.Tensor]:
        assert run.sides is not None
        return [each[place] for each in run.sides()]

    for place, (value, shaken, operators, dtype) in enumerate(
        zip(run.outputs, run.shaken or run.outputs, random, computed_in, strict=True)
    ):
        noise = None if operators else noise_between(value, shaken)
        sides = None if operators or run.sides is None else partial(sides_of, place)
        yield Exact(value, run.coarsest, run.sums, noise, dtype, sides)


def noise_between(value: torch.Tensor, shaken: torch.Tensor) -> torch.Tensor | None:
    """Return the change of a tensor by rounding at its inputs; ``None`` for another shape."""
    if value.shape != shaken.shape or value.dtype is torch.bool:
        return None
    return (value - shaken).abs()


def _again(judged: Judged, judge: Callable[..., Difference], *given: Any) -> Judged:
    """Judge a tensor that differs once more: by `judge`, of the difference and what is given."""
    if judged.verdict != "differ" or judged.found is None:
        return judged
    found = judge(judged.found, *given)
    return Judged(found.verdict, found.reason, found)


def without_float64(
    found: Difference,
    actual: torch.Tensor,
    expected: torch.Tensor,
    computed_in: torch.dtype | None,
    tolerances: Tolerances,
) -> Difference:
    """Judge a tensor that float64 says nothing of by the coarsest dtype that it is computed in.

    Not where the user has set the tolerance.
    """
    dtype = coarser(expected.dtype, computed_in)
    if found.exact is not None or dtype is expected.dtype:
        return found
    if not has_usual_tolerance((dtype, expected.dtype), tolerances):
        return found
    return difference(actual, expected, tolerances, computed_in)


def beside_float64(
    found: Difference,
    actual: torch.Tensor,
    expected: torch.Tensor,
    exact: Exact,
    tolerances: Tolerances,
) -> Difference:
    """Tell a fault from rounding where a tensor is out of tolerance.

    See `against_float64`. Nothing is rounding where the user has set the tolerance.
    """
    seen = against_float64(actual, expected, exact)
    if not found.finite or seen is None:
        return found
    dtypes = (exact.coarsest, expected.dtype)
    is_rounding = seen.decides and seen.is_rounding and has_usual_tolerance(dtypes, tolerances)
    errors = ExactErrors(tvm=seen.tvm, torch=seen.torch, is_rounding=is_rounding)
    if is_rounding:
        reason = _(
            "{reason}, by rounding: {errors}", reason=found.reason, errors=exact_text(errors)
        )
    else:
        reason = f"{found.reason}: {exact_text(errors)}"
    return replace(found, exact=errors, reason=reason)


def beyond_rounding(
    found: Difference,
    actual: torch.Tensor,
    expected: torch.Tensor,
    exact: Exact,
    tolerances: Tolerances,
) -> Difference:
    """Tell a fault from rounding where a tensor is within the tolerance.

    See `against_float64`. Where it decides nothing, or the user has set the tolerance, the tensor
    matches.
    """
    seen = against_float64(actual, expected, exact)
    if seen is None or seen.is_rounding or not seen.decides:
        return found
    if not has_usual_tolerance((exact.coarsest, expected.dtype), tolerances):
        return found
    errors = ExactErrors(tvm=seen.tvm, torch=seen.torch, is_rounding=False)
    reason = _("within the tolerance, but {errors}", errors=exact_text(errors))
    return replace(found, matches=False, exact=errors, reason=reason)


def has_usual_tolerance(dtypes: Iterable[torch.dtype], tolerances: Tolerances) -> bool:
    """Return whether the user has left the tolerances of some dtypes as they are."""
    usual = Tolerances()
    return all(tolerance_for(each, tolerances) == tolerance_for(each, usual) for each in dtypes)


@dataclass(frozen=True)
class AgainstFloat64:
    """Errors of a tensor and its reference against float64.

    `tvm`, `torch`: the largest of both sides.
    `ratio`: of the root mean square of TVM's errors to that of torch's.
    `decides`: whether float64 tells rounding from a fault.
    `is_rounding`: whether rounding explains TVM's errors.
    """

    tvm: float
    torch: float
    ratio: float
    decides: bool
    is_rounding: bool


def against_float64(
    actual: torch.Tensor, expected: torch.Tensor, exact: Exact
) -> AgainstFloat64 | None:
    """Return the errors of a tensor and its reference; ``None`` if they are not known.

    It differs by rounding where its largest and its mean error are no more than a few times those
    of its reference, or than the rounding of the dtype, of the sums as they are built, and of the
    inputs explains. The exact tensor decides nothing if the reference is far from it, as it may be
    if a choice depends on rounding. Where a function jumps, the values on both sides are right.
    """
    if exact.sides is not None and _is_whole(expected) and expected.shape == actual.shape:
        return _against_whole(actual, expected, exact.value, exact.sides())
    found = _against(actual, expected, exact)
    if found is None or exact.sides is None or (found.decides and found.is_rounding):
        return found
    again = _against(actual, expected, exact, exact.sides())
    return again if again is not None and again.decides and again.is_rounding else found


def _is_whole(value: torch.Tensor) -> bool:
    return not (value.is_floating_point() or value.is_complex())


def _against_whole(
    actual: torch.Tensor,
    expected: torch.Tensor,
    right: torch.Tensor,
    sides: Sequence[torch.Tensor],
) -> AgainstFloat64 | None:
    """Return the errors of integers made of floats; ``None`` if rounding does not explain them."""
    rights = [each.double() for each in (right, *sides) if each.shape == actual.shape]
    if not rights or bool(_distance(actual.double(), rights).any()):
        return None
    ours, theirs = ((each.double() - rights[0]).abs() for each in (actual, expected))
    ratio = _mean(ours) / max(_mean(theirs), 1e-300)
    return AgainstFloat64(_largest(ours), _largest(theirs), ratio, decides=True, is_rounding=True)


def _against(
    actual: torch.Tensor,
    expected: torch.Tensor,
    exact: Exact,
    sides: Sequence[torch.Tensor] = (),
) -> AgainstFloat64 | None:
    right, coarsest = exact.value, exact.coarsest
    if not actual.numel() or not right.shape == expected.shape == actual.shape:
        return None
    if not expected.dtype.is_floating_point and not expected.is_complex():
        return None
    kind = torch.complex128 if expected.is_complex() else torch.float64
    # An output not computed in float32 has no room for a constant of float32.
    own = torch.finfo(coarser(expected.dtype, exact.computed_in)).eps
    most = torch.finfo(coarsest).eps
    unit = (most if coarsest in HALVES else min(own, most)) / 2
    grown = as_far(coarsest) + _OF_SUMS * exact.sums / unit
    limit = torch.finfo(expected.dtype).max / (1 + grown * unit)
    right, actual, expected = (each.to(kind) for each in (right, actual, expected))
    noise = exact.noise
    compared = _compared(actual, expected, right, noise, grown, limit)
    if compared is None:
        return None
    right, actual, expected, *sides = (each[compared] for each in (right, actual, expected, *sides))
    near = None if noise is None or coarsest in HALVES else _of_neighbours(noise)[compared]
    noise = None if noise is None else noise[compared]
    size = right.abs().clamp(min=torch.finfo(coarsest).tiny)
    if sides:
        leap = 0.0 if noise is None else grown * _usual_size(noise)
        sides = [each.where((each - right).abs() > leap, right) for each in sides]
        for each in sides:
            size = torch.maximum(size, each.abs())
    ours, theirs = (_distance(each, (right, *sides)) for each in (actual, expected))
    largest, far = (_largest(ours), _largest(theirs)), _mean(theirs)
    known = max(tolerance_for(coarsest, Tolerances()).rtol, _KNOWN) * _mean(size)
    # What both sides have exactly, such as a mask, may be large.
    rounded = (ours > 0) | (theirs > 0)
    if bool(rounded.any()):
        ours, theirs, size = ours[rounded], theirs[rounded], size[rounded]
        noise = None if noise is None else noise[rounded]
        near = None if near is None else near[rounded]
    usually = 0.0 if noise is None else _usual_size(noise)
    if near is not None and noise is not None:
        # Rounding grows more in some elements than in others, and may be the largest there.
        others = (near <= _LARGEST * usually) | (ours > grown * near)
        if bool(others.any()):
            ours, theirs, size = ours[others], theirs[others], size[others]
    is_rounding = True
    for measured, times in ((_mean, 1.0), (_largest, _LARGEST)):
        least = max(unit * measured(size), times * usually)
        is_rounding = is_rounding and measured(ours) <= max(
            as_far(coarsest) * measured(theirs), grown * least
        )
    return AgainstFloat64(
        tvm=largest[0],
        torch=largest[1],
        ratio=_mean(ours) / max(_mean(theirs), 1e-300),
        decides=own > _FINEST and far <= max(known, grown * usually),
        is_rounding=is_rounding,
    )


def _compared(
    actual: torch.Tensor,
    expected: torch.Tensor,
    right: torch.Tensor,
    noise: torch.Tensor | None,
    grown: float,
    limit: float,
) -> torch.Tensor | None:
    """Return which elements are finite; ``None`` if rounding does not explain the others.

    They are the same on both sides, or one side is infinite: by a value as large as its dtype has,
    or by a division by what is as small as its rounding.

    Args:
        grown: How many roundings are usual.
        limit: The least value that may be rounded to infinity.
    """
    finite = actual.isfinite() & expected.isfinite()
    if bool(finite.all()) and bool(right.isfinite().all()):
        return finite
    both = (actual == expected) | (actual.isnan() & expected.isnan())
    # Rounding moves it by as much as its own size.
    unsure = right.abs() >= limit
    if noise is not None:
        unsure |= noise * grown * 2 >= right.abs()
    unsure &= right.isfinite() & ~actual.isnan() & ~expected.isnan()
    is_explained = torch.where(finite, right.isfinite(), both | unsure)
    return finite if bool(finite.any()) and bool(is_explained.all()) else None


def _distance(value: torch.Tensor, rights: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the distance of each element from the nearest of its right values."""
    nearest = (value - rights[0]).abs()
    for each in rights[1:]:
        nearest = torch.minimum(nearest, (value - each).abs())
    return nearest


def _of_neighbours(noise: torch.Tensor) -> torch.Tensor:
    """Return the largest noise near each element along the last axis: one is small by chance."""
    if not noise.numel() or not noise.ndim:
        return noise
    rows = noise.reshape(-1, 1, noise.shape[-1]).double()
    largest = torch.nn.functional.max_pool1d(rows, 2 * _NEAR + 1, stride=1, padding=_NEAR)
    return largest.reshape(noise.shape)


def as_far(coarsest: torch.dtype) -> float:
    """Return how many roundings of a model's coarsest dtype are usual."""
    return _AS_FAR if coarsest in HALVES else _AS_FAR_SUMMED


_AS_FAR = 2.0
"""Bound on the ratio of an output's distance from the exact output to its reference's."""

_AS_FAR_SUMMED = 16.0
"""The same bound for a model that computes in float32, where long sums accumulate rounding.

16-bit values are summed in float32.
"""

_OF_SUMS = 2.0
"""Bound on the rounding of a sum in any order, in roundings times the root of its terms."""

_NEAR = 3
"""Distance of neighbours, in elements."""

_KNOWN = 1e-2
"""Relative error of the reference up to which float64 decides."""

_FINEST = 1e-12
"""Epsilon up to which a dtype is as fine as float64 itself, which decides nothing then."""


_LARGEST = 4.0
"""Ratio of the largest error by rounding to most others."""


def _largest(errors: torch.Tensor) -> float:
    return float(errors.max())


def _usual_size(noise: torch.Tensor) -> float:
    """Return the upper quartile, which a choice that depends on rounding does not move."""
    some = noise.reshape(-1)[:: max(1, noise.numel() // CHUNK)].double()
    return float(some.kthvalue(max(1, some.numel() * 3 // 4)).values) if some.numel() else 0.0


def _mean(errors: torch.Tensor) -> float:
    """Return the root mean square."""
    return math.sqrt(float(errors.square().mean()))


def _over_all(
    names: Sequence[str],
    actual: Sequence[torch.Tensor],
    expected: Sequence[torch.Tensor],
    judged: Sequence[Judged],
    tolerances: Tolerances,
) -> Verdict:
    """Return the verdict over outputs that were judged one by one."""
    found = [each.found for each in judged if each.found is not None]
    is_random = len(found) < len(judged)
    verdict = verdict_over(found)
    if is_random and verdict in ("match", "rounding"):
        verdict = "not-comparable"
    elif not is_random and verdict == "not-comparable":
        verdict = "inconclusive"
    passing = ("match", "rounding", "inconclusive")
    told = (verdict, "not-comparable") if verdict in passing else (verdict,)
    reasons = [
        _("{output} {reason}", output=name, reason=each.reason)
        if each.verdict == "not-comparable"
        else labelled(name, each.reason)
        for name, each in zip(names, judged, strict=True)
        if each.verdict in told and each.reason
    ]
    if not judged:
        reasons = [_("there are no outputs to compare")]
    measured = [each for each in found if each.is_measured]
    used = [
        tolerance_for(value.dtype, tolerances)
        for value, each in zip(expected, judged, strict=True)
        if each.found is not None
    ]
    return Verdict(
        verdict=verdict,
        reason=_("; ").join(reasons),
        max_abs=max((each.max_abs for each in measured), default=None),
        max_rel=max((each.max_rel for each in measured), default=None),
        tolerance=max(used, key=lambda each: each.rtol, default=tolerances.float32),
        outputs=tuple(
            _record(name, value, each)
            for name, value, each in zip(names, actual, judged, strict=True)
        ),
    )


def _record(name: str, value: torch.Tensor, judged: Judged) -> OutputRecord:
    found = judged.found
    measured = found if found and found.is_measured else None
    return OutputRecord(
        name=name,
        shape=tuple(value.shape),
        dtype=str(value.dtype).removeprefix("torch."),
        verdict=judged.verdict,
        reason=judged.reason,
        matches=None if measured is None else measured.verdict != "differ",
        max_abs_error=measured.max_abs if measured else None,
        max_rel_error=measured.max_rel if measured else None,
        not_finite=found.not_finite if found else "",
        not_finite_count=found.not_finite_count if found else 0,
        exact=found.exact if found else None,
    )
