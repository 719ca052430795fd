"""The comparison of outputs, against NumPy's and by hand."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch import nn

from lowerscope.core.model.tolerances import EXACT, Tolerance, Tolerances
from lowerscope.core.run import float64
from lowerscope.core.run.compare.uninitialised import uninitialised
from lowerscope.core.run.compare.verdicts import (
    Exact,
    PreciseRun,
    beside_float64,
    beyond_rounding,
    difference,
    has_structure,
    judge,
    tolerance_for,
)
from lowerscope.core.run.float64 import precise_run
from lowerscope.core.sources.pytree import by_position
from lowerscope.core.tracing.trace_errors import NamedInputs
from lowerscope.core.tracing.tracing import trace

CHOSEN = Tolerances(float32=Tolerance(1e-3, 1e-4))
PAIRS = st.tuples(*[hnp.arrays(np.float32, (7,), elements=st.floats(-10, 10, width=32))] * 2)


@given(PAIRS)
def test_the_verdict_is_numpys(pair: tuple[np.ndarray, np.ndarray]) -> None:
    a, b = pair
    found = difference(torch.from_numpy(a), torch.from_numpy(b), CHOSEN)
    wide_a, wide_b = a.astype("float64"), b.astype("float64")
    assert found.matches == np.allclose(wide_a, wide_b, rtol=1e-3, atol=1e-4)
    assert found.max_abs == np.abs(wide_a - wide_b).max()
    large = np.abs(wide_b) > 1e-4
    relative = np.abs(wide_a - wide_b)[large] / np.abs(wide_b)[large]
    assert found.max_rel == pytest.approx(relative.max(initial=0.0))


@pytest.mark.parametrize(
    ("actual", "expected", "matches"),
    [
        ([1.0, float("nan")], [1.0, float("nan")], True),
        ([1.0, float("nan")], [1.0, 2.0], False),
        ([1.0, 2.0], [1.0, float("nan")], False),
        ([float("inf")], [float("inf")], True),
        ([float("inf")], [float("-inf")], False),
        ([float("inf")], [1.0], False),
        ([float("nan")], [0.0], False),
        ([0.0], [float("inf")], False),
    ],
)
def test_values_that_are_not_finite(
    actual: list[float], expected: list[float], matches: bool
) -> None:
    found = difference(torch.tensor(actual), torch.tensor(expected), CHOSEN)
    assert found.matches == matches
    assert (found.max_abs == float("inf")) == (found.max_rel == float("inf")) == (not matches)


def test_another_shape_or_dtype_differs() -> None:
    assert "shape (2,) instead of (3,)" in difference(torch.ones(2), torch.ones(3), CHOSEN).reason
    wide = torch.ones(2, dtype=torch.float64)
    assert "dtype torch.float64" in difference(wide, torch.ones(2), CHOSEN).reason


def test_each_dtype_has_its_own_tolerance() -> None:
    loose, tight = Tolerance(0.5, 0.5), Tolerance(1e-6, 1e-6)
    chosen = Tolerances(float16=loose, float32=tight)
    off = torch.tensor([1.0]), torch.tensor([1.001])
    assert difference(off[0].half(), off[1].half(), chosen).matches
    assert not difference(*off, chosen).matches
    assert tolerance_for(torch.float64, chosen) == Tolerances().float64
    # Complex numbers have that of their parts; eight bits cannot tell what float16 can.
    assert tolerance_for(torch.complex64, chosen) == tight
    assert tolerance_for(torch.float8_e4m3fn, Tolerances()).rtol == 0.5
    assert tolerance_for(torch.bool, chosen) == EXACT


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("actual", "expected", "verdict", "not_finite"),
    [
        ([NAN, NAN], [NAN, NAN], "inconclusive", 2),
        ([INF, -INF], [INF, -INF], "inconclusive", 2),
        ([NAN, INF], [NAN, INF], "inconclusive", 2),
        ([complex(NAN, 1)], [complex(2, NAN)], "inconclusive", 1),
        ([complex(NAN, INF)], [complex(INF, NAN)], "inconclusive", 1),
        ([INF], [-INF], "differ", 1),
        ([NAN, NAN], [NAN, INF], "differ", 2),
        ([NAN], [1.0], "differ", 1),
        ([1.0], [NAN], "differ", 1),
        ([1.0, NAN, INF], [1.0, NAN, INF], "match", 2),
        ([1.0, 2.0], [1.0, 2.0], "match", 0),
        ([1, 2], [1, 2], "match", 0),
        ([True], [True], "match", 0),
    ],
)
def test_an_output_without_a_finite_value_is_inconclusive(
    actual: list[complex], expected: list[complex], verdict: str, not_finite: int
) -> None:
    found = judge([torch.tensor(actual)], [torch.tensor(expected)], CHOSEN)
    (output,) = found.outputs
    assert (found.verdict, output.verdict) == (verdict, verdict)
    assert found.not_finite_count == output.not_finite_count == not_finite
    assert output.matches == {"match": True, "differ": False, "inconclusive": None}[verdict]
    # Nothing was compared, so that there is no error, not one of 0.
    assert (found.max_abs is None) == (output.max_abs_error is None) == (verdict == "inconclusive")
    assert bool(found.reason) == (verdict != "match" or not_finite > 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_an_output_without_elements_is_inconclusive(dtype: torch.dtype) -> None:
    empty = torch.empty(0, 48, dtype=dtype)
    assert judge([empty], [empty], CHOSEN).verdict == "inconclusive"


BEYOND = torch.tensor([1.0, -2.0, 4.0, 0.0], dtype=torch.float64)
"""The model's outputs in float64."""


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        ([0.0, 0.0, 0.0, 0.01], [0.0, 0.0, 0.0, -0.01], "rounding"),
        ([0.0, 0.0, 0.0, 0.03], [0.0, 0.0, 0.0, 0.02], "rounding"),
        ([0.0, 0.0, 0.0, 0.05], [0.0, 0.0, 0.0, 0.02], "differ"),
        # The largest error is torch's, but one that all elements have is none of rounding.
        ([0.08, 0.08, 0.12, 0.08], [0.0, 0.0, 0.06, 0.0], "differ"),
        # A result that depends on rounding shows nothing.
        ([0.0, 0.0, 0.0, 0.0], [1.0, -1.0, 1.0, 1.0], "differ"),
        ([0.0, 0.0, 0.0, float("nan")], [0.0, 0.0, 0.0, 0.02], "differ"),
    ],
)
def test_what_is_as_right_as_torch_matches_it(
    ours: list[float], theirs: list[float], verdict: str
) -> None:
    actual, expected = ((BEYOND + torch.tensor(each)).to(torch.bfloat16) for each in (ours, theirs))
    asked = []

    def precise() -> PreciseRun:
        asked.append(1)
        return PreciseRun((BEYOND,), torch.bfloat16)

    found = judge([actual], [expected], Tolerances(), precise=precise)
    assert found.verdict == verdict
    assert ("by rounding" in found.reason) == (verdict == "rounding")
    assert found.outputs[0].matches == (verdict == "rounding")
    assert judge([actual], [expected], Tolerances()).verdict == "differ"
    assert judge([actual], [expected], Tolerances(), precise=lambda: None).verdict == "differ"
    assert len(asked) == 1
    judge([expected], [expected], Tolerances(), precise=precise)
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("made_of", "tolerances", "verdict"),
    [
        (None, Tolerances(), "differ"),
        (torch.float64, Tolerances(), "differ"),
        (torch.float32, Tolerances(), "differ"),
        (torch.float16, Tolerances(), "match"),
        (torch.float16, Tolerances(float64=Tolerance(rtol=1e-4, atol=1e-4)), "differ"),
    ],
)
def test_a_value_that_float64_says_nothing_of_has_the_tolerance_of_what_it_is_made_of(
    made_of: torch.dtype | None, tolerances: Tolerances, verdict: str
) -> None:
    found = judge([BEYOND * 1.0005], [BEYOND], tolerances, computed_in=[made_of])
    assert found.verdict == verdict


