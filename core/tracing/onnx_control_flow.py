"""ONNX's operators with graphs: branches, loops and scans as the nodes that they come to."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx, nn

from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.sources.onnx_models import (
    CONSTANT,
    PATH,
    OnnxModel,
    OnnxNode,
    bodies_of,
    node_of,
)
from lowerscope.core.tracing.exporting import MOST_OF_LOOP, copied
from lowerscope.core.tracing.extents import at_other_sizes
from lowerscope.core.tracing.onnx_graphs import (
    Values,
    depends_on_data,
    mark_constants,
    module_of,
    run_nodes,
)
from lowerscope.core.tracing.trace_errors import NamedInputs

_MOST_NODES = 5 * MOST_OF_LOOP
"""Most nodes of a graph that grows by its loops."""


def without_control_flow(
    model: OnnxModel, inputs: Sequence[torch.Tensor], named: NamedInputs | None
) -> fx.GraphModule:
    """Return the graph of a model, in which nodes with graphs are what these compute.

    Of a branch on data both sides are computed, and the results are selected by the condition, if
    they have the same shapes; a loop becomes its steps, if their number is known. Other such nodes
    stay.
    """
    graph_module = fx.GraphModule(model, copy.deepcopy(model.graph))
    for node in graph_module.graph.nodes:
        node.meta = {PATH: node.meta[PATH]} if PATH in node.meta else {}
    while any(_has_graphs(graph_module, node) for node in graph_module.graph.nodes):
        work = fx.GraphModule(graph_module, copy.deepcopy(graph_module.graph))
        try:
            at_sizes = [run_nodes(work, inputs)]
            if named is not None:
                at_sizes += [
                    run_nodes(work, each) for _sizes, each in at_other_sizes(named, inputs)
                ]
        except LowerscopeError:  # which is raised again where the shapes are found
            break
        mark_constants(work, at_sizes)
        flow = _ControlFlow(work, at_sizes)
        found = [flow.expand(node) for node in at_sizes[0]]
        if not any(found):
            break
        work.graph.eliminate_dead_code()
        work.recompile()
        graph_module = work
    return graph_module


def _has_graphs(graph_module: fx.GraphModule, node: fx.Node) -> bool:
    module = module_of(graph_module, node)
    return module is not None and module.kind in _KINDS and not module.domain


class _ControlFlow:
    """Expansion of the nodes with graphs of one graph, whose values at some sizes are known."""

    def __init__(self, graph_module: fx.GraphModule, at_sizes: Sequence[Values]) -> None:
        self.graph_module = graph_module
        self.graph = graph_module.graph
        self.at_sizes = at_sizes
        self._of_data: dict[fx.Node, bool] = {}

    def expand(self, node: fx.Node) -> bool:
        """Replace a node by what its graphs compute; return ``False`` if it stays."""
        module = module_of(self.graph_module, node)
        if module is None or not _has_graphs(self.graph_module, node):
            return False
        if any(each not in self.at_sizes[0] for each in node.all_input_nodes):
            return False  # until the values are known of what another one came to
        try:
            bodies = bodies_of(module)
        except LowerscopeError:
            return False
        name = str(node.target).replace(".", "_")
        while hasattr(self.graph_module, name):
            name = f"{name}_"
        self.graph_module.add_module(name, nn.Module())
        for attribute, body in bodies.items():
            self.graph_module.get_submodule(name).add_module(attribute, body)
        with self.graph.inserting_before(node):
            results = _KINDS[module.kind](self, _Call(node, module, name, bodies))
        if results is None:
            return False
        if len(module.outputs) == 1:
            node.replace_all_uses_with(results[0])
        else:
            for user in list(node.users):
                place: Any = user.args[1]
                user.replace_all_uses_with(results[place])
                self.graph.erase_node(user)
        self.graph.erase_node(node)
        return True

    def constant(self, node: fx.Node | None) -> torch.Tensor | None:
        """Return the value of a node that is the same for all inputs; ``None`` if there is none."""
        if node is None:
            return None
        found = self.at_sizes[0].get(node) if node.op == "get_attr" else node.meta.get(CONSTANT)
        return found if isinstance(found, torch.Tensor) else None

    def has_shape_of_data(self, node: fx.Node) -> bool:
        """Return whether the shape of a node's value may depend on data."""
        if node not in self._of_data:
            module = module_of(self.graph_module, node)
            self._of_data[node] = (module is not None and depends_on_data(module, node)) or any(
                map(self.has_shape_of_data, node.all_input_nodes)
            )
        return self._of_data[node]


