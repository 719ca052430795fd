"""Running a user's Python file: errors in the user's own frames, and isolation of its imports."""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import itertools
import linecache
import opcode
import os
import re
import sys
import sysconfig
import threading
import traceback
import weakref
from collections.abc import Iterator, Sequence
from importlib.machinery import (
    SOURCE_SUFFIXES,
    FileFinder,
    ModuleSpec,
    PathFinder,
    SourceFileLoader,
)
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any
from zipfile import is_zipfile

import torch
import tvm_ffi

from lowerscope.core.files.approved import check_approved, decode_source
from lowerscope.core.model.problems import Cancelled, LowerscopeError, is_interrupt
from lowerscope.core.model.snapshot import SourceLine
from lowerscope.core.model.texts import _

_ACCESS = os.O_RDONLY | os.O_WRONLY | os.O_RDWR


class OpenedFiles:
    """Files below a folder that were opened."""

    def __init__(self, folder: Path) -> None:
        self._below = os.path.join(folder, "")
        self._read: dict[str, None] = {}
        self._written: set[str] = set()

    @property
    def read(self) -> tuple[Path, ...]:
        """Return the existing files that were only read: files that the code wrote are excluded."""
        paths = (Path(name) for name in self._read if name not in self._written)
        return tuple(path for path in paths if path.suffix != ".pyc" and path.is_file())

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Record the files that this thread opens in the body."""
        _install()
        outer = getattr(_watching, "files", None)
        _watching.files = self
        try:
            yield
        finally:
            _watching.files = outer

    def note(self, name: str, mode: str | None, flags: int) -> None:
        """Record one file."""
        path = os.path.abspath(name)
        if not path.startswith(self._below):
            return
        if mode is None:
            writes = flags & _ACCESS != os.O_RDONLY
        else:
            writes = any(letter in mode for letter in "wax+")
        if writes:
            self._written.add(path)
        else:
            self._read[path] = None


_watching = threading.local()
_installing = threading.Lock()
_installed = False


def _install() -> None:
    """Install the audit hook once: Python cannot remove one."""
    global _installed
    with _installing:
        if not _installed:
            sys.addaudithook(_see)
            _installed = True


def _see(event: str, args: tuple[Any, ...]) -> None:
    if event != "open":
        return
    files = getattr(_watching, "files", None)
    if files is not None and isinstance(args[0], (str, bytes)):
        files.note(os.fsdecode(args[0]), args[1], args[2])


_INSTALLED = (
    Path(__file__).resolve().parents[1],
    *(Path(sysconfig.get_path(key)) for key in ("stdlib", "purelib", "platlib")),
    # Frames have the path as it was found, possibly through a symbolic link.
    Path(__file__).parents[1],
)
_COMPILERS = ("torch", "tvm", "tvm_ffi")
"""Packages that may be run from a checkout, and are no part of the user's file either."""


def is_users(path: Path, folder: Path) -> bool:
    """Return whether a file is the user's own, for a model in `folder`.

    A model may lie inside an installed package: files below its folder are its own.
    """
    return all(
        folder.is_relative_to(installed) and path.is_relative_to(folder)
        for installed in _installed_folders()
        if path.is_relative_to(installed)
    )


def is_installed(path: Path) -> bool:
    """Return whether a file belongs to Python, to Lowerscope or to an installed package."""
    return any(path.is_relative_to(folder) for folder in _installed_folders())


def called_by_user(frame: FrameType | None, folder: Path) -> bool:
    """Return whether a call into torch or TVM comes from code in `folder`, not from its imports."""
    return user_frame(frame, folder) is not None


