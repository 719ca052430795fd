"""Comparison of two tensors, and the verdict over all outputs of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from lowerscope.core.recipe import Tolerances
from lowerscope.core.records import OutputRecord


@dataclass(frozen=True)
class Difference:
    """How far a tensor is from its reference.

    Attributes
    ----------
    max_abs, max_rel
        The largest ``|a - b|``, and the largest ``|a - b| / |b|`` where ``|b|`` is more than the
        absolute tolerance. Infinite where one side is NaN or infinite and the other is not.
    matches
        Whether ``|a - b| <= atol + rtol * |b|`` for every element; integers and booleans have to
        be equal.
    reason
        One line on what differs; empty where it matches.
    """

    max_abs: float
    max_rel: float
    matches: bool
    reason: str


def tolerances_for(dtype: torch.dtype, chosen: Tolerances) -> Tolerances:
    """Return the tolerances for values of `dtype`.

    Those of half precision are at least four units in the last place, since torch itself is not
    closer than that to the true value; integers and booleans have none.
    """
    if not dtype.is_floating_point and not dtype.is_complex:
        return Tolerances(rtol=0.0, atol=0.0)
    floor = 4 * torch.finfo(dtype).eps
    return Tolerances(rtol=max(chosen.rtol, floor), atol=max(chosen.atol, floor * 1e-1))


def difference(actual: torch.Tensor, expected: torch.Tensor, chosen: Tolerances) -> Difference:
    """Compare a tensor with its reference, elementwise."""
    if actual.shape != expected.shape:
        return _incomparable(f"shape {tuple(actual.shape)} instead of {tuple(expected.shape)}")
    if actual.dtype != expected.dtype:
        return _incomparable(f"dtype {actual.dtype} instead of {expected.dtype}")
    if actual.numel() == 0:
        return Difference(0.0, 0.0, matches=True, reason="")
    if not expected.dtype.is_floating_point and not expected.dtype.is_complex:
        return _whole_difference(actual, expected)
    tolerances = tolerances_for(expected.dtype, chosen)
    wide = torch.complex128 if expected.dtype.is_complex else torch.float64
    a, b = actual.to(wide), expected.to(wide)
    same = (actual == expected) | (a.isnan() & b.isnan())
    gap = torch.where(same, 0.0, (a - b).abs())
    gap = torch.where(gap.isnan(), torch.inf, gap)
    size = b.abs()
    relative = torch.where(same | (size <= tolerances.atol), 0.0, gap / size)
    relative = torch.where(relative.isnan(), torch.inf, relative)
    inside = same | (gap.isfinite() & (gap <= tolerances.atol + tolerances.rtol * size))
    outside = int((~inside).sum())
    reason = ""
    if outside:
        broken = int((a.isfinite() != b.isfinite()).sum())
        what = f"{outside} of {actual.numel()} elements differ"
        reason = f"{what}, {broken} of them not finite on one side only" if broken else what
    return Difference(
        max_abs=float(gap.max()),
        max_rel=float(relative.max()),
        matches=outside == 0,
        reason=reason,
    )


def _whole_difference(actual: torch.Tensor, expected: torch.Tensor) -> Difference:
    """Compare integers or booleans, which have to be equal; exact where float64 is not."""
    same = actual == expected
    outside = int((~same).sum())
    pairs = zip(actual[~same].tolist(), expected[~same].tolist(), strict=True)
    gaps = [(abs(int(a) - int(b)), abs(int(b))) for a, b in pairs]
    return Difference(
        max_abs=float(max((gap for gap, _ in gaps), default=0)),
        max_rel=max((gap / size for gap, size in gaps if size), default=0.0),
        matches=outside == 0,
        reason=f"{outside} of {actual.numel()} elements differ" if outside else "",
    )


def _incomparable(reason: str) -> Difference:
    return Difference(float("inf"), float("inf"), matches=False, reason=reason)


@dataclass(frozen=True)
class Verdict:
    """The verdict over all outputs; tolerances are those of the output that needs the widest."""

    verdict: str
    reason: str
    max_abs: float | None
    max_rel: float | None
    tolerances: Tolerances
    outputs: tuple[OutputRecord, ...]


def judge(
    actual: Sequence[torch.Tensor],
    expected: Sequence[torch.Tensor] | None,
    chosen: Tolerances,
) -> Verdict:
    """Compare the outputs of a run with torch's; `expected` is ``None`` without a torch side."""
    names = [f"output {index}" if len(actual) > 1 else "output" for index in range(len(actual))]
    if expected is None:
        outputs = tuple(_record(name, value) for name, value in zip(names, actual, strict=True))
        return Verdict("no-reference", "there is no torch side", None, None, chosen, outputs)
    if len(actual) != len(expected):
        outputs = tuple(_record(name, value) for name, value in zip(names, actual, strict=True))
        reason = f"{len(actual)} outputs instead of {len(expected)}"
        return Verdict("differ", reason, float("inf"), float("inf"), chosen, outputs)
    differences = [difference(a, b, chosen) for a, b in zip(actual, expected, strict=True)]
    wrong = [f"{n}: {d.reason}" for n, d in zip(names, differences, strict=True) if d.reason]
    used = [tolerances_for(value.dtype, chosen) for value in expected]
    return Verdict(
        verdict="differ" if wrong else "match",
        reason="; ".join(wrong),
        max_abs=max((d.max_abs for d in differences), default=0.0),
        max_rel=max((d.max_rel for d in differences), default=0.0),
        tolerances=max(used, key=lambda each: each.rtol, default=chosen),
        outputs=tuple(
            _record(name, value, found)
            for name, value, found in zip(names, actual, differences, strict=True)
        ),
    )


def _record(name: str, value: torch.Tensor, found: Difference | None = None) -> OutputRecord:
    return OutputRecord(
        name=name,
        shape=tuple(value.shape),
        dtype=str(value.dtype).removeprefix("torch."),
        matches=found.matches if found else None,
        max_abs_error=found.max_abs if found else None,
        max_rel_error=found.max_rel if found else None,
    )
