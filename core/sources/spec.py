"""Syntax of a source on the command line: ``sample:NAME``, ``FILE.py[:ENTRY]``, ``FILE.pt2``.

A model in the memory of a Python process, which `core.sources.handed_over` reads, has a name too.

Imports no torch, so that the window and the command line can parse a source before an engine runs.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePath
from typing import Literal

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.recipe import Recipe
from lowerscope.core.sources import no_sources
from lowerscope.core.sources.samples import PREFIX, sample_path
from lowerscope.core.user_paths import check_readable, user_path, why_unreadable

Kind = Literal["python", "exported"]

MEMORY = "memory:"
"""Prefix of the name of a model in memory."""

ENTRY = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
"""The name of a class, an instance or a function in a file."""


def parse_spec(text: str) -> tuple[str, str]:
    """Split ``SOURCE[:ENTRY]`` into the source and the entry, which may be empty.

    A path that exists is taken whole, including colons, and so is the colon of a Windows drive.

    Raises
    ------
    LowerscopeError
        If nothing is given, or the part behind the colon is not a name.
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

    Raises
    ------
    LowerscopeError
        If the source is a sample that does not exist, or a model in memory.
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

    Raises
    ------
    LowerscopeError
        If there is no such file, it cannot be opened, or it is neither Python nor exported.
    """
    failure = why_unreadable(path)
    if isinstance(failure, FileNotFoundError):
        raise no_sources.missing(path)
    if isinstance(failure, IsADirectoryError):
        raise no_sources.folder(path)
    check_readable(path, "source")
    match path.suffix.lower():
        case ".py":
            return "python"
        case ".pt2":
            return "exported"
        case _:
            raise no_sources.of_another_kind(path)
