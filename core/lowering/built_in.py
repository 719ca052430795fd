"""Lowering of a node without a user's rule: by a built-in rule, in parts, or in torch."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Literal

import torch
from torch import fx
from tvm import ir, relax
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder, as_tensor, cast, functions_of
from lowerscope.core.lowering.complex_numbers import rule_for
from lowerscope.core.lowering.decomposition import (
    SAME_FOR_ALL,
    Parts,
    as_traced,
    check_members,
    check_reduced,
)
from lowerscope.core.lowering.library_nodes import LibraryNodes, hinders_rules
from lowerscope.core.lowering.rule_table import RULES, Missing, Refused, refuse_encoded
from lowerscope.core.lowering.torch_operators import is_random, operator_name
from lowerscope.core.lowering.types import NodeLowering, PartLowering, Traced, UsedRule
from lowerscope.core.lowering.user_rules import UserRule
from lowerscope.core.lowering.values import (
    SIZE_FUNCTIONS,
    Dimensions,
    EncodedTensor,
    UnknownDtype,
    Value,
    dtype_of,
    is_float,
    is_size,
    is_tensor,
    leaves,
    rank_of,
)
from lowerscope.core.model.problems import LowerscopeError, Problem, kind_of
from lowerscope.core.model.recipe import Override, Strategy
from lowerscope.core.model.snapshot import Note, SourceLine
from lowerscope.core.model.texts import _, _n, labelled
from lowerscope.core.sources.onnx_models import OnnxNode


def attribute(root: Any, path: str) -> Any:
    """Return the object at a dotted path."""
    for name in path.split("."):
        root = getattr(root, name)
    return root


def has_tensor(value: Any) -> bool:
    """Return whether a nest of values contains a tensor."""
    return any(
        isinstance(each, ir.Expr | EncodedTensor) and not is_size(each) for each in leaves(value)
    )


def reads_member(node: fx.Node, args: tuple[Any, ...]) -> bool:
    """Return whether `node` only takes a member of a tuple."""
    if node.target not in (operator.getitem, getattr) or not args:
        return False
    return isinstance(args[0], (tuple, list)) or (
        isinstance(args[0], ir.Expr) and isinstance(args[0].ty, relax.TupleType)
    )


def check_read_members(node: fx.Node, value: Value) -> None:
    """Reject a tuple of which a member is read that the rule did not compute."""
    if not isinstance(value, (tuple, list)):
        return
    missing = {index: each for index, each in enumerate(value) if isinstance(each, Missing)}
    for user in node.users if missing else ():
        index = user.args[1] if user.target is operator.getitem else None
        if not isinstance(index, int):
            raise Refused(next(iter(missing.values())).reason)
        if index % len(value) in missing:
            raise Refused(missing[index % len(value)].reason)


def is_python(node: fx.Node) -> bool:
    """Return whether `node` calls Python's own functions, or a method of a Python value."""
    if node.op == "call_method":
        return True
    if node.target in SIZE_FUNCTIONS:
        return True
    module = getattr(node.target, "__module__", "") or ""
    return module in ("_operator", "operator", "math", "builtins")


def compute(
    node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any], dimensions: Dimensions
) -> Any:
    """Return the value of a call between Python values, such as the extents of a shape."""
    if any(map(is_size, args)) and node.op == "call_function":
        assert callable(node.target)
        try:
            return dimensions.compute(node.target, args)
        except NotImplementedError as error:
            if any(is_size(each) and dimensions.is_of_data(each) for each in args):
                return Missing(str(error))
            raise
    if node.op == "call_method":
        return getattr(args[0], str(node.target))(*args[1:], **kwargs)
    assert callable(node.target)
    if node.target is operator.getitem:
        return RULES[operator.getitem].lower(None, *args)
    return node.target(*args, **kwargs)


def float_of_sizes(builder: NodeBuilder, node: fx.Node, args: Sequence[Any], dtype: str) -> Value:
    """Return a float that Python computes of sizes as a tensor of rank 0; ``None`` for others."""
    make = _OF_FLOATS.get(node.target)
    known = (int, float)
    if make is None or all(isinstance(each, known) for each in args):
        return None
    if not all(isinstance(each, known) or is_size(each) or _is_number(each) for each in args):
        return None
    found = builder.emit(make(*(cast(builder, each, "float64") for each in args)))
    return cast(builder, found, dtype)


def _is_number(value: Any) -> bool:
    return is_tensor(value) and rank_of(value) == 0 and is_float(dtype_of(value))


