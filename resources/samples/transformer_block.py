"""One transformer block with its attention written out: layer norms, GELU and two residuals.

The sizes are those of the constructor, so that no shape decides what is computed and the block
can be traced symbolically.
"""

import math

import torch
from torch import nn

entry = "TransformerBlock"


class Attention(nn.Module):
    """Every position looks at every other, in several heads."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.size = width // heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        """Turn (batch, length, width) into (batch, head, length, size)."""
        return x.view(x.size(0), x.size(1), self.heads, self.size).transpose(1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query = self.split(self.query(x))
        key = self.split(self.key(x))
        value = self.split(self.value(x))
        scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(self.size)
        weights = torch.softmax(scores, dim=-1)
        mixed = torch.matmul(weights, value).transpose(1, 2)
        return self.out(mixed.reshape(x.size(0), x.size(1), self.heads * self.size))


class TransformerBlock(nn.Module):
    def __init__(self, width: int = 256, heads: int = 4) -> None:
        super().__init__()
        self.norm0 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm1 = nn.LayerNorm(width)
        self.linear0 = nn.Linear(width, 4 * width)
        self.gelu = nn.GELU()
        self.linear1 = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm0(x))
        return x + self.linear1(self.gelu(self.linear0(self.norm1(x))))


def example_inputs() -> tuple[torch.Tensor, ...]:
    return (torch.randn(1, 64, 256),)
