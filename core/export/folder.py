"""Export of a recipe's module and FX graph into a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.execution.running import to_numpy
from lowerscope.core.pipeline import Pipeline
from lowerscope.core.recipe import Recipe
from lowerscope.core.rendering.fx_table import print_table
from lowerscope.core.rendering.script import module_text
from lowerscope.core.showing import fx_nodes_of


def export(pipeline: Pipeline, recipe: Recipe, folder: Path, *, force: bool) -> tuple[Path, ...]:
    """Write ``module.py`` and, for a source with a torch side, ``fx.txt``.

    ``module.py`` is the module after the passes, with its metadata, so that
    ``tvm.script.from_source`` reads it back structurally equal. Where parameters are arguments of
    its ``main``, ``parameters.npz`` has their values by name; those of bfloat16, which NumPy does
    not have, as float32.

    Parameters
    ----------
    force
        Overwrite files that are there.

    Raises
    ------
    LowerscopeError
        If a file is there and `force` is not given, or the folder cannot be written.
    """
    module, table = folder / "module.py", folder / "fx.txt"
    stages = pipeline.stages(recipe)
    has_torch = stages.loaded.model is not None
    arguments = {variable.name for variable in stages.transformed.module["main"].params}
    values = {name: value for name, value in stages.parameters.items() if name in arguments}
    archive = folder / "parameters.npz"
    paths = (module, *((table,) if has_torch else ()), *((archive,) if values else ()))
    for path in paths:
        if not force and _is_there(path):
            raise LowerscopeError(
                "the file is there already",
                where=str(path),
                todo="Choose another folder, or add --force to overwrite it",
            )
    texts = {module: module_text(stages.transformed.module, show_meta=True).text}
    if has_torch:
        texts[table] = print_table(fx_nodes_of(pipeline, recipe)) + "\n"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            path.write_text(text, encoding="utf-8")
        if values:
            with archive.open("wb") as file:
                arrays: dict[str, Any] = {name: to_numpy(each) for name, each in values.items()}
                np.savez(file, **arrays)
    except OSError as error:
        raise _cannot_write(error, folder) from error
    return paths


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
