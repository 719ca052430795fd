"""Export of a recipe's module and FX graph into a folder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.execution.running import to_numpy
from lowerscope.core.pipeline import Pipeline
from lowerscope.core.recipe import Recipe
from lowerscope.core.rendering.builder_text import CONSTANTS_FILE, BuilderText
from lowerscope.core.rendering.fx_table import print_table
from lowerscope.core.rendering.script import module_text
from lowerscope.core.showing import fx_nodes_of
from lowerscope.core.stages import Stages
from lowerscope.core.texts import builder_of


@dataclass(frozen=True)
class Exported:
    """What an export has written, and for each file that it could not write, why."""

    paths: tuple[Path, ...]
    left_out: tuple[str, ...]


def export(pipeline: Pipeline, recipe: Recipe, folder: Path, *, force: bool) -> Exported:
    """Write ``module.py``, ``builder.py`` and, for a source with a torch side, ``fx.txt``.

    ``module.py`` is the module after the passes, with its metadata, so that
    ``tvm.script.from_source`` reads it back structurally equal. ``builder.py`` is the program that
    makes the same module with a block builder, of the arrays in ``constants.npz`` beside it.
    Where parameters are arguments of its ``main``, ``parameters.npz`` has their values by name;
    those of bfloat16, which NumPy does not have, as float32.

    Parameters
    ----------
    force
        Overwrite files that are there.

    Returns
    -------
    Exported
        The files, and what could not be written with the reason.

    Raises
    ------
    LowerscopeError
        If a file is there and `force` is not given, or the folder cannot be written.
    """
    module, table = folder / "module.py", folder / "fx.txt"
    stages = pipeline.stages(recipe)
    has_torch = stages.loaded.model is not None
    arguments = {variable.name for variable in stages.completed["main"].params}
    values = {name: value for name, value in stages.parameters.items() if name in arguments}
    archive = folder / "parameters.npz"
    built, left_out = _builder(stages)
    program, constants = folder / "builder.py", folder / CONSTANTS_FILE
    paths = (
        module,
        *((program, constants) if built is not None else ()),
        *((table,) if has_torch else ()),
        *((archive,) if values else ()),
    )
    for path in paths:
        if not force and _is_there(path):
            raise LowerscopeError(
                "the file is there already",
                where=str(path),
                todo="Choose another folder, or add --force to overwrite it",
            )
    script = module_text(stages.completed, show_meta=True).text
    # TVM writes these constants as texts, which it does not read back.
    texts = {module: _INFINITE.sub(r'R.const(float("\1")', script)}
    if built is not None:
        texts[program] = built.record.text
    if has_torch:
        texts[table] = print_table(fx_nodes_of(pipeline, recipe)) + "\n"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            path.write_text(text, encoding="utf-8")
        if built is not None:
            _save(constants, built.constants)
        if values:
            _save(archive, {name: to_numpy(each) for name, each in values.items()})
    except OSError as error:
        raise _cannot_write(error, folder) from error
    return Exported(paths, left_out)


def _builder(stages: Stages) -> tuple[BuilderText | None, tuple[str, ...]]:
    """Return the builder program of the module after the passes, or why there is none."""
    try:
        return builder_of(stages, stages.completed), ()
    except LowerscopeError as error:
        return None, (f"builder.py: {error.problem.what}",)


def _save(path: Path, arrays: Mapping[str, Any]) -> None:
    with path.open("wb") as file:
        np.savez(file, **arrays)


_INFINITE = re.compile(r'R\.const\("(-?inf|nan)"')


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _cannot_write(error, path) from error
    return True


def _cannot_write(error: OSError, path: Path) -> LowerscopeError:
    return LowerscopeError(
        f"it cannot be written: {error.strerror or error}",
        where=str(error.filename or path),
        todo="Choose a folder that you may write to",
    )
