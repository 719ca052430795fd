"""Library files and rules that bring a run to a bad end, each in a way of its own."""

from __future__ import annotations

from pathlib import Path

from lowerscope.core.recipe import Extension

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
NEVER_ENDS = "while True: time.sleep(0.01)"
GIVES_NAN = "np.from_dlpack(out)[..., 3] = np.nan"
ASKS_FOR_MUCH = "np.ones(1 << 40, dtype='uint8')"

# What is spoilt is found out later: here, in the third call, by an end as the C library makes it.
WRITES_BEHIND = """array = np.from_dlpack(out)
    spoilt = np.lib.stride_tricks.as_strided(array.reshape(-1), (array.size + 8,), (4,))
    spoilt[array.size:] = 7
    faulty.calls = getattr(faulty, "calls", 0) + 1
    if faulty.calls == 3: ctypes.CDLL(None).abort()"""

# Each stays within its own limit, and together they do not.
STARTS_HOGS = """code = "import time; held = bytearray(b'x') * 500_000_000; time.sleep(60)"
    for _ in range(4): subprocess.Popen([sys.executable, "-c", code])
    time.sleep(60)"""


def faulty_relu(folder: Path, body: str) -> tuple[Extension, ...]:
    """Write a file whose function stands in for ReLU, and return it as the extensions it is."""
    path = folder / "faulty.py"
    path.write_text(_FILE.format(body=body))
    return (Extension(path=str(path), kind="rules"), Extension(path=str(path), kind="library"))
