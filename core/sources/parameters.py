"""Loading arrays from a file into the parameters of a model."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.sources.pickles import ForbiddenImport, load_arrays
from lowerscope.core.sources.spec import check_readable

Arrays = dict[str, np.ndarray[Any, Any]]

_NUMBERED = re.compile(r"([wb])(\d+)")


def read_arrays(path: Path) -> Arrays:
    """Read named arrays from an ``.npz``, or from a pickle of a dictionary of NumPy arrays.

    The pickle is read by an unpickler that allows NumPy arrays and nothing else.

    Raises
    ------
    LowerscopeError
        If the file cannot be read, would run code, or holds anything but named arrays.
    """
    check_readable(path, "parameters")
    data = path.read_bytes()
    value = _read_archive(path) if data[:2] == b"PK" else _read_pickle(path, data)
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise LowerscopeError(
            f"it holds a {type(value).__name__}, not a dictionary of names and arrays",
            where=str(path),
            todo="Save a dictionary of NumPy arrays",
        )
    arrays = {}
    for key, entry in value.items():
        if not isinstance(entry, (np.ndarray, np.generic)) or entry.dtype.kind not in "fiub":
            kind = entry.dtype if isinstance(entry, np.ndarray) else type(entry).__name__
            raise LowerscopeError(
                f"{key} is not an array of numbers but {kind}",
                where=str(path),
                todo="Save a dictionary of NumPy arrays",
            )
        arrays[key] = np.array(entry)
    return arrays


def _read_archive(path: Path) -> object:
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            if any(name.endswith("data.pkl") for name in archive.files):
                raise ValueError("it is a checkpoint of torch")
            return {name: archive[name] for name in archive.files}
    except (ValueError, EOFError, OSError, MemoryError, zipfile.BadZipFile) as error:
        lines = str(error).splitlines() or [type(error).__name__]
        raise LowerscopeError(
            f"this is not an archive of NumPy arrays ({lines[0]})",
            where=str(path),
            todo="Save the arrays with np.savez",
        ) from None


def _read_pickle(path: Path, data: bytes) -> object:
    try:
        return load_arrays(data)
    except ForbiddenImport as error:
        raise LowerscopeError(
            f"the pickle would import {error}, and is refused: it may hold NumPy arrays only",
            where=str(path),
            todo="Save a dictionary of NumPy arrays, with pickle or np.savez",
        ) from None
    except Exception as error:  # a damaged pickle can raise any type
        raise LowerscopeError(
            f"this is not a pickle of NumPy arrays ({type(error).__name__}: {error})",
            where=str(path),
            todo="Save a dictionary of NumPy arrays, with pickle or np.savez",
        ) from None


def load_into(model: torch.nn.Module, arrays: Arrays, where: str) -> None:
    """Put `arrays` into the parameters of `model`; no arrays change nothing.

    Keys are the names of the state dictionary, or w0, b0, w1, b1, … for the weights and biases of
    the layers in their order. Values are converted to the dtype of the parameter.

    Raises
    ------
    LowerscopeError
        If a name, a shape or the number of layers does not match.
    """
    if not arrays:
        return
    state = model.state_dict(keep_vars=True)
    names = names_for(model, arrays, where)
    for key, array in arrays.items():
        target = state[names[key]]
        if tuple(target.shape) != array.shape:
            raise LowerscopeError(
                f"{key} has the shape {array.shape}, but {names[key]} has {tuple(target.shape)}",
                where=where,
            )
    with torch.no_grad():
        for key, array in arrays.items():
            native = array.astype(array.dtype.newbyteorder("="))
            state[names[key]].copy_(torch.from_numpy(native))


def names_for(model: torch.nn.Module, arrays: Arrays, where: str) -> dict[str, str]:
    """Return the parameter of `model` that each of `arrays` is for: see `load_into`."""
    state = model.state_dict(keep_vars=True)
    names = {key: key for key in arrays}
    if not set(arrays) <= set(state) and all(_NUMBERED.fullmatch(key) for key in arrays):
        names = _numbered_names(model, list(arrays), where)
    unknown = [key for key in arrays if names[key] not in state]
    if unknown:
        raise LowerscopeError(
            f"the model has no parameter called {', '.join(unknown)}",
            where=where,
            todo=f"It has {', '.join(state)}; or number them w0, b0, w1, b1, …",
        )
    given = {names[key] for key in arrays}
    missing = [name for name, _ in model.named_parameters() if name not in given]
    if missing:
        raise LowerscopeError(
            f"there is nothing for {', '.join(missing)}",
            where=where,
            todo="Give every parameter of the model",
        )
    return names


def _numbered_names(model: torch.nn.Module, keys: list[str], where: str) -> dict[str, str]:
    """Return the parameter for each of w0, b0, w1, b1, …

    A layer is a parameter of two or more dimensions; the one-dimensional parameter of the same
    module that follows is its bias.
    """
    found: dict[str, str] = {}
    layers = 0
    last = ""
    for name, parameter in model.named_parameters():
        owner = name.rpartition(".")[0]
        if parameter.dim() >= 2:
            found[f"w{layers}"] = name
            layers, last = layers + 1, owner
        elif parameter.dim() == 1 and layers and owner == last:
            found.setdefault(f"b{layers - 1}", name)
    unknown = [key for key in keys if key not in found]
    if unknown:
        raise LowerscopeError(
            f"the model has no layer for {', '.join(unknown)}",
            where=where,
            todo=f"Its layers are {', '.join(f'{key} ({name})' for key, name in found.items())}",
        )
    return found
