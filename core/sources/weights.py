"""Reading of torch's files as weights only, so that nothing in them runs.

`torch.load` is restricted to safe unpickling; rejected imports are named. A tensor may stand for
more values than the file has, by strides of 0: its size is checked before it is materialized.
"""

from __future__ import annotations

import re
import warnings
import zipfile
from pathlib import Path
from typing import Any

import torch

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.sources.array_files import UnreadableArrays, check_bytes
from lowerscope.core.sources.pickles import import_text, imports_of

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

    Parameters
    ----------
    what
        The expected content, for the message.

    Raises
    ------
    LowerscopeError
        If it is damaged, or would import something to make an object; the import is named, and
        nothing of it has run.
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
                f"loading it would import {refused}, and is refused: it may hold tensors only",
                where=str(path),
                todo="Save tensors, or a model's state_dict(), with torch.save",
            ) from None
        raise LowerscopeError(
            f"this is not {what} ({_sentence(error)})",
            where=str(path),
            todo="Save it again with torch.save",
        ) from None


def check_tensor(value: torch.Tensor, name: str, path: Path) -> None:
    """Raise a `LowerscopeError` unless a tensor is dense, on the CPU, and not too large.

    Parameters
    ----------
    name
        Its name, for the message.
    """
    reason = ""
    if value.layout != torch.strided or value.device.type != "cpu" or value.is_quantized:
        kind = "quantised" if value.is_quantized else f"{value.layout} on {value.device.type}"
        reason = f"a tensor of {value.dtype}, {kind}, which is not read"
    else:
        try:
            check_bytes(value.numel() * value.element_size())
        except UnreadableArrays as error:
            reason = str(error)
    if reason:
        raise LowerscopeError(
            f"{name}: {reason}", where=str(path), todo="Save a dense tensor of the CPU"
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
        return "it is no file of torch's"
    line = str(error).strip().partition("\n")[0].partition(". ")[0].partition("  (")[0]
    return line[:160].rstrip(".: ") or type(error).__name__
