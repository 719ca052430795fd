"""Session files (the recipe and the layout of the window), and archives with all that they name.

A file is JSON that can be read and put under version control: the recipe, with paths relative to
the file; the hash of each file that the recipe names; the layout of the window. Reading one runs
nothing, whatever it contains.

An archive is a ``.zip`` that can be opened on any machine. It has the session's file at its top and
the files that it names in folders below. Opening one unpacks it into a folder, and runs nothing:
its files need approval as any others.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
import platformdirs

from lowerscope.core.files.atomic_write import atomic_folder, atomic_write
from lowerscope.core.files.memo import Hashes
from lowerscope.core.files.paths import not_done, open_plain, read_plain, user_path
from lowerscope.core.files.sources import PREFIX, database_files, source_path, with_paths
from lowerscope.core.model import recipe as recipes
from lowerscope.core.model.encoding import UNREADABLE
from lowerscope.core.model.formatting import bytes_text
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
            _("the session cannot be written ({strerror})", strerror=error.strerror or error),
            where=str(path),
            todo=_("Save it in another folder"),
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
            raise _refused(path, _("it is too large for one"))
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
    session = Session(recipe, file.layout, hashes=known, wanted=wanted, written=written)
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
        _("a newer Lowerscope wrote this session"),
        where=str(path),
        todo=_("Open it with that version, or install the newest"),
    )


def _refused(path: Path, reason: str) -> LowerscopeError:
    return LowerscopeError(
        _("it holds no session: {reason}", reason=reason),
        where=str(path),
        todo=_("Choose a {suffix} file that Lowerscope has saved", suffix=SUFFIX),
    )


# --- Archives: a session with all its files ---


ARCHIVE = ".zip"

SESSION = f"session{SUFFIX}"

MOST_FILES = 10_000
MOST_BYTES = 8_000_000_000
"""Limit on the unpacked size of an archive, in bytes."""

_USUAL_BYTES, _USUAL_RATIO = 256 << 20, 50
"""Size and compression ratio: an archive that exceeds both was made to fill a disk."""

_PIECE = 1 << 20
_BEGIN = (1980, 1, 1, 0, 0, 0)
"""The time of all entries: the same session makes the same archive."""


# Packing


def pack_session(
    path: Path, recipe: Recipe, layout: WindowLayout, groups: Sequence[Sequence[Path]]
) -> None:
    """Write an archive.

    Raises an `OSError` if a file cannot be read, or the archive not be written.

    Args:
        path: The archive.
        recipe, layout: Content of the session.
        groups: The files that it needs, absolute: the source with what it uses, and each rule,
            library or pass file with what that uses. Files of a group lie as they do here to one
            another.
    """
    places = archive_places(groups)

    def place_of(each: str) -> str:
        path = _absolute(each)
        if path in places:
            return places[path]
        # A folder: what it is known for lies in it.
        inside = next((places[file] for file in places if file.parent == path), "")
        return inside.rpartition("/")[0] or path.name

    own = with_paths(recipe, place_of)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(_zip_entry(SESSION), session_text(recipe, own, layout))
        for file, place in sorted(places.items(), key=lambda each: each[1]):
            with (
                file.open("rb") as source,
                archive.open(_zip_entry(place), "w", force_zip64=True) as to,
            ):
                shutil.copyfileobj(source, to, _PIECE)


def archive_places(groups: Sequence[Sequence[Path]]) -> dict[Path, str]:
    """Return the paths of files in an archive, with ``/`` as separator.

    Each group has a folder, that of the first is ``model``; what lies in a folder of another
    group, or below, is in that.
    """
    folders: list[Path] = []
    for group in groups:
        if group:
            shared = Path(os.path.commonpath([each.parent for each in map(_absolute, group)]))
            # One that holds others takes their place, and as early as the first of them.
            inside = [each for each in folders if each.is_relative_to(shared)]
            if inside:
                folders[folders.index(inside[0])] = shared
                folders = [each for each in folders if each == shared or each not in inside]
            elif not any(shared.is_relative_to(each) for each in folders):
                folders.append(shared)
    names: dict[Path, str] = {}
    for number, folder in enumerate(folders):
        wanted = "model" if number == 0 and groups[0] else _plain_name(folder.name)
        name, count = wanted, 1
        while name in names.values():
            count += 1
            name = f"{wanted}-{count}"
        names[folder] = name
    places = {}
    for file in (_absolute(each) for group in groups for each in group):
        folder = next(each for each in folders if file.is_relative_to(each))
        places[file] = f"{names[folder]}/{file.relative_to(folder).as_posix()}"
    return places


def _absolute(path: Path | str) -> Path:
    return Path(os.path.normpath(user_path(str(path)).absolute()))


def _plain_name(name: str) -> str:
    return "".join(each if each.isalnum() or each in "._-" else "_" for each in name) or "files"


def _zip_entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _BEGIN)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = (stat.S_IFREG | 0o644) << 16
    return entry


# Opening


@dataclass(frozen=True)
class Archive:
    """An archive that was checked: nothing in it lies outside of its folder."""

    path: Path  # where it is
    session: str  # the name of the session's file
    sizes: Mapping[str, int]  # bytes of each file by its name


def is_archive(source: str) -> bool:
    """Return whether a source is named as an archive."""
    return source.lower().endswith(ARCHIVE)


def read_archive(path: Path) -> Archive:
    """Read the table of contents of an archive; nothing is unpacked.

    Raises a `LowerscopeError` if it cannot be read, is not an archive of a session, holds entries
    outside of its folder or other than regular files, or unpacks to too much.
    """
    with _opened(path) as archive:
        entries = [each for each in archive.infolist() if not each.is_dir()]
    if len(entries) > MOST_FILES:
        raise _archive_refused(
            path, _("it holds more than {most_files:,} files", most_files=MOST_FILES)
        )
    seen: set[str] = set()
    for entry in entries:
        reason = _reason_against(entry)
        if not reason and entry.filename.casefold() in seen:
            reason = _("is in it twice")
        if reason:
            raise _archive_refused(path, f"{entry.filename!r} {reason}")
        seen.add(entry.filename.casefold())
    sizes = {each.filename: each.file_size for each in entries}
    _check_bytes(path, sum(sizes.values()))
    sessions = [each for each in sizes if "/" not in each and each.endswith(SUFFIX)]
    if len(sessions) != 1:
        found = _("{count} of them", count=len(sessions)) if sessions else "none"
        raise _archive_refused(
            path,
            _(
                "it must have one {suffix} file at its top, and has {found}",
                suffix=SUFFIX,
                found=found,
            ),
        )
    return Archive(path, sessions[0], sizes)


def unpack(archive: Archive, folder: Path, check: Callable[[], None] = lambda: None) -> Path:
    """Unpack an archive into a new or empty folder; return the session's file.

    The folder appears complete or not at all.

    Raises a `LowerscopeError` if the folder holds something, or cannot be written; if the archive
    is damaged, holds more than it says, or its session names files that are not in it.

    Args:
        check: Called now and then; may raise to cancel.
    """
    folder = folder.absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise LowerscopeError(
            _("there is something there already"),
            where=str(folder),
            todo=_("Choose a new folder"),
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with atomic_folder(folder) as made:
            _write(archive, made, check)
            _check_session(archive, made)
    except OSError as error:
        raise LowerscopeError(
            _("it cannot be unpacked ({strerror})", strerror=error.strerror or error),
            where=str(folder),
            todo=_("Choose another folder"),
        ) from None
    return folder / archive.session


def unpacked(archive: Archive, folder: Path) -> bool:
    """Return whether a folder has all files of an archive as they are in it."""
    if not all((folder / name).is_file() for name in archive.sizes):
        return False
    with _opened(archive.path) as file:
        return all(_same(file, name, folder / name) for name in archive.sizes)


def folder_for(archive: Archive) -> Path:
    """Return a folder of the user's data for an archive: one that has it, or a new one."""
    sessions = platformdirs.user_data_path("lowerscope", appauthor=False) / "unpacked"
    name = archive.path.stem
    folder, count = sessions / name, 1
    while folder.exists() and not unpacked(archive, folder):
        count += 1
        folder = sessions / f"{name} {count}"
    return folder


