"""Sessions: the file that the document and the window's layout are continuously saved to.

It is saved a second after each change, in a thread. An unnamed document has an automatic file, so
that the next start can resume where this one ended, even after a crash.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Literal

from PySide6.QtCore import QLockFile, QObject, QTimer, Signal
from PySide6.QtGui import QSessionManager

from lowerscope.app.document.document import Document
from lowerscope.app.document.settings import Settings
from lowerscope.app.kit.background import when_done
from lowerscope.app.kit.commands import Command, Host
from lowerscope.app.kit.dialogs import file_to_save
from lowerscope.app.panes.sessions.source_watch import SourceWatch
from lowerscope.app.panes.sessions.trust import Trusting
from lowerscope.core.files.console import say
from lowerscope.core.files.memo import Hashes
from lowerscope.core.files.sessions import (
    SUFFIX,
    Session,
    changed_since,
    load_session,
    save_session,
)
from lowerscope.core.files.sources import is_in_memory
from lowerscope.core.model.problems import LowerscopeError, Problem
from lowerscope.core.model.recipe import Recipe, WindowLayout, document_of, with_trust
from lowerscope.core.model.texts import _, sentences

# --- Files of sessions, each locked by one window at a time ---

AUTOMATIC = 5
"""Number of files kept for unnamed documents."""

Hindrance = Literal["", "window", "folder"]
"""Reason for not saving: another window has the file, or its folder is not writable."""


@dataclass(frozen=True)
class Place:
    """A session's file."""

    path: Path  # Path of the file.
    automatic: bool  # Whether Lowerscope chose the path.
    lock: QLockFile | None  # Held by the window that saves to it; ``None`` if this one may not.
    hindrance: Hindrance = ""  # Reason why it may not.

    @property
    def given(self) -> Path | None:
        """The file, if the user chose it."""
        return None if self.automatic else self.path


def place_at(path: Path, *, automatic: bool) -> Place:
    """Return the place of a file, locked for this window unless another holds it."""
    lock = QLockFile(f"{path}.lock")
    # A window that crashed leaves its lock; Qt detects that its process is gone.
    lock.setStaleLockTime(0)
    hindrance: Hindrance = ""
    if not lock.tryLock(0):
        taken = lock.error() == QLockFile.LockError.LockFailedError
        hindrance = "window" if taken else "folder"
    return Place(path, automatic, None if hindrance else lock, hindrance)


