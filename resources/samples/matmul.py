"""One large matrix multiplication, to measure the effect of a schedule on its three loops."""

import math

import torch
from torch import nn


class Matmul(nn.Module):
    def __init__(self, size: int = 512) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size, size) / math.sqrt(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.matmul(x, self.weight)


def example_inputs() -> tuple[torch.Tensor, ...]:
    return (torch.randn(512, 512),)