@dataclass(frozen=True)
class _Call:
    """A node with graphs.

    `name`: the module that holds its graphs.
    """

    node: fx.Node
    module: OnnxNode
    name: str
    bodies: dict[str, fx.GraphModule]

    @property
    def given(self) -> list[Any]:
        """The inputs of the operator, without what its graphs capture."""
        return list(self.node.args[: len(self.module.proto.input)])

    @property
    def captured(self) -> list[Any]:
        return list(self.node.args[len(self.module.proto.input) :])

    def attribute(self, name: str, default: Any) -> Any:
        from onnx.helper import get_attribute_value

        found = (each for each in self.module.proto.attribute if each.name == name)
        return next((get_attribute_value(each) for each in found), default)

    def body(
        self, flow: _ControlFlow, attribute: str, operands: Sequence[fx.Node]
    ) -> list[fx.Node]:
        """Add the nodes of a graph; return those of its results."""
        name = f"{self.name}.{attribute}"
        before = self.node.prev
        results = copied(flow.graph, self.bodies[attribute], name, [*operands, *self.captured])
        made = self.node.prev
        while made is not before:
            paths = (self.node.meta.get(PATH), made.meta.get(PATH))
            made.meta[PATH] = ".".join(filter(None, paths))
            made = made.prev
        return results

    def call(self, flow: _ControlFlow, kind: str, *operands: fx.Node, **attributes: Any) -> fx.Node:
        """Add a node of another operator."""
        names = [f"x{index}" for index in range(len(operands))]
        module = node_of(kind, dict(self.module.imports), names, **attributes)
        holder = flow.graph_module.get_submodule(self.name)
        name = f"{kind.lower()}_{len(holder._modules)}"
        holder.add_module(name, module)
        made = flow.graph.call_module(f"{self.name}.{name}", operands)
        made.meta[PATH] = self.node.meta.get(PATH, "")
        return made

    def number(self, flow: _ControlFlow, value: Any, dtype: torch.dtype) -> fx.Node:
        """Add a constant."""
        holder = flow.graph_module.get_submodule(self.name)
        name = f"number_{len(holder._buffers)}"
        holder.register_buffer(name, torch.tensor(value, dtype=dtype))
        return flow.graph.get_attr(f"{self.name}.{name}")

    def stacked(self, flow: _ControlFlow, rows: Sequence[fx.Node], axis: int) -> fx.Node:
        """Add what puts the results of the steps of a loop together."""
        if self.module.version < 13:
            apart = [self.call(flow, "Unsqueeze", each, axes=[axis]) for each in rows]
        else:
            axes = self.number(flow, [axis], torch.int64)
            apart = [self.call(flow, "Unsqueeze", each, axes) for each in rows]
        return self.call(flow, "Concat", *apart, axis=axis)


def _branch(flow: _ControlFlow, call: _Call) -> list[fx.Node] | None:
    condition = call.given[0]
    chosen = flow.constant(condition)
    names = ("then_branch", "else_branch")
    if chosen is not None:
        return call.body(flow, names[0] if chosen.all() else names[1], [])
    if call.module.version < 9 or not all(map(_is_pure, call.bodies.values())):
        return None
    for values in flow.at_sizes:
        operands = [values[each] for each in call.captured]
        try:
            sides = [_results(call.bodies[each], operands) for each in names]
        except LowerscopeError:  # the other side may not take these values
            return None
        if not all(map(_alike, *sides)):
            return None
    results = [call.body(flow, each, []) for each in names]
    return [call.call(flow, "Where", condition, *pair) for pair in zip(*results, strict=True)]


def _results(body: fx.GraphModule, operands: Sequence[Any]) -> tuple[Any, ...]:
    values = run_nodes(body, operands)
    output = next(node for node in body.graph.nodes if node.op == "output")
    return tuple(values[each] for each in output.args[0])


def _alike(first: Any, second: Any) -> bool:
    return (
        isinstance(first, torch.Tensor)
        and isinstance(second, torch.Tensor)
        and first.shape == second.shape
        and first.dtype == second.dtype
    )


_MAY_FAIL = frozenset(
    {
        *("Gather", "GatherElements", "GatherND", "Scatter", "ScatterElements", "ScatterND"),
        *("Div", "Mod", "Inverse", "Det"),
    }
)
"""Operators that fail for some values of an input after the first."""


