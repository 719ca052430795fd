"""Library files and rules that bring a run to a bad end, each in a way of its own."""

from __future__ import annotations

from pathlib import Path

from lowerscope.core.model.recipe import Extension

_FILE = """
import ctypes
import subprocess
import sys
import time
import numpy as np
import torch
import tvm
from tvm import relax
from lowerscope.core.rules import rule


def relu(x, out):
    np.maximum(np.from_dlpack(x), 0, out=np.from_dlpack(out))


@tvm.register_global_func("env.faulty", override=True)
def faulty(x, out):
    relu(x, out)
    {body}


@rule(torch.nn.ReLU)
def calls_faulty(builder, node, x):
    kind = relax.TensorType(tuple(node.shape), node.dtype)
    return builder.emit(relax.call_dps_packed("env.faulty", (x,), out_ty=kind))
"""

CRASHES = "ctypes.string_at(8)"
RAISES = "raise ValueError('not this one')"
ASKS_FOR_MUCH = "np.ones(1 << 40, dtype='uint8')"


def files(folder: Path, body: str) -> str:
    """Write a file, of rules and of functions, that replaces ReLU; return its path."""
    path = folder / "faulty.py"
    path.write_text(_FILE.format(body=body))
    return str(path)


def faulty_relu(folder: Path, body: str) -> tuple[Extension, ...]:
    """Write such a file, and return it as the extensions that it is."""
    path = files(folder, body)
    return (Extension(path=path, kind="rules"), Extension(path=path, kind="library"))
