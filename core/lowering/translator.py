"""The lowering stage: converts an FX graph to a Relax module, with provenance by binding."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import torch
import tvm
from torch import fx
from tvm import ir, relax

from lowerscope.core.lowering import rules as _rules
from lowerscope.core.lowering.builder import NodeBuilder, as_tensor, without_unused
from lowerscope.core.lowering.built_in import (
    BuiltIn,
    Current,
    Notes,
    Uncovered,
    advice_on,
    attribute,
    check_read_members,
    compute,
    float_of_sizes,
    has_tensor,
    is_python,
    reads_member,
    reason_of,
    shown,
    uncovered_error,
)
from lowerscope.core.lowering.library_nodes import (
    LibraryNodes,
    gives_tensors,
    has_tensors,
    hinders_rules,
    unknown_among,
)
from lowerscope.core.lowering.rule_table import RULES, Missing, Refused
from lowerscope.core.lowering.torch_operators import (
    bare_name,
    is_random,
    operator_name,
    qualified_name,
    random_outputs,
)
from lowerscope.core.lowering.types import LoweredModel, NodeLowering, Traced, engine_of
from lowerscope.core.lowering.user_rules import RuleNode, UserRule, UserRules, apply_rule
from lowerscope.core.lowering.values import (
    Dimensions,
    EncodedTensor,
    Value,
    held_type,
    is_dtype,
    is_tensor,
    leaves,
)
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import Override, Strategy
from lowerscope.core.model.texts import _
from lowerscope.core.sources.onnx_models import CONSTANT

_NODE = "fx:"
"""Prefix of the name of a node in a pattern, as in the ids of nodes."""


class Choices:
    """The strategies of one graph's nodes.

    `overrides`: in order; see `core.recipe.Override`. Disabled ones are ignored.
    `paths`: dotted path of the module that each node comes from, by node name.
    """

    def __init__(
        self,
        default: Strategy,
        overrides: Sequence[Override],
        paths: Mapping[str, str],
        modules: Mapping[str, torch.nn.Module],
    ) -> None:
        self._default = default
        self._overrides = tuple(each for each in overrides if each.on)
        self._paths = paths
        self._modules = modules

    def strategy_of(self, node: fx.Node) -> Strategy:
        override = self.override_of(node)
        return self._default if override is None else override.strategy

    def override_of(self, node: fx.Node) -> Override | None:
        """Return the override of a node; ``None`` for the default."""
        if not self._overrides:
            return None
        found: Override | None = None
        exact = False
        names = self._names(node)
        for override in self._overrides:
            if _names_node(override.pattern, node):
                found, exact = override, True
            elif not exact and _matches(override.pattern, names):
                found = override
        return found

    def without_match(self, nodes: Sequence[fx.Node]) -> Iterator[Override]:
        """Yield the overrides that match none of `nodes`."""
        names = [(node, self._names(node)) for node in nodes] if self._overrides else []
        for override in dict.fromkeys(self._overrides):
            if not any(
                _names_node(override.pattern, node) or _matches(override.pattern, each)
                for node, each in names
            ):
                yield override

    def _names(self, node: fx.Node) -> tuple[str, ...]:
        """Return the names that a pattern may match: node, operator, modules, innermost first."""
        operators = (operator_name(node, self._modules), bare_name(node, self._modules))
        parts = self._paths.get(node.name, "").split(".")
        paths = [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
        # layer1.* includes nodes directly in layer1.
        return (
            node.name,
            *operators,
            *(name for path in paths if path for name in (path, f"{path}.")),
        )


def _names_node(pattern: str, node: fx.Node) -> bool:
    return pattern.removeprefix(_NODE) == node.name


def _matches(pattern: str, names: Sequence[str]) -> bool:
    return not pattern.startswith(_NODE) and any(fnmatchcase(name, pattern) for name in names)


def output_value(builder: NodeBuilder, graph_module: fx.GraphModule, value: Any) -> Value:
    """Return the value that ``main`` returns: a tensor for one tensor, else a flat tuple.

    Nested tuples, lists and dicts are flattened in order, and numbers become tensors of rank 0.
    What is neither a tensor nor a number, such as a text, is left out.
    """
    tensors = [_tensor(builder, leaf) for leaf in _outputs(builder, value) if _is_result(leaf)]
    return tensors[0] if _returns_one(graph_module, value) else relax.Tuple(tensors)


def count_outputs(value: Any) -> int:
    """Return the number of outputs in a node's value."""
    return sum(
        len(each.ty.fields)
        if isinstance(each, ir.Expr) and isinstance(each.ty, relax.TupleType)
        else int(_is_result(each))
        for each in leaves(value)
    )


_LEFT_OUT = (type(None), str, complex, type, torch.dtype, torch.device)
"""Types of outputs that are not lowered."""


