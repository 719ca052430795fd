"""Build, run and measure, against NumPy and torch."""

from __future__ import annotations

import threading
import warnings

import pytest
import torch
import tvm
import tvm_ffi
from torch import nn
from tvm.script import ir as I
from tvm.script import relax as R

from lowerscope.core.build.build import build, check_registered, external_functions
from lowerscope.core.build.targets import make_target, threads_of_tvm, use_threads
from lowerscope.core.model.machines import MACHINE
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.run_records import ClassScore, Measuring, best_of
from lowerscope.core.run.execution import Execution, Reference, to_torch, to_tvm
from lowerscope.core.run.implementations import Implementation, measure
from lowerscope.core.run.runs import predict

LLVM = make_target("llvm", 0)


@I.ir_module
class Twice:
    @R.function
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tuple(
        R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float32")
    ):
        with R.dataflow():
            a = R.add(x, x)
            b = R.multiply(a, a)
            R.output(a, b)
        return (a, b)


@I.ir_module
class Calls:
    @R.function
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        with R.dataflow():
            a = R.call_dps_packed("env.nobody", (x,), out_ty=R.Tensor((2, 3), "float32"))
            R.output(a)
        return a


class Noisy(nn.Module):
    """Differs between training and eval, and changes its input."""

    def __init__(self) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.9)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor | int]:
        x += 1
        return {"value": self.dropout(x), "size": x.shape[0]}


def test_outputs_in_tuples_come_one_after_the_other() -> None:
    built = build(Twice, LLVM)
    x = torch.randn(2, 3)
    first, second = Execution(built.executable, "main", (x,)).outputs()
    torch.testing.assert_close(first, x + x)
    torch.testing.assert_close(second, (x + x) ** 2)
    assert built.milliseconds > 0


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


def test_a_library_function_that_is_missing_is_named_before_the_build() -> None:
    assert list(external_functions(Calls)) == ["env.nobody"]
    with pytest.raises(LowerscopeError, match=r"env\.nobody is not registered") as caught:
        check_registered(Calls)
    assert caught.value.problem.choices == ("env.nobody",)


def test_a_registered_library_function_runs() -> None:
    @tvm.register_global_func("env.nobody", override=True)
    def triple(x: tvm.runtime.Tensor, out: tvm.runtime.Tensor) -> None:
        out.copyfrom(x.numpy() * 3)

    try:
        x = torch.randn(2, 3)
        (out,) = Execution(build(Calls, LLVM).executable, "main", (x,)).outputs()
        torch.testing.assert_close(out, x * 3)
    finally:
        tvm_ffi.registry.remove_global_func("env.nobody")


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


class Doubling(nn.Module):
    """Changes its input at each call."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x.mul_(2)
        return x + 1


def test_a_model_that_changes_its_input_is_given_a_new_one_each_time() -> None:
    x = torch.ones(2, 3)
    reference = Reference(Doubling(), (x,), seed=0)
    measure(
        [Implementation("torch", reference.call, 1, reference.refresh)], Measuring(), lambda: None
    )
    assert torch.equal(reference.outputs()[0], torch.full((2, 3), 3.0))
    assert torch.equal(x, torch.ones(2, 3))


def test_a_model_that_cannot_be_copied_says_so() -> None:
    model = nn.ReLU()
    model.lock = threading.Lock()
    with pytest.raises(LowerscopeError, match="cannot be copied"):
        Reference(model, (torch.ones(1),), seed=0)


def test_threads_are_those_of_the_machine_at_most() -> None:
    try:
        assert use_threads(1) == 1
        assert (torch.get_num_threads(), threads_of_tvm()) == (1, 1)
        assert use_threads(MACHINE + 5) == MACHINE
    finally:
        assert use_threads(0) == MACHINE


def test_a_model_with_a_normed_weight_is_copied() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        model = nn.utils.weight_norm(nn.Linear(4, 3))
    x = torch.randn(2, 4)
    (output,) = Reference(model, (x,), seed=0).outputs()
    torch.testing.assert_close(output, model(x).detach())
