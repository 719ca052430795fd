"""Working rules for nodes, as templates for rules of the user, written to rule files."""

from __future__ import annotations

import ast
import builtins
import importlib
import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import torch
from torch import fx, nn
from torch.overrides import resolve_name

from lowerscope.core.files.atomic_write import atomic_write
from lowerscope.core.files.paths import not_done, read_plain, user_path
from lowerscope.core.files.python_text import (
    attribute,
    docstring,
    identifier,
    is_identifier,
    quoted,
)
from lowerscope.core.lowering.library_nodes import gives_tensors
from lowerscope.core.lowering.torch_operators import bare_name, operator_name
from lowerscope.core.lowering.types import Info, Traced
from lowerscope.core.lowering.values import is_dtype
from lowerscope.core.model.encoding import NO_PYTHON
from lowerscope.core.model.problems import LowerscopeError, last_line
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.queries import WriteRuleQuery, answers
from lowerscope.core.model.recipe import STRATEGIES, Strategy
from lowerscope.core.model.snapshot import SourceLine
from lowerscope.core.model.texts import _
from lowerscope.core.stages import Pipeline, Stages


@dataclass(frozen=True)
class Body:
    """Body of a rule, with ``x`` for its first argument.

    `imports`: Import lines besides those of every rule file.
    """

    imports: tuple[str, ...]
    lines: tuple[str, ...]
    parameters: tuple[str, ...] = ()


BUILT_IN = Body((), ("return node.built_in({call})",))
"""Body of all other rules, which call the built-in."""

_TE = "from tvm import te"
_RELAX = "from tvm import relax"

_SAME = ("sigmoid", "tanh", "exp", "log", "sqrt", "abs", "floor", "ceil", "cos", "sin")
"""Operators of one tensor with the same name in torch, `te` and Relax."""

_FORMULAS: Mapping[str, str] = {
    # In this order NaN stays NaN, as in torch.
    "relu": "te.max(tirx.const(0, a.dtype), a(*i))",
    "relu6": "te.min(tirx.const(6, a.dtype), te.max(tirx.const(0, a.dtype), a(*i)))",
    **{name: f"te.{name}(a(*i))" for name in _SAME},
    "neg": "-a(*i)",
    "square": "a(*i) * a(*i)",
    "reciprocal": "tirx.const(1, a.dtype) / a(*i)",
    "silu": "a(*i) * te.sigmoid(a(*i))",
    "gelu": "a(*i) * (te.erf(a(*i) * 0.5**0.5) + 1.0) * 0.5",
}
"""One element of the result, by operator: of the tensor ``a`` at the indices ``i``."""

_OPERATORS: Mapping[str, str] = {
    **{name: name for name in (*_SAME, "square")},
    **{name: f"nn.{name}" for name in ("relu", "silu", "gelu")},
    "neg": "negative",
}
"""Unary Relax operators, by operator."""

_LINEAR_TE = Body(
    (_TE,),
    (
        "weight = builder.constant(node.module.weight)",
        "",
        "def te_linear(a, w):",
        '    k = te.reduce_axis((0, w.shape[1]), name="k")',
        "",
        "    def product(*i):",
        "        return te.sum(a(*i[:-1], k) * w[i[-1], k], axis=k)",
        "",
        '    return te.compute((*a.shape[:-1], w.shape[0]), product, name="linear")',
        "",
        "def te_bias(a, b):",
        '    return te.compute(a.shape, lambda *i: a(*i) + b[i[-1]], name="bias")',
        "",
        "y = builder.emit_te(te_linear, x, weight)",
        "if node.module.bias is None:",
        "    return y",
        "return builder.emit_te(te_bias, y, builder.constant(node.module.bias))",
    ),
)
_LINEAR = Body(
    (_RELAX,),
    (
        "weight = builder.constant(node.module.weight)",
        "y = builder.emit(relax.op.matmul(x, relax.op.permute_dims(weight)))",
        "if node.module.bias is None:",
        "    return y",
        "return relax.op.add(y, builder.constant(node.module.bias))",
    ),
)
_GELU_OF_MODULE = ('if node.module.approximate != "none":', "    return node.built_in(x)")
_GELU = ('if approximate != "none":', "    return node.built_in(x, approximate=approximate)")


