"""File broker: files written by a sandboxed child for folders to which it has no access.

The child writes to a folder of its sandbox, and the window copies the announced files out of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, cast

import msgspec
from PySide6.QtCore import QObject, Signal

from lowerscope.app.document.queries import OnProblem, Queries
from lowerscope.app.engine.pending import OnResult
from lowerscope.app.kit.background import in_thread, when_done
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import Query, SaveRunValuesQuery, SaveValuesQuery, WriteRuleQuery
from lowerscope.core.model.snapshot import SourceLine
from lowerscope.core.model.texts import _
from lowerscope.core.sandbox.folder import SandboxOutput, Takes, only, own_folder

FileQuery = SaveValuesQuery | SaveRunValuesQuery | WriteRuleQuery


def ask_for_file(
    queries: Queries,
    query: FileQuery,
    on_result: OnResult,
    on_problem: OnProblem,
) -> None:
    """Let a child write a file of the user's, ``query.file``."""
    client = queries.client(query.child)
    if not client.hands_over:
        client.request(cast(Query[Any], query), on_result, on_problem)
        return
    target = Path(query.file).absolute()
    try:
        handing = HandingOver(target.parent, queries, only((target.name,)))
        # A rule is appended to the existing content.
        handing.put_in(target)
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
    there = msgspec.structs.replace(query, file=str(written))
    client.request(cast(Query[Any], there), take, refuse)


def _renamed(result: str | SourceLine, old: str, new: str) -> str | SourceLine:
    """Return the result of a method with the path of the file's destination."""
    if isinstance(result, SourceLine):
        return msgspec.structs.replace(result, file=new)
    return result.replace(old, new)


def cannot_write(error: OSError, where: Path) -> Problem:
    """Return the problem of a file that cannot be written."""
    return Problem(
        what=_("it cannot be written: {strerror}", strerror=error.strerror or error),
        where=str(where),
        todo=_("Choose a writable folder"),
    )


class HandingOver(QObject):
    """A folder for a child to write to, whose files are then put into the user's.

    See `SandboxOutput`.

    Args:
        target: The user's folder.
        takes: Returns whether a file was announced.
    """

    done = Signal(object)  # The paths of the moved files, a tuple; or a `Problem`.

    def __init__(self, target: Path, parent: QObject, takes: Takes) -> None:
        super().__init__(parent)
        self._output = SandboxOutput(own_folder(), target, takes)
        self.folder = self._output.folder  # The child's folder.
        # Files left there by the child that were not announced, once done.
        self.others: tuple[str, ...] = ()

    def names(self) -> tuple[str, ...]:
        """Return the announced files that the child has written: paths in its folder."""
        # The child's own report is not trusted: the files present count.
        with contextlib.suppress(OSError):
            return self._output.names()
        return ()

    def put_in(self, source: Path) -> None:
        """Give the child a copy of a file of the user's; see `SandboxOutput.put_in`."""
        self._output.put_in(source)

    def start(self, replacing: Sequence[str]) -> None:
        """Put the files that the child has written in their place, which may take long.

        Args:
            replacing: The files in the user's folder that may be replaced.
        """
        output = self._output

        def put() -> tuple[tuple[str, ...], tuple[str, ...] | Problem]:
            others: tuple[str, ...] = ()
            try:
                others = output.others()
                return others, tuple(map(str, output.copy_out(only(replacing))))
            except OSError as error:
                return others, cannot_write(error, output.target)
            finally:
                output.close()

        when_done(in_thread("handing over", put), self, self._finish)

    def give_up(self) -> None:
        """Discard the files that the child has written."""
        self._output.close()
        self.deleteLater()

    def _finish(self, future: Future[tuple[tuple[str, ...], tuple[str, ...] | Problem]]) -> None:
        self.others, answer = future.result()
        self.done.emit(answer)