def _is_result(leaf: Any) -> bool:
    return not isinstance(leaf, _LEFT_OUT)


def _returns_one(graph_module: fx.GraphModule, value: Any) -> bool:
    """Return whether the model returns a value itself, not a tuple of one."""
    info = getattr(graph_module.graph._codegen, "pytree_info", None)
    spec = getattr(info, "out_spec", None)
    if spec is not None:
        return bool(spec.is_leaf())
    if isinstance(value, ir.Expr):
        return not isinstance(value.ty, relax.TupleType)
    return not isinstance(value, (tuple, list, dict))


def _outputs(builder: NodeBuilder, value: Any) -> Iterator[Any]:
    for each in leaves(value):
        if isinstance(each, ir.Expr) and isinstance(each.ty, relax.TupleType):
            yield from (builder.emit(each[index]) for index in range(len(each.ty.fields)))
        else:
            yield each


def _tensor(builder: NodeBuilder, leaf: Any) -> Value:
    leaf = as_tensor(builder, leaf)
    if is_tensor(leaf):
        return leaf
    if isinstance(leaf, (bool, int, float)):
        return builder.constant(torch.tensor(leaf))
    if isinstance(leaf, EncodedTensor):
        return leaf.value
    reason = (
        leaf.reason
        if isinstance(leaf, Missing)
        else _("an output is a {name}", name=type(leaf).__name__)
    )
    raise Refused(reason)


__all__ = ["LoweredModel", "NodeLowering", "lower"]

assert _rules, "importing the rules enters them in the table"

InputSpec = tuple[str, tuple[int | str, ...], str]
"""Name, shape and dtype of an input."""


def lower(
    traced: Traced,
    inputs: Sequence[InputSpec],
    strategy: Strategy,
    overrides: Sequence[Override] = (),
    rules: Sequence[UserRule] = (),
    ranges: Mapping[str, tuple[int, int]] | None = None,
    begins: Callable[[Override | None], None] = lambda override: None,
) -> LoweredModel:
    """Lower a traced model.

    `inputs`: name, shape and dtype for each placeholder, in order; a shape may have names in it.
    `strategy`: ``"high-level"`` for relax operators, ``"te"`` for a ``call_tir`` of a PrimFunc
        each, ``"library"`` for calls of torch. Nodes that the first two do not cover run in torch
        as well.
    `rules`: the user's own, in order; they take precedence over built-in ones.
    `ranges`: smallest and largest size of each name in the shapes.
    `begins`: called before each node with its override, and at the end with none; may raise to
        cancel.

    Raises `LowerscopeError` if a node computes something other than tensors from data; it lists all
    of them.
    """
    with warnings.catch_warnings():
        # TVM warns of its own deprecations while it builds.
        warnings.simplefilter("ignore")
        translation = _Translation(traced, strategy, overrides, rules, ranges or {}, begins)
        return translation.run(inputs)


def input_variable(
    dimensions: Dimensions, name: str, shape: tuple[int | str, ...], dtype: str
) -> Value:
    """Return the argument of ``main`` for an input.

    Raises `LowerscopeError` if TVM does not have its dtype.
    """
    held = held_type(shape, dtype)
    if held is None:
        raise LowerscopeError(
            _("input {name} is {dtype}, which TVM does not have", name=name, dtype=dtype),
            todo=_("give it another dtype: --input NAME=1,784:float32"),
        )
    shape, encoding = held
    return relax.Var(name, relax.TensorType(dimensions.shape(shape), encoding))


def random_in_outputs(
    traced: Traced, values: Mapping[fx.Node, Value]
) -> tuple[tuple[str, ...], ...]:
    """Return for each output the random operators that it depends on, given the nodes' values."""
    return random_outputs(
        traced.graph_module,
        next(node for node in traced.graph_module.graph.nodes if node.op == "output"),
        lambda node: count_outputs(values[node]),
        lambda node: has_tensors(traced.values[node.name]),
        traced.mutations,
    )