def body_of(operator: str, strategy: str, *, unary: bool, module: bool) -> Body:
    """Return the body of a rule.

    `unary`: whether the call is of one tensor of floats, and of nothing else.
    """
    if operator == "linear" and unary and module:
        return _LINEAR_TE if strategy == "te" else _LINEAR
    if not unary:
        return BUILT_IN
    guard: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    if operator == "gelu":
        guard = _GELU_OF_MODULE if module else _GELU
        parameters = () if module else ('approximate="none"',)
    if strategy == "te" and operator in _FORMULAS:
        formula = _FORMULAS[operator]
        imports = ("from tvm import te, tirx",) if "tirx." in formula else (_TE,)
        lines = (
            f"def te_{operator}(a):",
            f'    return te.compute(a.shape, lambda *i: {formula}, name="{operator}")',
            "",
            f"return builder.emit_te(te_{operator}, x)",
        )
        return Body(imports, (*guard, *lines), parameters)
    if strategy != "te" and operator in _OPERATORS:
        result = f"return relax.op.{_OPERATORS[operator]}(x)"
        return Body((_RELAX,), (*guard, result), parameters)
    return BUILT_IN


_WITHOUT_EFFECT = frozenset({"inplace"})
_FLOATS = ("float32", "float64")
_ARGUMENT_OF_FORMULA = "x"


@dataclass(frozen=True)
class Stub:
    """A rule as text.

    `name`: of its function: ``my_relu``.
    """

    name: str
    imports: tuple[str, ...]
    key: str
    strategy: str
    summary: str
    parameters: tuple[str, ...]
    lines: tuple[str, ...]

    def text(self, name: str) -> str:
        """Return the rule with its function called `name`."""
        strategy = f', strategy="{self.strategy}"' if self.strategy else ""
        body = "".join(f"    {line}".rstrip() + "\n" for line in self.lines)
        return (
            f"@rule({self.key}{strategy})\n"
            f"def {name}({', '.join(('builder', 'node', *self.parameters))}):\n"
            f'    """{docstring(self.summary)}"""\n'
            f"{body}"
        )


def make_stub(traced: Traced, name: str, strategy: Strategy) -> Stub:
    """Return a rule that lowers a node as it is lowered without the rule.

    `strategy`: Strategy of the rule; ``"library"`` for both of the others.

    Raises `LowerscopeError` if there is no such node, or rules do not apply to it.
    """
    node = _find(traced, name)
    modules = dict(traced.graph_module.named_modules(remove_duplicate=False))
    info = traced.values[node.name]
    called = operator_name(node, modules)
    module = modules[str(node.target)] if node.op == "call_module" else None
    key, needed = _key(node, module)
    unary = _is_unary(node, traced, info)
    body = body_of(called, strategy, unary=unary, module=module is not None)
    parameters, call = _parameters(node, written_out=body is not BUILT_IN)
    parameters = (*parameters, *body.parameters)
    imports = ["import torch", *([needed] if needed else []), *body.imports]
    imports.append("from lowerscope.core.rules import rule")
    return Stub(
        name=identifier(f"my_{called}"),
        imports=tuple(imports),
        key=key,
        strategy="" if strategy == "library" else strategy,
        summary=f"Lower {bare_name(node, modules)}; {node.name} is {info.text}.",
        parameters=parameters,
        lines=tuple(line.replace("{call}", call) for line in body.lines),
    )


def _find(traced: Traced, name: str) -> fx.Node:
    nodes: dict[str, fx.Node] = {node.name: node for node in traced.graph_module.graph.nodes}
    node = nodes.get(name.removeprefix("fx:"))
    calls = [
        each.name
        for each in nodes.values()
        if each.op.startswith("call") and gives_tensors(traced.values[each.name])
    ]
    if node is None:
        what = _("there is no node {name}", name=name)
    elif not node.op.startswith("call"):
        what = _("{name} is not a call, so it has no rule", name=node.name)
    elif node.name not in calls:
        what = _("{name} returns no tensor, so it has no rule", name=node.name)
    elif node.target in (operator.getitem, getattr) and _of_tuple(node, traced):
        what = _("{name} only takes a member of a tuple, so it has no rule", name=node.name)
    elif foreign := [each for each in node.all_input_nodes if _is_foreign(each, traced)]:
        what = _(
            "{name} takes {dtype}, which TVM does not have, so it has no rule",
            name=node.name,
            dtype=traced.values[foreign[0].name].dtype,
        )
    else:
        return node
    shown = _(", ").join(calls[:12])
    raise LowerscopeError(what, where="--node", todo=_("Choose one of {shown}", shown=shown))


