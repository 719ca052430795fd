"""Python's syntax: the statements of a function, and the variables that they read and write."""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Iterator, Sequence
from contextlib import suppress
from types import CodeType
from typing import Any

HOOK = "__lowerscope_split__"
"""Builtin name of the `splitting.Split` that rewritten functions call."""

BLOCKS = ("body", "orelse", "finalbody")
OWN_SCOPE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
HARMLESS_CONTEXTS = ("no_grad", "inference_mode")

Place = tuple[int, int]
"""Line and column of a statement, which identify it in its function."""


def tree_of(code: CodeType) -> ast.FunctionDef | None:
    """Return the definition of a function in its file; ``None`` if it cannot be found."""
    try:
        tree = ast.parse("".join(linecache.getlines(code.co_filename)))
    except SyntaxError:
        return None
    for each in ast.walk(tree):
        if isinstance(each, ast.FunctionDef) and each.name == code.co_name:
            first = min([each.lineno, *(one.lineno for one in each.decorator_list)])
            if first == code.co_firstlineno:
                return each
    return None


def chain_at(tree: ast.FunctionDef, line: int) -> Iterator[tuple[ast.stmt, list[ast.stmt]]]:
    """Yield the statements around a line, outermost first, each with its block."""
    block: list[ast.stmt] | None = tree.body
    while block is not None:
        found = next((s for s in block if s.lineno <= line <= (s.end_lineno or s.lineno)), None)
        if found is None:
            return
        yield found, block
        if isinstance(found, OWN_SCOPE):
            return
        blocks = [getattr(found, field, None) or [] for field in BLOCKS]
        blocks += [each.body for each in getattr(found, "handlers", ())]
        blocks += [each.body for each in getattr(found, "cases", ())]
        block = next(
            (b for b in blocks if b and b[0].lineno <= line <= (b[-1].end_lineno or 0)), None
        )


def place_of(statement: ast.stmt) -> Place:
    return statement.lineno, statement.col_offset


def own_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below a statement that are not in a function or a class of their own."""
    for child in ast.iter_child_nodes(tree):
        if not isinstance(child, OWN_SCOPE):
            yield child
            yield from own_nodes(child)


def has(statement: ast.stmt, *kinds: type[ast.AST]) -> bool:
    return any(isinstance(each, kinds) for each in (statement, *own_nodes(statement)))


def jumps_out(statement: ast.AST, *kinds: type[ast.AST]) -> bool:
    """Return whether a statement has a jump out of it."""
    if isinstance(statement, kinds):
        return True
    if ast.Return not in kinds and isinstance(statement, ast.For | ast.While):
        return any(jumps_out(each, *kinds) for each in statement.orelse)
    return any(
        jumps_out(each, *kinds)
        for each in ast.iter_child_nodes(statement)
        if isinstance(each, ast.stmt | ast.excepthandler | ast.match_case)
        and not isinstance(each, OWN_SCOPE)
    )


def only_computes(statement: ast.stmt) -> bool:
    """Return whether a statement does nothing but set variables, as far as its syntax tells."""
    if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.Pass):
        return False
    for each in ast.walk(statement):
        if isinstance(each, ast.Subscript | ast.Attribute) and not isinstance(each.ctx, ast.Load):
            return False
        if isinstance(each, ast.NamedExpr | ast.Yield | ast.Await):
            return False
        if isinstance(each, ast.Call) and changes_receiver(each):
            return False
    return True


def changes_receiver(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    in_place = name.endswith("_") and not name.startswith("_")
    return in_place or any(each.arg in ("out", "inplace") for each in call.keywords)


def only_checks(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.If):
        return all(map(only_checks, [*statement.body, *statement.orelse]))
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function = ast.unparse(statement.value.func)
        return function in ("print", "warnings.warn") or function.startswith(
            ("logging.", "logger.", "log.")
        )
    if isinstance(statement, ast.Assign):
        return all(
            isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name)
            for each in statement.targets
        ) and isinstance(statement.value, ast.JoinedStr)
    return isinstance(statement, ast.Raise | ast.Assert | ast.Pass)


def is_harmless(context: ast.expr) -> bool:
    function = context.func if isinstance(context, ast.Call) else context
    return ast.unparse(function).rpartition(".")[2] in HARMLESS_CONTEXTS


def variables(nodes: Sequence[ast.AST], context: type[ast.expr_context]) -> set[str]:
    """Return the variables that statements read or write, without those of comprehensions."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, context):
            found.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) and context is ast.Store:
            found.add(node.name)
            continue
        own: set[str] = set()
        if isinstance(node, COMPREHENSIONS):
            own = variables([each.target for each in node.generators], ast.Store)
            if context is ast.Store:
                continue
        if isinstance(node, ast.Lambda):
            own = {each.arg for each in node.args.args}
        below = variables(list(ast.iter_child_nodes(node)), context)
        found |= below - own
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        if isinstance(node, ast.ExceptHandler) and node.name and context is ast.Store:
            found.add(node.name)
        if isinstance(node, ast.alias) and context is ast.Store:
            found.add((node.asname or node.name).partition(".")[0])
    return found


