"""The lowering stage: an FX graph becomes a Relax module, with the provenance of each binding."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
import tvm
from torch import fx
from torch.overrides import resolve_name
from tvm import ir, relax
from tvm.relax import op

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.lowering import rules as _rules
from lowerscope.core.lowering.builder import NodeBuilder, functions_of
from lowerscope.core.lowering.outputs import output_value
from lowerscope.core.lowering.problems import Uncovered, uncovered_error
from lowerscope.core.lowering.relax_values import Value, dtype_of, is_dtype, is_tensor, shape_of
from lowerscope.core.lowering.rule_table import RULES, Refused, Rule, find_rule
from lowerscope.core.lowering.stock import StockConverters
from lowerscope.core.recipe import Strategy
from lowerscope.core.records import Note, SourceLine

assert _rules, "importing the rules enters them in the table"

InputSpec = tuple[str, tuple[int, ...], str]
"""Name, shape and dtype of an input."""


class Info(Protocol):
    """What a node's value is; see `core.tracing.tracing.NodeInfo`."""

    @property
    def shape(self) -> tuple[int | str, ...] | None: ...
    @property
    def dtype(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def items(self) -> Sequence[Info]: ...


class Traced(Protocol):
    """What lowering reads of a traced model; see `core.tracing.tracing.TracedModel`."""

    @property
    def graph_module(self) -> fx.GraphModule: ...
    @property
    def values(self) -> Mapping[str, Info]: ...
    @property
    def lines(self) -> Mapping[str, SourceLine]: ...
    @property
    def mutations(self) -> Mapping[str, tuple[str, ...]]: ...
    @property
    def tracer(self) -> str: ...


@dataclass(frozen=True)
class NodeLowering:
    """The provenance of one FX node.

    Attributes
    ----------
    node
        Name of the FX node.
    strategy
        ``"high-level"`` or ``"te"``; empty for nodes that make no code.
    rule
        The rule and what it emitted: ``linear: topi.nn.dense, topi.add``; empty for nodes that
        make no code.
    bindings
        Names of the variables that it bound in ``main``, in order.
    functions
        Names of the PrimFuncs that these bindings call, as they were translated.
    """

    node: str
    strategy: str
    rule: str
    bindings: tuple[str, ...]
    functions: tuple[str, ...]


@dataclass(frozen=True)
class LoweredModel:
    """A Relax module and where each part of it comes from.

    Attributes
    ----------
    module
        With one Relax function, ``main``, of one dataflow block; parameters are constants.
    nodes
        Provenance by node name, for every node of the graph. Each binding of ``main`` is in
        exactly one of them.
    notes
        What the user should know.
    """

    module: tvm.IRModule
    nodes: Mapping[str, NodeLowering]
    notes: tuple[Note, ...]


def lower(traced: Traced, inputs: Sequence[InputSpec], strategy: Strategy) -> LoweredModel:
    """Lower a traced model.

    Parameters
    ----------
    traced
        The FX graph with what is known of its nodes.
    inputs
        Name, shape and dtype for each placeholder, in order.
    strategy
        ``"high-level"`` for relax operators, ``"te"`` for a ``call_tir`` of a PrimFunc each.

    Raises
    ------
    LowerscopeError
        If an operator of the model is not covered; it lists all of them.
    """
    with warnings.catch_warnings():
        # TVM warns of its own deprecations while it builds.
        warnings.simplefilter("ignore")
        return _Translation(traced, strategy).run(inputs)


class _Translation:
    """One run of the translator: the node map, and what has been bound so far."""

    def __init__(self, traced: Traced, strategy: Strategy) -> None:
        self._traced = traced
        self._strategy = strategy
        self._builder = NodeBuilder(te=strategy == "te")
        self._env: dict[fx.Node, Value] = {}
        self._named = {node.name: node for node in traced.graph_module.graph.nodes}
        self._modules = dict(traced.graph_module.named_modules())
        self._stock = StockConverters(self._builder, self._env, traced.graph_module)
        self._uncovered: list[Uncovered] = []
        # Nodes whose dtype TVM does not have; what fails because of them is no news.
        self._unknown: set[fx.Node] = set()
        self._rule = ""
        self._notes: list[Note] = []

    def run(self, inputs: Sequence[InputSpec]) -> LoweredModel:
        builder = self._builder
        variables = [_input_variable(*spec) for spec in inputs]
        nodes: dict[str, NodeLowering] = {}
        bindings: list[Any] = []
        output: Value = None
        placeholders = iter(variables)
        with builder.function("main", params=variables):
            builder.begin()
            for node in self._traced.graph_module.graph.nodes:
                self._rule = ""
                if node.op == "placeholder":
                    self._env[node] = next(placeholders)
                elif node.op == "output":
                    output = None if self._uncovered else self._emit_output(node)
                else:
                    self._env[node] = self._translate(node)
                bound, emitted = builder.end_node()
                bindings += bound
                nodes[node.name] = self._provenance(node, bound, emitted)
            if self._uncovered:
                builder.abandon()
                raise uncovered_error(self._uncovered, self._traced.tracer)
            builder.finish(bindings, output)
        module = builder.get()
        _check_provenance(module, nodes)
        self._note_what_stayed()
        return LoweredModel(module, nodes, tuple(self._notes))

    def _translate(self, node: fx.Node) -> Value:
        """Return the value of `node`, or a stand-in, so that all that is not covered is found."""
        try:
            value = self._lower(node)
            value = self._as_traced(node, value)
        except Refused as refusal:
            return self._refuse(node, str(refusal))
        except Exception as error:
            # TVM refuses what it cannot infer in many types; the node is named, not a traceback.
            message = str(error).strip().splitlines()
            return self._refuse(node, message[-1] if message else type(error).__name__)
        for name in self._traced.mutations.get(node.name, ()):
            self._env[self._named[name]] = value
        return value

    def _lower(self, node: fx.Node) -> Value:
        if node.op == "get_attr":
            value = _attribute(self._traced.graph_module, str(node.target))
            return self._builder.constant(value) if isinstance(value, torch.Tensor) else value
        args = self._values_of(node.args)
        kwargs = self._values_of(node.kwargs)
        if node.op == "call_module":
            module = self._modules[str(node.target)]
            return self._apply(node, find_rule(type(module)), (module, *args), kwargs)
        if not _has_tensor((args, kwargs)) and _is_python(node):
            return _compute(node, args, kwargs)
        return self._apply(node, find_rule(node.target), args, kwargs)

    def _apply(
        self, node: fx.Node, rule: Rule | None, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Value:
        if rule is not None:
            self._rule = rule.name
            return rule.apply(self._builder, args, kwargs)
        convert = self._stock.find(node)
        if convert is None:
            raise Refused("")
        self._rule = StockConverters.name(node)
        return convert()

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

    def _as_traced(self, node: fx.Node, value: Value) -> Value:
        """Check that `value` has the shape and dtype that torch computed for `node`."""
        info = self._traced.values[node.name]
        if not is_tensor(value) or info.shape is None:
            return value
        if node.name in self._traced.mutations and dtype_of(value) != info.dtype:
            # What is written in place takes the dtype of what it is written into.
            value = self._builder.emit(op.astype(value, info.dtype))
        if shape_of(value) != info.shape or dtype_of(value) != info.dtype:
            made = f"{'×'.join(map(str, shape_of(value)))} {dtype_of(value)}"
            raise Refused(f"it would be {made} where torch has {info.text}")
        return value

    def _refuse(self, node: fx.Node, reason: str) -> Value:
        """Write down that `node` is not covered, and return something to go on with."""
        follows = any(each in self._unknown for each in node.all_input_nodes)
        if not follows or not reason:
            line = self._traced.lines.get(node.name)
            name = _operator_name(node, self._modules)
            self._uncovered.append(Uncovered(name, node.name, line, reason))
        info = self._traced.values[node.name]
        if info.shape is not None and not is_dtype(info.dtype):
            self._unknown.add(node)
        return _stand_in(info)

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
        names = tuple(binding.var.name for binding in bindings)
        if not bindings or node.op == "output":
            return NodeLowering(node.name, "", "", names, functions_of(bindings))
        rule = f"{self._rule}: {', '.join(emitted)}" if emitted else self._rule
        return NodeLowering(node.name, self._strategy, rule, names, functions_of(bindings))

    def _note_what_stayed(self) -> None:
        for name in sorted(self._builder.not_legalised):
            self._notes.append(Note(text=f"{name} has no TensorIR form here and stays an operator"))


def _input_variable(name: str, shape: tuple[int, ...], dtype: str) -> Value:
    if not is_dtype(dtype):
        raise LowerscopeError(
            f"input {name} is {dtype}, which TVM does not have",
            todo="give it another dtype, for example --input NAME=1,784:float32",
        )
    return relax.Var(name, relax.TensorType(shape, dtype))


def _attribute(root: Any, path: str) -> Any:
    for name in path.split("."):
        root = getattr(root, name)
    return root


def _has_tensor(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(_has_tensor(each) for each in value)
    if isinstance(value, dict):
        return any(_has_tensor(each) for each in value.values())
    return isinstance(value, ir.Expr)


def _is_python(node: fx.Node) -> bool:
    """Return whether `node` calls Python's own functions, or a method of a Python value."""
    if node.op == "call_method":
        return True
    module = getattr(node.target, "__module__", "") or ""
    return module in ("_operator", "operator", "math", "builtins")


def _compute(node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the value of a call between Python values, such as the extents of a shape."""
    if node.op == "call_method":
        return getattr(args[0], str(node.target))(*args[1:], **kwargs)
    assert callable(node.target)
    if node.target is operator.getitem:
        return RULES[operator.getitem].lower(None, *args)
    return node.target(*args, **kwargs)


def _operator_name(node: fx.Node, modules: Mapping[str, torch.nn.Module]) -> str:
    if node.op == "call_module":
        kind = type(modules[str(node.target)])
        return f"{kind.__module__.split('.')[0]}.nn.{kind.__qualname__}"
    if node.op == "call_method":
        return f"Tensor.{node.target}"
    if isinstance(node.target, torch._ops.OpOverload):
        return str(node.target)
    name = resolve_name(node.target)
    return str(name or getattr(node.target, "__qualname__", node.target))


def _stand_in(info: Info) -> Value:
    """Return a variable of the type that a node should have, to go on after an error."""
    if info.shape is not None:
        dtype = info.dtype if is_dtype(info.dtype) else "float32"
        return relax.Var("missing", relax.TensorType(info.shape, dtype))
    return tuple(_stand_in(item) for item in info.items) if info.items else None


def _check_provenance(module: tvm.IRModule, nodes: Mapping[str, NodeLowering]) -> None:
    blocks = module["main"].body.blocks
    bound = [binding.var.name for block in blocks for binding in block.bindings]
    known = [name for node in nodes.values() for name in node.bindings]
    assert bound == known, "a binding of main has no node, or more than one"