_OF_FLOATS: Mapping[Any, Callable[..., Any]] = {
    operator.add: op.add,
    operator.sub: op.subtract,
    operator.mul: op.multiply,
    operator.truediv: op.divide,
    operator.pow: op.power,
    math.sqrt: op.sqrt,
    math.log: op.log,
    math.exp: op.exp,
}
"""Python's functions of numbers by what computes them of tensors."""


class Notes:
    """Collector of notes; nodes with the same reason share one."""

    def __init__(self, lines: Mapping[str, SourceLine], engine: str = "torch") -> None:
        self._lines = lines
        self._engine = engine
        self._in_torch: dict[str, list[fx.Node]] = {}
        self._without_rule: dict[tuple[str, str], list[str]] = {}
        self._unused_rules: list[Note] = []

    def runs_in_torch(self, node: fx.Node, cause: str) -> None:
        """Add a note that a node runs in torch because of `cause`."""
        self._in_torch.setdefault(cause, []).append(node)

    def rule_failed(self, node: fx.Node, rule: UserRule, problem: Problem) -> None:
        """Add a note that a user's rule is not used for a node, with the reason."""
        key = (problem.where, f"{rule.name}: {problem.what}")
        self._without_rule.setdefault(key, []).append(node.name)

    def unused_rules(self, rules: Iterable[UserRule]) -> None:
        """Add a note on rules whose operators no node calls."""
        self._unused_rules += [
            Note(text=_("{name}: no node calls its operator", name=rule.name), where=rule.where)
            for rule in rules
        ]

    def all(
        self, not_legalised: Iterable[str], without_match: Iterable[Override]
    ) -> tuple[Note, ...]:
        notes = [
            Note(
                text=_("{text}; lowered without it: {names}", text=text, names=_(", ").join(names)),
                where=where,
            )
            for (where, text), names in self._without_rule.items()
        ]
        notes += self._unused_rules
        notes += [self._note(cause, nodes) for cause, nodes in self._in_torch.items()]
        notes += [
            Note(text=_("{name} has no TensorIR form here and stays an operator", name=name))
            for name in sorted(not_legalised)
        ]
        notes += [
            Note(text=_("it matches no node"), where=f"--override {each.pattern}={each.strategy}")
            for each in without_match
        ]
        return tuple(notes)

    def _note(self, cause: str, nodes: list[fx.Node]) -> Note:
        line = next((self._lines[node.name] for node in nodes if node.name in self._lines), None)
        return Note(
            text=_n(
                "{cause}; runs in {engine} (node {names})",
                "{cause}; runs in {engine} (nodes {names})",
                len(nodes),
                engine=self._engine,
                cause=cause,
                names=_(", ").join(node.name for node in nodes),
            ),
            where=f"{line.file}:{line.line}" if line else "",
        )


@dataclass(frozen=True)
class Uncovered:
    """A node without a lowering, and why."""

    operator: str
    node: str
    line: SourceLine | None
    reason: str

    def text(self) -> str:
        """Return the description of the node: operator, node, line and reason."""
        where = f"{PurePath(self.line.file).name}:{self.line.line}" if self.line else ""
        place = _(", ").join(filter(None, (_("node {node}", node=self.node), where)))
        return _(
            "{operator} ({place}): {reason}",
            operator=self.operator,
            place=place,
            reason=self.reason,
        )


def uncovered_error(
    uncovered: Sequence[Uncovered], what: str, todo: str, code: str
) -> LowerscopeError:
    """Return one error that names every one of `uncovered`.

    Args:
        what: The error, with a field ``nodes``.
    """
    shown = _("; ").join(each.text() for each in uncovered[:_SHOWN])
    if len(uncovered) > _SHOWN:
        shown = _("{nodes}; and {count} more", nodes=shown, count=len(uncovered) - _SHOWN)
    line = next((each.line for each in uncovered if each.line), None)
    return LowerscopeError(
        what.format(nodes=shown),
        where=f"{line.file}:{line.line}" if line else "",
        todo=todo,
        code=code,
        details="\n".join(each.text() for each in uncovered),
    )


_SHOWN = 5


def advice_on(uncovered: Sequence[Uncovered], tracer: str) -> str:
    """Return what can be done about nodes without a lowering."""
    of_data = all(ONLY_TENSORS in each.reason for each in uncovered)
    if of_data:
        if tracer == "fx":
            return _(
                "keep it a tensor, without .item(), .tolist() and the like; or try another tracer: "
                "--tracer export"
            )
        return _("keep it a tensor, without .item(), .tolist() and the like")
    if tracer == "fx":
        return _("write it with other operators; or try another tracer: --tracer export")
    return _("write it with other operators")