def user_frame(frame: FrameType | None, folder: Path) -> FrameType | None:
    """Return the frame of the code from `folder` that makes a call into torch or TVM, if any."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith("<frozen importlib"):
            # A module that is still being imported registers for itself, whoever imports it.
            return None
        path = Path(file)
        if not file.startswith("<") and not _is_compilers(path) and not _is_standard(path):
            return frame if path.is_relative_to(folder) and is_users(path, folder) else None
        frame = frame.f_back
    return None


def file_of(module: ModuleType | None) -> Path | None:
    """Return the file of a module; ``None`` if it has none."""
    file = getattr(module, "__file__", None)
    return Path(file) if isinstance(file, str) else None


def places_of(module: ModuleType | None) -> list[Path]:
    """Return the file of a module, or the folders of a package without ``__init__.py``."""
    file = file_of(module)
    if file is not None:
        return [file]
    try:
        return [Path(place) for place in getattr(module, "__path__", ())]
    except (KeyError, TypeError):
        # The path of a namespace package looks up its parent, which may be gone.
        return []


def _is_compilers(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in _compiler_folders())


def _is_standard(path: Path) -> bool:
    # Installed packages may lie inside the standard library's folder.
    return path.is_relative_to(_INSTALLED[1]) and not any(
        path.is_relative_to(folder) for folder in _INSTALLED[2:]
    )


def _compiler_folders() -> list[Path]:
    loaded = (file_of(sys.modules.get(name)) for name in _COMPILERS)
    return [file.parent for file in loaded if file is not None]


def _installed_folders() -> list[Path]:
    return [*_INSTALLED, *_compiler_folders()]


_recording: list[Registrations] = []
"""Active recordings, outermost first; a registration belongs to the innermost."""


class Registrations:
    """The global functions of TVM and the operator libraries of torch that a file registers.

    Only calls made by the user's own code are recorded: registrations that a package makes when it
    is first imported stay, as the package itself does.
    """

    def __init__(self, folder: Path) -> None:
        self.spent = False  # Whether operators of torch were unregistered for good.
        # File and line of the call that registered each function, by name.
        self.places: dict[str, tuple[str, int]] = {}
        self._folder = folder
        self._functions: dict[str, Any] = {}
        self._replaced: dict[str, Any] = {}
        """Functions that the file's own have replaced."""
        self._libraries: weakref.WeakSet[torch.library.Library] = weakref.WeakSet()

    @contextlib.contextmanager
    def recorded(self) -> Iterator[None]:
        """Record the registrations that the user's code makes in the body."""
        # All registration from Python goes through this function.
        register = tvm_ffi.core._register_global_func
        make: Any = torch.library.Library.__init__

        def register_and_note(name: str, function: Any, override: bool) -> Any:
            before = tvm_ffi.get_global_func(name, allow_missing=True)
            result = register(name, function, override)
            frame = user_frame(sys._getframe(1), self._folder)
            if frame is not None and _recording[-1] is self:
                self.places[name] = (frame.f_code.co_filename, frame.f_lineno)
                if before is not None and name not in self._functions:
                    self._replaced[name] = before
                self._functions[name] = tvm_ffi.get_global_func(name)
            return result

        def make_and_note(library: torch.library.Library, *args: Any, **kwargs: Any) -> None:
            make(library, *args, **kwargs)
            if called_by_user(sys._getframe(1), self._folder) and _recording[-1] is self:
                self._libraries.add(library)

        tvm_ffi.core._register_global_func = register_and_note
        torch.library.Library.__init__ = make_and_note  # type: ignore[assignment, method-assign]
        _recording.append(self)
        try:
            yield
        finally:
            _recording.pop()
            tvm_ffi.core._register_global_func = register
            torch.library.Library.__init__ = make  # type: ignore[method-assign]

    def put_back(self) -> None:
        """Register the functions again."""
        for name, function in self._functions.items():
            before = tvm_ffi.get_global_func(name, allow_missing=True)
            if before is not None:
                self._replaced[name] = before
            tvm_ffi.register_global_func(name, function, override=True)

    def put_away(self) -> None:
        """Unregister all functions, and restore those that they replaced."""
        self._destroy_operators()
        for name in list(self._functions):
            present = tvm_ffi.get_global_func(name, allow_missing=True)
            if present is None:
                # Already removed by the user's own code.
                del self._functions[name]
                self.places.pop(name, None)
                self._replaced.pop(name, None)
                continue
            before = self._replaced.pop(name, None)
            if before is None:
                tvm_ffi.registry.remove_global_func(name)
            else:
                tvm_ffi.register_global_func(name, before, override=True)

    def _destroy_operators(self) -> None:
        """Unregister the definitions of torch's libraries; a library cannot do so twice."""
        for library in self._libraries:
            if library.m is not None:
                library._destroy()  # type: ignore[no-untyped-call]
                self.spent = True
        self._libraries.clear()


