"""Passes defined in the user's Python files."""

from __future__ import annotations

import ast
import importlib.util
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import tvm

from lowerscope.core.passes.catalogue import Pass, Running, is_pass_class
from lowerscope.core.passes.options import NoField, Option, options_of, signature_of
from lowerscope.core.records.passes import PassType
from lowerscope.core.records.snapshot import SourceLine

_DEFINITIONS = (ast.FunctionDef, ast.ClassDef)


def user_passes(module: ModuleType, path: Path, running: Running) -> Iterator[Pass]:
    """Yield the passes that a file defines, which was run as `module`.

    They are the public names at its top level: passes of TVM, such as functions decorated by
    ``tvm.transform.module_pass``; classes decorated so; and functions whose return annotation is a
    pass, whose parameters are the options.

    Parameters
    ----------
    running
        The context in which the file's code runs.
    """
    # Decoded as by Python: the file may declare another encoding.
    lines = importlib.util.decode_source(path.read_bytes()).split("\n")
    for node in ast.parse("\n".join(lines)).body:
        for name in _names(node):
            value = vars(module).get(name)
            if name.startswith("_") or not _is_pass(value):
                continue
            line = SourceLine(file=str(path), line=node.lineno, text=lines[node.lineno - 1].strip())
            doc = (ast.get_docstring(node) or "") if isinstance(node, _DEFINITIONS) else ""
            yield _pass(f"{path.stem}.{name}", value, doc, line, running)


def _names(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, _DEFINITIONS):
        yield node.name
    elif isinstance(node, ast.Assign):
        yield from (target.id for target in node.targets if isinstance(target, ast.Name))
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id


def _is_pass(value: Any) -> bool:
    if isinstance(value, tvm.transform.Pass) or is_pass_class(value):
        return True
    if not inspect.isfunction(value):
        return False
    made = signature_of(value).return_annotation
    if isinstance(made, str):
        # A name imported for type checkers only.
        return made.rpartition(".")[2].endswith("Pass")
    return isinstance(made, type) and issubclass(made, tvm.transform.Pass)


def _pass(name: str, value: Any, doc: str, line: SourceLine, running: Running) -> Pass:
    make: Callable[..., Any] = value
    options: tuple[Option, ...] = ()
    hindrance = ""
    if isinstance(value, tvm.transform.Pass):

        def make() -> Any:
            return value
    else:
        try:
            options = options_of(name, value)
        except NoField as reason:
            hindrance = str(reason)
    record = PassType(
        name=name,
        dialect=name.partition(".")[0],
        summary=doc.partition("\n")[0],
        doc=doc,
        options=tuple(each.record for each in options),
        hindrance=hindrance,
        line=line,
    )
    return Pass(record, make, options, running=running)
