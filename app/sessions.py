"""The session: the file that what is open, and how the window is laid out, is always saved in.

It is saved a second after each change, in a thread. A document that was never given a file has one
among the automatic ones, so that the next start can go on where this one ended, however it ended.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from PySide6.QtCore import QLockFile, QObject, QTimer, Signal
from PySide6.QtGui import QSessionManager

from lowerscope.app.settings import Settings
from lowerscope.app.trusting import Trusting
from lowerscope.app.workspace import Workspace
from lowerscope.core.errors import LowerscopeError, Problem
from lowerscope.core.recipe import Recipe
from lowerscope.core.session_files import (
    SUFFIX,
    Hashes,
    Layout,
    Session,
    load_session,
    remove_halves,
    save_session,
)
from lowerscope.core.sources.spec import is_in_memory

DELAY_MS = 1000
"""From a change to its being saved."""

AUTOMATIC = 5
"""So many files of documents without a name are kept."""


@dataclass(frozen=True)
class _Place:
    """A session's file.

    Attributes
    ----------
    path
        Where it is.
    automatic
        Whether Lowerscope chose it.
    lock
        Held by the window that saves in it; ``None`` where another window has it.
    written
        What is in it: see `save_session`.
    """

    path: Path
    automatic: bool
    lock: QLockFile | None
    written: dict[str, Any] = field(default_factory=dict)


class Sessions(QObject):
    """Saves what is open, and opens what was saved.

    Signals
    -------
    changed
        `path` or `read_only` is new.
    saved
        What is open is in the file.

    Parameters
    ----------
    workspace
        What is saved.
    settings
        Remembers which session was the last.
    trusting
        Asks before a session's files run.
    layout
        Returns how the window is laid out now.
    lay_out
        Lays the window out as a session says.
    """

    changed = Signal()
    saved = Signal()
    _ended = Signal(object)

    def __init__(
        self,
        workspace: Workspace,
        settings: Settings,
        trusting: Trusting,
        layout: Callable[[], Layout],
        lay_out: Callable[[Layout], None],
    ) -> None:
        super().__init__(workspace)
        self._workspace = workspace
        self._settings = settings
        self._trusting = trusting
        self._layout, self._lay_out = layout, lay_out
        self._hashes = Hashes()
        self._place: _Place | None = None
        self._source: tuple[str, str] | None = None
        self._coming: tuple[_Place, Session] | None = None
        self._kept: tuple[Recipe, Layout] | None = None
        self._trouble = ""
        self._thread = ThreadPoolExecutor(1, "session")
        self._under_way: Future[dict[str, Any]] | None = None
        self._timer = QTimer(self)
        self._timer.setInterval(DELAY_MS)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._save)
        self._ended.connect(self._take_saved)
        workspace.snapshot_changed.connect(self._follow)
        workspace.recipe_wanted.connect(self._follow_wish)
        workspace.selection_changed.connect(self.note)
        trusting.declined.connect(self._forget_coming)

    @property
    def path(self) -> Path | None:
        """The file that the user gave the session; ``None`` where it has none."""
        return None if self._place is None or self._place.automatic else self._place.path

    @property
    def read_only(self) -> bool:
        """Whether another window has the file, so that nothing is saved in it."""
        return self._place is not None and self._place.lock is None

    def note(self) -> None:
        """Save soon: something has changed."""
        wanted = self._workspace.recipe is not None and not self.read_only
        if wanted and self._coming is None and not self._timer.isActive():
            self._timer.start()

    # Opening

    def is_file(self, source: str) -> bool:
        """Return whether a source is named as the file of a session."""
        return source.endswith(SUFFIX)

    def open(self, text: str) -> bool:
        """Open a file; return whether it is one. What is open stays until its model is there."""
        path = Path(text).absolute()
        try:
            session = load_session(path, self._hashes)
        except LowerscopeError as error:
            self._workspace.report(error.problem)
            return False
        if self._place is not None and path == self._place.path:
            place = _Place(path, self._place.automatic, self._place.lock, session.written)
        else:
            place = _Place(path, path.parent == self._folder(), _locked(path), session.written)
        self._forget_coming()
        self._coming = (place, session)
        # Nothing runs before it is asked for, whatever the file says.
        source = msgspec.structs.replace(session.recipe.source, trust=False)
        recipe = msgspec.structs.replace(session.recipe, source=source)
        self._trusting.ask(recipe, self._workspace.open)
        return True

    def last(self) -> Path | None:
        """Return the file of what was open last, if it is there and no other window has it."""
        text = self._settings.last_session()
        path = Path(text)
        if not text or not path.is_file() or (self._place is not None and path == self._place.path):
            return None
        lock = _locked(path)
        if lock is None:
            return None
        lock.unlock()
        return path

    def _follow_wish(self) -> None:
        if self._coming is not None and not self._is_coming(self._workspace.wanted):
            refused = self._workspace.refused
            if not self._is_coming(refused):
                self._forget_coming()
        self.note()

    def _is_coming(self, recipe: Recipe | None) -> bool:
        if self._coming is None or recipe is None:
            return False
        return recipe.source.spec == self._coming[1].recipe.source.spec

    def _follow(self) -> None:
        recipe = self._workspace.recipe
        if recipe is None:
            return
        source = (recipe.source.spec, recipe.source.entry)
        if self._is_coming(recipe):
            assert self._coming is not None
            (place, session), self._coming = self._coming, None
            self._take(place)
            self._lay_out(session.layout)
            self._say_what_changed(session)
        elif self._source is not None and source != self._source:
            # Another model is another document: the file keeps the one that it has.
            self._take(None)
        self._source = source
        self.note()

    def _take(self, place: _Place | None) -> None:
        self._finish_saving()
        before, self._place, self._kept = self._place, place, None
        self._release(before)
        recipe = self._workspace.recipe
        if place is not None and not (recipe is not None and is_in_memory(recipe)):
            self._settings.set_last_session(str(place.path))
        if place is not None and place.lock is None:
            text = self.tr("Another window has {0} open: nothing is saved here. {1}")
            todo = self.tr("File → Save session as… keeps it in a file of its own.")
            self._workspace.announced.emit(text.format(place.path.name, todo), "wrong")
        self.changed.emit()

    def _release(self, place: _Place | None) -> None:
        """Let the file of a place go, unless it is that of the session."""
        held = None if self._place is None else self._place.lock
        if place is not None and place.lock is not None and place.lock is not held:
            place.lock.unlock()

    def _say_what_changed(self, session: Session) -> None:
        if not session.changed:
            return
        names = ", ".join(Path(each).name for each in session.changed)
        count = len(self._workspace.notes)
        text = self.tr("Changed since the session was saved: {0}.").format(names)
        if count:
            more = self.tr("What no longer applies is kept, and listed in Problems.")
            text = f"{text} {more}"
        self._workspace.announced.emit(text, "info")

    def _forget_coming(self) -> None:
        if self._coming is not None:
            (place, _), self._coming = self._coming, None
            self._release(place)

    # Saving

    def save_as(self, text: str) -> None:
        """Give the session a file, and save it there from now on."""
        path = Path(text if text.endswith(SUFFIX) else f"{text}{SUFFIX}").absolute()
        if self._workspace.recipe is None:
            return
        if self._place is None or path != self._place.path or self.read_only:
            lock = _locked(path)
            if lock is None:
                self._workspace.report(
                    Problem(
                        what=self.tr(
                            "another window has this session open, or saves nothing there"
                        ),
                        where=str(path),
                        todo=self.tr("Choose another file"),
                    )
                )
                return
            written = {} if self._place is None else self._place.written
            self._take(_Place(path, False, lock, written))
        self._save()

    def save_now(self) -> None:
        """Save what has not been saved yet, and wait until it is."""
        self._timer.stop()
        if self._workspace.recipe is not None and not self.read_only:
            self._finish_saving()
            self._save()
            self._finish_saving()

    def save_for_log_out(self, _manager: QSessionManager) -> None:
        """Save what is open: the system is about to end all programs."""
        self.save_now()

    def finish(self) -> None:
        """Save what has not been saved yet, and let the file go: the window is being closed."""
        self.save_now()
        self._forget_coming()
        self._thread.shutdown()
        if self._place is not None and self._place.lock is not None:
            self._place.lock.unlock()

    def _save(self) -> None:
        recipe = self._workspace.recipe
        if recipe is None or self.read_only or self._coming is not None:
            return
        if self._under_way is not None:
            self._timer.start()
            return
        layout = self._layout()
        if (recipe, layout) == self._kept:
            return
        if self._place is None:
            self._take(self._new_place())
        place = self._place
        if place is None:
            return
        self._kept = (recipe, layout)
        self._under_way = self._thread.submit(
            save_session, place.path, recipe, layout, place.written, self._hashes
        )
        self._under_way.add_done_callback(self._ended.emit)

    def _finish_saving(self) -> None:
        if self._under_way is not None:
            future = self._under_way
            wait((future,))
            self._take_saved(future)

    def _take_saved(self, future: Future[dict[str, Any]]) -> None:
        if future is not self._under_way:
            return
        self._under_way = None
        try:
            written = future.result()
        except LowerscopeError as error:
            self._kept = None
            self._complain(error.problem)
            return
        self._trouble = ""
        if self._place is not None:
            place = self._place
            self._place = _Place(place.path, place.automatic, place.lock, written)
        self.saved.emit()

    def _complain(self, problem: Problem) -> None:
        if problem.what != self._trouble:
            self._trouble = problem.what
            self._workspace.announced.emit(problem.line(), "wrong")

    # Files of documents without a name

    def _folder(self) -> Path:
        return self._settings.folder() / "sessions"

    def _new_place(self) -> _Place | None:
        folder = self._folder()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            text = self.tr("the session cannot be saved ({0})").format(error.strerror)
            self._complain(Problem(what=text, where=str(folder)))
            return None
        self._leave_few(folder)
        name = f"{datetime.now():%Y-%m-%d %H.%M.%S} {os.getpid()}"
        path, count = folder / f"{name}{SUFFIX}", 1
        while path.exists():
            count += 1
            path = folder / f"{name} {count}{SUFFIX}"
        return _Place(path, True, _locked(path))

    def _leave_few(self, folder: Path) -> None:
        old = sorted(folder.glob(f"*{SUFFIX}"))[: -AUTOMATIC + 1]
        for path in old:
            lock = _locked(path)
            if lock is not None:
                path.unlink(missing_ok=True)
                lock.unlock()


def _locked(path: Path) -> QLockFile | None:
    """Lock a session's file for this window; ``None`` where another one has it."""
    lock = QLockFile(f"{path}.lock")
    # A window that died has left its lock; Qt sees that there is no such process.
    lock.setStaleLockTime(0)
    if not lock.tryLock(0):
        return None
    remove_halves(path)
    return lock