_lock = threading.RLock()
"""Held while in an environment: the process has one ``sys.modules``."""
_entered: list[Environment] = []
"""Entered environments, outermost first."""
_present: Environment | None = None
"""The environment whose modules are in ``sys.modules``, entered or not."""


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Run the body while no other thread is in an environment, for a model that has none.

    While one thread traces, torch.fx replaces methods of all modules.
    """
    with _lock:
        yield


class Environment:
    """The environment of one file that is run."""

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

        Raises `LowerscopeError` if it is spent.
        """
        with _lock:
            outer = _entered[-1] if _entered else None
            if outer is self:
                yield
                return
            if self.spent:
                raise LowerscopeError(
                    _(
                        "its operators registered with torch were removed, since another file "
                        "was run"
                    ),
                    where=str(self.path),
                    todo=_("Open the file again"),
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

        Raises `LowerscopeError` if it is spent.
        """
        with _lock:
            if self.spent:
                raise LowerscopeError(
                    _("its operators registered with torch were removed"),
                    where=str(self.path),
                    todo=_("Register them in the model's own file, or in a package"),
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
        guard_folder(self._folder)
        compile_folder(self._folder)
        sys.path.append(str(self._folder))
        self._registrations.put_back()

    def _go(self) -> None:
        self._registrations.put_away()
        unguard_folder(self._folder)
        uncompile_folder(self._folder)
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


_IMPORT = opcode.opmap["IMPORT_NAME"]


class _OwnFolders:
    """Meta path finder that stands first.

    A model's folder is on the path for the model's own code. torch and others import many modules
    lazily, and some may not be installed: a file of that name beside the model would be run,
    although the model's code does not name it and the user did not approve it. So an import
    statement of an installed package never finds it. Modules that packages import by a given name,
    as unpickling does, are found there.
    """

    def __init__(self) -> None:
        self.folders: list[str] = []

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec that an installed package finds outside the folders; ``None`` for others.

        Raises `ModuleNotFoundError` if the name exists in the folders only.
        """
        folders = self.folders
        if path is not None or not folders or PathFinder.find_spec(name, folders) is None:
            return None
        if not _is_named_by_a_package(sys._getframe(1), folders):
            return None
        elsewhere = [each for each in sys.path if os.path.abspath(each) not in folders]
        found = PathFinder.find_spec(name, elsewhere)
        for finder in sys.meta_path:
            if found is not None:
                return found
            if finder is not self and finder is not PathFinder:
                found = finder.find_spec(name, None, target)
        if found is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return found


def _is_named_by_a_package(frame: FrameType | None, folders: Sequence[str]) -> bool:
    """Return whether this import comes from an import statement of an installed package."""
    while frame is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    if frame is None or frame.f_code.co_code[frame.f_lasti] != _IMPORT:
        return False
    file = frame.f_code.co_filename
    return not file.startswith("<") and not any(
        is_users(Path(file), Path(folder)) for folder in folders
    )


_finder = _OwnFolders()


def guard_folder(folder: Path) -> None:
    """Register a folder that is about to be on the path for the code in it."""
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    _finder.folders.append(str(folder))


def unguard_folder(folder: Path) -> None:
    """Unregister a folder that is no longer on the path."""
    _finder.folders.remove(str(folder))


_BASE = tuple(Path(os.path.abspath(entry)) for entry in sys.path if os.path.isabs(entry))
"""Folders from which this process itself imports its packages."""

_folders: list[str] = []
"""Folders of the active environments."""
_get_code = SourceFileLoader.get_code


class _SourceFinder(FileFinder):
    """Finder of modules that are Python source files, and packages of these."""


def compile_folder(folder: Path) -> None:
    """Compile imports from a folder from source, until `uncompile_folder`.

    Before a file runs, its text is shown. Python would run byte code beside it instead if the times
    match, or without checking the times; and it would prefer an extension module of the same name.
    So every import from a user's folder while an environment is active is compiled from text, and
    only files with a text are found. If the window has sent a table of approved files, nothing else
    is compiled; see `approved_files`.
    """
    if _find_sources not in sys.path_hooks:
        sys.path_hooks.insert(0, _find_sources)
        SourceFileLoader.get_code = _compiled_from_source  # type: ignore[assignment, method-assign]
    _folders.append(str(folder))
    # Finders cached before may find byte code. There are hundreds: paths are compared as text.
    top = os.path.join(os.path.normpath(folder), "")
    for name, finder in list(sys.path_importer_cache.items()):
        inside = os.path.join(os.path.normpath(name), "").startswith(top)
        if inside and not isinstance(finder, _SourceFinder):
            sys.path_importer_cache.pop(name, None)


def uncompile_folder(folder: Path) -> None:
    """Unregister the folder of an environment that is no longer active."""
    _folders.remove(str(folder))


def _find_sources(entry: str) -> _SourceFinder:
    """Return the finder of a user's folder, as a hook of ``sys.path_hooks``.

    An archive is no folder: nothing is found in it.

    Raises `ImportError` if the folder is not a user's, so that another hook handles it.
    """
    if not _is_users_code(entry) or (os.path.isfile(entry) and not is_zipfile(entry)):
        raise ImportError("not a folder of the user's", path=entry)
    return _SourceFinder(entry, (SourceFileLoader, SOURCE_SUFFIXES))


def _compiled_from_source(self: SourceFileLoader, fullname: str) -> CodeType | None:
    """Return the code of a module, in place of `SourceFileLoader.get_code`."""
    path = self.get_filename(fullname)
    if not _is_users_code(path):
        return _get_code(self, fullname)
    content = self.get_data(path)
    check_approved(Path(path), content, _import_folder(Path(path), fullname))
    code: CodeType = compile(decode_source(content), path, "exec", dont_inherit=True)
    return code


def _import_folder(path: Path, fullname: str) -> Path:
    """Return the folder on the path in which a module of this name is found."""
    depth = fullname.count(".") + (path.name == "__init__.py")
    return path.parents[min(depth, len(path.parents) - 1)]


def _is_users_code(name: str) -> bool:
    """Return whether a path is in an environment's folder, or in one that its code has added."""
    path = Path(os.path.abspath(name))
    folders = [Path(folder) for folder in _folders]
    if any(path.is_relative_to(folder) and is_users(path, folder) for folder in folders):
        return True
    return bool(folders) and not (
        is_installed(path) or any(path.is_relative_to(each) for each in _BASE)
    )


_POINTED = re.compile(r"^\s*--> (.+):(\d+):\d+", re.MULTILINE)
_MOST_LINES = 100
"""Most lines of a message; a longer one says how to see the rest."""
_numbers = itertools.count(1)


def run_file(environment: Environment) -> ModuleType:
    """Run the file of an entered environment as a module with a private, unique name.

    Raises `LowerscopeError` if the file is not Python, was not approved, or fails.
    """
    path = environment.path
    text = _read_approved(path)
    name = f"lowerscope_source_{next(_numbers)}_{path.stem}"
    loader = importlib.machinery.SourceFileLoader(name, str(path))
    spec = importlib.machinery.ModuleSpec(name, loader, origin=str(path))
    spec.has_location = True
    module = importlib.util.module_from_spec(spec)
    environment.add(module)
    # Entries without a modification time are never refreshed: they show the lines as run.
    linecache.cache[str(path)] = (len(text), None, text.splitlines(keepends=True), str(path))
    with user_code(path, _("running the file failed")):
        exec(compile(text, str(path), "exec", dont_inherit=True), module.__dict__)
    return module


@contextlib.contextmanager
def user_code(path: Path, failure: str) -> Iterator[None]:
    """Run the body as a part of the user's file at `path`, whose environment is entered.

    Its output goes to stderr, and its exceptions become a `LowerscopeError`.

    Args:
        failure: The failure in words: ``"running the file failed"``.
    """
    arguments = sys.argv
    sys.argv = [str(path)]
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except (LowerscopeError, Cancelled):
        raise
    except SyntaxError as error:
        raise _syntax_problem(error, path, failure) from None
    except BaseException as error:
        if is_interrupt(error):
            raise
        raise _problem(error, path, failure) from None
    finally:
        sys.argv = arguments


def user_frames(error: BaseException, folder: Path) -> list[traceback.FrameSummary]:
    """Return the frames of `error` that are the user's own, outermost first."""
    frames = traceback.extract_tb(error.__traceback__)
    return [
        frame
        for frame in frames
        if not frame.filename.startswith("<") and is_users(Path(frame.filename), folder)
    ]


def _read_approved(path: Path) -> str:
    try:
        content = path.read_bytes()
        check_approved(path, content, path.parent)
        return decode_source(content)
    except SyntaxError as error:
        raise LowerscopeError(
            _("this is not Python: it is not text ({error})", error=error), where=str(path)
        ) from None
    except OSError as error:
        raise LowerscopeError(
            _("the file cannot be read ({strerror})", strerror=error.strerror), where=str(path)
        ) from None


def _syntax_problem(error: SyntaxError, path: Path, failure: str) -> LowerscopeError:
    if error.filename and not Path(error.filename).is_file():
        # Text that the file itself has compiled, not a file.
        return _problem(error, path, failure)
    what = _("this is not valid Python: {msg}", msg=error.msg)
    if error.text and error.text.strip():
        what = _(
            "this is not valid Python: {msg} in `{line}`", msg=error.msg, line=error.text.strip()
        )
    where = error.filename or str(path)
    return LowerscopeError(what, where=f"{where}:{error.lineno}" if error.lineno else where)


def _problem(error: BaseException, path: Path, failure: str) -> LowerscopeError:
    frames = user_frames(error, path.parent)
    where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else str(path)
    # TVMScript itself names the line of the file that it cannot parse.
    pointed = _POINTED.search(str(error))
    if pointed is not None and Path(pointed[1]).is_file():
        where = f"{pointed[1]}:{pointed[2]}"
    details = "".join(
        [*traceback.format_list(frames), *traceback.format_exception_only(type(error), error)]
    )
    return LowerscopeError(
        _("{event}: {reason}", event=failure, reason=_message(error)),
        where=where,
        todo=_advice(error),
        details=details.rstrip(),
    )


def _message(error: BaseException) -> str:
    """Return type and first line of an error."""
    if isinstance(error, SystemExit):
        return _("it ends Python itself (exit code {code})", code=error.code)
    lines = str(error).strip().splitlines()
    name = type(error).__name__
    if not lines:
        return name
    text = f"{name}: {lines[0].removeprefix('error:').strip()}"
    if len(lines) <= _MOST_LINES:
        return text
    return _(
        "{line} (the first of {count:,} lines; run the file with Python to see all)",
        line=text,
        count=len(lines),
    )


def _advice(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return 'Move what a script does under `if __name__ == "__main__":`'
    if isinstance(error, ImportError) and "relative import" in str(error):
        return _("Import files of the same folder by name: `from layers import Block`")
    if isinstance(error, ModuleNotFoundError) and error.name:
        missing = error.name.partition(".")[0]
        return _(
            "Put {missing} into the same folder, or install it where Lowerscope runs",
            missing=missing,
        )
    return ""
