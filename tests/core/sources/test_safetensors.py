"""Parameters from files of safetensors, and what is refused of them."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lowerscope.core.sources.parameters import load_into, read_arrays
from tests.problems import problem_of

KINDS = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "bool": "BOOL"}


def saved(path: Path, tensors: dict[str, torch.Tensor]) -> Path:
    """Write tensors as the format's page says."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    values = b""
    for name, tensor in tensors.items():
        data = tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes()
        header[name] = {
            "dtype": KINDS[str(tensor.dtype).removeprefix("torch.")],
            "shape": list(tensor.shape),
            "data_offsets": [len(values), len(values) + len(data)],
        }
        values += data
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + values)
    return path


def test_a_state_dictionary_is_loaded_in_every_dtype(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    state = {key: torch.randn(each.shape) for key, each in model.named_parameters()}
    state["0.bias"] = state["0.bias"].bfloat16()
    state["1.weight"] = state["1.weight"].half()
    state["1.num_batches_tracked"] = torch.tensor(7)
    arrays = read_arrays(saved(tmp_path / "model.safetensors", state))
    load_into(model, arrays, "model.safetensors")
    for key, wanted in state.items():
        assert torch.equal(model.state_dict()[key], wanted.to(model.state_dict()[key].dtype)), key


def test_what_is_damaged_is_refused_in_a_line(tmp_path: Path) -> None:
    whole = saved(tmp_path / "a.safetensors", {"w": torch.ones(2, 3)}).read_bytes()
    header = whole[8:-24]
    for data in (
        b"",
        whole[:20],
        whole[:-1],
        struct.pack("<Q", 2**62) + whole[8:],
        struct.pack("<Q", 4) + b"[[1]",
        whole.replace(b"[2, 3]", b"[2,30]"),
        whole.replace(b"F32", b"F99"),
        whole.replace(b'"shape"', b'"shapE"'),
        whole.replace(header, b"[" * len(header)),
    ):
        (tmp_path / "bad.safetensors").write_bytes(data)
        line = problem_of(read_arrays, tmp_path / "bad.safetensors").line()
        assert "not a file of safetensors" in line
    names = {f"encoder.{number}.weight": np.ones(2) for number in range(300)}
    problem = problem_of(load_into, torch.nn.Linear(2, 2), names, "x.safetensors")
    assert "and 288 more" in problem.what
