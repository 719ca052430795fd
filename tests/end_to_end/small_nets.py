"""Texts of small model files, and writing them."""

from __future__ import annotations

from pathlib import Path

NET = """
import torch
from torch import nn

class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)
    def forward(self, x):
        return self.linear(x)
"""

EXAMPLES = """
def example_inputs():
    return (torch.ones(1, 4),)
"""


def write(path: Path, text: str) -> str:
    """Write a model file and return its path."""
    path.write_text(text)
    return str(path)
