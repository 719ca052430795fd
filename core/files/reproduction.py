"""Files of a reproduction, written by the window and by the command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lowerscope.core.files.atomic_write import atomic_file
from lowerscope.core.files.paths import cannot_write
from lowerscope.core.model.explanation_records import WrittenFile
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.texts import _

EXISTS = "exists"
"""Problem code of files that exist."""


def write_reproduction(
    folder: Path, files: Sequence[WrittenFile], *, force: bool = False
) -> tuple[Path, ...]:
    """Write files to a folder and return their paths; those that have their content already stay.

    Raises a `LowerscopeError` if one cannot be written, or, without `force`, exists with another
    content; nothing is written then.
    """
    missing = [each for each in files if _content(folder / each.name) != each.content]
    there = [each.name for each in missing if (folder / each.name).exists()]
    if there and not force:
        raise LowerscopeError(
            _("the file already exists"),
            where=str(folder / there[0]),
            todo=_("Choose another folder"),
            code=EXISTS,
        )
    for each in missing:
        path = folder / each.name
        try:
            with atomic_file(path, parents=True) as made:
                made.write_bytes(each.content)
        except OSError as error:
            raise cannot_write(error, path) from error
    return tuple(folder / each.name for each in files)


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
