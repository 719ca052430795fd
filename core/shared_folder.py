"""The folder of a saved session, shared with the sandbox for writing.

What code leaves there may run later, outside of the sandbox. So hidden files (a repository's hooks,
an editor's tasks), the session's file and Lowerscope's own files are read-only; where that cannot
be ensured, code may not write there at all. This module imports neither torch nor TVM.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class SharedFolder:
    """A folder that code may write to.

    Attributes
    ----------
    path
        Where it is, without links.
    kept
        Its read-only contents.
    """

    path: Path
    kept: tuple[Path, ...]


class NotShared(Exception):
    """A folder is not shared, for the reason in the message, which follows the folder's name."""


def shared_folder(session: Path, settings: Path) -> SharedFolder:
    """Return the folder of a session's file, as it is shared with code.

    Parameters
    ----------
    session
        The file.
    settings
        The folder of Lowerscope's settings.

    Raises
    ------
    NotShared
        If code may not write there.
    """
    folder = Path(os.path.realpath(session.parent))
    home = Path(os.path.realpath(Path.home()))
    if folder == home or folder in home.parents:
        raise NotShared("is or holds your home folder")
    own = [*_run_from(), Path(os.path.realpath(settings))]
    if any(each == folder or each in folder.parents for each in own):
        raise NotShared("has programs or settings that Lowerscope runs with")
    if any(part.startswith(".") for part in folder.parts):
        raise NotShared("is hidden")
    try:
        if folder.stat().st_uid != os.getuid():
            raise NotShared("belongs to another user")
        kept = [*_kept_names(folder, session), *(each for each in own if folder in each.parents)]
    except OSError as error:
        raise NotShared(f"cannot be read ({error.strerror})") from None
    return SharedFolder(folder, tuple(dict.fromkeys(kept)))


def _kept_names(folder: Path, session: Path) -> Iterator[Path]:
    """Yield the hidden files of a folder, the session's file, and its lock."""
    names = (session.name, f"{session.name}.lock")
    with os.scandir(folder) as entries:
        for each in sorted(entries, key=lambda entry: entry.name):
            if each.name.startswith(".") or each.name in names:
                if each.is_symlink():
                    # Another link could be put in its place.
                    raise NotShared(f"has a link {each.name}")
                yield folder / each.name


def _run_from() -> Iterator[Path]:
    """Yield the folders that this program is imported and run from."""
    for each in (sys.prefix, sys.base_prefix, str(Path(__file__).parents[1]), *sys.path):
        if each and os.path.isdir(each):
            yield Path(os.path.realpath(each))
