"""User rules: registration by the decorator, application and checks."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx, nn
from tvm import ir, relax

from lowerscope.core.lowering.builder import NodeBuilder
from lowerscope.core.lowering.rule_table import Missing, Refused, find_in
from lowerscope.core.lowering.types import Info
from lowerscope.core.lowering.values import (
    EncodedTensor,
    Value,
    dtype_of,
    held_type,
    is_tensor,
    leaves,
)
from lowerscope.core.model.formatting import shape_text
from lowerscope.core.model.problems import TVM_ERRORS, LowerscopeError, last_line
from lowerscope.core.model.recipe import Strategy
from lowerscope.core.model.snapshot import SourceLine
from lowerscope.core.model.texts import _

Function = Callable[..., Any]
Running = Callable[[str], contextlib.AbstractContextManager[None]]
"""Function that returns the context of a file's code; takes the operation, for messages."""

STRATEGIES: tuple[Strategy, ...] = ("high-level", "te")
"""Strategies that a rule can be for: the library strategy runs torch itself."""


@dataclass(frozen=True)
class RuleNode:
    """The node that a rule lowers.

    `fx`: the node itself.
    `name`: its name.
    `module`: the module that it calls; ``None`` for functions and methods. Its tensors become Relax
        expressions by ``builder.constant(node.module.weight)``.
    `args`, `kwargs`: the arguments of the call with Relax expressions in place of nodes, as the
        rule gets them.
    `shape`, `dtype`: of the tensor that torch computes for the node, such as ``(1, 10)`` and
        ``"float32"``; ``None`` and empty where it makes a tuple. A rule has to make the same.
    `strategy`: ``"high-level"`` or ``"te"``: what the node is to be lowered by.
    """

    fx: fx.Node
    name: str
    module: nn.Module | None
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    shape: tuple[int | str, ...] | None
    dtype: str
    strategy: Strategy
    _built_in: Function = field(repr=False)

    def built_in(self, *args: Any, **kwargs: Any) -> Any:
        """Lower the node as if there were no rule of the user's, and return the value.

        Raises `Refused` if not even torch can run the node on these arguments.
        """
        return self._built_in(args, kwargs)


@dataclass(frozen=True)
class UserRule:
    """One rule of a rule file.

    `keys`: module classes, functions, names of methods, ATen overloads.
    `function`: called with the builder, a `RuleNode`, and the arguments of the node's call.
    `running`: the context in which the file's code runs. Its exceptions become a `LowerscopeError`
        that points at the file's own line.
    """

    name: str
    keys: tuple[Any, ...]
    strategies: tuple[Strategy, ...]
    function: Function
    line: SourceLine
    running: Running

    @property
    def where(self) -> str:
        """The line in the form used by problems: ``/home/me/my_rules.py:12``."""
        return f"{self.line.file}:{self.line.line}"


@dataclass(frozen=True)
class Gathered:
    """A decorated function, before the file's context is known."""

    keys: tuple[Any, ...]
    strategies: tuple[Strategy, ...]
    name: str
    function: Function


_gathering: ContextVar[list[Gathered] | None] = ContextVar("_gathering", default=None)


def rule(
    *keys: Any, strategy: Strategy | Sequence[Strategy] = STRATEGIES, name: str = ""
) -> Callable[[Function], Function]:
    """Make the decorated function the rule for an operator.

    `keys`: Targets of nodes: classes of modules (``torch.nn.GELU``), functions
        (``torch.nn.functional.gelu``, ``operator.add``), names of methods (``"relu"``), and
        overloads of ATen (``torch.ops.aten.gelu.default``).
    `strategy`: ``"high-level"``, ``"te"``, or both, which is the default.
    `name`: its label; the function's own name by default.

    Raises `TypeError, ValueError` if a key cannot be the target of a node, or there is no such
    strategy.
    """
    strategies = (strategy,) if isinstance(strategy, str) else tuple(strategy)
    for each in strategies:
        if each not in STRATEGIES:
            raise ValueError(
                _(
                    "strategy {each!r} is none of {strategies}",
                    each=each,
                    strategies=_(", ").join(STRATEGIES),
                )
            )
    if not keys:
        raise TypeError("rule() needs what it is for, as in @rule(torch.nn.GELU)")
    for key in keys:
        if isinstance(key, type) and not issubclass(key, nn.Module):
            raise TypeError(f"rule() takes classes of modules; {key.__name__} is none")
        if isinstance(key, torch._ops.OpOverloadPacket):
            overloads = ", ".join(f"{key}.{each}" for each in key)
            raise TypeError(f"{key} has overloads, of which nodes call one: {overloads}")
        if not isinstance(key, str) and not callable(key):
            raise TypeError(f"no node calls {key!r}")

    def enter(function: Function) -> Function:
        if not callable(function):
            raise TypeError(f"a rule is a function, not a {type(function).__name__}")
        gathered = _gathering.get()
        # A file imported outside of Lowerscope only gets its functions.
        if gathered is not None:
            shown = name or getattr(function, "__name__", type(function).__name__)
            gathered.append(Gathered(keys, strategies, shown, function))
        return function

    return enter


