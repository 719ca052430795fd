"""Lowering by parts of nodes that no rule covers as a whole."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import fx, nn
from torch._ops import OpOverload

from lowerscope.core.errors import last_line
from lowerscope.core.lowering.builder import NodeBuilder, functions_of
from lowerscope.core.lowering.decomposing import decompose
from lowerscope.core.lowering.library import content_of
from lowerscope.core.lowering.library_nodes import BoundCall, LibraryNodes, hinders_rules
from lowerscope.core.lowering.lowered import PartLowering, UsedRule
from lowerscope.core.lowering.relax_values import (
    Value,
    dtype_of,
    shape_of,
    torch_dtype,
)
from lowerscope.core.lowering.rule_table import RULES, Refused, Rule, find_rule
from lowerscope.core.lowering.traced_values import as_traced

_KEPT: WeakKeyDictionary[nn.Module, dict[Any, fx.GraphModule | str]] = WeakKeyDictionary()
"""Cache by traced graph of the decompositions of its calls, or the reasons why they fail."""


NUMBERS_ONLY = "no rule covers it as a whole, and it is broken up only where shapes are numbers"
"""Reason why a node with named dimensions is not lowered in parts."""


class Parts:
    """Lowering of one graph's nodes in parts.

    Parameters
    ----------
    root
        The graph's module.
    """

    def __init__(self, builder: NodeBuilder, library: LibraryNodes, root: fx.GraphModule) -> None:
        self._builder = builder
        self._library = library
        self._graphs = _KEPT.setdefault(root, {})

    def lower(
        self,
        node: fx.Node,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        checked: Callable[[Value], Value],
    ) -> tuple[Value, tuple[PartLowering, ...]]:
        """Lower one node of the graph; the builder has its bindings as those of the node.

        Parameters
        ----------
        args, kwargs
            The node's arguments, with values in place of nodes.
        checked
            Returns the value in the form of the node, or rejects it.

        Returns
        -------
        value
            A tensor, or a nest of tuples of tensors and ``None``.
        parts
            The lowered parts, in order.

        Raises
        ------
        Refused
            If it cannot be decomposed into operators that are covered by rules.
        """
        builder = self._builder
        stayed = set(builder.not_legalised)
        builder.discard_node()
        kept, _ = builder.end_node()
        try:
            bound = self._library.bind(node, args, kwargs)
            graph_module = self._graph_of(bound)
            value, parts, bindings = self._lower_all(node, graph_module, bound)
            value = checked(value)
            builder.restore([*kept, *bindings])
            return value, parts
        except Exception as error:  # TVM raises many types for failed inference
            builder.discard_node()
            builder.restore(kept)
            builder.not_legalised = stayed
            if isinstance(error, Refused):
                raise
            raise Refused(last_line(error)) from error

    def _graph_of(self, bound: BoundCall) -> fx.GraphModule:
        """Return the decomposition of a call, cached for equal calls."""
        shapes = [shape_of(tensor) for tensor in bound.tensors]
        if bound.sizes or not all(isinstance(extent, int) for each in shapes for extent in each):
            raise Refused(NUMBERS_ONLY)
        types = [(shape_of(each), torch_dtype(dtype_of(each))) for each in bound.tensors]
        key = (bound.key, content_of(bound.args), content_of(bound.kwargs), tuple(types))
        if key not in self._graphs:
            try:
                self._graphs[key] = decompose(
                    bound.make(), bound.args, bound.kwargs, types, _is_covered
                )
            except Refused as refusal:
                self._graphs[key] = str(refusal)
        graph_module = self._graphs[key]
        if isinstance(graph_module, str):
            raise Refused(graph_module)
        return graph_module

    def _lower_all(
        self, node: fx.Node, graph_module: fx.GraphModule, call: BoundCall
    ) -> tuple[Value, tuple[PartLowering, ...], list[Any]]:
        env: dict[fx.Node, Value] = {}
        parts: list[PartLowering] = []
        bindings: list[Any] = []
        names: dict[fx.Node, str] = {}
        inputs = zip(_names_of(node, call), call.tensors, strict=True)
        for part in graph_module.graph.nodes:
            if part.op == "placeholder":
                names[part], env[part] = next(inputs)
            elif part.op == "get_attr":
                env[part] = self._library.constant(getattr(graph_module, str(part.target)))
            elif part.op == "output":
                return _values_of(part.args[0], env), tuple(parts), bindings
            else:
                env[part], rule = self._lower_part(part, env)
                bound, emitted = self._builder.end_node()
                bindings.extend(bound)
                if part.target is not operator.getitem or bound:
                    parts.append(_record(part, rule, emitted, bound, names))
        raise AssertionError("a graph without an output")

    def _lower_part(self, part: fx.Node, env: Mapping[fx.Node, Value]) -> tuple[Value, UsedRule]:
        args, kwargs = _values_of(part.args, env), _values_of(part.kwargs, env)
        if part.target is operator.getitem:
            member = RULES[operator.getitem]
            return member.lower(self._builder, *args), _used(member)
        hindrance = hinders_rules(args, kwargs, self._builder.dimensions)
        rule = find_rule(part.target)
        if hindrance or rule is None:
            raise Refused(hindrance or f"no relax operator for {part.target}")
        value = rule.apply(self._builder, args, kwargs)
        expected = part.meta["val"]
        if isinstance(expected, torch.Tensor):
            shape, dtype = tuple(expected.shape), _name(expected.dtype)
            value = as_traced(
                self._builder, value, shape, dtype, written=part.meta.get("written", False)
            )
        return value, _used(rule)


def _used(rule: Rule) -> UsedRule:
    return UsedRule("built-in", rule.name, rule.lower)


def _is_covered(target: OpOverload) -> bool:
    return find_rule(target) is not None


def _record(
    part: fx.Node,
    rule: UsedRule,
    emitted: tuple[str, ...],
    bindings: list[Any],
    names: Mapping[fx.Node, str],
) -> PartLowering:
    value = part.meta["val"]
    tensor = value if isinstance(value, torch.Tensor) else None
    return PartLowering(
        name=part.name,
        target="getitem" if part.target is operator.getitem else str(part.target),
        args=_arguments(part, names),
        shape=None if tensor is None else tuple(tensor.shape),
        dtype="" if tensor is None else _name(tensor.dtype),
        rule=f"{rule.name}: {', '.join(emitted)}" if emitted else rule.name,
        bindings=tuple(binding.var.name for binding in bindings),
        functions=functions_of(bindings),
        used=rule,
    )


def _names_of(node: fx.Node, call: BoundCall) -> list[str]:
    """Return the names of a call's tensors: parameters of its module, and nodes."""
    names = list(call.args[0]) if node.op == "call_module" else []
    fx.node.map_arg((node.args, node.kwargs), lambda each: names.append(each.name))
    if len(names) == len(call.tensors):
        return names
    # A tuple argument stands for several tensors.
    return [getattr(tensor, "name", "constant") for tensor in call.tensors]


def _arguments(part: fx.Node, names: Mapping[fx.Node, str]) -> str:
    """Return the text of a part's arguments, without those that have no effect."""
    named = [
        f"{key}={_text(value, names)}"
        for key, value in part.kwargs.items()
        if value is not None and key not in ("device", "pin_memory", "layout")
    ]
    return ", ".join([*(_text(each, names) for each in part.args), *named])


def _text(argument: Any, names: Mapping[fx.Node, str]) -> str:
    if isinstance(argument, fx.Node):
        return names.get(argument, argument.name)
    if isinstance(argument, (tuple, list)):
        return f"[{', '.join(_text(each, names) for each in argument)}]"
    return str(argument).removeprefix("torch.")


def _values_of(argument: Any, env: Mapping[fx.Node, Value]) -> Any:
    if isinstance(argument, fx.Node):
        return env[argument]
    if isinstance(argument, (tuple, list)):
        return type(argument)(_values_of(each, env) for each in argument)
    if isinstance(argument, dict):
        return {key: _values_of(each, env) for key, each in argument.items()}
    return argument


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
