"""Which files the result of opening a source depends on, found without running any of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from lowerscope.core.recipe import InputSpec, Source
from lowerscope.core.sources.spec import source_path, user_path


def source_files(source: Source, inputs: tuple[InputSpec, ...]) -> tuple[Path, ...]:
    """Return the files behind a source and its inputs, those that exist, without repeats.

    They are the file itself, the parameters, the inputs' files, the Python files in its folder
    that it imports, directly or by way of each other, and the files in its folder that these
    mention by name.

    Raises
    ------
    LowerscopeError
        If the source is a sample that does not exist.
    """
    path = source_path(source.spec)
    named = [source.params, *(spec.file for spec in inputs)]
    found = {path: None}
    found |= dict.fromkeys(user_path(name).absolute() for name in named if name)
    if path.suffix.lower() == ".py":
        found |= dict.fromkeys(neighbours(path))
    return tuple(file for file in found if file.is_file())


def neighbours(path: Path) -> tuple[Path, ...]:
    """Return the files of the folder of `path`, and below, that `path` imports or mentions."""
    folder = path.parent
    found: dict[Path, None] = {}
    waiting = [path]
    while waiting:
        for file in _mentioned(waiting.pop(), folder):
            if file not in found and file != path:
                found[file] = None
                if file.suffix == ".py":
                    waiting.append(file)
    return tuple(found)


def _mentioned(path: Path, folder: Path) -> Iterator[Path]:
    for level, module, name in _imports_and_names(path):
        if level is None:
            file = folder / name
            if _is_file(file):
                yield file
        else:
            start = folder if level == 0 else path.parents[level - 1]
            yield from _module_files(start, module)
            if name:
                yield from _module_files(start, f"{module}.{name}" if module else name)


Mention = tuple[int | None, str, str]
"""Level, module and name of an import; or ``None``, nothing, and a string that may name a file."""

_parsed: dict[Path, tuple[tuple[int, int], tuple[Mention, ...]]] = {}
"""What was found in a file, under its size and time of change."""


def _imports_and_names(path: Path) -> tuple[Mention, ...]:
    """Return what a Python file imports, and the strings in it that look like names of files."""
    try:
        status = path.stat()
        stamp = (status.st_size, status.st_mtime_ns)
        known = _parsed.get(path)
        if known is None or known[0] != stamp:
            known = _parsed[path] = (stamp, tuple(_find(ast.parse(path.read_bytes()))))
    except (OSError, SyntaxError, ValueError):
        # Running the file tells the user; a file that cannot be read mentions nothing.
        return ()
    return known[1]


def _find(tree: ast.AST) -> Iterator[Mention]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((0, alias.name, "") for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                yield from ((level, module or "", alias.name) for alias in names)
            case ast.Constant(value=str(name)) if 0 < len(name) < 200 and "\0" not in name:
                if "." in name and not Path(name).is_absolute():
                    yield (None, "", name)


def _module_files(folder: Path, name: str) -> Iterator[Path]:
    """Yield the files that importing the dotted `name` from `folder` would run."""
    place = folder
    for part in filter(None, name.split(".")):
        place = place / part
        for file in (place.with_name(part + ".py"), place / "__init__.py"):
            if _is_file(file):
                yield file


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False
