"""Session files: the recipe, and the layout of the window.

A file is JSON that can be read and put under version control: the recipe, with paths relative to
the file; the hash of each file that the recipe names; the layout of the window. Reading one runs
nothing, whatever it contains.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from lowerscope.core.files.atomic_write import atomic_write
from lowerscope.core.files.memo import Hashes
from lowerscope.core.files.paths import not_done, read_plain, user_path
from lowerscope.core.files.sources import source_path, with_paths
from lowerscope.core.model import recipe as recipes
from lowerscope.core.model.encoding import UNREADABLE
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import Recipe, WindowLayout
from lowerscope.core.model.texts import _

SUFFIX = ".lowerscope"

VERSION = 1
"""Version of the file format."""

_MOST = 64 << 20
"""Maximum size of a session, in bytes: drawn pictures and long schedules are in it."""


class _File(msgspec.Struct, frozen=True, kw_only=True):
    recipe: msgspec.Raw
    version: int = VERSION
    hashes: dict[str, str] = {}
    layout: WindowLayout = WindowLayout()
    wanted: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


class _Versioned(msgspec.Struct, frozen=True):
    version: int = 0


@dataclass(frozen=True)
class Session:
    """Content of a session file."""

    recipe: Recipe  # with absolute paths
    layout: WindowLayout  # of the window
    # Of the files that the recipe names, by their absolute paths, when it was saved.
    hashes: dict[str, str] = field(default_factory=dict)
    changed: tuple[str, ...] = ()  # those of them that have changed since then, or are missing
    # The recipe that was pending when the session was saved, and had not been derived yet; ``None``
    # for none.
    wanted: Recipe | None = None


def files_of(recipe: Recipe) -> dict[str, str]:
    """Return the absolute paths of the files that a recipe names, by the names that it has.

    The source is the first, unless it is in memory. The name of a sample is not its path, which is
    another on each machine.
    """
    source = recipe.source
    others = (
        source.params,
        *(each.file for each in recipe.inputs),
        *(each.path for each in recipe.extensions),
    )
    files = {}
    # A sample that this version does not have, or a model in memory.
    with contextlib.suppress(LowerscopeError):
        files[source.spec] = str(source_path(source.spec))
    return files | {each: str(user_path(each).absolute()) for each in others if each}


def save_session(
    path: Path, recipe: Recipe, layout: WindowLayout, hashes: Hashes, wanted: Recipe | None = None
) -> None:
    """Write a session file atomically.

    Raises a `LowerscopeError` if the file cannot be written; it is unchanged.

    Args:
        path: The file.
        recipe, layout: Content of the file.
        hashes: Of files, as far as they are known.
        wanted: See `Session`.
    """
    folder = path.parent
    own = with_paths(recipe, lambda each: _relative(each, folder))
    file = _file(recipe, own, layout, hashes)
    if wanted is not None:
        plain = msgspec.to_builtins(with_paths(wanted, lambda each: _relative(each, folder)))
        file = msgspec.structs.replace(file, wanted=plain)
    text = msgspec.json.format(msgspec.json.encode(file), indent=2) + b"\n"
    try:
        atomic_write(path, text, durable=True)
    except OSError as error:
        raise LowerscopeError(
            _("the session cannot be written ({strerror})", strerror=error.strerror or error),
            where=str(path),
            todo=_("Save it in another folder"),
        ) from None


def load_session(path: Path, hashes: Hashes | None = None) -> Session:
    """Read what `save_session` wrote.

    Without `hashes`, changed files are not determined, which takes long where they are large: see
    `changed_since`.

    Raises a `LowerscopeError` if the file cannot be read, is of a newer version, or holds no
    session; of a field that is wrong, with its place.
    """
    try:
        if path.stat().st_size > _MOST:
            raise _refused(path, _("it is too large"))
        content = read_plain(path)
        if msgspec.json.decode(content, type=_Versioned).version > VERSION:
            raise _newer(path)
        file = msgspec.json.decode(content, type=_File)
        recipe = _recipe(path, bytes(file.recipe))
        wanted = None
        if isinstance(file.wanted, dict):
            wanted = _recipe(path, msgspec.json.encode(file.wanted))
    except OSError as error:
        raise not_done(_("the session cannot be read"), path, error) from None
    except (*UNREADABLE, OverflowError) as error:
        raise _refused(path, str(error)) from None
    folder = path.absolute().parent
    named = files_of(recipe)
    recipe = with_paths(recipe, lambda each: os.path.normpath(folder / user_path(each)))
    if wanted is not None:
        wanted = with_paths(wanted, lambda each: os.path.normpath(folder / user_path(each)))
    paths = zip(named, files_of(recipe).values(), strict=True)
    known = {path: file.hashes.get(name, "") for name, path in paths}
    session = Session(recipe, file.layout, hashes=known, wanted=wanted)
    return session if hashes is None else replace(session, changed=changed_since(session, hashes))


def changed_since(session: Session, hashes: Hashes) -> tuple[str, ...]:
    """Return the files of a session that have changed since it was saved."""
    return tuple(path for path, known in session.hashes.items() if hashes.of(Path(path)) != known)


def _recipe(path: Path, text: bytes) -> Recipe:
    if msgspec.json.decode(text, type=_Versioned).version > recipes.VERSION:
        raise _newer(path)
    recipe = recipes.from_json(text)
    # The window and its children exchange no numbers of more than 64 bits.
    msgspec.msgpack.encode(recipe)
    return recipe


def _file(recipe: Recipe, own: Recipe, layout: WindowLayout, hashes: Hashes) -> _File:
    found = (hashes.of(Path(path)) for path in files_of(recipe).values())
    return _File(
        recipe=msgspec.Raw(msgspec.json.encode(own)),
        hashes=dict(zip(files_of(own), found, strict=True)),
        layout=layout,
    )


def _relative(path: str, folder: Path) -> str:
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # on another drive
        return path


def _newer(path: Path) -> LowerscopeError:
    return LowerscopeError(
        _("a newer Lowerscope wrote this session"),
        where=str(path),
        todo=_("Open it with that version, or install the newest"),
    )


def _refused(path: Path, reason: str) -> LowerscopeError:
    return LowerscopeError(
        _("the file contains no session: {reason}", reason=reason),
        where=str(path),
        todo=_("Choose a {suffix} file that Lowerscope has saved", suffix=SUFFIX),
    )