def _is_pure(body: fx.GraphModule) -> bool:
    """Return whether a branch can be computed although the other one is chosen."""
    for node in body.graph.nodes:
        module = module_of(body, node)
        if module is None:
            continue
        of_data = depends_on_data(module, node) and module.kind not in _KINDS
        places = [each for each in node.args[1:2] if isinstance(each, fx.Node)]
        fails = module.kind in _MAY_FAIL and any(each.op != "get_attr" for each in places)
        inner = bodies_of(module).values() if module.kind in _KINDS else ()
        if module.is_random or of_data or fails or not all(map(_is_pure, inner)):
            return False
    return True


def _loop(flow: _ControlFlow, call: _Call) -> list[fx.Node] | None:
    trip, condition, *carried = call.given
    body = call.bodies["body"]
    count = flow.constant(trip)
    starts = torch.tensor(True) if condition is None else flow.constant(condition)
    if count is None or starts is None or not starts.all():
        return None
    if not _goes_on(flow, call) or None in carried:
        return None
    if not _is_worth(flow, body, int(count)):
        return None
    known = call.number(flow, True, torch.bool)
    made: list[list[fx.Node]] = []
    for index in range(int(count)):
        step = call.number(flow, index, torch.int64)
        _goes, *results = call.body(flow, "body", [step, known, *carried])
        carried, rows = results[: len(carried)], results[len(carried) :]
        made.append(rows)
    return [*carried, *(call.stacked(flow, rows, 0) for rows in zip(*made, strict=True))]


def _is_worth(flow: _ControlFlow, body: fx.GraphModule, count: int) -> bool:
    """Return whether a loop becomes a reasonable number of nodes."""
    nodes = count * len(body.graph.nodes)
    return 0 < nodes <= MOST_OF_LOOP and nodes + len(flow.graph.nodes) <= _MOST_NODES


def _goes_on(flow: _ControlFlow, call: _Call) -> bool:
    """Return whether the condition of a loop holds after each step."""
    body = call.bodies["body"]
    nodes = body.graph.nodes
    at = next(each for each in nodes if each.op == "output").args[0][0]
    while (module := module_of(body, at)) is not None and module.kind in ("Identity", "Cast"):
        at = at.args[0]
    if at.op == "placeholder":
        index = [each for each in nodes if each.op == "placeholder"].index(at)
        if index == 1:
            return True
        outer = index - len(call.given)
        found = flow.constant(call.captured[outer]) if outer >= 0 else None
    else:
        found = operator.attrgetter(str(at.target))(body) if at.op == "get_attr" else None
    return found is not None and bool(found.all())


def _scan(flow: _ControlFlow, call: _Call) -> list[fx.Node] | None:
    count = call.attribute("num_scan_inputs", 0)
    if call.module.version < 9 or not count or None in call.given:
        return None
    body = call.bodies["body"]
    carried, scanned = call.given[:-count], call.given[-count:]
    axes = call.attribute("scan_input_axes", [0] * count)
    backward = call.attribute("scan_input_directions", [0] * count)
    lengths = {values[scanned[0]].shape[axes[0]] for values in flow.at_sizes}
    if len(lengths) > 1 or any(map(flow.has_shape_of_data, scanned)):
        return None
    length = lengths.pop()
    if not _is_worth(flow, body, length):
        return None
    made: list[list[fx.Node]] = []
    for index in range(length):
        places = [length - 1 - index if each else index for each in backward]
        rows = [
            call.call(flow, "Gather", each, call.number(flow, place, torch.int64), axis=axis)
            for each, place, axis in zip(scanned, places, axes, strict=True)
        ]
        results = call.body(flow, "body", [*carried, *rows])
        carried = results[: len(carried)]
        made.append(results[len(carried) :])
    outputs = len(made[0])
    turned = call.attribute("scan_output_directions", [0] * outputs)
    along = call.attribute("scan_output_axes", [0] * outputs)
    return [
        *carried,
        *(
            call.stacked(flow, rows[:: -1 if backward else 1], axis)
            for rows, backward, axis in zip(zip(*made, strict=True), turned, along, strict=True)
        ),
    ]


_KINDS: Mapping[str, Callable[[_ControlFlow, _Call], list[fx.Node] | None]] = {
    "If": _branch,
    "Loop": _loop,
    "Scan": _scan,
}
