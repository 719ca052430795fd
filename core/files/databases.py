"""Databases of TVM's own tuning that a step of a pipeline can apply.

They contain whole functions and libraries in TVM's format, so that one from elsewhere is code. TVM
creates missing folders and files, which no step may do. This module imports neither torch nor TVM.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import Recipe, Step

APPLY_DATABASE = "MetaScheduleApplyDatabase"
"""The pass, and its option `WORK_DIR`."""

WORK_DIR = "work_dir"

_FILES = ("database_workload.json", "database_tuning_record.json")


def database_files(recipe: Recipe) -> tuple[str, ...]:
    """Return the existing database files that a recipe's steps apply, as absolute paths."""
    folders = (_folder(step) for step in recipe.steps if step.on)
    files = (_files(each) for each in folders if each and "\0" not in each)
    return tuple(str(file) for each in files for file in each if file.is_file())


def with_database(step: Step, change: Callable[[str], str]) -> Step:
    """Return a step with the path of its database changed, if it applies one."""
    folder = _folder(step)
    if not folder:
        return step
    return msgspec.structs.replace(step, options={**step.options, WORK_DIR: change(folder)})


def _folder(step: Step) -> str:
    folder = step.options.get(WORK_DIR)
    applies = step.name.rpartition(".")[2] == APPLY_DATABASE
    return folder if applies and isinstance(folder, str) else ""


def check_database(folder: str | None) -> None:
    """Raise a `LowerscopeError` unless a folder contains a database."""
    missing = [file for file in _files(folder or "") if not file.is_file()]
    if not folder or missing:
        raise LowerscopeError(
            f"there is no file {missing[0].name}" if folder else "the option work_dir is missing",
            where=folder or APPLY_DATABASE,
            todo="Give work_dir the folder that TVM's tuning has written",
        )


def _files(folder: str) -> tuple[Path, ...]:
    return tuple(Path(folder).absolute() / name for name in _FILES)
