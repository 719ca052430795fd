"""Calls of torch whose results have a shape that depends on data, or an odd one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from lowerscope.core.build.build import build, register_library
from lowerscope.core.build.targets import make_target
from lowerscope.core.run.execution import Execution
from tests.core.lowering.calling_models import Calls

SQUARE = torch.randn(4, 4)


def masked(x: torch.Tensor) -> Any:
    kept = x[x > 0]
    return kept * 2 + 1, kept.sum() + x.mean()


def counted(x: torch.Tensor) -> Any:
    return torch.unique(x.round(), return_counts=True)


def places(x: torch.Tensor) -> Any:
    rows, columns = torch.where(x > 0)
    return x[rows, columns], rows[:1]


@pytest.mark.diagonal
@pytest.mark.parametrize("strategy", ["high-level", "te", "library"])
@pytest.mark.parametrize("function", [masked, counted])
def test_shapes_that_depend_on_data(
    bench: Any, function: Callable[..., Any], strategy: str
) -> None:
    bench.check(Calls(function), (SQUARE,), "fx", strategy)
    bench.check(Calls(function), (SQUARE,), "export", strategy)


def test_members_of_such_tuples(bench: Any) -> None:
    bench.check(Calls(lambda x: [each * 2 for each in places(x)]), (SQUARE,), "export", "te")


def test_other_data_give_another_shape(bench: Any) -> None:
    _, lowered = bench.lower(Calls(masked), (SQUARE,), "fx", "te")
    assert "R.call_pure_packed" in lowered.module.script()
    register_library(lowered.library)
    executable = build(lowered.module, make_target("llvm", 1)).executable
    for x in (torch.ones(4, 4), -torch.ones(4, 4), torch.eye(4)):
        actual = Execution(executable, "main", (x,)).outputs()
        for ours, torchs in zip(actual, masked(x), strict=True):
            torch.testing.assert_close(ours, torchs)


NEW_SHAPES: list[Callable[..., Any]] = [
    lambda x: x.unique(dim=0, return_inverse=True),
    lambda x: torch.unique_consecutive(x),
    lambda x: x.nonzero(as_tuple=True),
    lambda x: x.repeat_interleave(torch.tensor([1, 2, 0, 1]), 0),
    lambda x: x[torch.tensor([True, False, True, True])],
    lambda x: torch.bincount(x.long().abs().flatten()),
]


@pytest.mark.parametrize("tracer", ["fx", "export"])
@pytest.mark.parametrize("number", range(len(NEW_SHAPES)))
def test_operators_that_make_a_shape_of_data(bench: Any, number: int, tracer: str) -> None:
    model = Calls(NEW_SHAPES[number])
    bench.check(model, (SQUARE,), tracer, "library")
    outcome = bench.check(model, (SQUARE,), tracer, "high-level")
    assert "R.call_pure_packed" in outcome.lowered.module.script()


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3)])
def test_tensors_of_odd_shapes(bench: Any, shape: tuple[int, ...]) -> None:
    bench.check(Calls(lambda x: (x + 1, x.sum())), (torch.ones(shape),), "fx", "library")
