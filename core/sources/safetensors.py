"""Files of ``safetensors``, in which Hugging Face keeps weights: a header of JSON, then the values.

Nothing in such a file can be run. https://huggingface.co/docs/safetensors has the format.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.sources.array_files import UnreadableArrays, check_bytes

SUFFIX = ".safetensors"

_LENGTH = 8
_LONGEST_HEADER = 100_000_000
"""Bytes; longer ones are refused by the format's own library as well."""

_BFLOAT16 = "BF16"
_DTYPES = {
    **{f"F{bits}": f"<f{bits // 8}" for bits in (16, 32, 64)},
    **{f"I{bits}": f"<i{bits // 8}" for bits in (8, 16, 32, 64)},
    **{f"U{bits}": f"<u{bits // 8}" for bits in (8, 16, 32, 64)},
    "BOOL": "|b1",
    _BFLOAT16: "<u2",
}


def read_safetensors(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of a file by name; ``bfloat16`` as float32, which has all its values.

    Raises
    ------
    LowerscopeError
        If it is damaged, too large for this machine, or has a dtype that NumPy has not.
    """
    try:
        size = path.stat().st_size
        check_bytes(size)
        with path.open("rb") as stream:
            length = int.from_bytes(stream.read(_LENGTH), "little")
            if not 0 < length <= min(_LONGEST_HEADER, size - _LENGTH):
                raise ValueError("its header has no length that fits")
            header = json.loads(stream.read(length))
        entries = {key: value for key, value in header.items() if key != "__metadata__"}
        values = np.memmap(path, np.uint8, "r", _LENGTH + length) if entries else np.empty(0, "u1")
        return {key: _array(key, entry, values) for key, entry in entries.items()}
    except UnreadableArrays as error:
        raise LowerscopeError(str(error), where=str(path)) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OSError) as error:
        raise LowerscopeError(
            f"this is not a file of safetensors ({type(error).__name__}: {str(error)[:160]})",
            where=str(path),
            todo="Save it again with safetensors.torch.save_file",
        ) from None


def _array(name: str, entry: dict[str, Any], values: np.ndarray[Any, Any]) -> Any:
    kind, (begin, end) = entry["dtype"], entry["data_offsets"]
    shape = tuple(int(extent) for extent in entry["shape"])
    if kind not in _DTYPES:
        raise ValueError(f"{name} is of the dtype {kind}")
    dtype = np.dtype(_DTYPES[kind])
    count = math.prod(shape)
    if not 0 <= begin <= end <= len(values) or end - begin != count * dtype.itemsize:
        raise ValueError(f"the place of {name} does not fit its shape")
    flat = np.frombuffer(values[begin:end].tobytes(), dtype)
    if kind == _BFLOAT16:
        flat = (flat.astype("<u4") << 16).view("<f4")
    return flat.reshape(shape)
