"""Import environments of user files: sibling modules, working directory and registrations.

A file's environment is entered while its code runs: its folder is first on the path, and its
imports from there have their plain names. It stays active, with the folder last on the path, until
another file's environment is entered; then it is deactivated, and restored when it is entered
again. Two files in different folders may each have a ``core`` of their own.
"""

from __future__ import annotations

import contextlib
import linecache
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.records.snapshot import SourceLine
from lowerscope.core.sources import shadowing, source_code
from lowerscope.core.sources.opened_files import OpenedFiles
from lowerscope.core.sources.registrations import Registrations
from lowerscope.core.sources.user_files import file_of, is_installed, is_users, places_of

_lock = threading.RLock()
"""Held while in an environment: the process has one ``sys.modules``."""
_entered: list[Environment] = []
"""Entered environments, outermost first."""
_present: Environment | None = None
"""The environment whose modules are in ``sys.modules``, entered or not."""


class Environment:
    """The environment of one file that is run.

    Parameters
    ----------
    path
        The file, absolute.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._folder = path.parent
        self._more_folders: list[str] = []
        """Folders that the file itself has put on the path."""
        self._modules: dict[str, ModuleType] = {}
        """By name in ``sys.modules``."""
        self._others: set[str] = set()
        """Names that were in ``sys.modules`` before the environment was activated."""
        self._displaced: dict[str, ModuleType] = {}
        """Modules that are hidden by modules of the same name while the environment is active."""
        self._lines: dict[str, tuple[int, float | None, list[str], str]] = {}
        """Entries of `linecache`: the lines as they were run."""
        self._directory = ""
        """The working directory that the file has changed to; empty for the process's own."""
        self._finders: tuple[int, list[str]] = 0, []
        """Number of path finders seen, and the file's folders among them."""
        self._opened = OpenedFiles(self._folder)
        self._registrations = Registrations(self._folder)

    @property
    def spent(self) -> bool:
        """Return whether the file must be run again: deactivated, it has lost its torch operators.

        Unlike modules and TVM functions, these cannot be restored.
        """
        return self._registrations.spent

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Run the body in the environment; in it already, this does nothing.

        Raises
        ------
        LowerscopeError
            If it is spent.
        """
        with _lock:
            outer = _entered[-1] if _entered else None
            if outer is self:
                yield
                return
            if self.spent:
                raise LowerscopeError(
                    "the operators that it registers with torch are gone, since another file "
                    "was run",
                    where=str(self.path),
                    todo="Open the file again",
                )
            _switch(self)
            _entered.append(self)
            try:
                with (
                    self._first_on_path(),
                    self._in_directory(),
                    self._registrations.recorded(),
                    self._hidden(),
                ):
                    yield
            finally:
                _entered.pop()
                if outer is not None:
                    _switch(outer)

    @contextlib.contextmanager
    def loading(self) -> Iterator[None]:
        """Run the body, which opens the file, in the environment, and record its reads."""
        with self.entered(), self._opened.watched():
            yield

    @contextlib.contextmanager
    def visiting(self) -> Iterator[None]:
        """Run the body in this environment on top of the active one, which stays active.

        The files that it reads are recorded. Functions that it registers exist in the body only.

        Raises
        ------
        LowerscopeError
            If it is spent.
        """
        with _lock:
            if self.spent:
                raise LowerscopeError(
                    "the operators that it registers with torch are gone",
                    where=str(self.path),
                    todo="Register them in the model's own file, or in a package",
                )
            self._come()
            try:
                with (
                    self._first_on_path(),
                    self._in_directory(),
                    self._registrations.recorded(),
                    self._hidden(),
                    self._opened.watched(),
                ):
                    yield
            finally:
                self._go()

    def registered(self) -> dict[str, SourceLine]:
        """Return the source line of each function registered with TVM, by name."""
        return {
            name: SourceLine(file=file, line=line, text=linecache.getline(file, line).strip())
            for name, (file, line) in self._registrations.places.items()
        }

    def add(self, module: ModuleType) -> None:
        """Add the module of the file itself to the loaded ones."""
        sys.modules[module.__name__] = module
        self._others.discard(module.__name__)
        self._modules[module.__name__] = module

    def files(self) -> tuple[Path, ...]:
        """Return the files in and below the folder that it has imported or read so far."""
        names = [*self._modules, *self._neighbours()]
        imported = (file_of(sys.modules.get(name, self._modules.get(name))) for name in names)
        found = dict.fromkeys((*(file for file in imported if file), *self._opened.read))
        return tuple(
            file
            for file in found
            if file != self.path
            and file.is_relative_to(self._folder)
            and is_users(file, self._folder)
        )

    def _come(self) -> None:
        self._others = set(sys.modules)
        for name in self._modules:
            if name in sys.modules:
                self._displaced[name] = sys.modules[name]
        self._others.difference_update(self._modules)
        sys.modules.update(self._modules)
        linecache.cache.update(self._lines)
        shadowing.add_folder(self._folder)
        source_code.add_folder(self._folder)
        sys.path.append(str(self._folder))
        self._registrations.put_back()

    def _go(self) -> None:
        self._registrations.put_away()
        shadowing.remove_folder(self._folder)
        source_code.remove_folder(self._folder)
        folder = str(self._folder)
        if folder in sys.path:
            del sys.path[-1 - sys.path[::-1].index(folder)]
        names = dict.fromkeys((*self._modules, *self._neighbours()))
        self._modules = {name: sys.modules.pop(name) for name in names if name in sys.modules}
        files = [str(file) for module in self._modules.values() if (file := file_of(module))]
        self._lines = {}
        for name in files:
            entry = linecache.cache.pop(name, None)
            # A tuple of one element is a lazy entry.
            if entry is not None and len(entry) == 4:
                self._lines[name] = entry
        sys.modules.update(self._displaced)
        self._displaced.clear()

    def _neighbours(self) -> list[str]:
        """Return the names imported from the folder since the environment was activated."""
        return [
            name
            for name in sorted(set(sys.modules) - self._others)
            if any(
                place.is_relative_to(self._folder) and is_users(place, self._folder)
                for place in places_of(sys.modules.get(name))
            )
        ]

    @contextlib.contextmanager
    def _first_on_path(self) -> Iterator[None]:
        state = sys.path[:], sys.dont_write_bytecode
        sys.path[:0] = [str(self._folder), *self._more_folders]
        # Keep the user's folder free of byte code, and re-read a module edited within a second.
        sys.dont_write_bytecode = True
        self._look_anew()
        try:
            yield
        finally:
            self._more_folders = [name for name in sys.path if name not in state[0]]
            sys.path[:], sys.dont_write_bytecode = state

    @contextlib.contextmanager
    def _in_directory(self) -> Iterator[None]:
        """Run the body in the working directory that the file has changed to, if any.

        Relative paths in a recipe or a command are relative to the working directory of the
        process.
        """
        before = _working_directory()
        _change_directory(self._directory)
        try:
            yield
        finally:
            now = _working_directory()
            self._directory = now if now != before else ""
            _change_directory(before)

    def _look_anew(self) -> None:
        """Invalidate the import caches of the folder and its subfolders."""
        finders = sys.path_importer_cache
        if len(finders) != self._finders[0]:
            # Other threads may import concurrently.
            folder, names = str(self._folder), list(finders)
            self._finders = len(names), [name for name in names if name.startswith(folder)]
        for name in self._finders[1]:
            finder = finders.get(name)
            if finder is not None:
                finder.invalidate_caches()  # type: ignore[attr-defined]

    @contextlib.contextmanager
    def _hidden(self) -> Iterator[None]:
        """Hide loaded modules that share a name with the folder's files but are from elsewhere.

        The standard library and installed packages are exempt. Modules whose names the body takes
        are restored when the environment is deactivated, the others at once.
        """
        try:
            entries = os.listdir(self._folder)
        except OSError:
            # A folder that cannot be listed can still contain the file; assume no siblings.
            entries = []
        beside = {entry.removesuffix(".py") for entry in entries}
        hidden: dict[str, ModuleType] = {}
        # Thousands of modules are loaded, and usually none shares a name with a sibling file.
        tops = {name for name in beside if name in sys.modules} - {"lowerscope", "__main__"}
        for name, module in list(sys.modules.items()) if tops else ():
            if name.partition(".")[0] in tops:
                places = places_of(module)
                elsewhere = not any(place.is_relative_to(self._folder) for place in places)
                if places and elsewhere and not any(is_installed(place) for place in places):
                    hidden[name] = sys.modules.pop(name)
        self._others.difference_update(hidden)
        try:
            yield
        finally:
            for name, module in hidden.items():
                if name in sys.modules:
                    self._displaced[name] = module
                else:
                    sys.modules[name] = module
                    self._others.add(name)


def _switch(environment: Environment) -> None:
    """Deactivate the active environment, and activate `environment`."""
    global _present
    if _present is environment:
        return
    if _present is not None:
        _present._go()
    _present = environment
    environment._come()


def _working_directory() -> str:
    """Return the working directory; empty where it has been removed."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


def _change_directory(path: str) -> None:
    """Change the working directory, unless the target has been removed meanwhile."""
    if path:
        with contextlib.suppress(OSError):
            os.chdir(path)
