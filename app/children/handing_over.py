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
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from PySide6.QtCore import QObject, Signal

from lowerscope.app.children.outstanding import OnProblem, OnResult
from lowerscope.core.engine import temporary_files
from lowerscope.core.engine.protocol import RuleParams, SaveValuesParams
from lowerscope.core.engine.run_params import SaveRunValuesParams
from lowerscope.core.errors import Problem
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
        handing = HandingOver(target.parent, client, copied=target.name)
    except OSError as error:
        on_problem(cannot_write(error, target))
        return
    written = handing.folder / target.name
    found: list[Any] = []

    def take(result: Any) -> None:
        found.append(_renamed(result, str(written), str(target)))
        handing.start()

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

    Parameters
    ----------
    target
        The user's folder.
    copied
        A file in it that the child is to find in its own, if it is there.

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

    def __init__(self, target: Path, parent: QObject, *, copied: str = "") -> None:
        super().__init__(parent)
        self._target = target
        place = temporary_files.handed_over()
        place.mkdir(parents=True, exist_ok=True)
        self.folder = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=place))
        if copied:
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(target / copied, self.folder / copied)

    def there(self) -> tuple[str, ...]:
        """Return the names of what the child has written that are taken in the user's folder."""
        return tuple(str(name) for name in self._names() if (self._target / name).exists())

    def start(self) -> None:
        """Put what the child has written where it belongs, which may take long."""
        # No daemon: a window that is closed meanwhile ends when all is in its place.
        threading.Thread(target=self._put, name="handing over").start()

    def give_up(self) -> None:
        """Forget what the child has written."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.deleteLater()

    def _names(self) -> list[Path]:
        # What it says that it has written is not believed: what is there counts.
        found = sorted(each for each in self.folder.rglob("*") if not each.is_dir())
        return [each.relative_to(self.folder) for each in found]

    def _put(self) -> None:
        names = self._names()
        answer: tuple[str, ...] | Problem = tuple(str(self._target / name) for name in names)
        try:
            for name in names:
                _move(self.folder / name, self._target / name)
        except OSError as error:
            answer = cannot_write(error, self._target)
        shutil.rmtree(self.folder, ignore_errors=True)
        with contextlib.suppress(RuntimeError):  # the window has been closed
            self.done.emit(answer)


def _move(source: Path, target: Path) -> None:
    if not stat.S_ISREG(source.lstat().st_mode):
        raise OSError(errno.EINVAL, f"{source.name} is no plain file")
    target.parent.mkdir(parents=True, exist_ok=True)
    target = target.resolve()
    if target.exists():
        shutil.copymode(target, source)
    try:
        os.replace(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        with whole_file(target) as part:
            shutil.copyfile(source, part, follow_symlinks=False)