ONLY_TENSORS = _("only tensors can be computed from data")
"""Part of the reason for a node that computes a number from tensors."""


def _has_index_tensor(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether there is an integer tensor without dimensions, which torch takes as a number,
    among the arguments."""
    return any(
        is_tensor(each) and rank_of(each) == 0 and "int" in dtype_of(each)
        for each in leaves([args, kwargs], slices=True)
    )


def reason_of(error: Exception) -> str:
    """Return a short reason why TVM, or a rule, failed."""
    if isinstance(error, UnknownDtype):
        return _("TVM has no {dtype}", dtype=error.args[0])
    needs_number = isinstance(error, TypeError) and _EXPRESSION.search(str(error))
    if needs_number or any(sign in str(error) for sign in _NEEDS_NUMBER):
        return _("it needs a number, and the dimension is symbolic")
    message = str(error).strip().splitlines()
    text = message[-1] if message else kind_of(error)
    if not isinstance(error, _UNTOLD):
        return text
    # Errors of the code, and not about the node.
    kind = f"{type(error).__name__}: " if message else ""
    return _("TVM fails on it ({reason})", reason=f"{kind}{text}")


_UNTOLD = (AssertionError, AttributeError, LookupError, NameError)


_NEEDS_NUMBER = (
    "int() argument must be",
    "Cannot use and / or / not operator to Expr",
    "TVM supports multiple types of integer divisions",
)
_EXPRESSION = re.compile(r"'Expr'|\b(Var|Add|Sub|Mul|Div|Mod|FloorDiv|FloorMod|Min|Max|Cast)\b")
"""Pattern of Python's and TVM's errors for an expression of a dynamic size."""


@dataclass
class Current:
    """Context of the node being lowered: strategy, rules, and the reason for running in torch.

    `strategy`: the one that is tried, and finally the one that was used.
    `cause`: why it runs in torch although another strategy was chosen.
    `user_rule`, `without`: the user's rule that lowered it, and the message about one that failed.
    `parts`, `used`: as in `NodeLowering`.
    `engine`: the name of what library functions run in.
    """

    strategy: Strategy
    rule: str = ""
    cause: str = ""
    user_rule: UserRule | None = None
    without: str = ""
    parts: tuple[PartLowering, ...] = ()
    used: list[UsedRule] = field(default_factory=list)
    engine: str = "torch"

    def note_rule(
        self,
        kind: Literal["built-in", "tvm", "library", "python"],
        name: str,
        function: Callable[..., Any],
    ) -> None:
        """Record a rule that lowers the node or a part of it."""
        self.used.append(UsedRule(kind, name, function))

    def take_user_rule(self, own: UserRule) -> None:
        """Record that a user's rule has lowered the node."""
        self.user_rule = own
        self.used.insert(0, UsedRule("user", own.name, own.function))

    def provenance(
        self,
        node: fx.Node,
        bindings: list[Any],
        emitted: tuple[str, ...],
        value: Value,
        rebound: tuple[str, ...],
        *,
        is_random: bool,
        functions: Mapping[Any, Any],
    ) -> NodeLowering:
        names = tuple(binding.var.name for binding in bindings)
        called = functions_of(bindings, functions)
        used = tuple(self.used)
        if not bindings or node.op == "output":
            return NodeLowering(
                node.name, "", "", names, called, used=used, value=value, rebound=rebound
            )
        in_torch = self.strategy == "library"
        return NodeLowering(
            node.name,
            self.strategy,
            self._shown_rule(emitted),
            names,
            called,
            reason=_("{cause}; runs in {engine}", cause=self.cause, engine=self.engine)
            if in_torch and self.cause
            else "",
            random=in_torch and is_random,
            line=None if self.user_rule is None else self.user_rule.line,
            parts=self.parts,
            used=used,
            value=value,
            rebound=rebound,
        )

    def _shown_rule(self, emitted: tuple[str, ...]) -> str:
        if self.user_rule is not None:
            return shown(self.user_rule)
        rule = self.rule
        if self.strategy != "library":
            if self.parts:
                emitted = tuple(dict.fromkeys(part.target for part in self.parts))
            rule = f"{rule}: {', '.join(emitted)}" if emitted else rule
        return f"{rule}{self.without}"


def shown(own: UserRule) -> str:
    """Return the label of a user's rule: ``my_relu, my_rules.py:12``."""
    return f"{own.name}, {PurePath(own.line.file).name}:{own.line.line}"


class BuiltIn:
    """Lowering of the nodes of a graph, one by one."""

    def __init__(
        self,
        traced: Traced,
        modules: Mapping[str, torch.nn.Module],
        builder: NodeBuilder,
        dimensions: Dimensions,
        library: LibraryNodes,
        notes: Notes,
    ) -> None:
        self._traced = traced
        self._modules = modules
        self._builder = builder
        self._dimensions = dimensions
        self._library = library
        self._notes = notes
        self._in_parts = Parts(builder, library, traced.graph_module)

    def lower(
        self,
        node: fx.Node,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        now: Current,
        *,
        in_torch: bool = True,
    ) -> Value:
        """Return the value of a node.

        `now`: Context of the node; updated with the strategy and the rules.

        Raises `Refused` if it cannot be lowered.
        """
        if now.strategy == "library" and in_torch:
            return self._by_library(node, args, kwargs, now)
        cause = hinders_rules(args, kwargs, self._dimensions) if in_torch else ""
        if not cause:
            try:
                return self.by_rule(node, args, kwargs, now)
            except Refused as refusal:
                cause = str(refusal)
            except Exception as error:
                # TVM raises many types for failed inference; its own message is shown.
                by_tensor = _has_index_tensor(args, kwargs)
                cause = _("a size or an index is a tensor") if by_tensor else reason_of(error)
        if not in_torch:
            made = self._traced.values[node.name].text
            makes = _(
                "it returns a {made}, and {only_tensors}", made=made, only_tensors=ONLY_TENSORS
            )
            raise Refused(cause or makes)
        reason = getattr(self._modules.get(str(node.target)), "reason", "")
        random = is_random(node, self._modules)
        is_onnx = isinstance(self._modules.get(str(node.target)), OnnxNode)
        if not random and not is_onnx and not hinders_rules(args, kwargs, self._dimensions):
            try:
                return self._by_parts(node, args, kwargs, now)
            except Refused as refusal:
                # No rule covers it as a whole either, which is the reason shown.
                if str(refusal) == SAME_FOR_ALL:
                    cause = cause or SAME_FOR_ALL
        self._builder.discard_node()
        now.used = []
        name = operator_name(node, self._modules)
        if random:
            now.cause = _("{name} is random", name=name)
        elif reason:
            now.cause = reason
        else:
            now.cause = (
                labelled(name, cause) if cause else _("no relax operator for {name}", name=name)
            )
        return self._by_library(node, args, kwargs, now)

    def by_rule(
        self, node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any], now: Current
    ) -> Value:
        """Return the value of a node by a rule.

        Raises `Refused` if there is none, or it does not fit.
        """
        if node.op == "call_module":
            module = self._modules[str(node.target)]
            value = self._apply(type(module), (module, *args), kwargs, now)
        else:
            value = self._apply(node.target, args, kwargs, now)
        check_read_members(node, value)
        name = operator_name(node, self._modules)
        check_reduced(name, (args, kwargs), value, self._dimensions)
        return self._as_traced(node, value)

    def _by_parts(
        self, node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any], now: Current
    ) -> Value:
        def checked(value: Value) -> Value:
            return self._as_traced(node, value)

        value, now.parts = self._in_parts.lower(node, args, kwargs, checked)
        now.used = []
        now.rule = _("{operator_name} in parts", operator_name=operator_name(node, self._modules))
        return value

    def _as_traced(self, node: fx.Node, value: Value) -> Value:
        info = self._traced.values[node.name]
        if info.shape is None:
            check_members(value, info, self._dimensions)
            return value
        written = node.name in self._traced.mutations
        return as_traced(self._builder, value, info.shape, info.dtype, written=written)

    def _by_library(
        self, node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any], now: Current
    ) -> Value:
        if isinstance(self._modules.get(str(node.target)), OnnxNode):
            args = tuple(as_tensor(self._builder, each) for each in args)
        mutates = node.name in self._traced.mutations
        info = self._traced.values[node.name]
        value, function = self._library.lower(node, info, args, kwargs, mutates=mutates)
        name = operator_name(node, self._modules)
        random = is_random(node, self._modules)
        if now.cause or random:
            cause = now.cause or _("{name} is random", name=name)
            self._notes.runs_in_torch(node, cause)
        now.strategy = "library"
        now.rule = f"{name}: {function}"
        now.note_rule("library", function, self._library.functions.by_name[function])
        return value

    def _apply(
        self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], now: Current
    ) -> Value:
        rule = rule_for(target, args, kwargs)
        if rule is None:
            refuse_encoded([args, kwargs])
            raise Refused("")
        now.rule = rule.name
        now.note_rule("built-in", rule.name, rule.lower)
        return rule.apply(self._builder, args, kwargs)
