"""Running a user's Python file: its neighbours found, its errors told in the user's own frames.

A file is run as a module with a private name, its folder first on the path meanwhile. What it
imports from that folder stays in ``sys.modules`` under its own name, and the folder stays last on
the path, so that a later import in a function still finds it, until the next file is run: two
files in different folders may each have a ``core`` of their own.
"""

from __future__ import annotations

import contextlib
import dis
import importlib
import importlib.machinery
import importlib.util
import itertools
import linecache
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, TracebackType

from lowerscope.core.errors import Cancelled, LowerscopeError

_INSTALLED = (
    Path(__file__).resolve().parents[1],
    *(Path(sysconfig.get_path(key)) for key in ("stdlib", "purelib", "platlib")),
)
_COMPILERS = ("torch", "tvm", "tvm_ffi")
"""Packages that may be run from a checkout, and are no part of the user's file either."""

_POINTED = re.compile(r"^\s*--> (.+):(\d+):\d+", re.MULTILINE)
_numbers = itertools.count(1)
_kept: list[str] = []
"""Names in ``sys.modules`` that belong to the file that was run last."""
_before: set[str] = set()
"""Names in ``sys.modules`` when that file was run."""
_folder: list[str] = []
"""The folder of that file, which stands last on the path."""
_displaced: dict[str, ModuleType] = {}
"""Modules whose names these have taken for as long as the file is in use."""


def run_file(path: Path) -> ModuleType:
    """Run a Python file as a module with a private, unique name.

    Raises
    ------
    LowerscopeError
        If the file is not Python, or anything that it does fails.
    """
    text = _read(path)
    _forget_last()
    name = f"lowerscope_source_{next(_numbers)}_{path.stem}"
    loader = importlib.machinery.SourceFileLoader(name, str(path))
    spec = importlib.machinery.ModuleSpec(name, loader, origin=str(path))
    spec.has_location = True
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    _kept.append(name)
    _before.update(sys.modules)
    _folder.append(str(path.parent))
    sys.path.extend(_folder)
    # Without a time the entry is never refreshed: it shows the lines that were run.
    linecache.cache[str(path)] = (len(text), None, text.splitlines(keepends=True), str(path))
    with user_code(path, "is run"):
        exec(compile(text, str(path), "exec", dont_inherit=True), module.__dict__)
    return module


def imported_files(path: Path) -> tuple[Path, ...]:
    """Return the files of the folder of `path` that have been imported since it was run."""
    folder = path.parent
    files = {file: None for name in _kept if (file := _file_of(sys.modules.get(name))) is not None}
    return tuple(file for file in files if file.is_relative_to(folder) and file != path)


@contextlib.contextmanager
def user_code(path: Path, doing: str) -> Iterator[None]:
    """Run the body as a part of the user's file at `path`.

    Its folder is first on the path, what it prints goes to stderr, and what it raises becomes a
    `LowerscopeError`.

    Parameters
    ----------
    path
        The user's file.
    doing
        What is being done with it, for the message: ``"is run"``, ``"Net is built"``.
    """
    before = set(sys.modules)
    state = sys.path[:], sys.argv, sys.dont_write_bytecode
    sys.path.insert(0, str(path.parent))
    sys.argv = [str(path)]
    # The user's folder is not littered, and a neighbour edited within a second is read anew.
    sys.dont_write_bytecode = True
    importlib.invalidate_caches()
    with _hidden(path.parent) as hidden:
        try:
            with contextlib.redirect_stdout(sys.stderr):
                yield
        except (LowerscopeError, Cancelled):
            raise
        except SyntaxError as error:
            raise _syntax_problem(error, path, doing) from None
        except (Exception, SystemExit) as error:
            raise _problem(error, path, doing) from None
        except KeyboardInterrupt as error:
            if not _raised_by_hand(error):
                raise
            raise _problem(error, path, doing) from None
        finally:
            sys.path[:], sys.argv, sys.dont_write_bytecode = state
            _kept.extend(_neighbours(path.parent, set(sys.modules) - before | hidden))


def user_frames(error: BaseException, folder: Path) -> list[traceback.FrameSummary]:
    """Return the frames of `error` that are the user's own, outermost first."""
    frames = traceback.extract_tb(error.__traceback__)
    return [
        frame
        for frame in frames
        if not frame.filename.startswith("<") and _is_users(Path(frame.filename), folder)
    ]


def _read(path: Path) -> str:
    try:
        return importlib.util.decode_source(path.read_bytes())
    except (UnicodeDecodeError, SyntaxError) as error:
        raise LowerscopeError(
            f"this is not Python: it is not text ({error})", where=str(path)
        ) from None
    except OSError as error:
        raise LowerscopeError(
            f"the file cannot be read ({error.strerror})", where=str(path)
        ) from None


