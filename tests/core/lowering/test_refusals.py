"""What has no lowering is an error that names it, and never a wrong number."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lowerscope.core.errors import LowerscopeError, Problem

IMAGE = torch.randn(1, 4, 8, 8)
VECTOR = torch.randn(8)


class Calls(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


def refusal(bench: Any, model: nn.Module, x: torch.Tensor, tracer: str = "fx") -> Problem:
    with pytest.raises(LowerscopeError) as caught:
        bench.lower(model, (x,), tracer, "te")
    return caught.value.problem


def test_an_operator_that_nothing_covers_is_named_with_node_and_line(bench: Any) -> None:
    class Spectrum(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.fft.rfft(x).abs()

    problem = refusal(bench, Spectrum(), VECTOR)
    line = inspect.getsourcelines(Spectrum.forward)[1] + 1
    assert f"torch.fft.rfft (node fft_rfft, test_refusals.py:{line})" in problem.what
    assert problem.where == f"{__file__}:{line}"
    assert "--tracer export" in problem.todo
    assert problem.code == "try-export"
    assert "\n" not in problem.line()


def test_all_of_them_are_named_at_once(bench: Any) -> None:
    class Two(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = torch.special.bessel_j0(x)
            return torch.special.i1(y) + torch.digamma(x)

    problem = refusal(bench, Two(), VECTOR)
    for node in ("bessel_j0", "i1", "digamma"):
        assert node in problem.what
    assert len(problem.details.splitlines()) == 3


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: F.grid_sample(x, x[:, :2].permute(0, 2, 3, 1)), "grid_sampl"),
        (lambda x: F.interpolate(x, (4, 4), mode="bilinear", antialias=True), "antialias"),
        (lambda x: F.interpolate(x, scale_factor=1.3), "scale factor"),
        (lambda x: F.max_pool2d(x, 2, return_indices=True)[1], "indices"),
        (lambda x: F.dropout(x, 0.5, training=True), "model.eval()"),
        (lambda x: F.batch_norm(x, x[0, :, 0, 0], x[0, :, 0, 0], training=True), "model.eval()"),
        (lambda x: x[x > 0], "mask"),
        (lambda x: F.avg_pool2d(x, 2, divisor_override=3), "divisor"),
        (lambda x: F.avg_pool2d(x, 3, 2, ceil_mode=True), "ceil_mode"),
        (lambda x: torch.where(x > 0), "depends on the data"),
        (lambda x: x + torch.rand_like(x), "rand"),
        (lambda x: F.normalize(x, p=3.0), "p is not 2"),
        (lambda x: torch.round(x, decimals=2), "decimals"),
    ],
)
def test_what_is_known_to_be_wrong_is_refused(
    bench: Any, function: Callable[..., Any], reason: str
) -> None:
    assert reason in refusal(bench, Calls(function), IMAGE).what


@pytest.mark.parametrize(
    "module",
    [
        nn.MaxPool2d(2, return_indices=True),
        nn.Dropout(0.5).train(),
        nn.BatchNorm2d(4).train(),
        nn.AdaptiveMaxPool2d(3),
    ],
    ids=lambda module: type(module).__name__,
)
def test_modules_that_are_known_to_be_wrong_are_refused(bench: Any, module: nn.Module) -> None:
    problem = refusal(bench, nn.Sequential(module), IMAGE)
    assert type(module).__name__ in problem.what


def test_a_model_in_training_mode_is_told_to_leave_it(bench: Any) -> None:
    problem = refusal(bench, nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.1)).train(), VECTOR)
    assert problem.todo == "Put the model in eval mode"


def test_a_recurrent_module_is_sent_to_the_export_tracer(bench: Any) -> None:
    problem = refusal(bench, nn.Sequential(nn.LSTM(8, 4)), torch.randn(3, 1, 8))
    assert "torch.nn.LSTM" in problem.what
    assert problem.code == "try-export"


def test_the_indices_of_a_pooling_are_refused_by_the_export_tracer_too(bench: Any) -> None:
    model = Calls(lambda x: F.max_pool2d(x, 2, return_indices=True)[1])
    assert "indices of a pooling" in refusal(bench, model, IMAGE, "export").what


def test_an_argument_that_a_rule_does_not_know_is_refused(bench: Any) -> None:
    model = Calls(lambda x: torch.nan_to_num(torch.cumsum(x, 0), nan=1.0))
    assert "nan_to_num" in refusal(bench, model, VECTOR).what
    assert "keyword" in refusal(bench, Calls(_with_an_extra_argument), VECTOR).what


def _with_an_extra_argument(x: torch.Tensor) -> torch.Tensor:
    return torch.sub(x, 1, out=x.clone())


def test_an_output_that_is_no_tensor_is_refused(bench: Any) -> None:
    assert "an output is a str" in refusal(bench, Calls(lambda x: (x, "name")), VECTOR).what
