"""Import of modules in a user's folder from the text of their Python files only.

Before a file runs, its text is shown. Python would run byte code beside it instead if the times
match, or without checking the times; and it would prefer an extension module of the same name. So
every import from a user's folder while an environment is active is compiled from text, and only
files with a text are found. If the window has sent a table of approved files, nothing else is
compiled; see `approved_files`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader
from pathlib import Path
from types import CodeType
from zipfile import is_zipfile

from lowerscope.core.sources.approved_files import check_approved
from lowerscope.core.sources.readable_source import decode_source
from lowerscope.core.sources.user_files import is_installed, is_users

_BASE = tuple(Path(os.path.abspath(entry)) for entry in sys.path if os.path.isabs(entry))
"""Folders from which this process itself imports its packages."""

_folders: list[str] = []
"""Folders of the active environments."""
_get_code = SourceFileLoader.get_code


class _SourceFinder(FileFinder):
    """Finder of modules that are Python source files, and packages of these."""


def add_folder(folder: Path) -> None:
    """Compile imports from a folder from source, until `remove_folder`."""
    if _find_sources not in sys.path_hooks:
        sys.path_hooks.insert(0, _find_sources)
        SourceFileLoader.get_code = _compiled_from_source  # type: ignore[assignment, method-assign]
    _folders.append(str(folder))
    # Finders cached before may find byte code.
    for name, finder in list(sys.path_importer_cache.items()):
        if not isinstance(finder, _SourceFinder) and Path(name).is_relative_to(folder):
            sys.path_importer_cache.pop(name, None)


def remove_folder(folder: Path) -> None:
    """Unregister the folder of an environment that is no longer active."""
    _folders.remove(str(folder))


def _find_sources(entry: str) -> _SourceFinder:
    """Return the finder of a user's folder, as a hook of ``sys.path_hooks``.

    An archive is no folder: nothing is found in it.

    Raises
    ------
    ImportError
        If the folder is not a user's, so that another hook handles it.
    """
    if not _is_users_code(entry) or (os.path.isfile(entry) and not is_zipfile(entry)):
        raise ImportError("not a folder of the user's", path=entry)
    return _SourceFinder(entry, (SourceFileLoader, SOURCE_SUFFIXES))


def _compiled_from_source(self: SourceFileLoader, fullname: str) -> CodeType | None:
    """Return the code of a module, in place of `SourceFileLoader.get_code`."""
    path = self.get_filename(fullname)
    if not _is_users_code(path):
        return _get_code(self, fullname)
    content = self.get_data(path)
    check_approved(Path(path), content, _import_folder(Path(path), fullname))
    code: CodeType = compile(decode_source(content), path, "exec", dont_inherit=True)
    return code


def _import_folder(path: Path, fullname: str) -> Path:
    """Return the folder on the path in which a module of this name is found."""
    depth = fullname.count(".") + (path.name == "__init__.py")
    return path.parents[min(depth, len(path.parents) - 1)]


def _is_users_code(name: str) -> bool:
    """Return whether a path is in an environment's folder, or in one that its code has added."""
    path = Path(os.path.abspath(name))
    folders = [Path(folder) for folder in _folders]
    if any(path.is_relative_to(folder) and is_users(path, folder) for folder in folders):
        return True
    return bool(folders) and not (is_installed(path) or _is_below(path, _BASE))


def _is_below(path: Path, folders: Sequence[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)