def _forget_last() -> None:
    for folder in _folder:
        _kept.extend(_neighbours(Path(folder), set(sys.modules) - _before))
        if folder in reversed(sys.path):
            del sys.path[-1 - sys.path[::-1].index(folder)]
    for name in _kept:
        module = sys.modules.pop(name, None)
        file = _file_of(module)
        if file is not None:
            linecache.cache.pop(str(file), None)
    for state in (_kept, _before, _folder):
        state.clear()
    sys.modules.update(_displaced)
    _displaced.clear()


def _file_of(module: ModuleType | None) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file) if isinstance(file, str) else None


def _places(module: ModuleType | None) -> list[Path]:
    """Return the file of a module, or the folders of a package without ``__init__.py``."""
    file = _file_of(module)
    if file is not None:
        return [file]
    try:
        return [Path(place) for place in getattr(module, "__path__", ())]
    except (KeyError, TypeError):
        # The path of a namespace package asks for its parent, which may be gone.
        return []


def _neighbours(folder: Path, names: set[str]) -> list[str]:
    return [
        name
        for name in sorted(names)
        if any(
            place.is_relative_to(folder) and _is_users(place, folder)
            for place in _places(sys.modules.get(name))
        )
    ]


@contextlib.contextmanager
def _hidden(folder: Path) -> Iterator[set[str]]:
    """Hide loaded modules that have the names of the files in `folder` but are from elsewhere.

    The standard library and what is installed are left alone. Those whose names the body takes
    come back when the next file is run, the others at once. Yields the hidden names.
    """
    try:
        entries = [Path(name) for name in os.listdir(folder)]
    except OSError:
        # A folder that cannot be listed can still hold the file; nothing is known beside it.
        entries = []
    beside = {entry.stem if entry.suffix == ".py" else entry.name for entry in entries}
    hidden: dict[str, ModuleType] = {}
    for name, module in list(sys.modules.items()):
        top = name.partition(".")[0]
        if top in beside and top not in ("lowerscope", "__main__") and (places := _places(module)):
            elsewhere = not any(place.is_relative_to(folder) for place in places)
            if elsewhere and not any(_is_installed(place) for place in places):
                hidden[name] = sys.modules.pop(name)
    try:
        yield set(hidden)
    finally:
        for name, module in hidden.items():
            if name in sys.modules:
                _displaced[name] = module
            else:
                sys.modules[name] = module


def _is_installed(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in _installed_folders())


def _installed_folders() -> list[Path]:
    loaded = (_file_of(sys.modules.get(name)) for name in _COMPILERS)
    return [*_INSTALLED, *(file.parent for file in loaded if file is not None)]


def _is_users(path: Path, folder: Path) -> bool:
    """Whether a file is the user's own, for a model that lies in `folder`.

    A model may well lie inside of an installed package: what is below its folder is its own.
    """
    return all(
        folder.is_relative_to(installed) and path.is_relative_to(folder)
        for installed in _installed_folders()
        if path.is_relative_to(installed)
    )


def _syntax_problem(error: SyntaxError, path: Path, doing: str) -> LowerscopeError:
    if error.filename and not Path(error.filename).is_file():
        # Text that the file itself has compiled, not a file.
        return _problem(error, path, doing)
    what = f"this is not valid Python: {error.msg}"
    if error.text and error.text.strip():
        what += f" in `{error.text.strip()}`"
    where = error.filename or str(path)
    return LowerscopeError(what, where=f"{where}:{error.lineno}" if error.lineno else where)


def _problem(error: BaseException, path: Path, doing: str) -> LowerscopeError:
    frames = user_frames(error, path.parent)
    where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else str(path)
    # TVMScript says itself which line of the file it cannot read.
    pointed = _POINTED.search(str(error))
    if pointed is not None and Path(pointed[1]).is_file():
        where = f"{pointed[1]}:{pointed[2]}"
    details = "".join(
        [
            *traceback.format_list(frames),
            *traceback.format_exception_only(type(error), error),
        ]
    )
    return LowerscopeError(
        f"it fails while it {doing}: {_message(error)}",
        where=where,
        todo=_advice(error),
        details=details.strip(),
    )


def _message(error: BaseException) -> str:
    """Return type and first line of an error."""
    if isinstance(error, SystemExit):
        return f"it ends Python itself (exit code {error.code})"
    lines = str(error).strip().splitlines()
    name = type(error).__name__
    return f"{name}: {lines[0].removeprefix('error:').strip()}" if lines else name


def _advice(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return 'Move what a script does under `if __name__ == "__main__":`'
    if isinstance(error, ImportError) and "relative import" in str(error):
        return "Import what lies beside the file by its own name: `from layers import Block`"
    if isinstance(error, ModuleNotFoundError) and error.name:
        missing = error.name.partition(".")[0]
        return f"Put {missing} beside the file, or install it where Lowerscope runs"
    return ""


def _raised_by_hand(error: BaseException) -> bool:
    """Whether the innermost frame holds a ``raise``: Ctrl-C stops Python anywhere else."""
    last: TracebackType | None = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None:
        return False
    code = last.tb_frame.f_code.co_code
    return dis.opname[code[last.tb_lasti]] in ("RAISE_VARARGS", "RERAISE")
