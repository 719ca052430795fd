"""The fx tracer: ``torch.fx.symbolic_trace`` that knows the user's source lines."""

from __future__ import annotations

import inspect
import operator
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.records import SourceLine
from lowerscope.core.tracing.failures import cannot_trace
from lowerscope.core.tracing.running_once import run_eagerly
from lowerscope.core.tracing.source_lines import line_of_code, line_of_frame


def trace_symbolically(
    model: torch.nn.Module, inputs: tuple[torch.Tensor, ...]
) -> tuple[fx.GraphModule, dict[str, SourceLine]]:
    """Trace `model` with one placeholder for each of `inputs`.

    Parameters of ``forward`` beyond the inputs keep their defaults, so that
    ``if mask is None`` is decided as it is when the model runs.

    Returns
    -------
    graph_module
        The graph over the model's own parameters.
    lines
        The user's line of each node that has one, by node name.

    Raises
    ------
    LowerscopeError
        If the number of inputs is wrong, the model fails on them, or it cannot be traced.
    """
    check_count(model, len(inputs))
    tracer = _Tracer(len(inputs))
    try:
        graph = tracer.trace(model)
    except Exception as error:
        run_eagerly(model, inputs)
        raise cannot_trace(error) from error
    graph_module = fx.GraphModule(tracer.root, graph, type(model).__name__)
    return graph_module, {node.name: line for node, line in tracer.lines.items()}


def check_count(model: torch.nn.Module, count: int) -> None:
    """Check that ``forward`` can be called with `count` inputs.

    Raises
    ------
    LowerscopeError
        If it cannot, with the names of its parameters.
    """
    signature = inspect.signature(model.forward)
    try:
        signature.bind(*range(count))
    except TypeError as error:
        names = ", ".join(signature.parameters)
        code = getattr(inspect.unwrap(type(model).forward), "__code__", None)
        line = line_of_code(code) if code else None
        raise LowerscopeError(
            f"{type(model).__name__} takes ({names}) and was given {count} "
            f"input{'' if count == 1 else 's'}",
            where=f"{line.file}:{line.line}" if line else "",
            todo="give one input for each, for example --input x=1,784:float32",
        ) from error


def module_paths(graph_module: fx.GraphModule) -> dict[str, str]:
    """Return the dotted path of the module that each node comes from, by node name."""
    paths: dict[str, str] = {}
    for node in graph_module.graph.nodes:
        if node.op == "call_module":
            paths[node.name] = str(node.target)
            continue
        stack = node.meta.get("nn_module_stack")
        paths[node.name] = next(reversed(stack.values()))[0] if stack else ""
    return paths


class _Tracer(fx.Tracer):
    """Remembers for each node the innermost line of the user's when it was made.

    torch's own ``record_stack_traces`` writes the whole stack as text for every node, torch's
    frames included, and takes longer than the tracing itself.
    """

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.lines: dict[fx.Node, SourceLine] = {}
        self._inputs = inputs

    def proxy(self, node: fx.Node) -> fx.Proxy:
        return _Proxy(node, self)

    def create_node(self, *args: Any, **kwargs: Any) -> fx.Node:
        node = super().create_node(*args, **kwargs)
        line = line_of_frame(sys._getframe(1), trace_symbolically.__code__)
        if line is None and node.target is getattr:
            # x.shape makes its node when it is first used, wherever that is.
            line = self.lines.get(node.all_input_nodes[0])
        if line is not None:
            self.lines[node] = line
        return node

    def create_args_for_root(
        self, root_fn: Callable[..., Any], is_module: bool, concrete_args: Any = None
    ) -> tuple[Callable[..., Any], list[Any]]:
        function = inspect.unwrap(root_fn)
        line = line_of_code(function.__code__)
        arguments: list[Any] = [self.root]
        names = _placeholder_names(function, self._inputs)
        for name in names:
            proxy = self.create_proxy("placeholder", name, (), {})
            if line is not None:
                self.lines[proxy.node] = line
            arguments.append(proxy)
        return root_fn, arguments


class _Proxy(fx.Proxy):
    """A proxy whose ``+=`` is an in-place node.

    Without these methods Python falls back to ``+``, and the graph computes something else than
    the model wherever the changed tensor has a second name.
    """

    def __iadd__(self, other: Any) -> fx.Proxy:
        return self._in_place(operator.iadd, other)

    def __isub__(self, other: Any) -> fx.Proxy:
        return self._in_place(operator.isub, other)

    def __imul__(self, other: Any) -> fx.Proxy:
        return self._in_place(operator.imul, other)

    def __itruediv__(self, other: Any) -> fx.Proxy:
        return self._in_place(operator.itruediv, other)

    def __ifloordiv__(self, other: Any) -> fx.Proxy:
        return self._in_place(operator.ifloordiv, other)

    def __imod__(self, other: Any) -> fx.Proxy:
        return self._in_place(operator.imod, other)

    def __ipow__(self, other: Any) -> fx.Proxy:
        return self._in_place(operator.ipow, other)

    def __iand__(self, other: Any) -> fx.Proxy:
        return self._in_place(operator.iand, other)

    def __ior__(self, other: Any) -> fx.Proxy:
        return self._in_place(operator.ior, other)

    def __ixor__(self, other: Any) -> fx.Proxy:
        return self._in_place(operator.ixor, other)

    def _in_place(self, target: Callable[..., Any], other: Any) -> fx.Proxy:
        return self.tracer.create_proxy("call_function", target, (self, other), {})


def _placeholder_names(function: Callable[..., Any], count: int) -> list[str]:
    """Name `count` positional arguments as `function` does; ``*rest`` gives ``rest_0``, …"""
    names: list[str] = []
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}_{index}" for index in range(count - len(names))]
        elif parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            names.append(parameter.name)
    return names[:count]
