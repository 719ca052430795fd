"""The FX graph as a picture: one box per node, weights inside the boxes that use them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from lowerscope.core.model.formatting import shape_text
from lowerscope.core.model.graph import GraphRecord
from lowerscope.core.model.text_metrics import TextMetrics
from lowerscope.core.records.snapshot import FxNode
from lowerscope.core.rendering.graphs.box_texts import BoxText, Flow
from lowerscope.core.rendering.graphs.boxes import graph_record
from lowerscope.core.rendering.graphs.fx_labels import (
    Label,
    NodeValue,
    Values,
    label_of,
    operator_name,
)
from lowerscope.core.rendering.graphs.hierarchy import FITTING, Modules, Opening
from lowerscope.core.rendering.shapes import short_dtypes, tensor_label

if TYPE_CHECKING:
    from torch.fx import GraphModule, Node

_PLAIN = frozenset({"int", "float", "bool", "str", "dtype", "device", "none", "Size"})
_SHAPE_QUERIES = frozenset(
    {"size", "shape", "dim", "ndim", "numel", "nelement", "len", "dtype", "device"}
    | {"sym_size", "sym_numel", "sym_stride"}
)
_SHORT = {"weight": "w", "bias": "b", "running_mean": "mean", "running_var": "var"}


def fx_graph(
    graph_module: GraphModule,
    nodes: Sequence[FxNode],
    values: Values,
    metrics: TextMetrics,
    check: Callable[[], None],
    kinds: Mapping[str, str] = MappingProxyType({}),
    opening: Opening = FITTING,
) -> GraphRecord:
    """Lay out the graph of `graph_module`; the id of a box is that of its node.

    Weights and scalars have no box: a ``get_attr`` node, and a node that queries the shape of a
    value or computes with it, is named in the subtitles of the nodes that use it, and is a member
    of their boxes. Results always have a box. Nodes that depend on constants alone are of the kind
    ``constant``.

    Parameters
    ----------
    graph_module
        The graph, with the modules that its nodes call.
    nodes
        Its nodes, as `fx_nodes` made them.
    values
        The value of each node, by node name.
    metrics
        Widths of text in the fonts of the graph.
    check
        Called often; may raise to cancel.
    kinds
        The class of each of the model's modules, by dotted path.
    opening
        Which modules are expanded.
    """
    records = {record.name: record for record in nodes}
    folded = _folded(graph_module, values)
    constant: set[Node] = set()
    boxes: list[BoxText] = []
    flows: list[Flow] = []
    paths: list[str] = []
    for node in graph_module.graph.nodes:
        inputs = node.all_input_nodes
        if node.op == "get_attr" or (inputs and all(each in constant for each in inputs)):
            constant.add(node)
        if node in folded:
            continue
        record = records[node.name]
        # The call of a module is that module; a group is its caller.
        inside = node.op == "call_module"
        called = node.op.startswith("call_")
        paths.append(record.module.rpartition(".")[0] if inside else record.module)
        boxes.append(
            BoxText(
                id=record.id,
                title=record.title,
                subtitle=_subtitle(node, record, graph_module, values, folded),
                kind=_kind(node, node in constant),
                strategy=record.strategy,
                members=tuple(records[each.name].id for each in _inside(node, folded)),
                operator=record.label.partition(" · ")[0] if called else "",
                shape=record.shape,
                dtype=record.dtype,
            )
        )
        flows.extend(
            Flow(records[each.name].id, record.id, _flow_label(each, values))
            for each in inputs
            if each not in folded
        )
    modules = Modules(paths, kinds, opening)
    return graph_record(boxes, flows, metrics, check, modules=modules)


def _folded(graph_module: GraphModule, values: Values) -> set[Node]:
    """Return the nodes that have no box of their own."""
    folded: set[Node] = set()
    for node in graph_module.graph.nodes:
        if not node.users or any(user.op == "output" for user in node.users):
            continue
        if node.op == "get_attr" or (
            node.op in ("call_function", "call_method")
            and _is_plain(values.get(node.name))
            and (_asks_for_shape(node) or all(each in folded for each in node.all_input_nodes))
        ):
            folded.add(node)
    return folded


def _is_plain(value: NodeValue | None) -> bool:
    """Return whether a value is a number, a shape or the like, or a tuple of such."""
    if value is None or value.shape is not None:
        return False
    parts = value.text.strip("()").split(", ")
    return all(part in _PLAIN or part.startswith("shape ") for part in parts)


def _asks_for_shape(node: Node) -> bool:
    if node.target is getattr:
        return node.args[1] in _SHAPE_QUERIES
    return operator_name(node.target) in _SHAPE_QUERIES


def _inside(node: Node, folded: set[Node]) -> list[Node]:
    """Return the folded nodes that lead to `node`, in order of discovery."""
    found: dict[Node, None] = {}
    waiting = [node]
    while waiting:
        for each in waiting.pop().all_input_nodes:
            if each in folded and each not in found:
                found[each] = None
                waiting.append(each)
    return list(found)


def _kind(node: Node, constant: bool) -> str:
    if node.op == "output":
        return "output"
    if node.op == "placeholder":
        return "input"
    return "constant" if constant else "call"


def _subtitle(
    node: Node, record: FxNode, graph_module: GraphModule, values: Values, folded: set[Node]
) -> str:
    if node.op == "output":
        return short_dtypes(record.type)
    label = label_of(node, graph_module, values)
    scalars = [
        each.name for each in node.all_input_nodes if each in folded and each.op != "get_attr"
    ]
    return " · ".join(
        part
        for part in (_described(node, label, graph_module, values, folded), ", ".join(scalars))
        if part
    )


def _described(
    node: Node, label: Label, graph_module: GraphModule, values: Values, folded: set[Node]
) -> str:
    """Return the label of a node, with its weights."""
    if node.op == "call_module":
        module = graph_module.get_submodule(str(node.target))
        shapes = [
            (name, tuple(parameter.shape))
            for name, parameter in module.named_parameters(recurse=False)
        ]
        return _with_weights(label, shapes) if label.sizes else str(label)
    shapes = [
        (str(each.target).rpartition(".")[2], _shape(each, values))
        for each in node.all_input_nodes
        if each in folded and each.op == "get_attr"
    ]
    return _with_weights(label, shapes) if label.sizes or not label.options else str(label)


def _with_weights(label: Label, shapes: Sequence[tuple[str, Iterable[object]]]) -> str:
    """Return ``Linear · w 128×784, b 128``: the weights in the place of their sizes."""
    if not shapes:
        return str(label)
    groups: list[tuple[list[str], str]] = []
    for name, shape in shapes:
        written = shape_text(shape)
        if groups and groups[-1][1] == written:
            groups[-1][0].append(_SHORT.get(name, name))
        else:
            groups.append(([_SHORT.get(name, name)], written))
    weights = ", ".join(f"{', '.join(names)} {written}" for names, written in groups)
    return str(Label(label.name, weights, label.options))


def _shape(node: Node, values: Values) -> tuple[Any, ...]:
    value = values.get(node.name)
    return value.shape if value is not None and value.shape is not None else ()


def _flow_label(node: Node, values: Values) -> str:
    """Return the shape of a node's value, and its dtype where it was not among its inputs'."""
    value = values.get(node.name)
    if value is None:
        return ""
    before = {
        values[each.name].dtype
        for each in node.all_input_nodes
        if each.op != "get_attr" and each.name in values
    }
    return tensor_label(value.shape, "" if value.dtype in before else value.dtype)