@contextlib.contextmanager
def gathering() -> Iterator[list[Gathered]]:
    """Collect the functions decorated in the body, in order."""
    gathered: list[Gathered] = []
    token = _gathering.set(gathered)
    try:
        yield gathered
    finally:
        _gathering.reset(token)


class UserRules:
    """The rules of all files, by the target of a node; a later one takes precedence."""

    def __init__(self, rules: Sequence[UserRule]) -> None:
        self._rules = tuple(rules)
        self._tables: dict[Strategy, dict[Any, UserRule]] = {
            strategy: {
                key: each for each in rules if strategy in each.strategies for key in each.keys
            }
            for strategy in STRATEGIES
        }

    def find(self, target: Any, strategy: Strategy) -> UserRule | None:
        """Return the rule for the target of a node, or ``None``."""
        table = self._tables.get(strategy)
        return find_in(table, target) if table else None

    def without_node(self, targets: Sequence[Any]) -> Iterator[UserRule]:
        """Yield the rules whose operators no node calls."""
        for each in self._rules:
            table = dict.fromkeys(each.keys, each)
            if not any(find_in(table, target) for target in targets):
                yield each


def apply_rule(found: UserRule, builder: NodeBuilder, node: RuleNode, info: Info) -> Value:
    """Lower a node with a rule, and return the value, bound.

    `builder`: Used by the rule; on an error, its emitted bindings are still there.
    `info`: description of torch's value of the node, which the rule's must match.

    Raises `LowerscopeError` if the rule fails, rejects the node, or makes something else; it points
    at the file's line.
    """
    _check_arguments(found, node)
    with found.running(_("lowering the node failed")), _lent(builder):
        try:
            value = found.function(builder, node, *node.args, **node.kwargs)
        except Refused as refusal:
            value = refusal
    if isinstance(value, Refused):
        raise LowerscopeError(_("it rejects the node: {value}", value=value), where=found.where)
    try:
        value = _bound(builder, value)
    except TVM_ERRORS as error:
        # The type of the returned expression is inferred only when it is bound.
        raise LowerscopeError(
            _("its result cannot be bound: {last_line}", last_line=last_line(error)),
            where=found.where,
        ) from None
    wrong = _difference(value, info) or _foreign(builder, node, value)
    if wrong:
        raise LowerscopeError(wrong, where=found.where)
    return value


def _check_arguments(found: UserRule, node: RuleNode) -> None:
    try:
        inspect.signature(found.function).bind(None, node, *node.args, **node.kwargs)
    except TypeError as error:
        call = [*("input" for _other in node.args), *(f"{name}=" for name in node.kwargs)]
        raise LowerscopeError(
            _(
                "it cannot be called as {name}(builder, node, {call}): {error}",
                name=found.name,
                call=_(", ").join(call),
                error=error,
            ),
            where=found.where,
        ) from None
    except ValueError:
        # A callable without a Python signature: the call itself reports the error.
        return


_OWN = (
    *("begin_scope", "dataflow", "emit_func_output", "emit_output", "end_scope", "finalize"),
    *("function", "get", "testing_scope"),
)
"""Builder methods that begin or end a function or a block, which rules must not call."""


