"""Splitting of a model at the statements that ``torch.fx`` cannot trace.

A branch on the values of tensors is traced on both sides, and its results are selected by the
condition, if it only computes values. Any other statement becomes a `TorchPart`: a module that runs
the statement in Python, with the tensors that it reads as inputs, and those that it gives as
outputs. What the model does is decided when it runs in either case.
"""

from __future__ import annotations

import ast
import builtins
import copy
import inspect
import itertools
import linecache
import operator
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, Literal, cast

import torch
from torch import fx, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.utils import _pytree as pytree

from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.snapshot import Note, SourceLine
from lowerscope.core.model.texts import _
from lowerscope.core.sources.opened_model import version_of
from lowerscope.core.sources.pytree import Nest, flattened, leaves, plain, unflattened
from lowerscope.core.tracing.example_run import NESTED, may_fail, may_write, memory_of
from lowerscope.core.tracing.fidelity import apart_from, unchanged
from lowerscope.core.tracing.trace_errors import (
    CannotFollow,
    NamedInputs,
    forward_line,
    fx_reason,
    is_users_file,
    source_line,
    where_of,
)

# --- Python's syntax: the statements of a function, and the variables that they read and write ---

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


def chain_at(
    tree: ast.FunctionDef, line: int, column: int | None = None
) -> Iterator[tuple[ast.stmt, list[ast.stmt]]]:
    """Yield the statements around a line, outermost first, each with its block.

    `column`: on that line, where it has several statements; ``None`` for the innermost of them.
    """
    block: list[ast.stmt] | None = tree.body
    while block is not None:
        on_line = (s for s in block if s.lineno <= line <= (s.end_lineno or s.lineno))
        found = next((s for s in on_line if column is None or _spans(s, (line, column))), None)
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


def _spans(statement: ast.stmt, place: Place) -> bool:
    end = statement.end_lineno or 0, statement.end_col_offset or 0
    return place_of(statement) <= place < end


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


