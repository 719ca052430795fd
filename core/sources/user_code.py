"""Running a user's Python file, with errors reported in the user's own frames."""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import itertools
import linecache
import re
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from lowerscope.core.files.approved import check_approved, decode_source
from lowerscope.core.model.problems import Cancelled, LowerscopeError, is_interrupt
from lowerscope.core.sources.import_isolation import Environment, is_users

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
    with user_code(path, "is run"):
        exec(compile(text, str(path), "exec", dont_inherit=True), module.__dict__)
    return module


@contextlib.contextmanager
def user_code(path: Path, doing: str) -> Iterator[None]:
    """Run the body as a part of the user's file at `path`, whose environment is entered.

    Its output goes to stderr, and its exceptions become a `LowerscopeError`.

    Args:
        doing: The operation, for the message: ``"is run"``, ``"Net is built"``.
    """
    arguments = sys.argv
    sys.argv = [str(path)]
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except (LowerscopeError, Cancelled):
        raise
    except SyntaxError as error:
        raise _syntax_problem(error, path, doing) from None
    except BaseException as error:
        if is_interrupt(error):
            raise
        raise _problem(error, path, doing) from None
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
            f"this is not Python: it is not text ({error})", where=str(path)
        ) from None
    except OSError as error:
        raise LowerscopeError(
            f"the file cannot be read ({error.strerror})", where=str(path)
        ) from None


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
    # TVMScript itself names the line of the file that it cannot parse.
    pointed = _POINTED.search(str(error))
    if pointed is not None and Path(pointed[1]).is_file():
        where = f"{pointed[1]}:{pointed[2]}"
    details = "".join(
        [*traceback.format_list(frames), *traceback.format_exception_only(type(error), error)]
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
    if not lines:
        return name
    more = ""
    if len(lines) > _MOST_LINES:
        more = f" (the first of {len(lines):,} lines; run the file with Python to see all)"
    return f"{name}: {lines[0].removeprefix('error:').strip()}{more}"


def _advice(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return 'Move what a script does under `if __name__ == "__main__":`'
    if isinstance(error, ImportError) and "relative import" in str(error):
        return "Import what lies beside the file by its own name: `from layers import Block`"
    if isinstance(error, ModuleNotFoundError) and error.name:
        missing = error.name.partition(".")[0]
        return f"Put {missing} beside the file, or install it where Lowerscope runs"
    return ""