def open_archive(path: Path) -> tuple[Path, bool]:
    """Return the session's file of an archive in a folder of the user's data.

    Returns:
        The file, and whether it was unpacked now.

    Raises:
        LowerscopeError: See `read_archive` and `unpack`.
    """
    archive = read_archive(path)
    folder = folder_for(archive)
    if folder.exists():
        return folder / archive.session, False
    return unpack(archive, folder), True


def _write(archive: Archive, folder: Path, check: Callable[[], None]) -> None:
    left = sum(archive.sizes.values())
    with _opened(archive.path) as file:
        for name in archive.sizes:
            target = folder.joinpath(*PurePosixPath(name).parts)
            target.parent.mkdir(parents=True, exist_ok=True)
            # "x": whatever a file system takes for the same name is not overwritten.
            with _read(file, name, archive.path) as source, target.open("xb") as to:
                while piece := source.read(_PIECE):
                    check()
                    left -= len(piece)
                    if left < 0:
                        raise _archive_refused(archive.path, _("it unpacks to more than it says"))
                    to.write(piece)


def _check_session(archive: Archive, folder: Path) -> None:
    """Reject a session that names files that are not in its archive."""
    session = load_session(folder / archive.session, Hashes())
    databases = {each: each for each in database_files(session.recipe)}
    for name, path in (files_of(session.recipe) | databases).items():
        inside = Path(path).is_relative_to(folder)
        if not name.startswith(PREFIX) and not (inside and Path(path).is_file()):
            where = Path(path).relative_to(folder) if inside else path
            raise _archive_refused(
                archive.path, _("its session refers to {where}, which is not in it", where=where)
            )