_CHANGING = frozenset(
    {"append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "setdefault"}
)
"""Methods that change a list, a dict or a set."""


def changes_receiver(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    in_place = (name.endswith("_") and not name.startswith("_")) or name in _CHANGING
    return in_place or any(each.arg in ("out", "inplace") for each in call.keywords)


def only_checks(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.If):
        return all(map(only_checks, [*statement.body, *statement.orelse]))
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function = ast.unparse(statement.value.func)
        return function in ("print", "warnings.warn") or function.startswith(
            ("logging.", "logger.", "log.", "torch._check", "torch._assert")
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


def names_changed(statements: Sequence[ast.AST]) -> set[str]:
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
            if isinstance(target, ast.Attribute) and target.attr.startswith(("new_", "clone")):
                break
            target = target.func if isinstance(target, ast.Call) else target.value
        if isinstance(target, ast.Name):
            found.add(target.id)
    return found


def names_changed_as_given(
    statements: Sequence[ast.stmt], bound: frozenset[str] = frozenset()
) -> set[str]:
    """Return the variables whose tensors may be written before the variables are set.

    `bound`: those that are set before the statements.
    """
    found: set[str] = set()
    for each in statements:
        blocks = [getattr(each, field, None) or [] for field in BLOCKS]
        parts = (*getattr(each, "handlers", ()), *getattr(each, "cases", ()))
        blocks += [one.body for one in parts]
        if any(blocks) and not isinstance(each, OWN_SCOPE):
            headers = [
                child
                for child in ast.iter_child_nodes(each)
                if isinstance(child, ast.expr | ast.withitem)
            ]
            found |= names_changed(headers) - bound
            target = [each.target] if isinstance(each, ast.For) else []
            inside = bound | variables(target, ast.Store)
            for block in blocks:
                found |= names_changed_as_given(block, inside)
        else:
            found |= names_changed([each]) - bound
            bound |= names_written([each])
    return found


def read_outside(tree: ast.FunctionDef, statements: Sequence[ast.stmt]) -> set[str]:
    """Return the variables that a function may read after some of its statements."""
    last = max(each.end_lineno or each.lineno for each in statements)
    found: set[str] = set()
    first = statements[0]
    for each in ast.walk(tree):
        # A loop that is one of the statements sets its own variables again.
        if not isinstance(each, ast.For | ast.While) or place_of(each) == place_of(first):
            continue
        if spans(each, first):
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


_EXITS = "__lowerscope_exits__"

_PART = "torch_part"
"""Name of the functions of statements that run in torch."""

OF_SHAPE = frozenset(
    {
        *("shape", "ndim", "dtype", "device", "layout", "is_cuda", "is_sparse", "requires_grad"),
        *("size", "dim", "numel", "nelement", "ndimension", "stride", "is_floating_point"),
        *("is_complex", "is_contiguous", "element_size", "get_device", "is_quantized"),
    }
)
"""Attributes and methods of tensors that do not depend on their elements."""

_DISTRIBUTIONS = os.path.join("torch", "distributions")
"""Folder of torch's own Python code that branches on values as a user's does."""

_FROZEN = (str, bytes, type(None), torch.dtype, torch.device, torch.Size)
"""Types of results that are the same in each run; numbers are not."""


def _is_output(value: Any) -> bool:
    return isinstance(value, torch.Tensor | bool | int | float | complex)


class OtherStructure(RuntimeError):
    """A part that runs in torch has other results than its outputs in the graph."""


class TorchPart(nn.Module):
    """Statements of a model that run in torch.

    Its inputs are tensors and numbers, or nests of them; its outputs the tensors and numbers in the
    result of the statements, as a tuple.

    `function`: the statements as a function of the variables that they read.
    `names`: the variables that are inputs.
    `held`: the values of other variables: modules, parameters and plain values.
    `changed`: inputs that may be written in place; the statements are given copies.
    `read_later`: those of them that must not be, as their memory is read after the statements.
    `reason`: why they cannot be traced.
    `changes_state`: whether they may write into buffers that they hold, which are restored.
    `is_last`: whether their result is the model's: what is neither a tensor nor a number in it may
        be of any type, and depend on the data.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        names: Sequence[str],
        held: Mapping[str, Any],
        changed: Sequence[str],
        reason: str,
        line: SourceLine,
        *,
        changes_state: bool = False,
        read_later: Sequence[str] = (),
        is_last: bool = False,
    ) -> None:
        super().__init__()
        self.changes_state = changes_state
        self.is_last = is_last
        self.read_later = frozenset(read_later)
        self.function = function
        self.names = tuple(names)
        self.changed = frozenset(changed)
        self.plain: dict[str, Any] = {}
        self.reason = reason
        self.line = line
        self.spec: Any = None
        self.constants: dict[int, Any] = {}
        self.dtypes: dict[int, torch.dtype] = {}
        self.given: list[Any] = []
        """The structures of its inputs: a named tuple may come as a plain one."""
        self.objects: dict[str, Nest] = {}
        """The structures of the inputs that are objects: given as lists of their leaves."""
        self.at_sizes: list[tuple[Mapping[str, int], tuple[Any, ...]]] = []
        """Its outputs, tensors without content, at some sizes of named dimensions."""
        self.held = Selected()
        self.training = False
        self._waiting = dict(held)
        self.modes = {path: each.training for path, each in self._held_modules()}
        """Modes of the modules that it holds: statements before it may have set them."""

    def _held_modules(self) -> Iterator[tuple[str, nn.Module]]:
        for name, each in self.values.items():
            if isinstance(each, nn.Module):
                yield from each.named_modules(prefix=name)

    @contextmanager
    def _in_modes(self) -> Iterator[None]:
        before = [(each, each.training) for _path, each in self._held_modules()]
        # Setting an attribute of a module is slow.
        for path, each in self._held_modules():
            if each.training != self.modes.get(path, each.training):
                each.training = self.modes[path]
        try:
            yield
        finally:
            for each, mode in before:
                if each.training != mode:
                    each.training = mode

    @property
    def values(self) -> Mapping[str, Any]:
        """The values that it holds, by variable."""
        held = self.held
        known = {**held._modules, **held._parameters, **held._buffers}
        return {**self.plain, **self._waiting, **known}

    def attach(self) -> None:
        """Register what it holds; while tracing, the model itself would contain itself."""
        for name, value in self._waiting.items():
            if isinstance(value, nn.Module):
                self.held._modules[name] = value
            elif isinstance(value, nn.Parameter):
                self.held._parameters[name] = value
            elif isinstance(value, torch.Tensor):
                self.held._buffers[name] = value
            else:
                self.plain[name] = value
        self._waiting = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> TorchPart:
        """Copy its modules; its other values may be of any type, and are shared."""
        made = TorchPart(
            self.function,
            self.names,
            {},
            tuple(self.changed),
            self.reason,
            self.line,
            changes_state=self.changes_state,
            read_later=tuple(self.read_later),
            is_last=self.is_last,
        )
        made.plain, made.spec, made.constants = self.plain, self.spec, self.constants
        made.modes, made.dtypes, made.given = self.modes, self.dtypes, self.given
        made.objects, made.at_sizes = self.objects, self.at_sizes
        made.held = copy.deepcopy(self.held, memo)
        return made

    def settle(
        self, leaves: Sequence[Any], spec: Any, others: Sequence[Sequence[Any]]
    ) -> list[int]:
        """Take the structure of a result; return the positions of the leaves that are outputs.

        `others`: the leaves on other inputs. What is a number for some and a tensor for others is a
            tensor.
        """
        self.spec = spec
        for index, each in enumerate(leaves):
            found = [each, *(other[index] for other in others)]
            for value in found:
                if isinstance(value, torch.Tensor) and not value.dim():
                    self.dtypes.setdefault(index, value.dtype)
            if isinstance(each, _FROZEN) or (self.is_last and not _is_output(each)):
                varies = any(map(_is_output, found)) or (
                    not self.is_last and any(one != each for one in found)
                )
                if varies:
                    raise CannotFollow(
                        _("it gives a {name} that depends on the data", name=type(each).__name__)
                    )
                self.constants[index] = each
            elif not _is_output(each):
                raise CannotFollow(_("it returns a {name}", name=type(each).__name__))
            elif isinstance(each, torch.Tensor) and each.is_nested:
                raise CannotFollow(NESTED)
        return [index for index in range(len(leaves)) if index not in self.constants]

    def result(self, *inputs: Any) -> Any:
        """Return the result of the statements."""
        values = dict(zip(self.names, inputs, strict=True))
        objects = {name: list(values[name]) for name in self.objects}
        versions = _versions(objects)
        for name, structure in self.objects.items():
            values[name] = unflattened(objects[name], structure)
        for name in self.changed & values.keys():
            values[name] = pytree.tree_map_only(torch.Tensor, torch.clone, values[name])
        later = _tensors_of(values[name] for name in self.read_later & values.keys())
        before = [each.clone() for each in later]
        # A list that the statements add to is a new one in each call.
        held = {
            name: copy.copy(value) if isinstance(value, list | dict | set) else value
            for name, value in self.values.items()
        }
        state: list[torch.Tensor] = []
        with ExitStack() as restored:
            for each in (self, *held.values()) if self.changes_state else ():
                if isinstance(each, nn.Module):
                    state += [*restored.enter_context(unchanged(each)), *each.parameters()]
            restored.enter_context(self._in_modes())
            result = apart_from(state, self.function(**values, **held))
        for name, structure in self.objects.items():
            left, now = flattened(values[name])
            if now != structure or any(map(operator.is_not, left, objects[name])):
                raise CannotFollow(_("it changes {name} in place", name=name))
        if versions != _versions(objects):
            raise CannotFollow(_("it changes a tensor in place before it returns"))
        if not all(map(_same, later, before)):
            raise CannotFollow(_("it changes a tensor in place before it returns"))
        return result

    def forward(self, *inputs: Any) -> tuple[Any, ...]:
        given = [
            each if spec.is_leaf() else pytree.tree_unflatten(pytree.tree_leaves(each), spec)
            for each, spec in zip(inputs, self.given, strict=True)
        ]
        leaves, spec = flattened(self.result(*given))
        same = spec == self.spec and all(
            _is_output(leaf)
            if index not in self.constants
            else not _is_output(leaf)
            if self.is_last
            else type(leaf) is type(self.constants[index]) and leaf == self.constants[index]
            for index, leaf in enumerate(leaves)
        )
        if not same:
            raise OtherStructure(
                _(
                    "{line} returned a result of another structure than with the example inputs",
                    line=f"{self.line.file}:{self.line.line}",
                )
            )
        return tuple(
            torch.tensor(each, dtype=self.dtypes[index])
            if index in self.dtypes and isinstance(each, bool | int | float | complex)
            else each
            for index, each in enumerate(leaves)
            if index not in self.constants
        )


def without_content(result: Any) -> Any:
    """Return a result of a part, a tensor as one of its shape and dtype alone."""
    return result.to("meta") if isinstance(result, torch.Tensor) else result


class Selected(nn.Module):
    """The attributes of a module that some statements read, in place of the whole module."""


Mark = int | Literal["select", "choose"]
BOTH_SIDES = frozenset({"select", "choose"})


def _has_choice(statement: ast.stmt, line: int) -> bool:
    """Return whether a statement only computes, with a conditional expression at a line."""
    if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return):
        return False
    nodes = [*own_nodes(statement)]
    if any(isinstance(each, ast.NamedExpr | ast.Yield | ast.Await) for each in nodes):
        return False
    choices = [each for each in nodes if isinstance(each, ast.IfExp)]
    sides = [side for each in choices for side in (each.body, each.orelse)]
    calls = [each for side in sides for each in ast.walk(side) if isinstance(each, ast.Call)]
    if any(map(changes_receiver, calls)):
        return False
    tests = [each.test for each in choices]
    return any(each.lineno <= line <= (each.end_lineno or 0) for each in tests)


class _Choices(ast.NodeTransformer):
    """Rewriting of conditional expressions to calls of `Split.cond`."""

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        none = ast.arguments([], [], None, [], [], None, [])
        sides: list[ast.expr] = [ast.Lambda(none, each) for each in (node.body, node.orelse)]
        return hooked("cond", [node.test, *sides])


class Function:
    """A function of the user's, and its statements that are not traced as they are.

    `marks`: the way of each of these statements: ``"select"`` for a branch of which both sides are
        traced, ``"choose"`` for a statement with conditional expressions of which they are, or the
        number of statements that run in torch from there; 0 for all to the end of the function.
    """

    def __init__(self, function: FunctionType, tree: ast.FunctionDef) -> None:
        self.function = function
        self.original = function.__code__
        self.marks: dict[Place, Mark] = {}
        self.reasons: dict[Place, str] = {}
        self.code: CodeType | None = None
        self._tree = tree
        self._locals = frozenset(
            (*self.original.co_varnames, *self.original.co_cellvars, *self.original.co_freevars)
        )
        self._calls: dict[Place, _Call] = {}

    def mark(self, line: int, reason: str, column: int | None = None) -> bool:
        """Change the way of the innermost statement at a place; return whether it was possible."""
        chain = list(chain_at(self._tree, line, column))
        for depth in reversed(range(len(chain))):
            statement, block = chain[depth]
            place = place_of(statement)
            outer = [each for each, _block in chain[:depth]]
            mark = self.marks.get(place)
            if mark is None and not any(self.marks.get(place_of(each)) == 0 for each in outer):
                if has(statement, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal):
                    return False
                if isinstance(statement, ast.If) and self._is_selectable(statement, outer):
                    return self._set(place, "select", reason)
                if _has_choice(statement, line):
                    return self._set(place, "choose", reason)
                if not self._must_be_outer(statement, outer):
                    return self._set(place, 1, reason)
            elif mark in BOTH_SIDES:
                if not self._must_be_outer(statement, outer):
                    return self._set(place, 1, self.reasons[place])
            elif mark and self._grow(statement, block, mark, outer):
                return True
            if jumps_out(statement, ast.Return) and outer == [] and mark != 0:
                return self._set(place, 0, reason)
        return False

    def _set(self, place: Place, mark: Mark, reason: str) -> bool:
        self.marks[place] = mark
        self.reasons.setdefault(place, reason)
        self.code = None
        return True

    def _grow(
        self, statement: ast.stmt, block: list[ast.stmt], mark: Any, outer: list[ast.stmt]
    ) -> bool:
        """Add statements to those in torch, up to the next that reads what they write."""
        place = place_of(statement)
        start = [place_of(each) for each in block].index(place)
        own = block[start : start + mark]
        written = names_written(own) | names_changed(own) | names_filled(own)
        for end in range(start + mark, len(block)):
            if not written & names_read(block[end : end + 1]):
                continue
            if any(self._must_be_outer(each, outer) for each in block[start : end + 1]):
                if outer:
                    return False
                return self._set(place, 0, "")
            return self._set(place, end + 1 - start, "")
        return False

    def _is_selectable(self, statement: ast.If, outer: Sequence[ast.stmt]) -> bool:
        """Return whether both sides of a branch can be computed, and their results selected."""
        sides = [statement.body, statement.orelse]
        last = statement.body[-1]
        if isinstance(last, ast.Return):
            sides = [statement.body[:-1]]
            if last.value is None or any(isinstance(each, ast.Try | ast.With) for each in outer):
                return False
        return all(only_computes(each) for side in sides for each in side)

    def _must_be_outer(self, statement: ast.stmt, outer: Sequence[ast.stmt]) -> bool:
        """Return whether a statement leaves its block, or depends on a context around it."""
        if jumps_out(statement, ast.Return) or jumps_out(statement, ast.Break, ast.Continue):
            return True
        return any(
            isinstance(each, ast.With)
            and not all(is_harmless(item.context_expr) for item in each.items)
            for each in outer
        )

    def rewrite(self) -> CodeType:
        """Return the code of the function with marked statements rewritten."""
        if self.code is None:
            self._calls = {}
            tree = copy.deepcopy(self._tree)
            if "select" in self.marks.values():
                for each in own_nodes(tree):
                    if isinstance(each, ast.Return) and each.value is not None:
                        value = each.value
                        each.value = self._joined(value)
            tree.body = self._block(tree.body)
            if "select" in self.marks.values():
                tree.body.insert(0, assigned([_EXITS], ast.List([], ast.Load())))
            self.code = self._compiled(tree, tree.name)
            if self.code.co_freevars != self.original.co_freevars:
                raise CannotFollow(_("the code around it reads variables of another function"))
        return self.code

    def line_of_write(self, name: str, before: int) -> int:
        """Return the line of the last statement before a line that sets a variable; 0 for none."""
        simple = (ast.Assign, ast.AnnAssign, ast.AugAssign)
        lines = [
            each.lineno
            for each in own_nodes(self._tree)
            if isinstance(each, simple) and each.lineno < before and name in names_written([each])
        ]
        return max(lines, default=0)

    def call_of(self, place: Place) -> _Call:
        return self._calls[place]

    def _block(self, block: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        skip = 0
        for index, statement in enumerate(block):
            if skip:
                skip -= 1
                continue
            mark = self.marks.get(place_of(statement))
            if mark is None:
                made.append(self._inside(statement))
            elif mark == "select":
                made += self._select(cast(ast.If, statement))
            elif mark == "choose":
                made.append(_Choices().visit(statement))
                locate(statement, statement)
            else:
                statements = block[index : index + mark] if mark else block[index:]
                skip = len(statements) - 1
                made += self._in_torch(statements, is_tail=not mark)
        return made

    def _joined(self, value: ast.expr) -> ast.Call:
        return hooked("joined", [load(_EXITS), value, ast.Constant(id(self))])

    def _inside(self, statement: ast.stmt) -> ast.stmt:
        if isinstance(statement, OWN_SCOPE):
            return statement
        for field in BLOCKS:
            if getattr(statement, field, None):
                setattr(statement, field, self._block(getattr(statement, field)))
        for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            part.body = self._block(part.body)
        return statement

    def _select(self, statement: ast.If) -> list[ast.stmt]:
        at = statement
        key = f"_{at.lineno}_{at.col_offset}"
        flag, before, after = (f"__lowerscope{name}{key}" for name in ("flag", "before", "after"))
        sides = statement.body, statement.orelse
        names = sorted(names_written(sides[0]) | names_written(sides[1]))
        texts = ast.Tuple([ast.Constant(each) for each in names], ast.Load())
        made = [
            assigned([flag], hooked("flag", [statement.test])),
            assigned([before], local_values()),
        ]
        last = statement.body[-1]
        restore = assigned(names, hooked("take", [load(before), texts]), nest=True)
        if isinstance(last, ast.Return):
            assert last.value is not None
            value = last.value
            # `rewrite` has wrapped it as the value of the function.
            assert isinstance(value, ast.Call)
            own = value.args[1]
            pair = ast.Tuple([load(flag), own, ast.Constant(at.lineno)], ast.Load())
            made += self._block(statement.body[:-1])
            call = ast.Call(ast.Attribute(load(_EXITS), "append", ast.Load()), [pair], [])
            made.append(ast.Expr(call))
            made += [restore] if names else []
            made += self._block(statement.orelse)
        else:
            made += self._block(statement.body)
            made += [assigned([after], local_values()), restore]
            made += self._block(statement.orelse)
            chosen = hooked("select", [load(flag), load(after), local_values(), texts])
            made.append(assigned(names, chosen, nest=True))
        for each in made:
            locate(each, at)
        return made

    def _in_torch(self, statements: list[ast.stmt], *, is_tail: bool) -> list[ast.stmt]:
        at = statements[0]
        place = place_of(at)
        places = {place_of(each) for each in statements}
        # Without the changes to its return statements.
        body = copy.deepcopy(
            [
                each
                for each in ast.walk(self._tree)
                if isinstance(each, ast.stmt) and place_of(each) in places
            ]
        )
        filled = names_filled(body) & self._locals
        written = names_written(body) | filled
        changed = (names_changed_as_given(body) & self._locals) - filled
        gives = [] if is_tail else sorted(written & read_outside(self._tree, statements))
        # A variable that may stay unset keeps its value.
        kept = set() if all(isinstance(each, ast.Assign) for each in body) else set(gives)
        reads = sorted((names_read(body) | kept | changed | filled) & self._locals)
        self._calls[place] = _Call(self, place, body, reads, gives, sorted(changed), is_tail)
        # Keep the variables of functions around it among those of the code.
        free = [each for each in reads if each in self.original.co_freevars]
        numbers = [ast.Constant(each) for each in (id(self), *place)]
        call = hooked("part", [*numbers, local_values(), *map(load, free)])
        result: ast.stmt = (
            ast.Return(call)
            if is_tail
            else assigned(gives, call, nest=True)
            if gives
            else ast.Expr(call)
        )
        if is_tail and "select" in self.marks.values():
            result = ast.Return(self._joined(call))
        locate(result, at)
        return [result]

    def _compiled(self, tree: ast.FunctionDef, name: str) -> CodeType:
        """Compile a function in scopes like those of the original, for its names."""
        tree.decorator_list = []
        tree.returns = None
        inner: ast.stmt = tree
        scopes = [each for each in self.original.co_qualname.split(".")[:-1] if each != "<locals>"]
        # Names of private attributes depend on the class.
        if scopes and self.original.co_qualname.split(".")[-2:][0] != "<locals>":
            inner = ast.ClassDef(scopes[-1], [], [], [inner], [])
        free = [each for each in self.original.co_freevars if each != "__class__"]
        around = assigned(free, ast.Tuple([ast.Constant(None)] * len(free), ast.Load()), nest=True)
        outer = ast.parse("def outer(): pass").body[0]
        assert isinstance(outer, ast.FunctionDef)
        outer.body = [around, inner] if free else [inner]
        module = ast.Module([outer], [])
        locate(module, tree)
        return code_called(compile(module, self.original.co_filename, "exec"), name)


class _Call:
    """The statements of one place as a function."""

    def __init__(
        self,
        owner: Function,
        place: Place,
        body: list[ast.stmt],
        reads: Sequence[str],
        gives: Sequence[str],
        changed: Sequence[str],
        is_tail: bool,
    ) -> None:
        self.reads, self.gives, self.changed, self.is_tail = reads, gives, changed, is_tail
        self.reason = owner.reasons[place]
        self.filled = names_filled(body)
        # Variables that may be set to other tensors: those given are kept by another name.
        rebound = names_written(body) & {*changed}
        self._set = {each: f"__lowerscope_given_{each}__" for each in rebound}
        self.line = source_line(owner.original.co_filename, place[0])
        self.title = f"{type(body[0]).__name__.lower()}_line{place[0]}"
        self.body = body
        self._owner = owner
        self._made: Callable[..., Any] | None = None

    @property
    def only_checks(self) -> bool:
        """Return whether the statements have no effect but errors and texts."""
        return not self.is_tail and not self.gives and all(map(only_checks, self.body))

    def function(self) -> Callable[..., Any]:
        if self._made is None:
            names = [*self.gives, *(self._set.get(each, each) for each in self.changed)]
            texts = ast.Tuple([ast.Constant(each) for each in names], ast.Load())
            body = copy.deepcopy(self.body)
            if not self.is_tail:
                body[:0] = [assigned([kept], load(each)) for each, kept in self._set.items()]
                end = hooked("take", [local_values(), texts])
                body.append(ast.Return(end))
            made = ast.parse(f"def {_PART}(): pass").body[0]
            assert isinstance(made, ast.FunctionDef)
            made.body = body
            made.args = ast.arguments(
                [], [ast.arg(each) for each in self.reads], None, [], [], None, []
            )
            for each in made.body:
                locate(each, self.body[0])
            owner = self._owner
            code = owner._compiled(made, _PART)
            if code.co_freevars:
                raise CannotFollow(_("it calls super()"))
            known = owner.function.__globals__
            # The globals stay the model's; only the hook is added when it is called.
            self._made = FunctionType(code, known, _PART)
        return self._made


_MOST_STATEMENTS = 60
"""Most attempts to split a model at statements."""


class Split:
    """The split of one model: its rewritten functions, and its parts."""

    def __init__(
        self, model: nn.Module, *, changes_state: bool = False, named: NamedInputs | None = None
    ) -> None:
        self._model = model
        self.named = named
        self._sees_changes = changes_state
        self._changes_state = changes_state
        self._functions: list[Function] = []
        self._searched: dict[CodeType, Function | None] = {}
        self._turns = 0
        self._by_modules = False
        self._whole: dict[nn.Module, str] = {}
        self.written: set[SourceLine] = set()
        """Lines of new tensors that are nodes, since traced values are written into them."""
        self._has_new_factory = False
        self.parts: list[TorchPart] = []
        self.checks: dict[SourceLine, None] = {}
        self.tracer: Any = None
        self.values: list[Any] = []

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Run the body with the functions rewritten."""
        self.parts = []
        self.checks = {}
        validate = torch.distributions.Distribution._validate_args
        torch.distributions.Distribution.set_default_validate_args(False)
        vars(builtins)[HOOK] = self
        try:
            for each in list(self._functions):
                try:
                    each.function.__code__ = each.rewrite()
                except CannotFollow:
                    # The functions that call it are split in its place.
                    self._functions.remove(each)
                    self._searched[each.original] = None
            yield
        finally:
            for each in self._functions:
                each.function.__code__ = each.original
            torch.distributions.Distribution.set_default_validate_args(validate)

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Run the body with the functions as they were: it computes values, and traces nothing."""
        before = [(each.function, each.function.__code__) for each in self._functions]
        for each in self._functions:
            each.function.__code__ = each.original
        try:
            yield
        finally:
            for function, code in before:
                function.__code__ = code

    @property
    def selects(self) -> bool:
        """Return whether both sides of a branch are computed anywhere."""
        return any(BOTH_SIDES & {*each.marks.values()} for each in self._functions)

    @property
    def takes_changes(self) -> bool:
        """Return whether a wrong graph of a model that changes its tensors in place is noticed."""
        return self._sees_changes or self._model in self._whole

    def trace_factory(self, line: SourceLine) -> bool:
        """Let new tensors of a line be nodes; return whether they have not been."""
        self._has_new_factory = line not in self.written
        self.written.add(line)
        return self._has_new_factory

    def restore_state(self) -> None:
        """Let every part restore the buffers that it may write into."""
        self._changes_state = True
        for each in self.parts:
            each.changes_state = True

    def run_branches(self) -> None:
        """Let every branch of which both sides were computed run in torch."""
        for each in self._functions:
            for place, mark in list(each.marks.items()):
                if mark in BOTH_SIDES:
                    each.marks[place] = 1
                    each.code = None

    def extend(self, error: BaseException) -> bool:
        """Split at the statement where an error came from; return whether that was possible.

        If statements cannot be split, the innermost modules with errors run in torch instead, or
        the model as a whole.
        """
        self._turns += 1
        if self._has_new_factory:
            self._has_new_factory = False
            return True
        reason = fx_reason(error)
        frames: list[FrameType] = []
        places: list[tuple[Callable[[], Function | None], int, int | None]] = []
        traceback = error.__traceback__
        while traceback is not None:
            frame = traceback.tb_frame
            if frame.f_code.co_name == _PART or frame.f_code is _called.__code__:
                # What a part calls is not traced.
                break
            frames.append(frame)
            column = _column(frame.f_code, traceback.tb_lasti)
            places.append((partial(self._function_of, frame), traceback.tb_lineno, column))
            traceback = traceback.tb_next
        modules = self._forwards(frames)[-1:]
        if isinstance(error, CannotFollow) and error.line:
            places = [(function, error.line, None) for function, *_place in places]
        if isinstance(error, LowerscopeError):
            # A node of the graph fails, or changes what another one reads.
            reason = error.problem.what
            file, _colon, number = error.problem.where.rpartition(":")
            if number.isdecimal():
                places.append((partial(self._function_at, file, int(number)), int(number), None))
                modules = self._modules_at(file, int(number))
        if self._by_modules and self._take_whole(modules, reason):
            return True
        if self._turns <= _MOST_STATEMENTS or self._by_modules:
            for find, line, column in reversed(places):
                function = find()
                if function is not None and function.mark(line, reason, column):
                    return True
            # It may come from the side of an earlier branch that is not chosen.
            if any(
                each.mark(line, reason)
                for each in self._functions
                for (line, _column), mark in list(each.marks.items())
                if mark in BOTH_SIDES
            ):
                return True
        return self.coarsen(reason)

    def coarsen(self, reason: str) -> bool:
        """Split at modules in place of statements, or else let the whole model run in torch."""
        self._functions = []
        if self._by_modules:
            return self._take_whole([self._model], reason)
        self._by_modules = True
        return True

    def _take_whole(self, modules: Sequence[nn.Module], reason: str) -> bool:
        """Let modules run in torch as a whole; return whether there is a new one among them."""
        new = [each for each in modules if each not in self._whole]
        self._whole |= dict.fromkeys(new, reason)
        return bool(new)

    def _forwards(self, frames: Sequence[FrameType]) -> list[nn.Module]:
        """Return the modules inside the model whose calls are under way, outermost first."""
        own = set(self._model.modules()) - {self._model}
        called = [
            frame.f_locals.get("self") for frame in frames if frame.f_code.co_name == "forward"
        ]
        return [each for each in called if isinstance(each, nn.Module) and each in own]

    def _function_of(self, frame: FrameType) -> Function | None:
        code = frame.f_code
        for known in self._functions:
            if code in (known.original, known.code):
                return known
        is_known = is_users_file(code.co_filename) or _DISTRIBUTIONS in code.co_filename
        if not is_known:
            return None
        if code not in self._searched:
            self._searched[code] = self._found(frame)
        return self._searched[code]

    def _function_at(self, file: str, line: int) -> Function | None:
        """Return the function of the model's classes, or of a file, that has a line."""
        # Anything may stand among the modules, such as None for one that is not to be imported.
        loaded = [vars(each) for each in [*sys.modules.values()] if isinstance(each, ModuleType)]
        names = next((each for each in loaded if each.get("__file__") == file), {})
        for function in self._candidates({}, names):
            if _has_line(function, file, line):
                known = next((each for each in self._functions if each.function is function), None)
                return known or self._split(function)
        return None

    def _modules_at(self, file: str, line: int) -> list[nn.Module]:
        """Return the modules inside the model of a class with a function that has a line."""
        return [
            each
            for each in self._model.modules()
            if each is not self._model
            and any(
                isinstance(value, FunctionType) and _has_line(value, file, line)
                for base in type(each).__mro__
                for value in vars(base).values()
            )
        ]

    def _found(self, frame: FrameType) -> Function | None:
        found = self._candidates(frame.f_locals, frame.f_globals)
        function = next((each for each in found if each.__code__ is frame.f_code), None)
        return None if function is None else self._split(function)

    def _split(self, function: FunctionType) -> Function | None:
        tree = tree_of(function.__code__)
        if tree is None:
            return None
        made = Function(function, tree)
        self._functions.append(made)
        return made

    def _candidates(
        self, local: Mapping[str, Any], known: Mapping[str, Any]
    ) -> Iterator[FunctionType]:
        kinds = {type(each): None for each in self._model.modules()}
        owners = [type(each) for each in local.values()]
        names = [*known.values()]
        owners += [each for each in names if isinstance(each, type)]
        values: list[Any] = [*names, *vars(self._model).values()]
        for kind in (*kinds, *owners):
            for base in type.mro(kind) if kind is not type else ():
                values += vars(base).values()
        for value in values:
            for part in (value.fget,) if isinstance(value, property) else (value,):
                found = getattr(part, "__func__", part)
                while isinstance(found, FunctionType):
                    yield found
                    found = getattr(found, "__wrapped__", None)

    def notes(self) -> Iterator[Note]:
        """Yield notes on the statements that are left out."""
        for line in self.checks:
            text = _("a check of values is left out of the graph: {text}", text=line.text)
            yield Note(text=text, where=where_of(line))

    # What rewritten functions call.

    def part(self, owner: int, line: int, column: int, names: dict[str, Any], *_free: Any) -> Any:
        """Return what the statements at a place give."""
        with self.tracer.noting():
            return self._part(owner, line, column, names)

    def _part(self, owner: int, line: int, column: int, names: dict[str, Any]) -> Any:
        function = next(each for each in self._functions if id(each) == owner)
        call = function.call_of((line, column))
        values = {name: names[name] for name in call.reads if name in names}
        inputs = {name: each for name, each in values.items() if _has_traced(each)}
        held = {name: each for name, each in values.items() if name not in inputs}
        if not call.is_tail and inputs.keys() & call.filled:
            # A list may become longer for other inputs only.
            raise CannotFollow(_("the number of its results depends on the data"))
        if call.only_checks and inputs:
            self.checks[call.line] = None
            return None
        missing = {name: None for name in call.reads if name not in values}
        if not inputs and not _has_proxies_inside(held):
            return _results(call, call.function()(**held, **missing), held)
        held = {name: _narrowed(each, name, call.body) for name, each in held.items()}
        for name, value in held.items():
            if any(isinstance(each, Iterator) for each in pytree.tree_leaves(value)):
                # It would be at its end after one call.
                text = _("it reads {name}, an iterator", name=name)
                raise CannotFollow(text, function.line_of_write(name, call.line.line))
        if _has_proxies_inside(held):
            raise CannotFollow(_("it reads an object with traced values"))
        result = self._call_part(
            call.function(),
            {**inputs, **held, **missing},
            call.changed,
            call.reason,
            call.line,
            call.title,
            read_later=self._read_later(function, call, names) if call.is_tail else (),
            is_last=call.is_tail and self._is_own(function),
        )
        return _results(call, result, values)

    def _call_part(
        self,
        function: Callable[..., Any],
        values: Mapping[str, Any],
        changed: Sequence[str],
        reason: str,
        line: SourceLine,
        title: str,
        **options: Any,
    ) -> Any:
        """Add a call of a part to the graph; return its result, with traced values in it.

        `values`: by name; those that are traced are its inputs, and it holds the others.
        """
        inputs = {name: each for name, each in values.items() if _has_traced(each)}
        held = {name: each for name, each in values.items() if name not in inputs}
        objects: dict[str, Nest] = {}
        for name, value in inputs.items():
            parts, structure = flattened(value)
            if isinstance(structure, Nest):
                inputs[name], objects[name] = parts, structure
        part = TorchPart(
            function,
            tuple(inputs),
            held,
            changed,
            reason,
            line,
            changes_state=self._changes_state,
            **options,
        )
        part.objects = objects
        self.parts.append(part)
        return self.tracer.call_part(part, title, tuple(inputs.values()))

    def _read_later(self, function: Function, call: _Call, names: Mapping[str, Any]) -> list[str]:
        """Return the variables that the last statements of a function may change for its caller."""
        parameters = inspect.getargs(function.original)
        known = [*parameters.args, parameters.varargs, parameters.varkw]

        def memory(names_of: Iterable[str | None]) -> set[int]:
            values = [names[each] for each in names_of if each is not None and each in names]
            return {memory_of(each) for each in _tensors_of(values, self.tracer.value_of)}

        return [
            name
            for name in call.changed
            if memory([name]) & memory({*known, *call.reads} - {name}) or name in known
        ]

    def whole(self, module: nn.Module) -> str | None:
        """Return why a module runs in torch as a whole; ``None`` if it is traced."""
        return self._whole.get(module)

    def part_of(self, module: nn.Module, reason: str, objects: Mapping[str, Nest]) -> TorchPart:
        """Return the call of a module as a part.

        `objects`: the structures of its arguments, if there are objects among them.
        """
        line = forward_line(module) or SourceLine(file="", line=0)
        names = ("args", "kwargs")
        held = {"module": module, "is_model": module is self._model}
        part = TorchPart(
            _called,
            names,
            held,
            names,
            reason,
            line,
            changes_state=self._changes_state,
            is_last=module is self._model,
        )
        part.objects = {**objects}
        self.parts.append(part)
        return part

    def flag(self, condition: Any) -> Any:
        """Return a condition as a tensor without dimensions, or a plain value."""
        if not isinstance(condition, fx.Proxy):
            return bool(condition)
        value = self.tracer.value_of(condition.node)
        if isinstance(value, torch.Tensor):
            if value.numel() != 1:
                raise CannotFollow(_("a condition depends on a tensor or its size"))
            flag = condition.reshape(()) if value.dim() else condition
            return flag if value.dtype is torch.bool else flag.bool()
        node = condition.node
        if node.target in _COMPARISONS:
            operands = tuple(map(self._as_tensor, node.args))
            return self.tracer.create_proxy("call_function", node.target, operands, {})
        return self.tracer.create_proxy(
            "call_function", torch.tensor, (condition,), {"dtype": torch.bool}
        )

    def _as_tensor(self, operand: Any) -> Any:
        """Return an operand of a comparison of numbers, those of data as tensors of one element."""
        if not isinstance(operand, fx.Node):
            return operand
        dtype = torch.float64 if isinstance(self.tracer.value_of(operand), float) else torch.int64
        if operand.target == "item":
            return self.tracer.proxy(operand.all_input_nodes[0]).reshape(()).to(dtype)
        number = self.tracer.proxy(operand)
        return self.tracer.create_proxy("call_function", torch.tensor, (number,), {"dtype": dtype})

    def _number(self, value: Any, dtype: torch.dtype) -> Any:
        """Return a number as a tensor."""
        if isinstance(value, fx.Proxy):
            return self._as_tensor(value.node).to(dtype)
        return torch.tensor(value, dtype=dtype)

    @staticmethod
    def take(values: Mapping[str, Any], names: tuple[str, ...]) -> tuple[Any, ...]:
        """Return variables by name, ``None`` for those that have no value."""
        return tuple(values.get(name) for name in names)

    def select(
        self, flag: Any, then: Mapping[str, Any], other: Mapping[str, Any], names: tuple[str, ...]
    ) -> tuple[Any, ...]:
        """Return for each variable its value after one side of a branch or the other."""
        self._check_nodes_since(flag)
        return tuple(self._chosen(flag, then.get(name), other.get(name)) for name in names)

    def joined(self, exits: Sequence[tuple[Any, Any, int]], value: Any, owner: int) -> Any:
        """Return the value of a function that may have returned earlier, at some lines."""
        last = value
        for flag, early, line in reversed(exits):
            try:
                self._check_nodes_since(flag)
                value = self._chosen(flag, early, value, numbers=True)
            except _OtherTypes as error:
                function = next(each for each in self._functions if id(each) == owner)
                if not self._is_own(function):
                    raise CannotFollow(str(error), line) from error
                return self._first(exits, last, str(error), function)
            except Exception as error:  # the side that is not chosen may fail in any way
                raise CannotFollow(fx_reason(error), line) from error
        return value

    def _first(
        self, exits: Sequence[tuple[Any, Any, int]], last: Any, reason: str, function: Function
    ) -> Any:
        """Return the result of the model by a part in torch that takes all of its results."""
        values = {f"flag{number}": flag for number, (flag, *_rest) in enumerate(exits)}
        values |= {f"result{number}": early for number, (_flag, early, _l) in enumerate(exits)}
        values["last"] = last
        for flag, *_rest in exits:
            self._check_nodes_since(flag)
        line = source_line(function.original.co_filename, exits[0][2])
        return self._call_part(_first_of, values, (), reason, line, "return", is_last=True)

    def _is_own(self, function: Function) -> bool:
        """Return whether a function is the model's ``forward``."""
        return function.function is inspect.unwrap(type(self._model).forward)

    def cond(
        self,
        pred: Any,
        true_fn: Callable[..., Any],
        false_fn: Callable[..., Any],
        operands: Any = (),
    ) -> Any:
        """Return what ``torch.cond`` does, with both branches computed if the flag is traced."""
        if not isinstance(pred, fx.Proxy):
            return true_fn(*operands) if pred else false_fn(*operands)
        flag = self.flag(pred)
        results = true_fn(*operands), false_fn(*operands)
        self._check_nodes_since(flag)
        return self._chosen(flag, *results)

    def _check_nodes_since(self, flag: Any) -> None:
        """Reject a branch with a node that may fail where the other side is chosen."""
        if isinstance(flag, fx.Proxy):
            for node in itertools.takewhile(
                lambda each: each is not flag.node, reversed(self.tracer.graph.nodes)
            ):
                if self._is_part(node) or may_fail(node, self.tracer.value_of):
                    raise CannotFollow(_("a side of a branch may fail when it is not taken"))
                if self._writes(node):
                    raise CannotFollow(_("a side of a branch changes a tensor in place"))

    def _writes(self, node: fx.Node) -> bool:
        if node.op != "call_module":
            return may_write(node) or bool(node.kwargs.get("inplace"))
        parts = list(self.tracer.root.get_submodule(str(node.target)).modules())
        # A normalisation that is trained changes its statistics.
        trained = any(each.training and isinstance(each, _NormBase) for each in parts)
        return trained or any(getattr(each, "inplace", False) for each in parts)

    def _is_part(self, node: fx.Node) -> bool:
        known = vars(self.tracer.root)
        return node.op == "call_module" and isinstance(known.get(str(node.target)), TorchPart)

    def _chosen(self, flag: Any, then: Any, other: Any, *, numbers: bool = False) -> Any:
        """Return one of two values by a condition.

        `numbers`: whether a number may become a tensor.
        """
        if then is other:
            return then
        if not isinstance(flag, fx.Proxy):
            return then if flag else other
        ours, spec = flattened(then)
        theirs, other_spec = flattened(other)
        if then is None or other is None:
            # A variable that only one side sets is read where it is set.
            return other if then is None else then
        if spec != other_spec:
            raise _OtherTypes(_("the sides of a branch return values of different types"))
        chosen = [
            self._chosen_leaf(flag, *pair, numbers=numbers)
            for pair in zip(ours, theirs, strict=True)
        ]
        return unflattened(chosen, spec)

    def _chosen_leaf(self, flag: fx.Proxy, then: Any, other: Any, *, numbers: bool) -> Any:
        if then is other:
            return then
        plain = [type(each) in (bool, int, float) for each in (then, other)]
        values = [
            self.tracer.value_of(each.node) if isinstance(each, fx.Proxy) else each
            for each in (then, other)
        ]
        are_numbers = [type(each) in (bool, int, float) for each in values]
        if numbers and any(are_numbers) and not (all(plain) and then == other):
            # A number beside a tensor takes its dtype.
            kinds = [each.dtype for each in values if isinstance(each, torch.Tensor)]
            dtype = kinds[0] if kinds else torch.result_type(*values)
            then, other = (
                self._number(each, dtype) if is_number else each
                for each, is_number in zip((then, other), are_numbers, strict=True)
            )
            values = [
                torch.tensor(value, dtype=dtype) if is_number else value
                for value, is_number in zip(values, are_numbers, strict=True)
            ]
        if all(isinstance(each, torch.Tensor) for each in values):
            one, two = values
            if one.shape == two.shape and one.dtype == two.dtype:
                # What is chosen may be another name of the same memory.
                for each in values:
                    self.tracer.keep(each)
                return self.tracer.create_proxy(
                    "call_function", torch.where, (flag, then, other), {}
                )
        elif not any(isinstance(each, fx.Proxy) for each in (then, other)) and then == other:
            return then
        raise _OtherTypes(_("the sides of a branch return values of different types"))


class _OtherTypes(CannotFollow):
    """The sides of a branch give values of which none can be chosen."""


def _first_of(last: Any, **values: Any) -> Any:
    """Return the first result whose flag is set, or else the last."""
    count = len(values) // 2
    found = (values[f"result{each}"] for each in range(count) if values[f"flag{each}"])
    return next(found, last)


_COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)


def _column(code: CodeType, instruction: int) -> int | None:
    """Return the column of an instruction; ``None`` if it spans lines, or is not known."""
    line, end, column, _end = next(itertools.islice(code.co_positions(), instruction // 2, None))
    return column if line == end else None


def _has_line(function: FunctionType, file: str, line: int) -> bool:
    code = function.__code__
    last = max((each for *_span, each in code.co_lines() if each), default=0)
    return code.co_filename == file and code.co_firstlineno <= line <= last


def _versions(values: Any) -> list[int]:
    """Return how often each tensor of a nest has been changed in place."""
    tensors = [each for each in pytree.tree_leaves(values) if isinstance(each, torch.Tensor)]
    return [version_of(each) for each in tensors]


def _called(args: Any, kwargs: Any, module: nn.Module, is_model: bool) -> Any:
    before = _versions((args, kwargs))
    result = module(*args, **kwargs)
    if is_model:
        return plain(result)
    if before != _versions((args, kwargs)):
        raise CannotFollow(_("it changes a tensor in place before it returns"))
    return result


def _results(call: _Call, result: Any, values: Mapping[str, Any]) -> Any:
    """Return the given variables, and write the changed ones into their tensors."""
    if call.is_tail:
        return result
    given = len(call.gives)
    for name, new in zip(call.changed, result[given:], strict=True):
        old = values.get(name)
        if new is not old and isinstance(old, fx.Proxy | torch.Tensor):
            old.copy_(new)
        elif new is not old and isinstance(old, fx.Proxy) != isinstance(new, fx.Proxy):
            raise CannotFollow(_("it changes {name} in place", name=name))
    return tuple(result[:given])


def _tensors_of(
    values: Iterable[Any], value_of: Callable[[fx.Node], Any] | None = None
) -> list[torch.Tensor]:
    """Return the tensors in values, those of modules and other objects included."""
    found: list[torch.Tensor] = []
    for leaf in pytree.tree_leaves(list(values)):
        value = value_of(leaf.node) if value_of and isinstance(leaf, fx.Proxy) else leaf
        if isinstance(value, nn.Module):
            found += [*value.parameters(), *value.buffers()]
        elif not isinstance(value, torch.Tensor | type | FunctionType):
            value = [*vars(value).values()] if hasattr(value, "__dict__") else value
        found += [each for each in pytree.tree_leaves(value) if isinstance(each, torch.Tensor)]
    return found


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.is_floating_point() or one.is_complex():
        return torch.allclose(one, other, rtol=0, atol=0, equal_nan=True)
    return torch.equal(one, other)


def _has_proxy(value: Any) -> bool:
    return any(isinstance(each, fx.Proxy) for each in pytree.tree_leaves(value))


def _has_traced(value: Any) -> bool:
    """Return whether a traced value is in a nest, or in an object that it holds."""
    return _has_proxy(value) or any(isinstance(each, fx.Proxy) for _path, each in leaves(value))


def _has_proxies_inside(held: Mapping[str, Any]) -> bool:
    """Return whether an object among values has a traced value as an attribute."""
    for value in held.values():
        for leaf in pytree.tree_leaves(value):
            if isinstance(leaf, type | FunctionType | torch.Tensor):
                cells = getattr(leaf, "__closure__", None) or ()
                for cell in cells:
                    with suppress(ValueError):
                        if _has_proxy(cell.cell_contents):
                            return True
            elif any(map(_has_proxy, getattr(leaf, "__dict__", {}).values())):
                return True
    return False


def _narrowed(value: Any, name: str, body: Sequence[ast.stmt]) -> Any:
    """Return a module with only the attributes that statements read of it, if these are data."""
    if not isinstance(value, nn.Module):
        return value
    nodes = [each for statement in body for each in ast.walk(statement)]
    uses = [each for each in nodes if isinstance(each, ast.Name) and each.id == name]
    reads = [
        each
        for each in nodes
        if isinstance(each, ast.Attribute)
        and isinstance(each.value, ast.Name)
        and each.value.id == name
        and isinstance(each.ctx, ast.Load)
    ]
    # While tracing, a parameter that is read by its name is a node.
    known = {**vars(value), **value._modules, **value._parameters, **value._buffers}
    attributes = {each.attr for each in reads}
    if (
        len(reads) != len(uses)
        or not attributes <= known.keys()
        or any(a.startswith("_") for a in attributes)
    ):
        return value
    part = Selected()
    part.training = value.training
    for attribute in attributes - {"training"}:
        each = known[attribute]
        if isinstance(each, torch.Tensor) and not isinstance(each, nn.Parameter):
            part.register_buffer(attribute, each)
        else:
            setattr(part, attribute, each)
    return part
