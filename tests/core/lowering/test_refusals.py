"""A call that cannot be computed on tensors is an error that names it, and never a wrong number."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from torch import nn

from lowerscope.core.model.problems import Problem
from tests.core.lowering.calling_models import Calls
from tests.problems import problem_of

VECTOR = torch.randn(8)


def refusal(bench: Any, model: nn.Module, tracer: str = "fx", strategy: str = "te") -> Problem:
    return problem_of(bench.lower, model, (VECTOR,), tracer, strategy)


@pytest.mark.parametrize("strategy", ["high-level", "te", "library"])
def test_numbers_of_data_as_an_output_are_named_with_node_and_line(
    bench: Any, strategy: str
) -> None:
    class Listed(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return x * 2, x.tolist()

    problem = refusal(bench, Listed(), strategy=strategy)
    line = inspect.getsourcelines(Listed.forward)[1] + 1
    assert f"Tensor.tolist (node tolist, test_refusals.py:{line})" in problem.what
    assert problem.where == f"{__file__}:{line}"
    assert problem.code == "try-export"
    assert "\n" not in problem.line()


def test_all_of_them_are_named_at_once(bench: Any) -> None:
    problem = refusal(bench, Calls(lambda x: (x.exp().tolist(), x.tolist())))
    assert "(node tolist," in problem.what
    assert "(node tolist_1," in problem.what
    assert len(problem.details.splitlines()) == 2
