"""Elementwise distances of two tensors of one shape and dtype."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from lowerscope.core.comparing.tolerances import Tolerance

CHUNK = 1 << 16
"""Number of elements processed at once, so that intermediate results fit the cache."""

_FAR = float(2**62)
"""Distance from which integers are subtracted as float64."""


@dataclass(frozen=True)
class Elements:
    """Elements of a tensor and of its reference, all in float64 and of the same shape.

    Attributes
    ----------
    signed
        Ours - the reference's; for complex numbers, the magnitude of that. NaN if that is
        undefined, 0 if both are the same, where NaN equals NaN.
    gap
        The absolute value of `signed`; infinite where it is NaN.
    relative
        The gap divided by the magnitude of the reference, 0 where that is at most ``atol``;
        infinite where the gap is.
    outside
        Whether it is out of tolerance.
    same
        Whether both are the same.
    finite
        Whether both are finite.
    """

    signed: torch.Tensor
    gap: torch.Tensor
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
        parts = (
            _count_text(self.ours),
            _and_where(_count_text(self.theirs), "in the reference alone"),
            _and_where(_count_text(self.both), "on both sides"),
        )
        return "; ".join(each for each in parts if each)


def _added(so_far: tuple[int, int], values: torch.Tensor, among: torch.Tensor) -> tuple[int, int]:
    # A complex number can have NaN in one part and infinity in the other.
    is_nan = values.isnan()
    nans, infinities = (is_nan & among).sum(), (values.isinf() & ~is_nan & among).sum()
    return so_far[0] + int(nans), so_far[1] + int(infinities)


def _count_text(count: tuple[int, int]) -> str:
    nans, infinities = count
    words = [f"{nans:,} NaN"] if nans else []
    if infinities:
        words.append(f"{infinities:,} {'infinity' if infinities == 1 else 'infinities'}")
    return ", ".join(words)


def _and_where(text: str, where: str) -> str:
    return f"{text} {where}" if text else ""
