"""What cannot be computed on tensors is an error that names it, and never a wrong number."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import fx, nn

from lowerscope.core.model.problems import LowerscopeError, Problem

VECTOR = torch.randn(8)


class Calls(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


def refusal(bench: Any, model: nn.Module, tracer: str = "fx", strategy: str = "te") -> Problem:
    with pytest.raises(LowerscopeError) as caught:
        bench.lower(model, (VECTOR,), tracer, strategy)
    return caught.value.problem


@pytest.mark.parametrize("strategy", ["high-level", "te", "library"])
def test_a_number_made_of_data_is_named_with_node_and_line(bench: Any, strategy: str) -> None:
    class Scaled(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * x.sum().item()

    problem = refusal(bench, Scaled(), strategy=strategy)
    line = inspect.getsourcelines(Scaled.forward)[1] + 1
    assert f"Tensor.item (node item, test_refusals.py:{line})" in problem.what
    assert "makes a float of data" in problem.what
    assert problem.where == f"{__file__}:{line}"
    assert "--tracer export" in problem.todo
    assert problem.code == "try-export"
    assert "\n" not in problem.line()
    # What is computed from it is no news.
    assert len(problem.details.splitlines()) == 1


class Box:
    """A foreign object."""

    size = 2


def boxed(x: torch.Tensor) -> Any:
    return Box()


fx.wrap("boxed")


def test_all_of_them_are_named_at_once(bench: Any) -> None:
    def compute(x: torch.Tensor) -> Any:
        return x * x.max().item() * boxed(x).size, x.tolist()

    problem = refusal(bench, Calls(compute))
    assert "boxed (node boxed" in problem.what
    assert "makes a Box of data" in problem.what
    assert "tolist" in problem.what
    assert len(problem.details.splitlines()) == 3


def test_an_output_of_a_dtype_that_tvm_does_not_have_is_refused(bench: Any) -> None:
    problem = refusal(bench, Calls(torch.fft.fft))
    assert "an output is complex64, which TVM does not have" in problem.what


def test_an_extent_that_depends_on_data_is_refused_where_it_is_read(bench: Any) -> None:
    problem = refusal(bench, Calls(lambda x: torch.zeros(x[x > 0].shape[0])))
    assert "torch.zeros (node zeros" in problem.what
    assert "known only when the model runs" in problem.what
