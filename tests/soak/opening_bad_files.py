"""Opening bad files as the window does: what its engine says of them, and what they leave."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lowerscope.app.panes.sessions.trust import code_of
from lowerscope.core.engine.protocol import (
    TO_WINDOW,
    Failure,
    FrameReader,
    Ready,
    Reply,
    Request,
    ToWindow,
    encode_frame,
    to_raw,
)
from lowerscope.core.model.graph import DEFAULT
from lowerscope.core.model.problems import LowerscopeError, Problem
from lowerscope.core.model.queries import SnapshotQuery
from lowerscope.core.model.recipe import Recipe
from tests.soak.bad_files import KINDS, bad_file, numbers, write_seeds

PATIENCE = 300.0
"""Seconds that one file may take, on a machine that does much else; more counts as never."""

MEMORY = 4 << 30
"""Bytes of an engine: a file that asks for more is to be refused."""

MOST_LETTERS = 800
"""Of a line that says what is wrong."""


class Engine:
    """The window's engine, asked for what a recipe stands for; started anew where it has ended.

    Attributes
    ----------
    ends
        How it ended, each time.
    """

    def __init__(self, folder: Path) -> None:
        self.ends: list[str] = []
        self._folder = folder
        self._number = 0
        self._start()

    def _start(self) -> None:
        words = ("-P", "-m", "lowerscope.core.engine.server", "--role", "engine")
        self._process = subprocess.Popen(
            [sys.executable, *words, "--memory-limit", str(MEMORY)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd=self._folder,
        )
        self._messages = self._read()
        self._ready = False

    def _read(self) -> Iterator[ToWindow]:
        assert self._process.stdout is not None
        reader = FrameReader(TO_WINDOW)
        while data := os.read(self._process.stdout.fileno(), 2**20):
            yield from reader.feed(data)

    def ask(self, recipe: Recipe) -> Problem | None:
        """Return what is wrong with a recipe; ``None`` where all of it can be shown.

        An end of the engine is in `ends`, and is a problem with the code ``"ended"``.
        """
        self._number += 1
        params = SnapshotQuery(recipe=recipe, metrics=DEFAULT)
        answer = self._answer(encode_frame(Request(self._number, "SnapshotQuery", to_raw(params))))
        if answer is not None:
            return answer.problem if isinstance(answer, Failure) else None
        code = -self._process.wait(PATIENCE)
        self.ends.append("too long" if code == signal.SIGKILL else f"status {code}")
        self._close_pipes()
        self._start()
        return Problem(what=f"the engine ended: {self.ends[-1]}", code="ended")

    def _answer(self, request: bytes) -> Reply | Failure | None:
        assert self._process.stdin is not None
        while not self._ready:
            self._ready = isinstance(next(self._messages), Ready)
        watchdog = threading.Timer(PATIENCE, self._kill)
        watchdog.start()
        with contextlib.suppress(BrokenPipeError):  # it has ended
            self._process.stdin.write(request)
            self._process.stdin.flush()
        answers = (each for each in self._messages if isinstance(each, Reply | Failure))
        try:
            return next((each for each in answers if each.id == self._number), None)
        finally:
            watchdog.cancel()

    def close(self) -> None:
        """End it."""
        self._kill()
        self._process.wait(PATIENCE)
        self._close_pipes()

    def _kill(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)

    def _close_pipes(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()


@dataclass
class Tally:
    """Numbers of files by how they were opened."""

    opened: int = 0
    refused: int = 0
    asked: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.opened + self.refused + self.asked


def open_bad_files(folder: Path, total: int) -> tuple[Tally, list[str]]:
    """Open so many bad files as the window does; return what became of them, and what was wrong.

    What is wrong is a file of which it is not said clearly what it has, whatever ends the engine,
    and whatever is executed or left behind. Files of Python's are opened as if their user had let
    them run.
    """
    marker, case, seeds_folder = (folder / name for name in ("it_ran", "case", "seeds"))
    case.mkdir()
    seeds_folder.mkdir()
    seeds = write_seeds(seeds_folder, marker)
    tally, wrong = Tally(), list[str]()
    engine = Engine(case)
    try:
        for suffix, number in numbers(total):
            path = case / f"bad{suffix}"
            data = bad_file(seeds, suffix, number)
            path.write_bytes(data)
            found = _open(engine, suffix, path, tally)
            if marker.exists():
                found = "something in it was executed"
                marker.unlink()
            if path.read_bytes() != data:
                found = "it was changed"
            path.unlink()
            if any(case.iterdir()):
                found = f"it left {[each.name for each in case.iterdir()]}"
            if found:
                wrong.append(f"{suffix} {number}: {found}")
    finally:
        engine.close()
    return tally, wrong


def _open(engine: Engine, suffix: str, path: Path, tally: Tally) -> str:
    """Return what is wrong with how a file is opened; empty for nothing."""
    try:
        recipe = KINDS[suffix].asked(path)
    except LowerscopeError as error:
        tally.refused += 1
        return unclear(error.problem)
    except Exception as error:  # whatever it is, the window would have met it
        return f"the window fails: {type(error).__name__}: {error}"
    if code_of(recipe) and suffix != ".py":
        tally.asked += 1
        return ""
    problem = engine.ask(recipe)
    if problem is None:
        tally.opened += 1
        return ""
    tally.refused += 1
    return unclear(problem)


def unclear(problem: Problem) -> str:
    """Return why a problem is not clear: not one line, not short, or of our own insides."""
    line = problem.line()
    if problem.code in ("internal", "ended") or "Traceback" in line:
        return f"{line} {problem.details[-400:]}"
    if not problem.what or "\n" in line or len(line) > MOST_LETTERS:
        return f"not one short line: {line[:2000]!r}"
    return ""