def names_written(statements: Sequence[ast.stmt]) -> set[str]:
    return variables(statements, ast.Store) | variables(statements, ast.Del)


_MUTATORS = frozenset(
    {
        *("append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse", "update"),
        *("add", "discard", "setdefault", "popitem", "appendleft", "popleft"),
    }
)
"""Methods that change a list, dict or set."""


def names_filled(statements: Sequence[ast.stmt]) -> set[str]:
    """Return the variables whose lists, dicts or sets may change."""
    calls = [each for one in statements for each in ast.walk(one) if isinstance(each, ast.Call)]
    return {
        each.func.value.id
        for each in calls
        if isinstance(each.func, ast.Attribute)
        and each.func.attr in _MUTATORS
        and isinstance(each.func.value, ast.Name)
    }


def names_read(statements: Sequence[ast.stmt]) -> set[str]:
    return variables(statements, ast.Load)


def names_changed(statements: Sequence[ast.stmt]) -> set[str]:
    """Return the variables whose tensors may be written in place."""
    found: set[str] = set()
    for each in (node for statement in statements for node in ast.walk(statement)):
        target: ast.expr | None = None
        if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store):
            target = each.value
        elif isinstance(each, ast.Call) and changes_receiver(each):
            target = each.func.value if isinstance(each.func, ast.Attribute) else None
            for keyword in each.keywords:
                target = keyword.value if keyword.arg == "out" else target
        while isinstance(target, ast.Subscript | ast.Attribute | ast.Call):
            target = target.func if isinstance(target, ast.Call) else target.value
        if isinstance(target, ast.Name):
            found.add(target.id)
    return found


def read_outside(tree: ast.FunctionDef, statements: Sequence[ast.stmt]) -> set[str]:
    """Return the variables that a function may read after some of its statements."""
    last = max(each.end_lineno or each.lineno for each in statements)
    found: set[str] = set()
    for each in ast.walk(tree):
        if isinstance(each, ast.For | ast.While) and spans(each, statements[0]):
            found |= names_read([each])
    for each in ast.walk(tree):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load) and each.lineno > last:
            found.add(each.id)
        if (
            isinstance(each, ast.AugAssign)
            and isinstance(each.target, ast.Name)
            and each.lineno > last
        ):
            found.add(each.target.id)
    return found


def spans(outer: ast.stmt, inner: ast.stmt) -> bool:
    return outer.lineno <= inner.lineno and (inner.end_lineno or 0) <= (outer.end_lineno or 0)


def load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def local_values() -> ast.expr:
    return ast.Call(load("dict"), [ast.Call(load("locals"), [], [])], [])


def hooked(name: str, args: list[ast.expr]) -> ast.Call:
    return ast.Call(ast.Attribute(load(HOOK), name, ast.Load()), args, [])


def assigned(names: Sequence[str], value: ast.expr, *, nest: bool = False) -> ast.stmt:
    targets: list[ast.expr] = [ast.Name(each, ast.Store()) for each in names]
    target = ast.Tuple(targets, ast.Store()) if nest else targets[0]
    return ast.Assign([target], value)


def locate(tree: ast.AST, at: ast.AST) -> None:
    """Give nodes without a position that of `at`."""
    for each in ast.walk(tree):
        if "lineno" in each._attributes and not hasattr(each, "lineno"):
            ast.copy_location(each, at)
            # The line of a call is that of its last attribute.
            made: Any = each
            made.end_lineno, made.end_col_offset = made.lineno, made.col_offset


def code_called(code: CodeType, name: str) -> CodeType:
    if code.co_name == name:
        return code
    for each in code.co_consts:
        if inspect.iscode(each):
            with suppress(LookupError):
                return code_called(each, name)
    raise LookupError(name)
