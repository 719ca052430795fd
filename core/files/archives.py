"""Session archives: a session with all its files as one ``.zip``, opened on any machine.

An archive has the session's file at its top and the files that it names in folders below. Opening
one unpacks it into a folder, and runs nothing: its files need approval as any others.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import platformdirs

from lowerscope.core.files.atomic_write import atomic_folder
from lowerscope.core.files.paths import not_done, open_plain, user_path
from lowerscope.core.files.sessions import SUFFIX, Hashes, files_of, load_session, session_text
from lowerscope.core.files.sources import PREFIX, database_files, with_paths
from lowerscope.core.model.formatting import bytes_text
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import Recipe, WindowLayout

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
        archive.writestr(_entry(SESSION), session_text(recipe, own, layout))
        for file, place in sorted(places.items(), key=lambda each: each[1]):
            with (
                file.open("rb") as source,
                archive.open(_entry(place), "w", force_zip64=True) as to,
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
        wanted = "model" if number == 0 and groups[0] else _plain(folder.name)
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


def _plain(name: str) -> str:
    return "".join(each if each.isalnum() or each in "._-" else "_" for each in name) or "files"


def _entry(name: str) -> zipfile.ZipInfo:
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
        raise _refused(path, f"it holds more than {MOST_FILES:,} files")
    seen: set[str] = set()
    for entry in entries:
        reason = _reason_against(entry)
        if not reason and entry.filename.casefold() in seen:
            reason = "is in it twice"
        if reason:
            raise _refused(path, f"{entry.filename!r} {reason}")
        seen.add(entry.filename.casefold())
    sizes = {each.filename: each.file_size for each in entries}
    _check_bytes(path, sum(sizes.values()))
    sessions = [each for each in sizes if "/" not in each and each.endswith(SUFFIX)]
    if len(sessions) != 1:
        found = f"{len(sessions)} of them" if sessions else "none"
        raise _refused(path, f"it has to have one {SUFFIX} file at its top, and has {found}")
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
            "there is something there already",
            where=str(folder),
            todo="Choose a new folder",
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with atomic_folder(folder) as made:
            _write(archive, made, check)
            _check_session(archive, made)
    except OSError as error:
        raise LowerscopeError(
            f"it cannot be unpacked ({error.strerror or error})",
            where=str(folder),
            todo="Choose another folder",
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
                        raise _refused(archive.path, "it unpacks to more than it says")
                    to.write(piece)


def _check_session(archive: Archive, folder: Path) -> None:
    """Reject a session that names files that are not in its archive."""
    session = load_session(folder / archive.session, Hashes())
    databases = {each: each for each in database_files(session.recipe)}
    for name, path in (files_of(session.recipe) | databases).items():
        inside = Path(path).is_relative_to(folder)
        if not name.startswith(PREFIX) and not (inside and Path(path).is_file()):
            where = Path(path).relative_to(folder) if inside else path
            raise _refused(archive.path, f"its session names {where}, which is not in it")


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
        raise not_done("the archive cannot be read", path, error) from None
    except _DAMAGE as error:
        raise _refused(path, str(error)) from None


@contextlib.contextmanager
def _read(archive: zipfile.ZipFile, name: str, path: Path) -> Iterator[zipfile.ZipExtFile]:
    with archive.open(name) as file:
        if not isinstance(file, zipfile.ZipExtFile):
            raise _refused(path, f"{name!r} cannot be read")
        yield file


def _reason_against(entry: zipfile.ZipInfo) -> str:
    """Return why an entry is not unpacked, to follow its name; empty where it is."""
    name = entry.filename
    parts = name.split("/")
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        return "is a link or a device, not a file"
    if entry.flag_bits & 0x1:
        return "is encrypted"
    if "\\" in name or ":" in name or any(ord(each) < 32 for each in name):
        return "is not a name that a file has everywhere"
    if any(each in ("", ".", "..") for each in parts) or len(name) > 1000:
        return "would lie outside of the folder"
    return ""


def _check_bytes(path: Path, size: int) -> None:
    try:
        packed = path.stat().st_size
    except OSError as error:
        raise _refused(path, error.strerror or str(error)) from None
    if size > MOST_BYTES or size > max(_USUAL_BYTES, _USUAL_RATIO * packed):
        raise _refused(path, f"it would unpack to {bytes_text(size)}, which no session is")


def _refused(path: Path, reason: str) -> LowerscopeError:
    return LowerscopeError(
        f"it holds no session: {reason}",
        where=str(path),
        todo="Choose a .zip that Lowerscope has exported",
    )
