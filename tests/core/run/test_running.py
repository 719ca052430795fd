"""Build, run and measure, against NumPy and torch."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from lowerscope.core.model.run_records import ClassScore, best_of
from lowerscope.core.run.execution import Reference, to_torch, to_tvm
from lowerscope.core.run.runs import predict


class Noisy(nn.Module):
    """Differs between training and eval, and changes its input."""

    def __init__(self) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.9)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor | int]:
        x += 1
        return {"value": self.dropout(x), "size": x.shape[0]}


@pytest.mark.parametrize(
    "dtype",
    ["float16", "bfloat16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool"],
)
def test_tensors_of_every_dtype_go_there_and_back(dtype: str) -> None:
    values = torch.randint(0, 2, (5, 3)).to(getattr(torch, dtype))
    for value in (values, values[1:], values.t(), values[:0], values[0, 0]):
        back = to_torch(to_tvm(value))
        assert back.dtype == value.dtype
        assert torch.equal(back, value)


def test_the_reference_is_a_copy_in_eval_mode_that_leaves_the_inputs() -> None:
    model, x = Noisy().train(), torch.ones(2, 3)
    value, size = Reference(model, (x,), seed=0).outputs()
    assert torch.equal(value, torch.full((2, 3), 2.0))
    assert int(size) == 2
    assert model.training
    assert torch.equal(x, torch.ones(2, 3))


def test_predictions_need_a_score_for_each_class() -> None:
    scores = torch.tensor([[0.1, 0.9]])
    found = predict(("cat", "dog"), (scores,), (scores.flip(1),))
    assert found is not None
    assert (found.torch, found.tvm) == ("cat", "dog")
    assert predict((), (scores,), None) is None
    assert predict(("a", "b", "c"), (scores,), None) is None
    # The five best of either side, with what softmax makes of the scores; but not of probabilities.
    names = tuple("abcdefgh")
    ours, torchs = torch.randn(1, 8), torch.randn(8)
    top = predict(names, (ours,), (torchs,))
    assert top is not None
    assert top.scores == "softmax"
    for side, output in (("tvm", ours[0]), ("torch", torchs)):
        expected = torch.softmax(output.double(), 0)
        best = best_of(top, side)  # type: ignore[arg-type]
        order = expected.argsort(descending=True)[:5].tolist()
        assert [each.name for each in best] == [names[place] for place in order]
        shown = [getattr(each, side) for each in best]
        assert shown == pytest.approx([float(expected[place]) for place in order])
    given = predict(("cat", "dog"), (scores,), (scores,))
    assert given is not None
    assert given.scores == "output"
    assert given.top[0] == ClassScore(name="dog", tvm=pytest.approx(0.9), torch=pytest.approx(0.9))
    broken = predict(("cat", "dog"), (scores * float("nan"),), (scores,))
    assert broken is not None
    assert broken.top == ()
    without = predict(("cat", "dog"), (scores,), None)
    assert without is not None
    assert without.torch == ""
