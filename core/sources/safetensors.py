"""Reading of ``safetensors``, Hugging Face's format of weights, which holds no code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.sources.array_files import UnreadableArrays, check_bytes

SUFFIX = ".safetensors"

_OF_NUMPY = (torch.float16, torch.float32, torch.float64)


def read_safetensors(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of a file by name.

    Floats that NumPy lacks, such as ``bfloat16``, are returned as float32, which represents all
    their values.

    Raises
    ------
    LowerscopeError
        If it is damaged, or too large for this machine.
    """
    try:
        check_bytes(path.stat().st_size)
        tensors = load_file(path)
    except UnreadableArrays as error:
        raise LowerscopeError(str(error), where=str(path)) from None
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise LowerscopeError(
            f"this is not a file of safetensors ({str(error)[:160]})",
            where=str(path),
            todo="Save it again with safetensors.torch.save_file",
        ) from None
    return {name: _array(tensor) for name, tensor in tensors.items()}


def _array(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    widened = tensor.is_floating_point() and tensor.dtype not in _OF_NUMPY
    return (tensor.float() if widened else tensor).numpy()
