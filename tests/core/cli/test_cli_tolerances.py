"""Tolerances on the command line, on a model in half precision."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lowerscope.core.cli.main import main

HALF = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(512, 64).half()
    def forward(self, x):
        return self.linear(x), self.linear(x).float()

def example_inputs():
    return (torch.randn(4, 512).half(),)
"""


WITHIN = """
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        return x.to(torch.float32).softmax(-1).to(torch.float64)

class Half(nn.Module):
    def forward(self, x):
        h = x.half()
        return (h.sin() * h + h.cos()).to(x.dtype)

def example_inputs():
    return (torch.randn(64, 500, dtype=torch.float64),)
"""


@pytest.mark.parametrize("entry", ["Net", "Half"])
def test_a_coarser_dtype_on_the_way_is_rounding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], entry: str
) -> None:
    net = tmp_path / "net.py"
    net.write_text(WITHIN)
    code = main(["run", f"{net}:{entry}", "--json"])
    record = json.loads(capsys.readouterr().out)
    assert (code, record["verdict"]) == (0, "match")
    assert "by rounding" in record["reason"]