def new_place(folder: Path) -> Place:
    """Return a new place for an unnamed document; the oldest ones are deleted.

    Raises:
        OSError: If the folder cannot be created.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(folder.glob(f"[!.]*{SUFFIX}"))[: -AUTOMATIC + 1]:
        old = place_at(path, automatic=True)
        if old.lock is not None:
            path.unlink(missing_ok=True)
            old.lock.unlock()
    name = f"{datetime.now():%Y-%m-%d %H.%M.%S} {os.getpid()}"
    path, count = folder / f"{name}{SUFFIX}", 1
    while path.exists():
        count += 1
        path = folder / f"{name} {count}{SUFFIX}"
    return place_at(path, automatic=True)


DELAY_MS = 1000
"""Delay between a change and its saving."""

RETRY_MS = 5000
"""Delay before a failed save is retried: a full disk may have space again."""


class Sessions(QObject):
    """Saves the document, and opens saved ones.

    Args:
        document: The document to save.
        settings: Stores which session was open last.
        trusting: Shows a dialog before a session's files run.
        layout: Returns the window's current layout.
        lay_out: Applies a session's layout to the window.
    """

    changed = Signal()  # `path` or `read_only` changed.
    saved = Signal()  # The document has been saved.

    def __init__(
        self,
        document: Document,
        settings: Settings,
        trusting: Trusting,
        layout: Callable[[], WindowLayout],
        lay_out: Callable[[WindowLayout], None],
    ) -> None:
        super().__init__(document)
        self._document = document
        self._settings = settings
        self._trusting = trusting
        self._layout, self._lay_out = layout, lay_out
        self._hashes = Hashes()
        self._place: Place | None = None
        self._source: tuple[str, str] | None = None
        self._opened = self._left = Path()  # The last file of this window, and the one before it.
        self._coming: tuple[Place, Session] | None = None
        self._kept: tuple[Recipe, Recipe | None, WindowLayout] | None = None
        self._trouble: Problem | None = None
        self._is_gone = False
        self._finished = False
        self._to_go_on: Recipe | None = None
        self._thread = ThreadPoolExecutor(1, "session")
        self._under_way: Future[None] | None = None
        self._timer = QTimer(self)
        self._timer.setInterval(DELAY_MS)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._save)
        self._retry = QTimer(self)
        self._retry.setInterval(RETRY_MS)
        self._retry.setSingleShot(True)
        self._retry.timeout.connect(self._save)
        document.on(("snapshot",), self._follow)
        document.on(("recipe", "pending"), self._follow_wish)
        document.on(("selection", "snapshot"), self.note)
        trusting.declined.connect(self._forget_coming)

    @property
    def path(self) -> Path | None:
        """The session file named by the user; ``None`` if there is none."""
        return None if self._place is None else self._place.given

    @property
    def read_only(self) -> bool:
        """Return whether nothing is saved: another window has the file, or it is not writable."""
        return self._place is not None and self._place.lock is None

    def note(self) -> None:
        """Schedule a save after a change."""
        wanted = self._document.recipe is not None and not self.read_only
        if wanted and self._coming is None and not self._timer.isActive():
            self._timer.start()

    # Opening

    def is_file(self, source: str) -> bool:
        """Return whether a source has the name of a session file."""
        return source.endswith(SUFFIX)

    def open(self, text: str) -> bool:
        """Open a file; return whether it is a session. The document stays until that is loaded."""
        path = Path(text).absolute()
        try:
            session = load_session(path)
        except LowerscopeError as error:
            self._document.report(error.problem)
            return False
        # Before the lock: the same file may be pending, opened twice.
        self._forget_coming()
        held = self._place
        if held is not None and path == held.path and held.lock is not None:
            place = held
        else:
            place = place_at(path, automatic=path.parent == self._folder())
        self._save_waiting()
        self._coming = (place, session)
        # Nothing runs before the user has confirmed it, whatever the file says.
        recipe = with_trust(session.recipe, trust=False)
        # Undo would take the choices of one session into the file of another.
        self._trusting.ask(recipe, partial(self._document.open, anew=True))
        return True

    def last(self) -> Path | None:
        """Return the file of the session before this one, if no other window has it."""
        own = None if self._place is None else self._place.path
        for path in (self._left, Path(self._settings.last_session)):
            if path.is_file() and path != own:
                place = place_at(path, automatic=True)
                if place.lock is not None:
                    place.lock.unlock()
                if place.hindrance != "window":
                    return path
        return None

    def _follow_wish(self) -> None:
        if self._coming is not None and not self._is_coming(self._document.wanted):
            refused = self._document.rejected
            if not self._is_coming(refused):
                self._forget_coming()
        if document_of(self._document.wanted) != document_of(self._document.recipe):
            self._save_waiting()
        self.note()

    def _is_coming(self, recipe: Recipe | None) -> bool:
        if self._coming is None or recipe is None:
            return False
        return recipe.source.spec == self._coming[1].recipe.source.spec

    def _follow(self) -> None:
        recipe = self._document.recipe
        if recipe is None or (self._is_coming(recipe) and self._document.is_changing):
            # A session begins once all of its passes have been applied.
            return
        before, self._source = self._source, document_of(recipe)
        if before != self._source or self._is_coming(recipe):
            self._left = self._opened if self._opened.name else Path(self._settings.last_session)
        if self._is_coming(recipe):
            assert self._coming is not None
            (place, session), self._coming = self._coming, None
            self._take(place)
            self._lay_out(session.layout)
            looked = self._thread.submit(changed_since, session, self._hashes)
            when_done(looked, self, self._say_what_changed)
            if session.wanted is not None:
                self._to_go_on = with_trust(session.wanted, trust=recipe.source.trust)
                QTimer.singleShot(0, self._go_on)
        elif before is not None and before != self._source:
            # Another model is another document: the file keeps its own.
            self._take(None)
        self.note()

    def _go_on(self) -> None:
        """Repeat the change that was pending when the session was saved."""
        wanted, self._to_go_on = self._to_go_on, None
        if wanted is not None and document_of(wanted) == document_of(self._document.recipe):
            self._trusting.ask(wanted, self._document.change)

    def _take(self, place: Place | None) -> None:
        self._finish_saving()
        before, self._place, self._kept = self._place, place, None
        self._release(before)
        recipe = self._document.recipe
        if place is not None and not (recipe is not None and is_in_memory(recipe)):
            self._opened = place.path
            self._settings.last_session = str(place.path)
        if place is not None and place.hindrance:
            name = place.path.name
            text = (
                _("Another window has {name} open: nothing is saved here.", name=name)
                if place.hindrance == "window"
                else _(
                    "{name} is in a read-only folder: nothing is saved here.",
                    name=name,
                )
            )
            todo = _("File → Save session as… saves it to another file.")
            self._document.notify(sentences(text, todo), "wrong")
        self.changed.emit()

    def _release(self, place: Place | None) -> None:
        """Release the file of a place, unless it is that of the session."""
        held = None if self._place is None else self._place.lock
        if place is not None and place.lock is not None and place.lock is not held:
            place.lock.unlock()

    def _say_what_changed(self, looked: Future[tuple[str, ...]]) -> None:
        if not looked.result():
            return
        names = _(", ").join(Path(each).name for each in looked.result())
        count = len(self._document.notes)
        text = _("Changed since the session was saved: {names}.", names=names)
        if count:
            more = _("Choices that no longer apply are kept, and listed in Problems.")
            text = sentences(text, more)
        self._document.notify(text, "info")

    def _forget_coming(self) -> None:
        if self._coming is not None:
            (place, _), self._coming = self._coming, None
            self._release(place)

    # Saving

    def save_as(self, text: str) -> None:
        """Set the session's file, and save there from now on."""
        path = Path(text if text.endswith(SUFFIX) else f"{text}{SUFFIX}").absolute()
        if self._document.recipe is None:
            return
        if self._place is None or path != self._place.path or self.read_only:
            place = place_at(path, automatic=False)
            if place.hindrance:
                what = _("nothing can be written there")
                if place.hindrance == "window":
                    what = _("another window has this session open")
                todo = _("Choose another file")
                self._document.report(Problem(what=what, where=str(path), todo=todo))
                return
            self._take(place)
        self._save()

    def save_now(self) -> None:
        """Save pending changes and wait until they are written."""
        self._timer.stop()
        self._retry.stop()
        if self._document.recipe is not None and not self.read_only:
            self._finish_saving()
            self._save()
            self._finish_saving()

    def save_for_log_out(self, _manager: QSessionManager) -> None:
        """Save the document: the system is about to end all programs."""
        self.save_now()

    def say_how_to_start(self, manager: QSessionManager) -> None:
        """Set the command with which the system reopens it at the next log-in."""
        manager.setRestartCommand(self.start_command())

    def start_command(self) -> list[str]:
        """Return the command that opens the window again, with what is saved."""
        recipe, place = self._document.recipe, self._place
        saved = place is not None and recipe is not None and self.can_reopen()
        opened = [str(place.path)] if place is not None and saved else []
        return [sys.executable, "-P", "-m", "lowerscope.app", *opened]

    def can_reopen(self) -> bool:
        """Return whether another process can open what is open here."""
        recipe = self._document.recipe
        return recipe is None or not is_in_memory(recipe)

    def finish(self) -> None:
        """Save pending changes and release the file: the window is being closed."""
        self.save_now()
        if self._trouble is not None:
            # The terminal may have been closed before the window.
            with contextlib.suppress(OSError):
                say(self._trouble.line())
        self._forget_coming()
        self._finished = True
        self._thread.shutdown()
        if self._place is not None and self._place.lock is not None:
            self._place.lock.unlock()

    def _save_waiting(self) -> None:
        """Save pending changes at once: another document is about to be opened."""
        if self._timer.isActive():
            self._timer.stop()
            self._save()

    def _save(self) -> None:
        recipe = self._document.recipe
        if recipe is None or self.read_only or self._coming is not None or self._finished:
            return
        if self._under_way is not None:
            self._timer.start()
            return
        wanted = self._document.wanted
        if wanted == recipe or document_of(wanted) != document_of(recipe):
            wanted = None
        now = recipe, wanted, self._layout()
        self._is_gone = self._kept is not None and not self._is_there()
        if now == self._kept and not self._is_gone:
            return
        if self._place is None:
            self._take(self._new_place())
        place = self._place
        if place is None:
            return
        self._kept = now
        if place.automatic:
            with contextlib.suppress(OSError):  # the save reports it
                place.path.parent.mkdir(parents=True, exist_ok=True)
        self._under_way = self._thread.submit(
            save_session, place.path, recipe, now[2], self._hashes, wanted
        )
        when_done(self._under_way, self, self._take_saved)

    def _is_there(self) -> bool:
        return self._place is not None and self._place.path.exists()

    def _finish_saving(self) -> None:
        if self._under_way is not None:
            future = self._under_way
            wait((future,))
            self._take_saved(future)

    def _take_saved(self, future: Future[None]) -> None:
        if future is not self._under_way:
            return
        self._under_way = None
        try:
            future.result()
        except LowerscopeError as error:
            self._kept = None
            self._complain(error.problem)
            return
        trouble, self._trouble = self._trouble, None
        self._retry.stop()
        if self._place is not None:
            name = self._place.path.name
            if trouble is not None:
                text = _("The session is saved again, in {name}.", name=name)
                self._document.notify(text, "info")
            elif self._is_gone:
                text = _("{name} was deleted and has been saved again.", name=name)
                self._document.notify(text, "info")
        self.saved.emit()

    def _complain(self, problem: Problem) -> None:
        if problem != self._trouble:
            self._trouble = problem
            self._document.notify(problem.line(), "wrong")
        self._retry.start()

    def _folder(self) -> Path:
        return self._settings.folder() / "sessions"

    def _new_place(self) -> Place | None:
        folder = self._folder()
        try:
            return new_place(folder)
        except OSError as error:
            text = _("the session cannot be saved ({strerror})", strerror=error.strerror)
            self._complain(Problem(what=text, where=str(folder)))
            return None


