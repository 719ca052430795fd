"""Arithmetic with NaN, infinities, zeros of both signs and the largest numbers, as torch has it."""

from __future__ import annotations

import pytest
import torch
import tvm
from torch import nn

from lowerscope.core.execution.building import build
from lowerscope.core.execution.running import Execution
from lowerscope.core.lowering.translator import lower
from lowerscope.core.passes.presets import find_pipeline
from lowerscope.core.passes.transforming import transform
from lowerscope.core.tracing.tracing import trace


class Arithmetic(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            torch.remainder(x, y),
            x % float("inf"),
            torch.floor_divide(x, y),
            x // 2,
            float("inf") // x,
            torch.div(x, y, rounding_mode="floor"),
            torch.hypot(x, y),
            torch.logaddexp(x, y),
            torch.lerp(x, y, 0.25),
            torch.lerp(x, y, 0.5),
            torch.lerp(x, y, torch.tensor(0.75, dtype=x.dtype)),
            x * 0,
            x / 0,
            x - x,
            torch.maximum(x, y),
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_special_values_give_what_torch_does(dtype: torch.dtype) -> None:
    # A quotient beyond the largest number makes NaN in vectors of torch, and not elsewhere.
    inf, nan, most = float("inf"), float("nan"), torch.finfo(dtype).max / 4
    values = [nan, inf, -inf, 0.0, -0.0, most, -most, 1.0, -1.0, 0.5, -2.5, 3.0]
    line = torch.tensor(values, dtype=dtype)
    x, y = (each.contiguous() for each in torch.meshgrid(line, line, indexing="ij"))
    model = Arithmetic().eval()
    name = str(dtype).removeprefix("torch.")
    specs = [(each, tuple(x.shape), name) for each in ("x", "y")]
    lowered = lower(trace(model, (x, y), "fx"), specs, "high-level")
    target = tvm.target.Target("llvm")
    made = transform(lowered.module, find_pipeline("cpu").steps, target=target)
    made.check()
    actual = Execution(build(made.module, target).executable, "main", (x, y)).outputs()
    for ours, theirs in zip(actual, model(x, y), strict=True):
        torch.testing.assert_close(torch.as_tensor(ours), theirs, equal_nan=True)
