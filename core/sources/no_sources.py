"""Errors for paths that are not sources, with suggestions of files to open instead.

Imports no torch: the command line and the window use it before an engine runs.
"""

from __future__ import annotations

import difflib
from pathlib import Path

from lowerscope.core.errors import LowerscopeError, listed
from lowerscope.core.sources.samples import PREFIX, SAMPLES

MODELS = (".py", ".pt2")
WEIGHTS = (".pt", ".pth", ".bin", ".ckpt", ".safetensors", ".pkl", ".npz")
"""Suffixes of files that hold parameters of a model, but no model."""

_OTHERS = {
    ".onnx": "an ONNX model",
    ".tflite": "a TensorFlow Lite model",
    ".pb": "a TensorFlow model",
    ".h5": "a Keras model",
    ".keras": "a Keras model",
}
_SHOWN = 4


def missing(path: Path) -> LowerscopeError:
    """Return the error for a source that does not exist, with a similar name."""
    close = _close_to(path)
    todo = f"Did you mean {close}?" if close else "Check the path of the source"
    return LowerscopeError("there is no such file", where=str(path), todo=todo)


def folder(path: Path) -> LowerscopeError:
    """Return the error for a folder, with the files in it that can be opened."""
    models = [each.name for each in _inside(path) if each.suffix.lower() in MODELS]
    if models:
        todo = f"Open one of its files: {listed(models, _SHOWN)}"
    elif (path / "config.json").is_file():
        todo = (
            "Open a Python file that makes its model, such as by "
            "AutoModel.from_pretrained of this folder"
        )
    else:
        todo = "Open a Python file with a model, or a .pt2"
    return LowerscopeError("this is a folder, not a file", where=str(path), todo=todo)


def of_another_kind(path: Path) -> LowerscopeError:
    """Return the error for a file that is neither Python nor an exported program."""
    suffix = path.suffix.lower()
    what = f"{suffix or 'a file without an ending'} is neither .py nor .pt2"
    todo = "Open a Python file with a model, or a program saved by torch.export.save"
    if suffix in WEIGHTS:
        what = f"a {suffix} file is read for weights, and is not opened as a model"
        todo = (
            f"Open the model's Python file with --params {path.name}, or in the window with "
            "Lowering → Load parameters"
        )
    elif suffix in _OTHERS:
        what = f"{_OTHERS[suffix]} is not opened"
        todo = "Open the PyTorch model, as a Python file or as .pt2 from torch.export.save"
    elif suffix == ".ipynb":
        what = "a notebook is not opened"
        todo = "Call explore(model, inputs) in it: from lowerscope.core import explore"
    return LowerscopeError(what, where=str(path), todo=todo)


def no_sample(name: str) -> LowerscopeError:
    """Return the error for a sample that does not exist."""
    close = difflib.get_close_matches(name, SAMPLES, 1)
    meant = f"Did you mean {PREFIX}{close[0]}? " if close else ""
    return LowerscopeError(
        f"there is no sample called {name!r}" if name else "the name of the sample is missing",
        where=PREFIX + name,
        todo=f"{meant}The samples are {', '.join(SAMPLES)}",
        choices=tuple(PREFIX + sample for sample in SAMPLES),
    )


def _close_to(path: Path) -> str:
    if path.name in SAMPLES:
        return PREFIX + path.name
    if difflib.get_close_matches(path.name, [PREFIX.removesuffix(":")], 1, 0.8):
        return f"{PREFIX}NAME"
    names = [each.name for each in _inside(path.parent) if each.suffix.lower() in MODELS]
    return next(iter(difflib.get_close_matches(path.name, names, 1)), "")


def _inside(path: Path) -> list[Path]:
    try:
        return sorted(path.iterdir())
    except (OSError, ValueError):
        # The folder does not exist either, or may not be read.
        return []
