"""Loading arrays from a file into the parameters of a model."""

from __future__ import annotations

import re
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from lowerscope.core.files.paths import check_readable
from lowerscope.core.model.problems import LowerscopeError, listed
from lowerscope.core.model.texts import _
from lowerscope.core.sources.array_files import (
    ForbiddenImport,
    UnreadableArrays,
    check_bytes,
    import_text,
    imports_of,
    is_archive,
    load_arrays,
    read_npz,
)

SUFFIX = ".safetensors"

_OF_NUMPY = (torch.float16, torch.float32, torch.float64)


def read_safetensors(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of a file by name.

    Floats that NumPy lacks, such as ``bfloat16``, are returned as float32, which represents all
    their values.

    Raises `LowerscopeError` if it is damaged, or too large for this machine.
    """
    try:
        check_bytes(path.stat().st_size)
        tensors = load_file(path)
    except UnreadableArrays as error:
        raise LowerscopeError(str(error), where=str(path)) from None
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise LowerscopeError(
            _("this is not a file of safetensors ({error})", error=str(error)[:160]),
            where=str(path),
            todo=_("Save it again with safetensors.torch.save_file"),
        ) from None
    return {name: _array(tensor) for name, tensor in tensors.items()}


def _array(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    widened = tensor.is_floating_point() and tensor.dtype not in _OF_NUMPY
    return (tensor.float() if widened else tensor).numpy()


LEGACY = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
"""First bytes of the files that torch wrote before it used archives."""

_REFUSED = re.compile(
    r"(?:GLOBAL|Unsupported global:|Unsupported class|unsupported class|unrecognized function)"
    r" (?:GLOBAL )?([\w.<>' ]+?)(?: was not| is not| whose|\.? |$|\n)"
)
_PICKLE = "data.pkl"


def is_torch_file(path: Path) -> bool:
    """Return whether a file has the form of one written by ``torch.save``."""
    try:
        with path.open("rb") as stream:
            start = stream.read(len(LEGACY))
        if start == LEGACY:
            return True
        if start[:2] != b"PK":
            return False
        with zipfile.ZipFile(path) as archive:
            return any(name.rpartition("/")[2] == _PICKLE for name in archive.namelist())
    except Exception:  # zipfile raises any type for damage; the reader of the file reports it
        return False


def load_weights(path: Path, what: str) -> Any:
    """Return the content of a file of torch's: tensors, and containers, strings and numbers.

    Raises `LowerscopeError` if it is damaged, or would import something to make an object; the
    import is named, and nothing of it has run.
    """
    try:
        _check_size(path)
        with warnings.catch_warnings():
            # torch warns of storages and quantised dtypes that it makes itself.
            warnings.simplefilter("ignore")
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch.load raises any type for a file that is not its own
        refused = _imports(path, error)
        if refused:
            raise LowerscopeError(
                _(
                    "loading it would import {refused}, which is rejected: it may hold only "
                    "tensors",
                    refused=refused,
                ),
                where=str(path),
                todo=_("Save tensors, or a model's state_dict(), with torch.save"),
            ) from None
        raise LowerscopeError(
            _("this is not {what} ({sentence})", what=what, sentence=_sentence(error)),
            where=str(path),
            todo=_("Save it again with torch.save"),
        ) from None


def check_tensor(value: torch.Tensor, name: str, path: Path) -> None:
    """Raise a `LowerscopeError` unless a tensor is dense, on the CPU, and not too large.

    A tensor may stand for more values than the file has, by strides of 0: its size is checked
    before it is allocated.
    """
    reason = ""
    if value.layout != torch.strided or value.device.type != "cpu" or value.is_quantized:
        kind = (
            _("quantised")
            if value.is_quantized
            else _("{layout} on {device}", layout=value.layout, device=value.device.type)
        )
        reason = _(
            "a tensor of {dtype}, {kind}, which is not supported", dtype=value.dtype, kind=kind
        )
    else:
        try:
            check_bytes(value.numel() * value.element_size())
        except UnreadableArrays as error:
            reason = str(error)
    if reason:
        raise LowerscopeError(
            f"{name}: {reason}", where=str(path), todo=_("Save a dense tensor on the CPU")
        )


def _check_size(path: Path) -> None:
    with path.open("rb") as stream:
        if stream.read(2) != b"PK":
            return
    with zipfile.ZipFile(path) as archive:
        check_bytes(sum(entry.file_size for entry in archive.infolist()))


def _imports(path: Path, error: Exception) -> str:
    """Return the imports that torch has rejected; empty if the error has another reason."""
    text = str(error)
    if "weights_only" not in text and "Weights only" not in text:
        return ""
    found = _REFUSED.search(text)
    if found is not None:
        return found[1].strip().removesuffix(".")
    return import_text(imports_of(_pickle_in(path)))


def _pickle_in(path: Path) -> bytes:
    try:
        with zipfile.ZipFile(path) as archive:
            name = next(each for each in archive.namelist() if each.endswith(_PICKLE))
            return archive.read(name)
    except Exception:  # no archive, or damage, for which zipfile raises any type
        return path.read_bytes()


def _sentence(error: Exception) -> str:
    if "Weights only" in str(error):
        return _("it is not a torch file")
    line = str(error).strip().partition("\n")[0].partition(". ")[0].partition("  (")[0]
    return line[:160].rstrip(".: ") or type(error).__name__


Arrays = dict[str, np.ndarray[Any, Any]]

_NUMBERED = re.compile(r"([wb])(\d+)")


def read_arrays(path: Path) -> Arrays:
    """Read named arrays from an ``.npz``, a pickle of a dictionary, safetensors, or torch's file.

    A pickle is read by an unpickler that allows NumPy arrays only, and files of torch as weights
    only.

    Raises `LowerscopeError` if the file cannot be read, would run code, or holds anything but named
    arrays.
    """
    check_readable(path)
    value: object
    if path.suffix.lower() == SUFFIX:
        value = read_safetensors(path)
    else:
        value = _read_torch(path) if is_torch_file(path) else _read_numpy(path)
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise LowerscopeError(
            _("it holds a {name}, not a dictionary of names and arrays", name=type(value).__name__),
            where=str(path),
            todo=_("Save a dictionary of NumPy arrays"),
        )
    arrays = {}
    for key, entry in value.items():
        if not isinstance(entry, (np.ndarray, np.generic)) or entry.dtype.kind not in "fiub":
            kind = entry.dtype if isinstance(entry, np.ndarray) else type(entry).__name__
            raise LowerscopeError(
                _("{key} is not an array of numbers but {kind}", key=key, kind=kind),
                where=str(path),
                todo=_("Save a dictionary of NumPy arrays"),
            )
        arrays[key] = np.array(entry)
    return arrays


def _read_torch(path: Path) -> object:
    """Read a state dictionary, or a checkpoint that has one as ``state_dict``."""
    value = load_weights(path, _("a checkpoint of torch"))
    if isinstance(value, dict) and isinstance(value.get("state_dict"), dict):
        value = value["state_dict"]
    if not isinstance(value, dict):
        return value
    arrays: dict[object, object] = {}
    for key, entry in value.items():
        if isinstance(entry, torch.Tensor):
            check_tensor(entry, str(key), path)
            # NumPy has no bfloat16; float32 represents all its values.
            plain = entry.float() if entry.dtype == torch.bfloat16 else entry
            arrays[key] = plain.detach().numpy()
        else:
            arrays[key] = entry
    return arrays


def _read_numpy(path: Path) -> object:
    if not is_archive(path):
        return _read_pickle(path, path.read_bytes())
    try:
        return read_npz(path)[1]
    except UnreadableArrays as error:
        raise LowerscopeError(
            _("this is not an archive of NumPy arrays ({error})", error=error),
            where=str(path),
            todo=_("Save the arrays with np.savez"),
        ) from None


def _read_pickle(path: Path, data: bytes) -> object:
    try:
        return load_arrays(data)
    except ForbiddenImport as error:
        raise LowerscopeError(
            _(
                "the pickle would import {error}, which is rejected: it may hold only NumPy arrays",
                error=error,
            ),
            where=str(path),
            todo=_("Save a dictionary of NumPy arrays, with pickle or np.savez"),
        ) from None
    except Exception as error:  # a damaged pickle can raise any type
        raise LowerscopeError(
            _(
                "this is not a pickle of NumPy arrays ({name}: {line})",
                name=type(error).__name__,
                line=_line(error),
            ),
            where=str(path),
            todo=_("Save a dictionary of NumPy arrays, with pickle or np.savez"),
        ) from None


def _line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:160]


def load_into(model: torch.nn.Module, arrays: Arrays, where: str) -> None:
    """Load `arrays` into the parameters of `model`; an empty mapping changes nothing.

    Keys are the names of the state dictionary, or w0, b0, w1, b1, … for the weights and biases of
    the layers in order. Values are converted to the dtype of the parameter.

    Raises `LowerscopeError` if a name, a shape or the number of layers does not match.
    """
    if not arrays:
        return
    state = model.state_dict(keep_vars=True)
    names = names_for(model, arrays, where)
    for key, array in arrays.items():
        target = state[names[key]]
        if tuple(target.shape) != array.shape:
            raise LowerscopeError(
                _(
                    "{key} has the shape {shape}, but {name} has {shape2}",
                    key=key,
                    shape=array.shape,
                    name=names[key],
                    shape2=tuple(target.shape),
                ),
                where=where,
            )
    with torch.no_grad():
        for key, array in arrays.items():
            native = array.astype(array.dtype.newbyteorder("="))
            state[names[key]].copy_(torch.from_numpy(native))


def names_for(model: torch.nn.Module, arrays: Arrays, where: str) -> dict[str, str]:
    """Return the parameter of `model` for each of `arrays`: see `load_into`.

    Raises `LowerscopeError` if an array matches no parameter, or a parameter has no array.
    """
    state = model.state_dict(keep_vars=True)
    names = {key: key for key in arrays}
    if not set(arrays) <= set(state) and all(_NUMBERED.fullmatch(key) for key in arrays):
        names = _numbered_names(model, list(arrays), where)
    unknown = [key for key in arrays if names[key] not in state]
    if unknown:
        raise LowerscopeError(
            _("the model has no parameter called {listed}", listed=listed(unknown)),
            where=where,
            todo=_(
                "It has {listed}; or number them w0, b0, w1, b1, …", listed=listed(tuple(state))
            ),
        )
    given = {names[key] for key in arrays}
    missing = [name for name, _other in model.named_parameters() if name not in given]
    if missing:
        raise LowerscopeError(
            _("missing: {listed}", listed=listed(missing)),
            where=where,
            todo=_("Give every parameter of the model"),
        )
    return names


def _numbered_names(model: torch.nn.Module, keys: list[str], where: str) -> dict[str, str]:
    """Return the parameter for each of w0, b0, w1, b1, …

    A layer is a parameter of two or more dimensions; its bias is the one-dimensional parameter of
    the same module that follows.
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
            _("the model has no layer for {unknown}", unknown=_(", ").join(unknown)),
            where=where,
            todo=_(
                "Its layers are {value}",
                value=_(", ").join((f"{key} ({name})" for key, name in found.items())),
            ),
        )
    return found
