"""Files that an opened source depends on, found without running any of them."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

from lowerscope.core.files.paths import read_plain, user_path
from lowerscope.core.files.sources import MEMORY, source_path
from lowerscope.core.model.encoding import NO_PYTHON
from lowerscope.core.model.recipe import InputSpec, Source


def input_files(inputs: tuple[InputSpec, ...]) -> tuple[Path, ...]:
    """Return the existing files that inputs are read from, without repeats."""
    named = dict.fromkeys(user_path(spec.file).absolute() for spec in inputs if spec.file)
    return tuple(file for file in named if file.is_file())


def source_files(source: Source, inputs: tuple[InputSpec, ...]) -> tuple[Path, ...]:
    """Return the existing files behind a source and its inputs, without repeats.

    They are the file itself, the parameters, the inputs' files, the Python files in its folder that
    it imports, directly or transitively, and the files in its folder that these mention by name.

    Raises `LowerscopeError` if the source is a sample that does not exist.
    """
    if source.spec.startswith(MEMORY):
        return input_files(inputs)
    path = source_path(source.spec)
    found = {path: None}
    if source.params:
        found[user_path(source.params).absolute()] = None
    found |= dict.fromkeys(input_files(inputs))
    if path.suffix.lower() == ".py":
        found |= dict.fromkeys(neighbours(path))
    return tuple(file for file in found if file.is_file())


def neighbours(path: Path, folder: Path | None = None) -> tuple[Path, ...]:
    """Return the files in and below a folder that `path` imports or mentions.

    The folder is that of `path`, unless `path` is a module of a package.
    """
    folder = folder or path.parent
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
    return (Path(file) for file in _candidates(path, folder) if os.path.isfile(file))


_parsed: dict[tuple[Path, Path], tuple[tuple[int, int], tuple[str, ...]]] = {}
"""Cache of `_candidates`: size and modification time of a file, and its candidates."""


def _candidates(path: Path, folder: Path) -> tuple[str, ...]:
    """Return the names that a Python file imports or mentions, existing or not."""
    try:
        status = path.stat()
        stamp = (status.st_size, status.st_mtime_ns)
        known = _parsed.get((path, folder))
        if known is None or known[0] != stamp:
            mentions = _find(ast.parse(read_plain(path)))
            found = (file for each in mentions for file in _meant(each, path, folder))
            known = _parsed[path, folder] = (stamp, tuple(dict.fromkeys(map(str, found))))
    except (OSError, *NO_PYTHON):
        # Running the file reports the error; an unreadable file mentions nothing.
        return ()
    return known[1]


Mention = tuple[int | None, str, str]
"""Level, module and name of an import; or ``None``, an empty module, and a possible file name."""


def _meant(mention: Mention, path: Path, folder: Path) -> Iterator[Path]:
    level, module, name = mention
    if level is None:
        yield folder / name
    else:
        start = folder if level == 0 else path.parents[level - 1]
        yield from _module_files(start, module)
        if name:
            yield from _module_files(start, f"{module}.{name}" if module else name)


_IMPORTING = ("import_module", "__import__")
"""Functions that import the module named by a string."""


def _find(tree: ast.AST) -> Iterator[Mention]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((0, alias.name, "") for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                yield from ((level, module or "", alias.name) for alias in names)
            case ast.Call(func=function, args=[ast.Constant(value=str(name)), *_]) if (
                ast.unparse(function).rpartition(".")[2] in _IMPORTING
            ):
                yield (0, name, "")
            case ast.Constant(value=str(name)) if 0 < len(name) < 200 and "\0" not in name:
                if "." in name and not Path(name).is_absolute():
                    yield (None, "", name)


def _module_files(folder: Path, name: str) -> Iterator[Path]:
    """Yield the files that importing the dotted `name` from `folder` would run."""
    place = folder
    for part in filter(None, name.split(".")):
        place = place / part
        yield place.with_name(part + ".py")
        yield place / "__init__.py"