def _of_tuple(node: fx.Node, traced: Traced) -> bool:
    first = node.args[0]
    return isinstance(first, fx.Node) and traced.values[first.name].shape is None


def _is_foreign(node: fx.Node, traced: Traced) -> bool:
    info = traced.values[node.name]
    return info.shape is not None and not is_dtype(info.dtype)


def _is_unary(node: fx.Node, traced: Traced, info: Info) -> bool:
    """Return whether a node maps one tensor of floats to one tensor, without other arguments."""
    if len(node.args) != 1 or not isinstance(node.args[0], fx.Node):
        return False
    given = traced.values[node.args[0].name]
    return (
        set(node.kwargs) <= _WITHOUT_EFFECT
        and given.shape is not None
        and given.dtype == info.dtype
        and info.dtype in _FLOATS
    )


def _parameters(node: fx.Node, *, written_out: bool) -> tuple[tuple[str, ...], str]:
    """Return the parameters of the rule after builder and node, and its call of the built-in."""
    if written_out:
        return (_ARGUMENT_OF_FORMULA, *(f"{name}=False" for name in node.kwargs)), ""
    first: tuple[str, ...] = ()
    if node.args:
        first = ("tensors",) if isinstance(node.args[0], (list, tuple)) else ("x",)
    return (*first, "*args", "**kwargs"), ", ".join((*first, "*args", "**kwargs"))


def _key(node: fx.Node, module: nn.Module | None) -> tuple[str, str]:
    """Return an expression for the target of a node, and its import besides torch.

    Raises `LowerscopeError` if no file can name it.
    """
    target: Any = type(module) if module is not None else node.target
    if isinstance(target, str):
        return quoted(target), ""
    if isinstance(target, torch._ops.OpOverload):
        return attribute("torch.ops", *str(target).split(".")), ""
    for expression in _names(target):
        top = expression.partition(".")[0]
        written = all(map(is_identifier, expression.split(".")))
        if written and value_of(expression) is target:
            if top in ("torch", "builtins"):
                return expression.removeprefix("builtins."), ""
            return expression, f"import {expression.rpartition('.')[0]}"
    raise LowerscopeError(
        _(
            "{target} has no name that a rule file could import",
            target=getattr(target, "__qualname__", target),
        ),
        where=node.name,
        todo=_("Move it to a module that can be imported"),
    )


def _names(target: Any) -> Iterator[str]:
    name = str(getattr(target, "__name__", ""))
    if isinstance(target, type):
        yield f"torch.nn.{name}"
    else:
        resolved = resolve_name(target)
        if resolved:
            yield resolved
        for place in ("torch.nn.functional", "torch", "torch.special", "operator", "math"):
            yield f"{place}.{name}"
    module = str(getattr(target, "__module__", "") or "")
    yield f"{module}.{getattr(target, '__qualname__', name)}"


def value_of(expression: str) -> Any:
    """Return the object of a dotted name, importing its first module; ``None`` if there is none."""
    top, *parts = expression.split(".")
    namespace: Mapping[str, Any] = {"torch": torch, "operator": operator, "builtins": builtins}
    try:
        value = namespace[top] if top in namespace else importlib.import_module(top)
        for part in parts:
            value = getattr(value, part)
    except (ImportError, AttributeError, ValueError):
        return None
    return value


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

    Args:
        node: Its name, or its id.
        file: A Python file; it need not exist.
    """
    traced, lowered = stages.traced, stages.lowered
    if traced is None or lowered is None:
        raise LowerscopeError(
            _("this source builds an IRModule, so there are no nodes to write rules for"),
            where="--node",
        )
    path = user_path(file).absolute()
    if path.suffix.lower() != ".py":
        raise LowerscopeError(
            _("it is not a Python file"), where=str(path), todo=_("Give a file that ends in .py")
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
        raise not_done(_("the file cannot be written"), path, error) from None
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
            _("the file cannot be read ({error})", error=error),
            where=str(path),
            todo=_("Choose another file"),
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
            _("this is not valid Python: {said}", said=said),
            where=f"{path}{line}",
            todo=_("Correct it, or choose another file"),
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
