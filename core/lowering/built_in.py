"""Lowering of a node without a user's rule: by a built-in rule, in parts, or in torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import fx

from lowerscope.core.lowering.builder import NodeBuilder
from lowerscope.core.lowering.current import Current
from lowerscope.core.lowering.dimensions import Dimensions
from lowerscope.core.lowering.library_nodes import LibraryNodes, hinders_rules
from lowerscope.core.lowering.lowered import Traced
from lowerscope.core.lowering.node_values import check_read_members
from lowerscope.core.lowering.notes import Notes
from lowerscope.core.lowering.operator_names import operator_name
from lowerscope.core.lowering.parts import NUMBERS_ONLY, Parts
from lowerscope.core.lowering.problems import ONLY_TENSORS, reason_of
from lowerscope.core.lowering.randomness import is_random
from lowerscope.core.lowering.relax_values import Value
from lowerscope.core.lowering.rule_table import Refused, Rule, find_rule
from lowerscope.core.lowering.stock import StockConverters
from lowerscope.core.lowering.traced_values import as_traced, check_members


class BuiltIn:
    """Lowering of the nodes of a graph, one by one.

    Parameters
    ----------
    env
        The values of the nodes so far; the translator adds to it.
    """

    def __init__(
        self,
        traced: Traced,
        modules: Mapping[str, torch.nn.Module],
        builder: NodeBuilder,
        dimensions: Dimensions,
        library: LibraryNodes,
        env: dict[fx.Node, Value],
        notes: Notes,
    ) -> None:
        self._traced = traced
        self._modules = modules
        self._builder = builder
        self._dimensions = dimensions
        self._library = library
        self._notes = notes
        self._stock = StockConverters(builder, env, traced.graph_module)
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

        Parameters
        ----------
        args, kwargs
            Its arguments, with the values of the nodes among them.
        now
            Context of the node; updated with the strategy and the rules.
        in_torch
            Whether it can run in torch.

        Raises
        ------
        Refused
            If it cannot be lowered.
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
                cause = reason_of(error)
        if not in_torch:
            made = self._traced.values[node.name].text
            makes = f"it makes a {made} {ONLY_TENSORS}"
            raise Refused(cause or makes)
        random = is_random(node, self._modules)
        if not random and not hinders_rules(args, kwargs, self._dimensions):
            try:
                return self._by_parts(node, args, kwargs, now)
            except Refused as refusal:
                # No rule covers it as a whole either, which is the reason shown.
                if str(refusal) == NUMBERS_ONLY:
                    cause = cause or NUMBERS_ONLY
        self._builder.discard_node()
        now.used = []
        name = operator_name(node, self._modules)
        if random:
            now.cause = f"{name} is random"
        else:
            now.cause = f"{name}: {cause}" if cause else f"no relax operator for {name}"
        return self._by_library(node, args, kwargs, now)

    def by_rule(
        self, node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any], now: Current
    ) -> Value:
        """Return the value of a node by a rule, or by TVM's own converter.

        Raises
        ------
        Refused
            If there is none, or it does not fit.
        """
        if node.op == "call_module":
            module = self._modules[str(node.target)]
            value = self._apply(node, find_rule(type(module)), (module, *args), kwargs, now)
        else:
            value = self._apply(node, find_rule(node.target), args, kwargs, now)
        check_read_members(node, value)
        return self._as_traced(node, value)

    def _by_parts(
        self, node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any], now: Current
    ) -> Value:
        def checked(value: Value) -> Value:
            return self._as_traced(node, value)

        value, now.parts = self._in_parts.lower(node, args, kwargs, checked)
        now.used = []
        now.rule = f"{operator_name(node, self._modules)} in parts"
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
        mutates = node.name in self._traced.mutations
        info = self._traced.values[node.name]
        value, function = self._library.lower(node, info, args, kwargs, mutates=mutates)
        name = operator_name(node, self._modules)
        random = is_random(node, self._modules)
        if now.cause or random:
            cause = now.cause or f"{name} is random"
            self._notes.runs_in_torch(node, cause, random=random)
        now.strategy = "library"
        now.rule = f"{name}: {function}"
        now.note_rule("library", function, self._library.functions.by_name[function])
        return value

    def _apply(
        self,
        node: fx.Node,
        rule: Rule | None,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        now: Current,
    ) -> Value:
        if rule is not None:
            now.rule = rule.name
            now.note_rule("built-in", rule.name, rule.lower)
            return rule.apply(self._builder, args, kwargs)
        convert = self._stock.find(node)
        if convert is None:
            raise Refused("")
        now.rule = StockConverters.name(node)
        now.note_rule("tvm", now.rule, convert.args[0])
        return convert()
