"""Extension files: rules, library functions and passes of the user, and their environments."""

from __future__ import annotations

import contextlib
import linecache
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

from lowerscope.core.files.paths import check_readable, user_path
from lowerscope.core.files.sources import neighbours
from lowerscope.core.lowering.user_rules import UserRule, gathering
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import Extension
from lowerscope.core.model.snapshot import Note, SourceLine
from lowerscope.core.model.texts import _
from lowerscope.core.passes.catalogue import Pass, user_passes
from lowerscope.core.sources.user_code import Environment, run_file, user_code


@dataclass(frozen=True, eq=False)
class LoadedExtension:
    """A rule, library or pass file that was loaded.

    `path`: the file, absolute.
    `rules`: in order.
    `functions`: where each function is registered with TVM, by name.
    `home`: its environment.
    `passes`: of a file of passes, in order.
    """

    path: Path
    rules: tuple[UserRule, ...]
    functions: Mapping[str, SourceLine]
    home: Environment
    passes: tuple[Pass, ...] = ()


def extension_path(extension: Extension) -> Path:
    """Return the file of an extension, absolute; it need not exist."""
    return user_path(extension.path).absolute()


def extension_files(extension: Extension) -> tuple[Path, ...]:
    """Return the file and those of its folder that it imports or mentions."""
    path = extension_path(extension)
    return (path, *neighbours(path)) if path.is_file() else (path,)


def load_extension(extension: Extension) -> LoadedExtension:
    """Load a file with rules, functions or passes.

    Raises `LowerscopeError` if there is no such file, it is not Python, or it fails; the error
    points at the user's own line.
    """
    path = extension_path(extension)
    option = f"--{extension.kind}"
    check_readable(path)
    if path.suffix.lower() != ".py":
        raise LowerscopeError(
            _("it is not a Python file"),
            where=str(path),
            todo=_("Give {option} a file that ends in .py", option=option),
        )
    home = Environment(path)

    @contextlib.contextmanager
    def running(failure: str) -> Iterator[None]:
        with home.visiting(), user_code(path, failure):
            yield

    with home.visiting(), gathering() as gathered:
        module = run_file(home)
    rules = tuple(
        UserRule(
            each.name,
            each.keys,
            each.strategies,
            each.function,
            _line(each.function, path),
            running,
        )
        for each in gathered
    )
    passes = tuple(user_passes(module, path, running)) if extension.kind == "passes" else ()
    return LoadedExtension(path, rules, home.registered(), home, passes)


def notes_on(extension: Extension, loaded: LoadedExtension) -> Iterator[Note]:
    """Yield notes on a file whose content does not match the kind that it is given as."""
    where = str(loaded.path)
    if extension.kind == "rules" and not loaded.rules:
        yield Note(
            text=_("the file has no rule; define one by @rule of lowerscope.core.rules"),
            where=where,
        )
    if extension.kind == "library":
        if not loaded.functions:
            yield Note(
                text=_("the file registers no function; register one by @tvm.register_global_func"),
                where=where,
            )
        if loaded.rules:
            names = _(", ").join(rule.name for rule in loaded.rules)
            yield Note(
                text=_(
                    "the rules of the file ({names}) take effect only in a file of rules",
                    names=names,
                ),
                where=where,
            )
    if extension.kind == "passes" and not loaded.passes:
        yield Note(
            text=_("the file has no pass; define one by @tvm.transform.module_pass(opt_level=0)"),
            where=where,
        )


@contextlib.contextmanager
def visiting(extensions: Iterable[LoadedExtension]) -> Iterator[None]:
    """Run the body with the registrations of all files; a later one replaces an earlier one.

    A file that is listed twice counts where it stands last: laid over itself, it would take its own
    functions for those that were there before.
    """
    once = list(dict.fromkeys(reversed(tuple(extensions))))
    with contextlib.ExitStack() as stack:
        for each in reversed(once):
            stack.enter_context(each.home.visiting())
        yield


def _line(function: Callable[..., Any], path: Path) -> SourceLine:
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        # An object with __call__, or something of functools.
        return SourceLine(file=str(path), line=1)
    file, line = code.co_filename, code.co_firstlineno
    return SourceLine(file=file, line=line, text=linecache.getline(file, line).strip())