# --- Commands for sessions, and the window's layout in a session ---


def keeping_sessions(
    host: Host,
    document: Document,
    sessions: Sessions,
    watch: SourceWatch,
    open_session: Callable[[str], None],
) -> tuple[Command, ...]:
    return (
        Command(
            "save-session",
            _("Sa&ve session as…"),
            partial(save_as, host, document, sessions),
            "Ctrl+S",
            enabled=document.is_open,
        ),
        Command(
            "reopen",
            _("Reopen the last sess&ion"),
            partial(reopen, document, sessions, open_session),
        ),
        Command(
            "watch", _("Reload files when they are &saved"), watch.switch, checked=lambda: watch.on
        ),
    )


def save_as(host: Host, document: Document, sessions: Sessions) -> None:
    """Select a file in a dialog, and save the session there from now on."""
    snapshot = document.snapshot
    if snapshot is None:
        return
    name = str(sessions.path or f"{snapshot.model.title}{SUFFIX}")
    title, kinds = _("Save the session"), _("Sessions (*{suffix})", suffix=SUFFIX)
    if path := file_to_save(host.widget, title, name, kinds):
        sessions.save_as(path)
        recipe = document.recipe
        if recipe is not None and is_in_memory(recipe):
            text = _(
                "{title} exists only in the memory of the Python process that made it: the "
                "session records all choices, but cannot be opened again.",
                title=snapshot.model.title,
            )
            document.notify(text, "info")


def reopen(document: Document, sessions: Sessions, open_session: Callable[[str], None]) -> None:
    """Open the last session."""
    path = sessions.last()
    if path is None:
        document.notify(_("There is no session to reopen."), "info")
    else:
        open_session(str(path))


def title(document: Document, sessions: Sessions) -> str:
    """Return the text of the title bar."""
    snapshot, path = document.snapshot, sessions.path
    parts = [] if snapshot is None else [snapshot.model.title]
    if path is not None:
        name = Path(path).stem
        parts.append(_("{name} [read-only]", name=name) if sessions.read_only else name)
    return " – ".join([*parts, "Lowerscope"])
