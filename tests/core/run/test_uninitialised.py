"""Elements of memory that is not initialised, which are not compared."""

from __future__ import annotations

import torch
from torch import nn

from lowerscope.core.run.compare.uninitialised import uninitialised
from lowerscope.core.tracing.tracing import trace


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
