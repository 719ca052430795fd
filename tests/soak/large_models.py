"""Writes models that are large in one way each: deep, wide, or heavy with weights."""

from __future__ import annotations

from pathlib import Path

_DEEP = """
import torch
from torch import nn

class DeepMLP(nn.Module):
    def __init__(self, layers: int = {layers}, width: int = 64) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x)) + x * 0.5
        return x

def example_inputs():
    return torch.randn(1, 64)
"""

_TRANSFORMER = """
import math
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.size = width // heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(x.size(0), x.size(1), self.heads, self.size).transpose(1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = (self.split(each(x)) for each in (self.query, self.key, self.value))
        scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(self.size)
        mixed = torch.matmul(torch.softmax(scores, dim=-1), value).transpose(1, 2)
        return self.out(mixed.reshape(x.size(0), x.size(1), self.heads * self.size))

class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
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

class Transformer(nn.Module):
    def __init__(self, layers: int = {layers}, width: int = {width}, heads: int = {heads}) -> None:
        super().__init__()
        self.tokens = nn.Embedding({words}, width)
        self.places = nn.Embedding({length}, width)
        self.register_buffer("order", torch.arange({length}))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, {words}, bias=False)
        self.head.weight = self.tokens.weight
        # As GPT-2 begins: with weights of 1, logits are in the hundreds, and sums that come to next
        # to nothing among them are as inexact in torch.
        nn.init.normal_(self.tokens.weight, std=0.02)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.tokens(ids) + self.places(self.order)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

entry = "Transformer"

def example_inputs():
    return torch.randint(0, {words}, (1, {length}))
"""

_HEAVY = """
import torch
from torch import nn

class Heavy(nn.Module):
    def __init__(self, layers: int = {layers}, width: int = {width}) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x

def example_inputs():
    return torch.randn(1, {width})
"""


def write_deep_mlp(folder: Path, layers: int) -> Path:
    """Write a perceptron of many small layers, each with a residual."""
    return _write(folder / "deep_mlp.py", _DEEP.format(layers=layers))


def write_transformer(folder: Path, layers: int, width: int, words: int, length: int) -> Path:
    """Write a transformer with the embeddings and the head of a language model, which are tied."""
    text = _TRANSFORMER.format(
        layers=layers, width=width, heads=width // 64, words=words, length=length
    )
    return _write(folder / "transformer.py", text)


def write_heavy(folder: Path, layers: int, width: int) -> Path:
    """Write a model of a few layers of ``4 * width ** 2`` bytes of weights each."""
    return _write(folder / "heavy.py", _HEAVY.format(layers=layers, width=width))


def _write(file: Path, text: str) -> Path:
    file.write_text(text.lstrip())
    return file