class _Mixed(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(16, 32, dtype=torch.bfloat16)
        self.norm = torch.nn.LayerNorm(32)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        h = self.norm(self.first(x.to(torch.bfloat16)).float())
        self.count += 1
        low = torch.zeros(3, dtype=torch.bfloat16) + torch.tensor([1 / 3, 2 / 3, 1.0])
        return h.softmax(-1), low.bfloat16(), h.argmax(-1), self.count + x.mean()


class _Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.rand(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale


class _Weighted(torch.nn.Module):
    """Weights that are reached in several ways."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(10, 8)
        self.lstm = torch.nn.LSTM(8, 8, batch_first=True)
        self.attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        self.normed = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(8, 8))
        self.scaled = torch.jit.script(_Scaled())
        self.head = torch.nn.Linear(8, 10, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x, _state = self.lstm(self.embedding(ids))
        x = self.attention(x, x, x)[0] + self.normed(x).to(self.head.weight.dtype)
        return self.head(self.scaled(x)) + self.embedding.weight.T[:1].mean()


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
@pytest.mark.parametrize("room", [0, 1 << 8, 1 << 10, float64.MOST_BYTES])
def test_weights_need_not_fit_into_memory_in_float64(
    room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(float64, "MOST_BYTES", room)
    torch.manual_seed(0)
    model, ids = _Weighted().eval(), torch.arange(6).reshape(2, 3)
    found = precise_run(model, (ids,), 0, by_position(["ids"]))
    assert found is not None
    with torch.no_grad():
        expected = model.double()(ids)
    assert torch.allclose(found.outputs[0], expected, rtol=1e-12, atol=1e-14)
    assert found.coarsest is torch.float32


@pytest.mark.parametrize("eps", [None, 1e-3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_float64_keeps_the_constant_of_an_rms_norm(dtype: torch.dtype, eps: float | None) -> None:
    """By default it is an epsilon of the dtype that torch computes in."""
    model, x = nn.RMSNorm(8, eps=eps).to(dtype), torch.full((1, 8), 1e-4, dtype=dtype)
    found = precise_run(model, (x,), 0, by_position(["x"]))
    assert found is not None
    with torch.no_grad():
        assert torch.allclose(found.outputs[0], model(x).double(), rtol=1e-2)


_ATEN = torch.ops.aten
_OF_WEIGHT: dict[str, Callable[..., torch.Tensor]] = {
    "linear": lambda x, w, b: nn.functional.linear(x, w, b),
    "aten.linear": lambda x, w, b: _ATEN.linear.default(x, w, b),
    "@": lambda x, w, b: x @ w,
    "aten.matmul": lambda x, w, b: _ATEN.matmul.default(x, w),
    "addmm": lambda x, w, b: torch.addmm(b, x, w),
    "aten.mm": lambda x, w, b: _ATEN.mm.default(x, w),
    "embedding": lambda x, w, b: nn.functional.embedding((x[:, :2] * 9).abs().long(), w),
    "aten.embedding": lambda x, w, b: _ATEN.embedding.default(w, (x[:, :2] * 9).abs().long()),
}


@pytest.mark.parametrize("name", _OF_WEIGHT)
def test_a_part_of_a_large_weight_is_in_float64_at_a_time(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []

    def widened(value: torch.Tensor) -> torch.Tensor:
        sizes.append(value.numel() * 8)
        return value.detach().double() if value.is_floating_point() else value

    monkeypatch.setattr(float64, "MOST_BYTES", 1 << 12)
    torch.manual_seed(0)
    x, weight, bias = torch.randn(3, 64), nn.Parameter(torch.randn(64, 64)), torch.randn(64)
    right = _OF_WEIGHT[name](x.double(), weight.detach().double(), bias.double())
    monkeypatch.setattr(float64, "widened", widened)
    mode = float64.Widened((), float64.WideWeights())
    with torch.no_grad(), float64.in_float64(mode):
        found = _OF_WEIGHT[name](x.double(), weight, bias.double())
    assert torch.allclose(found, right, rtol=1e-12, atol=1e-12)
    assert 0 < max(sizes) <= 1 << 12


def test_narrow_weights_are_narrow_however_they_are_read() -> None:
    weight = torch.nn.Parameter(torch.rand(8))
    mode = float64.Widened((), float64.WideWeights(lambda each: each.bfloat16().double()))
    with float64.in_float64(mode):
        read = [weight * 1, weight.float() * 1, weight.to(torch.float32) * 1]
    assert all(torch.equal(each, weight.bfloat16().double()) for each in read)


def test_a_model_runs_in_float64() -> None:
    torch.manual_seed(0)
    model, x = _Mixed().eval(), torch.randn(4, 16)
    found = precise_run(model, (x,), 0, by_position(["x"]))
    assert found is not None
    weight, bias = model.first.weight.double(), model.first.bias.double()
    h = torch.nn.functional.layer_norm(x.double() @ weight.T + bias, (32,))
    assert torch.allclose(found.outputs[0], h.softmax(-1), rtol=1e-12)
    thirds = torch.tensor([1 / 3, 2 / 3, 1.0], dtype=torch.float64)
    assert torch.equal(found.outputs[1], thirds)
    assert torch.equal(found.outputs[2], h.argmax(-1))
    assert found.outputs[3] == 1 + x.double().mean()
    assert found.coarsest is torch.bfloat16
    assert torch.get_default_dtype() is torch.float32
    assert model.first.weight.dtype is torch.bfloat16
    assert model.count == 0


# Elements of memory that is not initialised, which are not compared


class Filling(nn.Module):
    """Fills new memory part by part, and reads it before and after."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        out = x.new_empty(4, 4)
        out[:2].copy_(x)
        early = out[1:] + 1
        filled = out[:2] * 2
        out[2:].copy_(x * 3)
        return early, filled, out.t() - 1


def test_what_is_read_before_it_is_filled_has_no_values() -> None:
    traced = trace(Filling(), (torch.ones(2, 4),), "export")
    modules = dict(traced.graph_module.named_modules(remove_duplicate=False))
    found = uninitialised(traced.graph_module.graph, modules, traced.values)
    assert {"new_empty", "slice_scatter", "add"} <= found
    assert not found & {"mul", "mul_1", "slice_scatter_1", "t", "sub"}


class FillingRows(nn.Module):
    """Fills new memory of any number of rows."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        out = x.new_empty(x.shape[0], 4)
        out[:, :2].copy_(x)
        early = out + 1
        out[:, 2:].copy_(x * 3)
        return early, out - 1


def test_memory_of_a_named_size_is_followed() -> None:
    named = NamedInputs((("n", 2),), {"n": (2, 9)})
    traced = trace(FillingRows(), (torch.ones(3, 2),), "export", named=named)
    modules = dict(traced.graph_module.named_modules(remove_duplicate=False))
    found = uninitialised(traced.graph_module.graph, modules, traced.values)
    (output,) = traced.graph_module.graph.find_nodes(op="output")
    early, last = output.args[0]
    assert early.name in found
    assert last.name not in found


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_values_that_are_far_apart_are_told_within_the_tolerance(dtype: torch.dtype) -> None:
    eps = torch.finfo(dtype).eps
    values = torch.linspace(1, 2, 64, dtype=torch.float64)
    mask = torch.full((8,), -10000.0, dtype=torch.float64)
    for change, is_far in ((0.0, False), (eps / 4, False), (12 * eps, True)):
        ours = torch.cat((values * (1 + change), mask)).to(dtype)
        found = difference(ours, torch.cat((values, mask)).to(dtype), Tolerances())
        assert found.is_far == is_far
    found = difference(ours, ours, Tolerances(bfloat16=Tolerance(0.5, 0.5)))
    assert found.matches
    assert not found.is_far


def test_what_is_set_or_not_known_stays_within_the_tolerance() -> None:
    right = torch.linspace(1, 2, 64, dtype=torch.float64)
    theirs, ours = right.float(), (right * (1 + 5e-5)).float()
    found = difference(ours, theirs, Tolerances())
    exact = Exact(right, torch.float32)
    assert found.matches
    assert beyond_rounding(found, ours, theirs, exact, Tolerances()).verdict == "differ"
    chosen = Tolerances(float32=Tolerance(1e-3, 1e-3))
    assert beyond_rounding(found, ours, theirs, exact, chosen).verdict == "match"
    unlike = Exact(right * 1.5, torch.float32)
    assert beyond_rounding(found, ours, theirs, unlike, Tolerances()).verdict == "match"


@pytest.mark.parametrize(
    ("infinite", "verdict"), [(3, "rounding"), (10, "differ"), (None, "differ")]
)
def test_infinity_is_rounding_where_a_divisor_is_as_small_as_its_rounding(
    infinite: int | None, verdict: str
) -> None:
    right = torch.linspace(1, 2, 64, dtype=torch.float64)
    right[3] *= 1e7
    noise = torch.full((64,), 1e-7, dtype=torch.float64)
    noise[3] = right[3] / 2
    ours, theirs = right.float(), right.float()
    ours[5], theirs[5] = math.inf, math.inf
    ours[3] *= 1.2
    if infinite is None:
        theirs[3] = math.nan
    else:
        theirs[infinite] = math.inf
    found = difference(ours, theirs, Tolerances())
    exact = Exact(right, torch.float32, noise=noise)
    assert not found.matches
    assert beside_float64(found, ours, theirs, exact, Tolerances()).verdict == verdict


def test_the_structure_of_a_fault_is_told_from_rounding() -> None:
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(32, 64, generator=generator)
    eps = torch.finfo(torch.bfloat16).eps
    theirs = values.bfloat16()
    # What is rounded twice, as by a value in between.
    ours = (values * (1 + eps / 2 * (torch.rand(32, 64, generator=generator) - 0.5))).bfloat16()
    assert bool((ours != theirs).any())
    assert not has_structure(ours, theirs)
    assert not has_structure(ours[:0], theirs[:0])
    element = torch.zeros(32, 64)
    element[3, 7] = 0.06
    column = torch.randn(64, generator=generator) * eps / 2
    for wrong in (values * (1 - eps / 3), values + eps / 4, values + column, values + element):
        assert has_structure(wrong.bfloat16(), theirs)
