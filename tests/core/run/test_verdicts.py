"""The comparison of outputs, against NumPy's and by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from lowerscope.core.model.tolerances import EXACT, Tolerance, Tolerances
from lowerscope.core.run.compare.verdicts import difference, judge, tolerance_for
from lowerscope.core.run.implementations import PreciseRun, precise_run
from lowerscope.core.sources.pytree import by_position

CHOSEN = Tolerances(float32=Tolerance(1e-3, 1e-4))
PAIRS = st.tuples(
    *[
        hnp.arrays(np.float32, (7,), elements=st.floats(-10, 10, width=32)),
    ]
    * 2
)


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


def test_what_is_not_finite_is_said() -> None:
    found = difference(torch.tensor([1.0, float("nan")]), torch.tensor([1.0, 2.0]), CHOSEN)
    assert found.reason == "1 NaN; 1 of 2 elements differ"


def test_integers_have_to_be_equal() -> None:
    a, b = torch.tensor([1, 2, 3]), torch.tensor([1, 2, 4])
    assert difference(a, a, CHOSEN).matches
    assert not difference(a, b, Tolerances(float32=Tolerance(0.9, 10.0))).matches


def test_large_integers_are_told_apart() -> None:
    a, b = torch.tensor([2**53 + 1]), torch.tensor([2**53])
    found = difference(a, b, CHOSEN)
    assert not found.matches
    assert found.max_abs == 1
    yes, no = torch.tensor([True]), torch.tensor([False])
    assert difference(yes, no, CHOSEN).max_abs == 1


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


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.complex64, torch.int64, torch.bool], ids=str
)
def test_an_output_without_elements_counts_for_nothing(dtype: torch.dtype) -> None:
    empty, one, two = torch.empty((0, 3), dtype=dtype), torch.tensor([1.0]), torch.tensor([2.0])
    nan = torch.tensor([NAN])
    beside = judge([one, empty], [one, empty], CHOSEN)
    assert (beside.verdict, beside.max_abs) == ("match", 0)
    assert beside.reason == "output[1] has no elements to compare"
    assert [each.verdict for each in beside.outputs] == ["match", "not-comparable"]
    assert beside.outputs[1].matches is beside.outputs[1].max_abs_error is None
    assert judge([empty, two], [empty, one], CHOSEN).verdict == "differ"
    assert judge([empty, nan], [empty, nan], CHOSEN).verdict == "inconclusive"
    # Of another shape it is not the same, although there is nothing in it.
    assert judge([empty, one], [empty[:, :2], one], CHOSEN).verdict == "differ"
    alone = judge([empty], [empty], CHOSEN)
    assert (alone.verdict, alone.max_abs) == ("inconclusive", None)
    assert alone.reason == "output has no elements to compare"
    random = judge([empty, one], [empty, two], CHOSEN, ((), ("rand",)))
    assert random.verdict == "not-comparable"


def test_a_complex_number_counts_once() -> None:
    value = torch.tensor([complex(NAN, INF), complex(1, INF), 1j])
    assert difference(value, value.clone(), CHOSEN).not_finite == "1 NaN, 1 infinity on both sides"


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float16, torch.bfloat16, torch.float8_e4m3fn], ids=str
)
def test_nan_of_each_dtype_is_counted(dtype: torch.dtype) -> None:
    value = torch.tensor([NAN, 1.0]).to(dtype)
    found = judge([value, value[:1]], [value.clone(), value[:1].clone()], CHOSEN)
    assert [each.verdict for each in found.outputs] == ["match", "inconclusive"]
    assert [each.not_finite for each in found.outputs] == ["1 NaN on both sides"] * 2


def test_one_inconclusive_output_makes_the_verdict_so_unless_another_differs() -> None:
    nan, one, two = torch.tensor([NAN]), torch.tensor([1.0]), torch.tensor([2.0])
    found = judge([one, nan], [one, nan], CHOSEN)
    assert (found.verdict, found.max_abs) == ("inconclusive", 0)
    assert found.reason.startswith("output[1]: 1 NaN on both sides")
    assert judge([one, nan], [two, nan], CHOSEN).verdict == "differ"
    assert judge([nan, one], [nan, two], CHOSEN, ((), ("rand",))).verdict == "inconclusive"
    # Random numbers are not compared, whatever they are.
    assert judge([nan, one], [nan, one], CHOSEN, (("rand",), ())).verdict == "not-comparable"
    assert judge([], [], CHOSEN).verdict == "inconclusive"


def test_the_verdict_over_outputs() -> None:
    a, b = torch.tensor([1.0]), torch.tensor([2.0])
    assert judge([a, b], [a, b], CHOSEN).verdict == "match"
    wrong = judge([a, b], [a, a], CHOSEN)
    assert wrong.verdict == "differ"
    assert wrong.reason.startswith("output[1]: 1 of 1 elements differ")
    assert [output.matches for output in wrong.outputs] == [True, False]
    assert judge([a], None, CHOSEN).verdict == "no-reference"
    assert "1 outputs instead of 2" in judge([a], [a, b], CHOSEN).reason


def test_what_depends_on_random_numbers_is_not_compared() -> None:
    a, b = torch.tensor([1.0]), torch.tensor([2.0])
    random = ((), ("dropout",))
    found = judge([a, a], [a, b], CHOSEN, random)
    assert found.verdict == "not-comparable"
    assert found.reason == "output[1] depends on dropout, which draws random numbers"
    assert [output.verdict for output in found.outputs] == ["match", "not-comparable"]
    assert [output.matches for output in found.outputs] == [True, None]
    assert found.max_abs == 0
    # What can be compared still is, and so is the type of what cannot.
    assert judge([a, a], [b, b], CHOSEN, random).verdict == "differ"
    assert judge([a, a], [a, b.double()], CHOSEN, random).verdict == "differ"
    alone = judge([a], [b], CHOSEN, (("rand", "dropout"),))
    assert alone.verdict == "not-comparable"
    assert alone.reason == "output depends on rand, dropout, which draw random numbers"
    assert alone.max_abs is None


BEYOND = torch.tensor([1.0, -2.0, 4.0, 0.0], dtype=torch.float64)
"""What the model computes in float64."""


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        ([0.0, 0.0, 0.0, 0.01], [0.0, 0.0, 0.0, -0.01], "match"),
        ([0.0, 0.0, 0.0, 0.03], [0.0, 0.0, 0.0, 0.02], "match"),
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
    assert ("by rounding" in found.reason) == (verdict == "match")
    assert found.outputs[0].matches == (verdict == "match")
    assert judge([actual], [expected], Tolerances()).verdict == "differ"
    assert judge([actual], [expected], Tolerances(), precise=lambda: None).verdict == "differ"
    assert len(asked) == 1
    judge([expected], [expected], Tolerances(), precise=precise)
    assert len(asked) == 1


def test_rounding_is_for_floats_of_16_bits_and_usual_tolerances() -> None:
    exact = torch.tensor([100.0, -50.0, 7.0], dtype=torch.float64)
    off, other = torch.tensor([102.0, -50.0, 7.0]), torch.tensor([98.0, -50.0, 7.0])

    def verdict(dtype: torch.dtype, coarsest: torch.dtype, tolerances: Tolerances) -> str:
        run = PreciseRun((exact,), coarsest)
        ours, theirs = off.to(dtype), other.to(dtype)
        return judge([ours], [theirs], tolerances, precise=lambda: run).verdict

    usual = Tolerances()
    assert verdict(torch.float32, torch.bfloat16, usual) == "match"
    assert verdict(torch.float32, torch.float32, usual) == "differ"
    assert verdict(torch.int64, torch.bfloat16, usual) == "differ"
    assert verdict(torch.float64, torch.float64, usual) == "differ"
    own = Tolerances(bfloat16=Tolerance(4e-2, 1e-4))
    assert verdict(torch.float32, torch.bfloat16, own) == "differ"


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


@pytest.mark.parametrize(("further", "verdict"), [(15.0, "match"), (17.0, "differ")])
def test_what_is_computed_in_float32_matches_in_float64_as_far_as_torch(
    further: float, verdict: str
) -> None:
    exact = torch.tensor([1.0, -2.0, 4.0], dtype=torch.float64)
    ours, theirs = exact - further * 1e-8, exact + 1e-8
    run = PreciseRun((exact,), torch.float32)
    assert judge([ours], [theirs], Tolerances(), precise=lambda: run).verdict == verdict
    # What torch computes exactly has no rounding.
    assert judge([ours], [exact], Tolerances(), precise=lambda: run).verdict == "differ"


class _Insisting(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert x.dtype is torch.float32
        return x


def test_a_model_that_insists_on_its_dtype_does_not_run_in_float64() -> None:
    assert precise_run(_Insisting(), (torch.ones(2),), 0, by_position(["x"])) is None
    assert torch.get_default_dtype() is torch.float32
