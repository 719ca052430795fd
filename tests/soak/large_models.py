"""Models that are large in one way each: deep, or heavy with weights."""

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


def write_heavy(folder: Path, layers: int, width: int) -> Path:
    """Write a model of a few layers of ``4 * width ** 2`` bytes of weights each."""
    return _write(folder / "heavy.py", _HEAVY.format(layers=layers, width=width))


def _write(file: Path, text: str) -> Path:
    file.write_text(text.lstrip())
    return file