@contextlib.contextmanager
def _lent(builder: NodeBuilder) -> Iterator[None]:
    """Prevent a rule from ending the function that its node is a part of."""

    def refusing(name: str) -> Function:
        def refuse(*_unused: Any, **__: Any) -> Any:
            raise RuntimeError(
                _("a rule may not call builder.{name}: it makes a part of main", name=name)
            )

        return refuse

    names = [name for name in _OWN if hasattr(builder, name)]
    for name in names:
        setattr(builder, name, refusing(name))
    try:
        yield
    finally:
        for name in names:
            delattr(builder, name)


def _bound(builder: NodeBuilder, value: Any) -> Any:
    """Return a rule's result with every expression in it bound to a variable."""
    if isinstance(value, (tuple, list)):
        return tuple(_bound(builder, each) for each in value)
    if isinstance(value, ir.Expr) and not isinstance(value, ir.Var | ir.GenericConst):
        return builder.emit(value)
    return value


def _difference(value: Any, info: Info) -> str:
    """Return the mismatch of `value` with torch's `info`; empty for none."""
    if isinstance(value, Missing):
        return ""
    if info.shape is None and info.items:
        if isinstance(value, ir.Expr) and isinstance(value.ty, relax.TupleType):
            members: Sequence[Any] = value.ty.fields
            if len(members) == len(info.items):
                return ""
        elif isinstance(value, tuple) and len(value) == len(info.items):
            wrong = (_difference(*pair) for pair in zip(value, info.items, strict=True))
            return next(filter(None, wrong), "")
        return _(
            "it returned {in_words} where torch has {text}",
            in_words=_in_words(value),
            text=info.text,
        )
    if info.shape is None:
        return (
            ""
            if value is None
            else _(
                "it returned {in_words} where torch has {text}",
                in_words=_in_words(value),
                text=info.text,
            )
        )
    held = held_type(info.shape, info.dtype)
    tensor = value.value if isinstance(value, EncodedTensor) else value
    if not is_tensor(tensor):
        return _(
            "it returned {in_words}, not a Relax expression for a tensor", in_words=_in_words(value)
        )
    shape, dtype = held if held is not None else (info.shape, info.dtype)
    if dtype_of(tensor) == dtype and _fits(tensor, shape):
        return ""
    return _(
        "it returned {in_words} where torch has {text}", in_words=_in_words(tensor), text=info.text
    )


def _fits(tensor: Value, shape: Sequence[int | str]) -> bool:
    """Return whether the extents that are numbers on both sides are equal."""
    made = tensor.ty.shape
    if not isinstance(made, relax.ShapeExpr):
        return int(tensor.ty.ndim) in (-1, len(shape))
    known = [getattr(extent, "value", None) for extent in made.values]
    return len(known) == len(shape) and all(
        a is None or not isinstance(b, int) or int(a) == b
        for a, b in zip(known, shape, strict=True)
    )


def _in_words(value: Any) -> str:
    if is_tensor(value):
        made = value.ty.shape
        extents = made.values if isinstance(made, relax.ShapeExpr) else ["?"]
        extents = [getattr(extent, "value", extent) for extent in extents]
        return f"{shape_text(extents)} {dtype_of(value)}"
    if isinstance(value, tuple):
        return _("a tuple of {count}", count=len(value))
    if isinstance(value, ir.Expr) and isinstance(value.ty, relax.TupleType):
        return _("a tuple of {count}", count=len(value.ty.fields))
    return "None" if value is None else _("a value of type {name}", name=type(value).__name__)


def _foreign(builder: NodeBuilder, node: RuleNode, value: Any) -> str:
    """Return the variable of another function that a rule has used; empty for none."""
    bindings = list(builder.keep())
    known = {var for each in (node.args, dict(node.kwargs)) for var in _variables(each)}
    known |= {binding.var for binding in bindings} | builder.parameters
    used = [
        var for binding in bindings if hasattr(binding, "value") for var in _free(binding.value)
    ]
    for var in (*used, *_variables(value)):
        if var not in known:
            return _("it used the unbound variable {name}", name=var.name)
    return ""


def _variables(value: Any) -> Iterator[Any]:
    for each in leaves(value, slices=True):
        tensor = each.value if isinstance(each, EncodedTensor) else each
        if isinstance(tensor, ir.Expr):
            yield from _free(tensor)


def _free(value: Any) -> list[Any]:
    return list(relax.analysis.free_vars(value))
