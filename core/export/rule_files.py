"""Writing of rules to new and existing rule files."""

from __future__ import annotations

import ast
from itertools import count
from pathlib import Path

from lowerscope.core.engine.pipeline import Pipeline
from lowerscope.core.files.atomic_write import atomic_write
from lowerscope.core.files.paths import not_done, read_plain, user_path
from lowerscope.core.lowering.rule_stubs import Stub, make_stub
from lowerscope.core.model.encoding import NO_PYTHON
from lowerscope.core.model.problems import LowerscopeError, last_line
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.queries import WriteRuleQuery, answers
from lowerscope.core.model.recipe import STRATEGIES, Strategy
from lowerscope.core.model.snapshot import SourceLine
from lowerscope.core.stages import Stages

_HEAD = '"""Lowering rules."""\n'


@answers(WriteRuleQuery)
def answer_write_rule(query: WriteRuleQuery, pipeline: Pipeline, job: Progress) -> SourceLine:
    """Write a working rule for a node into a file: see `write_rule`."""
    return write_rule(pipeline.stages(query.recipe, job), query.node, query.file)


def write_rule(stages: Stages, node: str, file: str) -> SourceLine:
    """Write a working rule for a node, and return its location.

    It lowers the node as it was lowered before. An existing file keeps its content.

    Raises a `LowerscopeError` if the node has no rule, or the file cannot be read, is not Python,
    or cannot be written.

    Parameters
    ----------
    node
        Its name, or its id.
    file
        A Python file; it need not exist.
    """
    traced, lowered = stages.traced, stages.lowered
    if traced is None or lowered is None:
        raise LowerscopeError(
            "this source builds an IRModule, so there are no nodes to write rules for",
            where="--node",
        )
    path = user_path(file).absolute()
    if path.suffix.lower() != ".py":
        raise LowerscopeError(
            "it is not a Python file", where=str(path), todo="Give a file that ends in .py"
        )
    name = node.removeprefix("fx:")
    known = lowered.nodes.get(name)
    # What runs in torch may be on its way to either of the others.
    strategy: Strategy = next(
        (each for each in STRATEGIES if known and each == known.strategy), "library"
    )
    stub = make_stub(traced, name, strategy)
    text, newline = _read(path)
    tree = _parsed(text, path)
    text, name = _added(text, tree, stub)
    try:
        atomic_write(path, text.replace("\n", newline))
    except OSError as error:
        raise not_done("the file cannot be written", path, error) from None
    lines = text.split("\n")
    line = next(number for number, each in enumerate(lines) if each.startswith(f"def {name}("))
    return SourceLine(file=str(path), line=line, text=lines[line - 1])


def _read(path: Path) -> tuple[str, str]:
    """Return the text of a file, or the beginning of a new one, and its line ending."""
    try:
        text = read_plain(path).decode()
    except FileNotFoundError:
        return _HEAD, "\n"
    except (OSError, UnicodeDecodeError) as error:
        raise LowerscopeError(
            f"the file cannot be read ({error})", where=str(path), todo="Choose another file"
        ) from None
    return text.replace("\r\n", "\n"), "\r\n" if "\r\n" in text else "\n"


def _parsed(text: str, path: Path) -> ast.Module:
    try:
        return ast.parse(text)
    except NO_PYTHON as error:
        said, line = last_line(error), ""
        if isinstance(error, SyntaxError):
            said, line = error.msg, f":{error.lineno}" if error.lineno else ""
        raise LowerscopeError(
            f"this is not valid Python: {said}",
            where=f"{path}{line}",
            todo="Mend it, or choose another file",
        ) from None


def _added(text: str, tree: ast.Module, stub: Stub) -> tuple[str, str]:
    """Return the text with the rule at its end and its imports at the top, and the rule's name."""
    taken = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    candidates = (stub.name if number == 1 else f"{stub.name}_{number}" for number in count(1))
    name = next(each for each in candidates if each not in taken)
    have = {bound for node in tree.body for bound in _bound(node)}
    missing = [line for each in stub.imports if (line := _without(each, have))]
    # Python's own lines: splitlines() cuts at form feeds and in strings as well.
    lines = text.split("\n")
    if missing:
        at = _after_imports(tree)
        gap = [""] if at and not isinstance(tree.body[0], (ast.Import, ast.ImportFrom)) else []
        if any(isinstance(node, (ast.Import, ast.ImportFrom)) for node in tree.body):
            gap = []
        lines[at:at] = [*gap, *missing]
    head = "\n".join(lines).rstrip("\n")
    return (f"{head}\n\n\n" if head else "") + stub.text(name), name


def _bound(node: ast.stmt) -> list[str]:
    """Return the names that an import binds, with their modules."""
    if isinstance(node, ast.Import):
        return [f"import {each.name} as {each.asname}" for each in node.names]
    if isinstance(node, ast.ImportFrom):
        return [f"from {node.module} import {each.name} as {each.asname}" for each in node.names]
    return []


def _without(line: str, have: set[str]) -> str:
    """Return an import without the names that are imported already; empty if all are."""
    statement = ast.parse(line).body[0]
    assert isinstance(statement, (ast.Import, ast.ImportFrom))
    kept = [
        each
        for each, name in zip(statement.names, _bound(statement), strict=True)
        if name not in have
    ]
    statement.names = kept
    return ast.unparse(statement) if kept else ""


def _after_imports(tree: ast.Module) -> int:
    """Return the line after which new imports go: after the others, or after the docstring."""
    end = 0
    for node in tree.body:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, (ast.Import, ast.ImportFrom)) or (docstring and end == 0):
            end = node.end_lineno or end
        else:
            break
    return end
