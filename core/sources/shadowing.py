"""Import hook that keeps files beside a model from shadowing imports of installed packages.

A model's folder is on the path for the model's own code. torch and others import many modules
lazily, and some may not be installed: a file of that name beside the model would be run, although
the model's code does not name it and the user did not approve it. So an import statement of an
installed package never finds it. Modules that packages import by a given name, as unpickling does,
are found there.
"""

from __future__ import annotations

import opcode
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import FrameType, ModuleType

from lowerscope.core.sources.user_files import is_users

_IMPORT = opcode.opmap["IMPORT_NAME"]


class _OwnFolders:
    """Meta path finder that stands first."""

    def __init__(self) -> None:
        self.folders: list[str] = []

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec that an installed package finds outside the folders; ``None`` for others.

        Raises
        ------
        ModuleNotFoundError
            If the name exists in the folders only.
        """
        folders = self.folders
        if path is not None or not folders or PathFinder.find_spec(name, folders) is None:
            return None
        if not _is_named_by_a_package(sys._getframe(1), folders):
            return None
        elsewhere = [each for each in sys.path if os.path.abspath(each) not in folders]
        found = PathFinder.find_spec(name, elsewhere)
        for finder in sys.meta_path:
            if found is not None:
                return found
            if finder is not self and finder is not PathFinder:
                found = finder.find_spec(name, None, target)
        if found is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return found


def _is_named_by_a_package(frame: FrameType | None, folders: Sequence[str]) -> bool:
    """Return whether this import comes from an import statement of an installed package."""
    while frame is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    if frame is None or frame.f_code.co_code[frame.f_lasti] != _IMPORT:
        return False
    file = frame.f_code.co_filename
    return not file.startswith("<") and not any(
        is_users(Path(file), Path(folder)) for folder in folders
    )


_finder = _OwnFolders()


def add_folder(folder: Path) -> None:
    """Register a folder that is about to be on the path for the code in it."""
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    _finder.folders.append(str(folder))


def remove_folder(folder: Path) -> None:
    """Unregister a folder that is no longer on the path."""
    _finder.folders.remove(str(folder))
