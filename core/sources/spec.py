"""Syntax of a source on the command line: ``sample:NAME``, ``FILE.py[:ENTRY]``, ``FILE.pt2``.

A model in the memory of a Python process, which `core.sources.handed_over` reads, has a name too.

Imports no torch, so that the window and the command line can parse a source before an engine runs.
"""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path, PurePath
from typing import Literal, NamedTuple

from lowerscope.core.errors import LowerscopeError, listed
from lowerscope.core.recipe import Recipe
from lowerscope.core.user_paths import check_readable, user_path, why_unreadable
from lowerscope.resources import SAMPLES as FOLDER

SAMPLES = (
    "matmul_relu",
    "matmul",
    "fashion_mlp",
    "conv_net",
    "resnet18",
    "depthwise_net",
    "transformer_block",
    "mlp_tvmscript",
)
"""The names of the samples, in the order in which a learner meets them."""

PREFIX = "sample:"


class Sample(NamedTuple):
    """A bundled sample: its name and one-line description."""

    name: str
    description: str


def sample_path(name: str) -> Path:
    """Return the file of the sample called `name`.

    Raises `LowerscopeError` if there is no such sample; the error lists the names.
    """
    if name not in SAMPLES:
        raise no_sample(name)
    return FOLDER / f"{name}.py"


def samples() -> tuple[Sample, ...]:
    """Return every sample with the first line of its docstring."""
    return tuple(Sample(name, _title(sample_path(name).read_text("utf-8"))) for name in SAMPLES)


def _title(text: str) -> str:
    """Return the first line of a sample, which is the first of its docstring."""
    return text.removeprefix('"""').split("\n", 1)[0].removesuffix('"""').strip()


Kind = Literal["python", "exported"]

MEMORY = "memory:"
"""Prefix of the name of a model in memory."""

ENTRY = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
"""The name of a class, an instance or a function in a file."""


def parse_spec(text: str) -> tuple[str, str]:
    """Split ``SOURCE[:ENTRY]`` into the source and the entry, which may be empty.

    A path that exists is taken whole, including colons, and so is the colon of a Windows drive.

    Raises `LowerscopeError` if nothing is given, or the part behind the colon is not a name.
    """
    text = text.strip()
    if not text:
        raise LowerscopeError(
            "no source is given", todo="Give sample:NAME, FILE.py[:ENTRY] or FILE.pt2"
        )
    if text.startswith(MEMORY):
        return text, ""
    if text.startswith(PREFIX):
        name, _, entry = text.removeprefix(PREFIX).partition(":")
        return PREFIX + name, _checked_entry(entry, text)
    if os.path.exists(user_path(text)):
        return text, ""
    path, colon, entry = text.rpartition(":")
    drive_only = len(path) == 1 and path.isalpha() and entry[:1] in ("/", "\\")
    if not colon or not path or drive_only:
        return text, ""
    if "/" in entry or "\\" in entry or entry.lower().endswith((".py", ".pt2")):
        # The colon belongs to a path that does not exist; opening it reports so.
        return text, ""
    return path, _checked_entry(entry, text)


def _checked_entry(entry: str, text: str) -> str:
    if entry and not ENTRY.fullmatch(entry):
        raise LowerscopeError(
            f"{entry!r} is not the name of a class, an instance or a function",
            where=text,
            todo="Write FILE.py:ENTRY, such as model.py:Net",
        )
    return entry


def source_path(spec: str) -> Path:
    """Return the absolute path of a source; it need not exist.

    Raises `LowerscopeError` if the source is a sample that does not exist, or a model in memory.
    """
    if spec.startswith(PREFIX):
        return sample_path(spec.removeprefix(PREFIX))
    if spec.startswith(MEMORY):
        raise not_in_a_file(spec)
    return user_path(spec).absolute()


def source_label(spec: str) -> str:
    """Return the label of a source: a sample, a model in memory, or the name of a file."""
    if spec.startswith(PREFIX):
        return spec.removeprefix(PREFIX)
    if spec.startswith(MEMORY):
        return spec.removeprefix(MEMORY).rpartition("-")[0]
    return PurePath(spec).name


def is_in_memory(recipe: Recipe) -> bool:
    """Return whether a recipe's model is in the memory of a Python process."""
    return recipe.source.spec.startswith(MEMORY)


def not_in_a_file(spec: str) -> LowerscopeError:
    """Return the error for a model in memory where a file is required."""
    return LowerscopeError(
        f"{source_label(spec)} is in the memory of the Python process that it was made in, and in "
        "no file",
        where=spec,
        todo="Call explore(model, inputs) there; to keep it, write the model as a Python file",
    )


def is_file(spec: str) -> bool:
    """Return whether a source is a file: no sample, and no model in memory."""
    return not spec.startswith((PREFIX, MEMORY))


def source_kind(path: Path) -> Kind:
    """Return the kind of source of a file.

    Raises `LowerscopeError` if there is no such file, it cannot be opened, or it is neither Python
    nor exported.
    """
    failure = why_unreadable(path)
    if isinstance(failure, FileNotFoundError):
        raise missing_source(path)
    if isinstance(failure, IsADirectoryError):
        raise folder_source(path)
    check_readable(path, "source")
    match path.suffix.lower():
        case ".py":
            return "python"
        case ".pt2":
            return "exported"
        case _:
            raise unknown_kind(path)


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


def missing_source(path: Path) -> LowerscopeError:
    """Return the error for a source that does not exist, with a similar name."""
    close = _close_to(path)
    todo = f"Did you mean {close}?" if close else "Check the path of the source"
    return LowerscopeError("there is no such file", where=str(path), todo=todo)


def folder_source(path: Path) -> LowerscopeError:
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


def unknown_kind(path: Path) -> LowerscopeError:
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
