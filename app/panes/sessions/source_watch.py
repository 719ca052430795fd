"""Watching of open files: changes saved in an editor are reloaded."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QFileSystemWatcher, QObject, QTimer, Signal

from lowerscope.app.document.document import Document
from lowerscope.app.document.settings import Settings
from lowerscope.core.files.sessions import files_of
from lowerscope.core.files.sources import PREFIX, neighbours
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.texts import _

SETTLED_MS = 200
"""Quiet period before a file counts as saved: editors write in several steps."""


class SourceWatch(QObject):
    """Reloads everything, with the choices kept, when a file of the recipe was saved.

    A file that is opened for the first time is read as it is. If the new state cannot be opened,
    the problem is shown and the window keeps what it had.
    """

    saved = Signal(object)  # The paths of files that were saved, and are about to be read again.

    def __init__(self, document: Document, run: Callable[[], None], settings: Settings) -> None:
        super().__init__(document)
        self._document = document
        self._run = run
        self._settings = settings
        self._watcher = QFileSystemWatcher(self)
        self._watcher.fileChanged.connect(self._note)
        self._watcher.directoryChanged.connect(self._note)
        self._timer = QTimer(self)
        self._timer.setInterval(SETTLED_MS)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._look)
        self._known: dict[str, tuple[int, int]] = {}
        self._gone: frozenset[str] = frozenset()
        document.on(("snapshot",), self._follow)
        document.on(("problems",), self._follow)
        document.on(("pending",), self._note_reload)

    @property
    def on(self) -> bool:
        """Return whether files are watched."""
        return self._settings.watching

    def switch(self) -> None:
        """Toggle watching."""
        self._settings.watching = not self.on
        self._follow()

    def _follow(self) -> None:
        recipe = self._document.rejected or self._document.recipe
        paths = _watched(recipe) if recipe is not None and self.on else ()
        self._known = {path: self._known.get(path) or _state(path) for path in paths}
        self._watch()

    def _note_reload(self) -> None:
        pending = self._document.pending
        if pending is not None and pending.reads_files:
            self._know()

    def _know(self) -> None:
        """Record the state of the files: they are about to be read."""
        self._known = {path: _state(path) for path in self._known}

    def _watch(self) -> None:
        # An editor that replaces the old file with a new one ends the watch of the old one: its
        # folder reports the new one.
        wanted = {*filter(os.path.exists, self._known), *map(os.path.dirname, self._known)}
        now = {*self._watcher.files(), *self._watcher.directories()}
        if now - wanted:
            self._watcher.removePaths(sorted(now - wanted))
        if wanted - now:
            self._watcher.addPaths(sorted(wanted - now))

    def _note(self, _path: str) -> None:
        self._timer.start()

    def _look(self) -> None:
        states = {path: _state(path) for path in self._known}
        saved = [path for path, state in states.items() if state not in (self._known[path], _GONE)]
        self._known |= {path: states[path] for path in saved}
        self._watch()
        self._say_gone(
            {path for path, state in states.items() if state == _GONE != self._known[path]}
        )
        if saved:
            names = _(", ").join(Path(path).name for path in saved)
            text = _("{names} was saved: reloading it, with all choices kept.", names=names)
            self._document.notify(text, "info")
            self.saved.emit(saved)
            running = self._document.running
            self._document.reload()
            if running:
                self._run()

    def _say_gone(self, gone: set[str]) -> None:
        names = _(", ").join(sorted(Path(path).name for path in gone - self._gone))
        self._gone = frozenset(gone)
        if names:
            text = _(
                "{names} is missing: the window shows its last content, and reloads it when it "
                "is back.",
                names=names,
            )
            self._document.notify(text, "wrong")


_GONE = (0, -1)


def _watched(recipe: Recipe) -> tuple[str, ...]:
    files = files_of(recipe)
    if recipe.source.trust:
        # Trust applied to the file's previous content.
        files.pop(recipe.source.spec, None)
    named = [path for name, path in files.items() if not name.startswith(PREFIX)]
    programs = (Path(path) for path in named if path.lower().endswith(".py"))
    beside = (str(each) for path in programs for each in neighbours(path))
    return tuple(dict.fromkeys((*named, *beside)))


def _state(path: str) -> tuple[int, int]:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return _GONE
    return status.st_mtime_ns, status.st_size
