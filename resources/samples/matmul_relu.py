"""One matrix multiplication and one ReLU: the smallest model worth lowering.

The weight is a parameter of the module, so it turns up in the FX graph as a `get_attr` node.
"""

import math

import torch
from torch import nn


class MatmulRelu(nn.Module):
    def __init__(self, size: int = 128) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size, size) / math.sqrt(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(torch.matmul(x, self.weight))


def example_inputs() -> tuple[torch.Tensor, ...]:
    return (torch.randn(1, 128),)
