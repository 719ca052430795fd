"""Distinction of the user's own files and modules from installed ones."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from types import FrameType, ModuleType

_INSTALLED = (
    Path(__file__).resolve().parents[1],
    *(Path(sysconfig.get_path(key)) for key in ("stdlib", "purelib", "platlib")),
    # Frames have the path as it was found, possibly through a symbolic link.
    Path(__file__).parents[1],
)
_COMPILERS = ("torch", "tvm", "tvm_ffi")
"""Packages that may be run from a checkout, and are no part of the user's file either."""


def is_users(path: Path, folder: Path) -> bool:
    """Return whether a file is the user's own, for a model in `folder`.

    A model may lie inside an installed package: files below its folder are its own.
    """
    return all(
        folder.is_relative_to(installed) and path.is_relative_to(folder)
        for installed in _installed_folders()
        if path.is_relative_to(installed)
    )


def is_installed(path: Path) -> bool:
    """Return whether a file belongs to Python, to Lowerscope or to an installed package."""
    return any(path.is_relative_to(folder) for folder in _installed_folders())


def called_by_user(frame: FrameType | None, folder: Path) -> bool:
    """Return whether a call into torch or TVM comes from code in `folder`, not from its imports."""
    return user_frame(frame, folder) is not None


def user_frame(frame: FrameType | None, folder: Path) -> FrameType | None:
    """Return the frame of the code from `folder` that makes a call into torch or TVM, if any."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith("<frozen importlib"):
            # A module that is still being imported registers for itself, whoever imports it.
            return None
        path = Path(file)
        if not file.startswith("<") and not _is_compilers(path) and not _is_standard(path):
            return frame if path.is_relative_to(folder) and is_users(path, folder) else None
        frame = frame.f_back
    return None


def file_of(module: ModuleType | None) -> Path | None:
    """Return the file of a module; ``None`` if it has none."""
    file = getattr(module, "__file__", None)
    return Path(file) if isinstance(file, str) else None


def places_of(module: ModuleType | None) -> list[Path]:
    """Return the file of a module, or the folders of a package without ``__init__.py``."""
    file = file_of(module)
    if file is not None:
        return [file]
    try:
        return [Path(place) for place in getattr(module, "__path__", ())]
    except (KeyError, TypeError):
        # The path of a namespace package looks up its parent, which may be gone.
        return []


def _is_compilers(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in _compiler_folders())


def _is_standard(path: Path) -> bool:
    # Installed packages may lie inside the standard library's folder.
    return path.is_relative_to(_INSTALLED[1]) and not any(
        path.is_relative_to(folder) for folder in _INSTALLED[2:]
    )


def _compiler_folders() -> list[Path]:
    loaded = (file_of(sys.modules.get(name)) for name in _COMPILERS)
    return [file.parent for file in loaded if file is not None]


def _installed_folders() -> list[Path]:
    return [*_INSTALLED, *_compiler_folders()]
