"""Files that a child makes for the user's folders, in which it may not write in its sandbox.

The child writes below the user's cache, and the window puts what it finds there where it belongs.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from PySide6.QtCore import QObject, Signal

from lowerscope.app.children.outstanding import OnProblem, OnResult
from lowerscope.core.engine import temporary_files
from lowerscope.core.engine.protocol import RuleParams, SaveValuesParams
from lowerscope.core.engine.run_params import SaveRunValuesParams
from lowerscope.core.errors import Problem
from lowerscope.core.export.catalogue import is_exported
from lowerscope.core.records.snapshot import SourceLine
from lowerscope.core.unfinished import whole_file

if TYPE_CHECKING:
    from lowerscope.app.engine_client import EngineClient


def ask_for_file(
    client: EngineClient,
    method: str,
    params: SaveValuesParams | SaveRunValuesParams | RuleParams,
    on_result: OnResult,
    on_problem: OnProblem,
) -> None:
    """Let a child write a file of the user's, ``params.file``; the result is the method's."""
    if not client.hands_over:
        client.request(method, params, on_result, on_problem)
        return
    target = Path(params.file).absolute()
    try:
        handing = HandingOver(target.parent, client, lone=target.name)
    except OSError as error:
        on_problem(cannot_write(error, target))
        return
    written = handing.folder / target.name
    found: list[Any] = []

    def take(result: Any) -> None:
        found.append(_renamed(result, str(written), str(target)))
        handing.start((target.name,))

    def refuse(problem: Problem) -> None:
        handing.give_up()
        on_problem(msgspec.structs.replace(problem, where=problem.where.replace(*names)))

    def finish(answer: tuple[str, ...] | Problem) -> None:
        handing.deleteLater()
        if isinstance(answer, Problem):
            on_problem(answer)
        else:
            on_result(found[0])

    names = str(written), str(target)
    handing.done.connect(finish)
    client.request(method, msgspec.structs.replace(params, file=str(written)), take, refuse)


def _renamed(result: str | SourceLine, old: str, new: str) -> str | SourceLine:
    """Return the result of a method with the name of the file where it belongs."""
    if isinstance(result, SourceLine):
        return msgspec.structs.replace(result, file=new)
    return result.replace(old, new)


def cannot_write(error: OSError, where: Path) -> Problem:
    """Return the problem of a file that cannot be written."""
    return Problem(
        what=f"it cannot be written: {error.strerror or error}",
        where=str(where),
        todo="Choose a folder that you may write to",
    )


class HandingOver(QObject):
    """A folder for a child to write to, and the way of what it has written into the user's.

    The child may be running code that nobody has looked at, and what it writes is put where that
    could not write: only what exports are called is taken, and only if it is a plain file.

    Parameters
    ----------
    target
        The user's folder.
    lone
        The only file that is taken, instead of an export; the child finds it in its own folder, if
        it is there.

    Attributes
    ----------
    folder
        The child's folder.

    Signals
    -------
    done
        All is in its place: the paths there, a tuple. Or a `Problem`.
    """

    done = Signal(object)

    def __init__(self, target: Path, parent: QObject, *, lone: str = "") -> None:
        super().__init__(parent)
        self._target = target
        self._lone = lone
        place = temporary_files.handed_over()
        place.mkdir(parents=True, exist_ok=True)
        self.folder = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=place))
        # Whatever the child puts in its place, this is the folder that is looked through.
        self._opened = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        if lone:
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(target / lone, self.folder / lone)

    def names(self) -> tuple[str, ...]:
        """Return what the child has written: paths in its folder."""
        return tuple(map(str, self._names()))

    def start(self, replacing: Sequence[str]) -> None:
        """Put what the child has written where it belongs, which may take long.

        Parameters
        ----------
        replacing
            The files in the user's folder that may be replaced.
        """
        # No daemon: a window that is closed meanwhile ends when all is in its place.
        threading.Thread(target=self._put, args=(replacing,), name="handing over").start()

    def give_up(self) -> None:
        """Forget what the child has written."""
        self._forget()
        self.deleteLater()

    def _names(self) -> list[Path]:
        # What it says that it has written is not believed: what is there counts.
        found: list[Path] = []
        for folder, _, files, _ in os.fwalk(dir_fd=self._opened, follow_symlinks=False):
            found += [Path(folder, name) for name in files]
        return sorted(each for each in found if not self._lone or str(each) == self._lone)

    def _put(self, replacing: Sequence[str]) -> None:
        names = self._names()
        answer: tuple[str, ...] | Problem = tuple(str(self._target / name) for name in names)
        try:
            for name in names:
                if not self._lone and not is_exported(name):
                    raise OSError(errno.EINVAL, f"{name} is no part of an export")
            for name in names:
                target = self._target / name
                if str(name) not in replacing and target.exists():
                    raise FileExistsError(errno.EEXIST, f"{name} is there by now")
                with _opened(name, self._opened) as source:
                    _move(source, name.name, target)
        except OSError as error:
            answer = cannot_write(error, self._target)
        self._forget()
        with contextlib.suppress(RuntimeError):  # the window has been closed
            self.done.emit(answer)

    def _forget(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._opened)


@contextlib.contextmanager
def _opened(name: Path, folder: int) -> Iterator[int]:
    """Yield the descriptor of the folder that a file is in, which no link leads to."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    with contextlib.ExitStack() as stack:
        for part in name.parts[:-1]:
            folder = os.open(part, flags, dir_fd=folder)
            stack.callback(os.close, folder)
        yield folder


def _move(source: int, name: str, target: Path) -> None:
    """Put a file of the folder that is opened as `source` in the place of another one."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target = target.resolve()
    opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=source)
    with open(opened, "rb") as file:
        status = os.fstat(opened)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, f"{name} is no plain file")
        os.fchmod(opened, stat.S_IMODE(status.st_mode) & 0o777)
        with whole_file(target) as part:
            if part.is_file() and _moved(source, name, status, part):
                return
            with part.open("wb") as made:
                shutil.copyfileobj(file, made)


def _moved(source: int, name: str, status: os.stat_result, part: Path) -> bool:
    """Move a file, which costs no time, if that can be done; return whether it has been."""
    try:
        os.replace(name, part, src_dir_fd=source)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        return False
    if os.path.samestat(status, part.lstat()):
        return True
    part.unlink()  # something else was put in its place meanwhile
    return False
