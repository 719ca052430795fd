"""Session files: the recipe and the layout of the window.

A file is JSON that can be read and put under version control: the recipe, with paths relative to
the file; the hash of each file that the recipe names; the layout of the window. Reading one runs
nothing, whatever it contains.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from lowerscope.core.files.atomic_write import atomic_write
from lowerscope.core.files.paths import not_done, open_plain, read_plain, user_path
from lowerscope.core.files.sources import source_path, with_paths
from lowerscope.core.model import recipe as recipes
from lowerscope.core.model.encoding import UNREADABLE
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import Recipe, WindowLayout

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
    # The file's own value, for what this version does not know of it; see `save_session`.
    written: dict[str, Any] = field(default_factory=dict)


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


class Hashes:
    """SHA-256 hashes of files, computed once for each state of a file."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[int, int], str]] = {}

    def of(self, path: str) -> str:
        """Return the hash of a file in hexadecimal; ``""`` where it cannot be read."""
        try:
            status = os.stat(path)
            state = (status.st_mtime_ns, status.st_size)
            known = self._known.get(path)
            if known is None or known[0] != state:
                with open_plain(path) as file:
                    known = (state, hashlib.file_digest(file, "sha256").hexdigest())
                self._known[path] = known
        except (OSError, ValueError):
            return ""
        return known[1]


def save_session(
    path: Path,
    recipe: Recipe,
    layout: WindowLayout,
    before: dict[str, Any],
    hashes: Hashes,
    wanted: Recipe | None = None,
) -> dict[str, Any]:
    """Write a session file atomically.

    Raises a `LowerscopeError` if the file cannot be written; it is unchanged.

    Args:
        path: The file.
        recipe, layout: Content of the file.
        before: `Session.written` of the replaced file: fields that this version does not know stay.
        hashes: Of files, as far as they are known.
        wanted: See `Session`.

    Returns:
        The written value, as `Session.written`.
    """
    folder = path.parent
    own = with_paths(recipe, lambda each: _relative(each, folder))
    file = _file(recipe, own, layout, hashes)
    if wanted is not None:
        plain = msgspec.to_builtins(with_paths(wanted, lambda each: _relative(each, folder)))
        file = msgspec.structs.replace(file, wanted=plain)
    value = _carried(before, _plain(file))
    try:
        atomic_write(path, _text(value), durable=True)
    except OSError as error:
        raise LowerscopeError(
            f"the session cannot be written ({error.strerror or error})",
            where=str(path),
            todo="Save it in another folder",
        ) from None
    return value


def session_text(recipe: Recipe, own: Recipe, layout: WindowLayout) -> bytes:
    """Return the content of a session file.

    Args:
        recipe: With the files as they lie here.
        own: The same, with the paths that the file is to have.
        layout: Of the window.
    """
    return _text(_plain(_file(recipe, own, layout, Hashes())))


def load_session(path: Path, hashes: Hashes | None = None) -> Session:
    """Read what `save_session` wrote.

    Without `hashes`, changed files are not determined, which takes long where they are large: see
    `changed_since`.

    Raises a `LowerscopeError` if the file cannot be read, is of a newer version, or holds no
    session; of a field that is wrong, with its place.
    """
    try:
        if path.stat().st_size > _MOST:
            raise _refused(path, "it is too large for one")
        content = read_plain(path)
        if msgspec.json.decode(content, type=_Versioned).version > VERSION:
            raise _newer(path)
        file = msgspec.json.decode(content, type=_File)
        recipe = _recipe(path, bytes(file.recipe))
        wanted = None
        if isinstance(file.wanted, dict):
            wanted = _recipe(path, msgspec.json.encode(file.wanted))
        written = msgspec.json.decode(content)
    except OSError as error:
        raise not_done("the session cannot be read", path, error) from None
    except (*UNREADABLE, OverflowError) as error:
        raise _refused(path, str(error)) from None
    folder = path.absolute().parent
    named = files_of(recipe)
    recipe = with_paths(recipe, lambda each: os.path.normpath(folder / user_path(each)))
    if wanted is not None:
        wanted = with_paths(wanted, lambda each: os.path.normpath(folder / user_path(each)))
    paths = zip(named, files_of(recipe).values(), strict=True)
    known = {path: file.hashes.get(name, "") for name, path in paths}
    session = Session(recipe, file.layout, hashes=known, wanted=wanted, written=written)
    return session if hashes is None else replace(session, changed=changed_since(session, hashes))


def changed_since(session: Session, hashes: Hashes) -> tuple[str, ...]:
    """Return the files of a session that have changed since it was saved."""
    return tuple(path for path, known in session.hashes.items() if hashes.of(path) != known)


def _recipe(path: Path, text: bytes) -> Recipe:
    if msgspec.json.decode(text, type=_Versioned).version > recipes.VERSION:
        raise _newer(path)
    recipe = recipes.from_json(text)
    # The window and its children exchange no numbers of more than 64 bits.
    msgspec.msgpack.encode(recipe)
    return recipe


def _file(recipe: Recipe, own: Recipe, layout: WindowLayout, hashes: Hashes) -> _File:
    found = map(hashes.of, files_of(recipe).values())
    return _File(
        recipe=msgspec.Raw(msgspec.json.encode(own)),
        hashes=dict(zip(files_of(own), found, strict=True)),
        layout=layout,
    )


def _text(value: dict[str, Any]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def _relative(path: str, folder: Path) -> str:
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # on another drive
        return path


def _plain(file: _File) -> dict[str, Any]:
    value: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(file))
    return value


def _carried(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return a session's new value with the fields of the old one that this version ignores."""
    if not before:
        return after
    known = _plain(msgspec.json.decode(msgspec.json.encode(before), type=_File))
    recipe = recipes.from_json(bytes(msgspec.json.encode(before["recipe"])))
    known["recipe"] = msgspec.json.decode(msgspec.json.encode(recipe))
    result: dict[str, Any] = _merged(before, known, after)
    return result


def _merged(old: Any, known: Any, new: Any) -> Any:
    """Add to `new` what is in `old` and not in `known`, which is `old` as this version reads it."""
    if isinstance(old, dict) and isinstance(known, dict) and isinstance(new, dict):
        unknown = {key: value for key, value in old.items() if key not in known}
        shared = {
            key: _merged(old[key], known[key], value) if key in old and key in known else value
            for key, value in new.items()
        }
        return {**shared, **{key: value for key, value in unknown.items() if key not in shared}}
    if isinstance(old, list) and isinstance(known, list) and isinstance(new, list):
        # An item is the one that it was if this version reads the same of both.
        left = dict(enumerate(known))
        result = []
        for item in new:
            place = next((place for place, each in left.items() if each == item), None)
            if place is None:
                result.append(item)
            else:
                result.append(_merged(old[place], left.pop(place), item))
        return result
    return new


def _newer(path: Path) -> LowerscopeError:
    return LowerscopeError(
        "a newer Lowerscope wrote this session",
        where=str(path),
        todo="Open it with that version, or install the newest",
    )


def _refused(path: Path, reason: str) -> LowerscopeError:
    return LowerscopeError(
        f"it holds no session: {reason}",
        where=str(path),
        todo=f"Choose a {SUFFIX} file that Lowerscope has saved",
    )