class _Translation:
    """One run of the translator: the node map, and the bindings so far."""

    def __init__(
        self,
        traced: Traced,
        strategy: Strategy,
        overrides: Sequence[Override],
        rules: Sequence[UserRule],
        ranges: Mapping[str, tuple[int, int]],
        begins: Callable[[Override | None], None],
    ) -> None:
        self._begins = begins
        self._traced = traced
        self._default = strategy
        self._dimensions = Dimensions(ranges)
        self._builder = NodeBuilder(te=strategy == "te", dimensions=self._dimensions)
        self._env: dict[fx.Node, Value] = {}
        # Of a number that depends on sizes, which is a tensor here.
        wide = any(each.dtype == "float64" for each in traced.values.values())
        self._float = "float64" if wide else "float32"
        self._named = {node.name: node for node in traced.graph_module.graph.nodes}
        self._modules = dict(traced.graph_module.named_modules(remove_duplicate=False))
        self._choices = Choices(strategy, overrides, traced.modules, self._modules)
        self._engine = engine_of(traced)
        self._library = LibraryNodes(self._builder, self._modules, self._engine)
        self._user_rules = UserRules(rules)
        self._uncovered: list[Uncovered] = []
        # Nodes without a value; do not report nodes that depend on them.
        self._failed: set[fx.Node] = set()
        self._used: dict[fx.Node, Strategy] = {}
        self._now = Current(strategy)
        self._notes = Notes(traced.lines, self._engine)
        self._built_in = BuiltIn(
            traced,
            self._modules,
            self._builder,
            self._dimensions,
            self._library,
            self._notes,
        )

    def run(self, inputs: Sequence[InputSpec]) -> LoweredModel:
        builder = self._builder
        variables = [input_variable(self._dimensions, *spec) for spec in inputs]
        nodes: dict[str, NodeLowering] = {}
        bindings: list[Any] = []
        output: Value = None
        values = [
            variable if is_dtype(dtype) else EncodedTensor(variable, dtype)
            for variable, (_name, _shape, dtype) in zip(variables, inputs, strict=True)
        ]
        placeholders = iter(values)
        with builder.function("main", params=variables):
            builder.begin()
            for node in self._traced.graph_module.graph.nodes:
                self._start(node)
                if node.op == "placeholder":
                    self._env[node] = next(placeholders)
                elif node.op == "output":
                    output = None if self._uncovered else self._emit_output(node)
                    self._env[node] = output
                else:
                    self._env[node] = self._translate(node)
                bound, emitted = builder.end_node()
                bindings.extend(bound)
                nodes[node.name] = self._provenance(node, bound, emitted)
            if self._uncovered:
                builder.abandon()
                tracer = "" if self._traced.alone else self._traced.tracer
                todo, code = advice_on(self._uncovered, tracer), "try-export" * (tracer == "fx")
                raise uncovered_error(self._uncovered, _("no lowering for {nodes}"), todo, code)
            builder.finish(bindings, output)
        self._begins(None)
        module = without_unused(_with(builder.get(), builder.functions))
        _check_provenance(module, nodes)
        calls = [node for node in self._named.values() if node.op.startswith("call")]
        self._notes.unused_rules(self._user_rules.without_node([self._callee(c) for c in calls]))
        notes = self._notes.all(builder.not_legalised, self._choices.without_match(calls))
        library = self._library.functions.by_name
        random = random_in_outputs(self._traced, self._env)
        made, te_calls = builder.constants.made, builder.te_calls_of(bindings)
        return LoweredModel(module, nodes, notes, library, random, made, te_calls=te_calls)

    def _start(self, node: fx.Node) -> None:
        override = self._choices.override_of(node) if node.op.startswith("call") else None
        try:
            self._begins(override)
        except BaseException:
            self._builder.abandon()
            raise
        strategy = self._default if override is None else override.strategy
        self._now = Current(strategy, engine=self._engine)
        self._builder.te = self._now.strategy == "te"

    def _translate(self, node: fx.Node) -> Value:
        """Return the value of `node`, or ``None``, so that all uncovered nodes are found."""
        if any(each in self._failed for each in node.all_input_nodes):
            self._failed.add(node)
            return None
        try:
            value = self._lower(node)
        except Refused as refusal:
            return self._refuse(node, str(refusal))
        except Exception as error:
            return self._refuse(node, reason_of(error))
        self._used[node] = self._now.strategy
        for name in self._traced.mutations.get(node.name, ()):
            self._env[self._named[name]] = value
        return value

    def _lower(self, node: fx.Node) -> Value:
        if node.op == "get_attr":
            self._now.note_rule("python", "get_attr", attribute)
            value = attribute(self._traced.graph_module, str(node.target))
            return self._library.constant(value) if isinstance(value, torch.Tensor) else value
        if CONSTANT in node.meta:
            self._now.note_rule("python", CONSTANT, attribute)
            return self._library.constant(node.meta[CONSTANT])
        args = self._values_of(node.args)
        kwargs = self._values_of(node.kwargs)
        if reads_member(node, args):
            # A member belongs to the node that made the tuple.
            self._now.strategy = self._used.get(node.all_input_nodes[0], self._now.strategy)
            index = node.meta.get("member")  # see `core.tracing.example_run`
            if index is not None:
                self._now.note_rule("built-in", "getitem", RULES[operator.getitem].lower)
                return RULES[operator.getitem].lower(self._builder, args[0], index)
            return self._built_in.by_rule(node, args, kwargs, self._now)
        info = self._traced.values[node.name]
        in_torch = gives_tensors(info)
        if not in_torch and info.text != "none":
            absent = unknown_among(node, args, kwargs, self._dimensions)
            if absent is not None:
                return absent
        if info.text in ("float", "SymFloat") and not kwargs:
            found = float_of_sizes(self._builder, node, args, self._float)
            if found is not None:
                return found
        if not has_tensor((args, kwargs)) and is_python(node):
            self._now.note_rule("python", "compute", compute)
            return compute(node, args, kwargs, self._dimensions)
        own = self._user_rules.find(self._callee(node), self._now.strategy) if in_torch else None
        if own is not None:
            try:
                return self._by_user_rule(own, node, args, kwargs)
            except LowerscopeError as failure:
                self._leave_user_rule(own, node, failure)
        return self._built_in.lower(node, args, kwargs, self._now, in_torch=in_torch)

    def _by_user_rule(
        self, own: UserRule, node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Value:
        """Return the value of a user's rule.

        Raises `LowerscopeError` if it fails; its emitted bindings are still there.
        """

        hindrance = hinders_rules(args, kwargs, self._dimensions, takes_encoded=False)
        if hindrance:
            raise LowerscopeError(hindrance, where=own.where)

        def built_in(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Value:
            # Keep the rule's own bindings if a built-in one fails half-way.
            self._builder.keep()
            return self._built_in.lower(node, args, kwargs, self._now)

        info = self._traced.values[node.name]
        module = self._modules[str(node.target)] if node.op == "call_module" else None
        seen = RuleNode(
            node,
            node.name,
            module,
            args,
            kwargs,
            info.shape,
            info.dtype,
            self._now.strategy,
            built_in,
        )
        value = apply_rule(own, self._builder, seen, info)
        try:
            check_read_members(node, value)
        except Refused as refusal:
            raise LowerscopeError(str(refusal), where=own.where) from None
        self._now.take_user_rule(own)
        return value

    def _leave_user_rule(self, own: UserRule, node: fx.Node, failure: LowerscopeError) -> None:
        """Return to the start of the node, and record why its rule is not used."""
        self._builder.discard_node(kept=True)
        self._start(node)
        self._notes.rule_failed(node, own, failure.problem)
        self._now.without = _(
            "; without {rule}: {reason}", rule=shown(own), reason=failure.problem.what
        )

    def _callee(self, node: fx.Node) -> Any:
        """Return the key for looking up rules."""
        return type(self._modules[str(node.target)]) if node.op == "call_module" else node.target

    def _values_of(self, argument: Any) -> Any:
        """Return `argument` with every node replaced by its value."""
        if isinstance(argument, fx.Node):
            return self._env[argument]
        if isinstance(argument, tuple):
            return tuple(self._values_of(each) for each in argument)
        if isinstance(argument, list):
            return [self._values_of(each) for each in argument]
        if isinstance(argument, dict):
            return {key: self._values_of(each) for key, each in argument.items()}
        if isinstance(argument, slice):
            parts = (argument.start, argument.stop, argument.step)
            return slice(*(self._values_of(each) for each in parts))
        return argument

    def _refuse(self, node: fx.Node, reason: str) -> Value:
        """Record that `node` is not covered."""
        line = self._traced.lines.get(node.name)
        name = "output" if node.op == "output" else qualified_name(node, self._modules)
        self._uncovered.append(Uncovered(name, node.name, line, reason))
        self._failed.add(node)
        return None

    def _emit_output(self, node: fx.Node) -> Value:
        value = self._values_of(node.args[0])
        try:
            value = output_value(self._builder, self._traced.graph_module, value)
        except Refused as refusal:
            return self._refuse(node, str(refusal))
        return self._builder.emit_output(value)

    def _provenance(
        self, node: fx.Node, bindings: list[Any], emitted: tuple[str, ...]
    ) -> NodeLowering:
        return self._now.provenance(
            node,
            bindings,
            emitted,
            self._env.get(node),
            self._traced.mutations.get(node.name, ()),
            is_random=self._now.strategy == "library" and is_random(node, self._modules),
            functions=self._builder.functions,
        )


def _with(module: tvm.IRModule, functions: Mapping[Any, Any]) -> tvm.IRModule:
    if not functions:
        return module
    return tvm.IRModule({**dict(module.functions_items()), **functions}, attrs=module.attrs)


def _check_provenance(module: tvm.IRModule, nodes: Mapping[str, NodeLowering]) -> None:
    blocks = module["main"].body.blocks
    bound = [binding.var.name for block in blocks for binding in block.bindings]
    known = [name for node in nodes.values() for name in node.bindings]
    assert bound == known, "a binding of main has no node, or more than one"
