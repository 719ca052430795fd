"""A tensor beside its reference: figures, places and pieces, held against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from lowerscope.core.model.comparison_records import TensorPlace
from lowerscope.core.model.tolerances import Tolerances
from lowerscope.core.run.compare.tensor_values import compared

PLACE = TensorPlace(entity="fx:relu")
CHOSEN = Tolerances()
REAL = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
WHOLE = (torch.bool, torch.uint8, torch.int8, torch.int64)
SHAPES: tuple[tuple[int, ...], ...] = ((), (0,), (7,), (3, 0, 2), (5, 9), (2, 1, 3, 4, 5))


def pair(shape: tuple[int, ...], dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    ours, theirs = (torch.randn(shape, generator=generator) * 9 for _ in range(2))
    if dtype.is_complex:
        return torch.complex(ours, theirs).to(dtype), torch.complex(theirs, theirs).to(dtype)
    return ours.to(dtype), theirs.to(dtype)


def wide(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    if tensor.is_complex():
        return tensor.to(torch.complex128).numpy()
    return tensor.double().numpy()


@pytest.mark.diagonal
@pytest.mark.parametrize("dtype", [*REAL, *WHOLE, torch.complex64], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_figures_are_numpys(
    shape: tuple[int, ...], dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("tensor_values", "verdicts"):
        monkeypatch.setattr(f"lowerscope.core.run.compare.{module}.CHUNK", 11)
    ours, theirs = pair(shape, dtype)
    before = ours.clone(), theirs.clone()
    found = compared(PLACE, ours, theirs, CHOSEN)
    assert torch.equal(ours, before[0])
    assert torch.equal(theirs, before[1])
    a, b = wide(ours), wide(theirs)
    gap = np.abs(a - b)
    assert (found.shape, found.torch_shape, found.kept) == (shape, shape, True)
    assert found.dtype == found.torch_dtype == str(dtype).removeprefix("torch.")
    assert found.ours is not None
    assert found.ours.count == gap.size
    outside = gap > found.atol + found.rtol * np.abs(b)
    assert found.outside == int(outside.sum())
    if gap.size == 0:
        assert (found.verdict, found.matches) == ("not-comparable", None)
        assert (found.max_abs_error, found.max_abs_at, found.cosine) == (None, (), None)
        assert (found.ours.low, found.ours.mean, found.counts) == (None, None, ())
        return
    assert found.matches == (found.outside == 0)
    assert found.verdict == ("differ" if found.outside else "match")
    magnitudes = np.abs(a) if dtype.is_complex else a
    assert (found.ours.low, found.ours.high) == pytest.approx((magnitudes.min(), magnitudes.max()))
    assert found.ours.mean == pytest.approx(magnitudes.mean())
    assert found.ours.deviation == pytest.approx(magnitudes.std())
    assert found.outside_share == pytest.approx(outside.mean())
    assert found.max_abs_error == pytest.approx(gap.max())
    assert gap[found.max_abs_at] == gap.max()
    large = np.abs(b) > found.atol
    relative = np.divide(gap, np.abs(b), out=np.zeros_like(gap), where=large)
    assert found.max_rel_error == pytest.approx(relative.max())
    assert relative[found.max_rel_at] == pytest.approx(relative.max())
    lengths = np.linalg.norm(a.reshape(-1)) * np.linalg.norm(b.reshape(-1))
    if lengths:
        cosine = np.vdot(b.reshape(-1), a.reshape(-1)).real / lengths
        assert found.cosine == pytest.approx(cosine)
    else:
        assert found.cosine is None
    assert found.equal == int((gap == 0).sum())
    assert sum(found.counts) == gap.size - found.equal
    if found.counts:
        assert found.counts == tuple(np.histogram(gap[gap > 0], found.edges)[0])
    worst = np.sort(gap[gap > 0])[::-1][:8]
    assert [each.error for each in found.worst] == pytest.approx(worst.tolist())
    for each in found.worst:
        assert gap[each.index] == pytest.approx(each.error)
        both = abs(a[each.index]), abs(b[each.index])
        assert (abs(each.ours), abs(each.torch)) == pytest.approx(both)


@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_what_is_not_finite_is_said_first(dtype: torch.dtype) -> None:
    theirs = torch.arange(24.0).reshape(2, 3, 4).to(dtype)
    ours = theirs.clone()
    ours[0, 2, 1], ours[1, 0, 0], ours[1, 1, 1] = torch.nan, torch.nan, -torch.inf
    ours[1, 2, 3] = theirs[1, 2, 3] = torch.inf
    theirs[0, 0, 2] = torch.nan
    found = compared(PLACE, ours, theirs, CHOSEN)
    assert found.not_finite == (
        "2 NaN, 1 infinity; 1 NaN in the reference only; 1 infinity on both sides"
    )
    assert found.reason == f"{found.not_finite}; 4 of 24 elements differ"
    assert found.matches is False
    assert found.outside == 4
    assert found.not_finite_at == (0, 0, 2)
    assert found.max_abs_error == float("inf")
    assert found.ours is not None
    assert (found.ours.nans, found.ours.infinities) == (2, 2)
    alike = compared(PLACE, ours, ours, CHOSEN)
    assert alike.not_finite == "2 NaN, 2 infinities on both sides"
    assert (alike.verdict, alike.matches) == ("match", True)
    assert (alike.reason, alike.not_finite_at) == (alike.not_finite, ())
    nothing = torch.full_like(ours, torch.nan)
    found = compared(PLACE, nothing, nothing, CHOSEN)
    assert (found.verdict, found.matches, found.max_abs_error) == ("inconclusive", None, None)
    assert found.not_finite == "24 NaN on both sides"