def _same(archive: zipfile.ZipFile, name: str, path: Path) -> bool:
    with archive.open(name) as one, path.open("rb") as other:
        while True:
            piece = one.read(_PIECE)
            if piece != other.read(len(piece) or 1):
                return False
            if not piece:
                return True


_DAMAGE = (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error)
"""Exceptions of reading a damaged archive, or a file that is not one."""


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with open_plain(path) as file, zipfile.ZipFile(file) as archive:
            yield archive
    except OSError as error:
        if error.filename is not None and Path(error.filename) != path:
            raise
        raise not_done(_("the archive cannot be read"), path, error) from None
    except _DAMAGE as error:
        raise _archive_refused(path, str(error)) from None


@contextlib.contextmanager
def _read(archive: zipfile.ZipFile, name: str, path: Path) -> Iterator[zipfile.ZipExtFile]:
    with archive.open(name) as file:
        if not isinstance(file, zipfile.ZipExtFile):
            raise _archive_refused(path, _("{name!r} cannot be read", name=name))
        yield file


def _reason_against(entry: zipfile.ZipInfo) -> str:
    """Return why an entry is not unpacked, to follow its name; empty where it is."""
    name = entry.filename
    parts = name.split("/")
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        return _("is a link or a device, not a file")
    if entry.flag_bits & 0x1:
        return _("is encrypted")
    if "\\" in name or ":" in name or any(ord(each) < 32 for each in name):
        return _("is not a valid file name on every system")
    if any(each in ("", ".", "..") for each in parts) or len(name) > 1000:
        return _("would lie outside of the folder")
    return ""


def _check_bytes(path: Path, size: int) -> None:
    try:
        packed = path.stat().st_size
    except OSError as error:
        raise _archive_refused(path, error.strerror or str(error)) from None
    if size > MOST_BYTES or size > max(_USUAL_BYTES, _USUAL_RATIO * packed):
        raise _archive_refused(
            path, _("it would unpack to {size}, too large for a session", size=bytes_text(size))
        )


def _archive_refused(path: Path, reason: str) -> LowerscopeError:
    return LowerscopeError(
        _("it holds no session: {reason}", reason=reason),
        where=str(path),
        todo=_("Choose a .zip that Lowerscope has exported"),
    )
