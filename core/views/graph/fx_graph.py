"""The FX graph as a picture: one box per node, weights inside the boxes that use them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from torch.fx import GraphModule, Node

from lowerscope.core.lowering.torch_operators import callee_name
from lowerscope.core.model.formatting import shape_text
from lowerscope.core.model.graph import Box, Edge, GraphRecord, Rows, TextMetrics
from lowerscope.core.model.problems import listed
from lowerscope.core.model.snapshot import FxNode
from lowerscope.core.tracing.example_run import NodeInfo
from lowerscope.core.views.graph.boxes import graph_record
from lowerscope.core.views.graph.hierarchy import (
    FITTING,
    Modules,
    Opening,
    short_dtypes,
    tensor_label,
)

Values = Mapping[str, NodeInfo]


@dataclass(frozen=True, slots=True)
class Label:
    """Short description of a node.

    `name`: ``Conv2d``, ``matmul``.
    `sizes`: the part that its weights show already: ``3 → 64, 7×7``.
    `options`: the rest: ``stride 2``.
    """

    name: str
    sizes: str = ""
    options: str = ""

    def __str__(self) -> str:
        """Return ``Conv2d · 3 → 64, 7×7, stride 2``."""
        details = ", ".join(part for part in (self.sizes, self.options) if part)
        return f"{self.name} · {details}" if details else self.name


def label_of(node: Node, graph_module: GraphModule, values: Values) -> Label:
    """Return the description of `node`."""
    if node.op == "call_module":
        return _module_label(graph_module.get_submodule(str(node.target)), node, values)
    if node.op == "get_attr":
        value = values.get(node.name)
        shape = value.shape if value is not None and value.shape is not None else ()
        return Label("get_attr", options=shape_text(shape, ""))
    if node.op in ("call_function", "call_method"):
        name = callee_name(node.target)
        describe = _OPERATORS.get(name, _literals)
        return describe(_SHORT_NAMES.get(name, name), node, values)
    return Label(node.op)


# Modules


def _module_label(module: Any, node: Node, values: Values) -> Label:
    name = type(module).__name__
    describe = _MODULES.get(_class_in_torch(module))
    if describe is not None:
        return Label(name, *describe(module))
    # An operator of ONNX takes its weights as inputs.
    given = (_shape_of(each, values) for each in node.all_input_nodes if each.op == "get_attr")
    weights = [each for each in given if each is not None and len(each) > 1]
    return Label(name, shape_text(weights[0]) if weights else "")


def _class_in_torch(module: Any) -> str:
    """Return the name of the class of torch.nn that a module is of; empty for none.

    Others have modules of the same names: ONNX has a ``Flatten``, and users their ``Linear``.
    """
    classes = (each for each in type(module).__mro__ if each.__module__.startswith("torch.nn.mod"))
    return next((each.__name__ for each in classes if each.__name__ in _MODULES), "")


def _conv(module: Any) -> tuple[str, str]:
    sizes = f"{module.in_channels} → {module.out_channels}, {shape_text(module.kernel_size)}"
    return sizes, _strides(module.stride, module.dilation, module.groups)


def _channels(module: Any) -> tuple[str, str]:
    return str(module.num_features), ""


def _layer_norm(module: Any) -> tuple[str, str]:
    return shape_text(module.normalized_shape, ""), ""


def _pool(module: Any) -> tuple[str, str]:
    kernel = _spread(module.kernel_size, _dimensions(_class_in_torch(module)))
    return "", f"{shape_text(kernel)}, stride {_one_or_all(module.stride)}"


def _adaptive_pool(module: Any) -> tuple[str, str]:
    size = _spread(module.output_size, _dimensions(_class_in_torch(module)))
    return "", shape_text(size, "")


def _recurrent(module: Any) -> tuple[str, str]:
    layers = f"{module.num_layers} layers" if module.num_layers > 1 else ""
    return f"{module.input_size} → {module.hidden_size}", layers


_MODULES: dict[str, Callable[[Any], tuple[str, str]]] = {
    "Linear": lambda module: (f"{module.in_features} → {module.out_features}", ""),
    **{f"Conv{n}d": _conv for n in (1, 2, 3)},
    **{f"ConvTranspose{n}d": _conv for n in (1, 2, 3)},
    **{f"BatchNorm{n}d": _channels for n in (1, 2, 3)},
    **{f"InstanceNorm{n}d": _channels for n in (1, 2, 3)},
    "LayerNorm": _layer_norm,
    "RMSNorm": _layer_norm,
    "GroupNorm": lambda module: (str(module.num_channels), f"groups {module.num_groups}"),
    "Embedding": lambda module: (f"{module.num_embeddings}×{module.embedding_dim}", ""),
    **{f"{kind}Pool{n}d": _pool for kind in ("Max", "Avg") for n in (1, 2, 3)},
    **{f"Adaptive{kind}Pool{n}d": _adaptive_pool for kind in ("Max", "Avg") for n in (1, 2, 3)},
    "Dropout": lambda module: ("", f"p {module.p:g}"),
    "Softmax": lambda module: ("", f"dim {module.dim}"),
    "LogSoftmax": lambda module: ("", f"dim {module.dim}"),
    "Flatten": lambda module: ("", f"{module.start_dim} … {module.end_dim}"),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _recurrent),
}
"""Sizes and options of a module, by the name of its class in torch.nn."""

# Functions and methods


def _literals(name: str, node: Node, values: Values) -> Label:
    """Name the arguments that are plain numbers, strings, or lists of them."""
    written = [_literal(argument) for argument in node.args]
    named = [(key, _literal(value)) for key, value in node.kwargs.items()]
    written += [f"{key} {text}" if text else "" for key, text in named]
    return Label(name, options=", ".join(text for text in written if text))


def _literal(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str):
        return value
    if isinstance(value, (tuple, list)) and value and all(type(item) is int for item in value):
        return f"({', '.join(str(item) for item in value)})"
    return ""


def _name_only(name: str, node: Node, values: Values) -> Label:
    return Label(name)


def _item(name: str, node: Node, values: Values) -> Label:
    index = node.args[1] if len(node.args) > 1 else ()
    if isinstance(index, int):
        return Label(name, options=str(index))
    members = index if isinstance(index, tuple) else (index,)
    return Label(name, options=f"[{', '.join(_subscript(member) for member in members)}]")


def _subscript(index: Any) -> str:
    if isinstance(index, slice):
        ends = [index.start, index.stop] + ([] if index.step is None else [index.step])
        return ":".join("" if end is None else str(end) for end in ends)
    return "…" if index is ... else str(index)


NO_END = 2**63 - 1
"""The end of a ``slice`` that has none, as torch.export writes it."""


def _slice(name: str, node: Node, values: Values) -> Label:
    """Return ``slice · dim 3, 8:`` for ``slice(x, 3, 8, 9223372036854775807)``."""
    dim = _argument(node, 1, "dim") or 0
    start, end = _argument(node, 2, "start"), _argument(node, 3, "end")
    step = _argument(node, 4, "step")
    ends = slice(start or None, None if end == NO_END else end, None if step == 1 else step)
    return Label(name, options=f"dim {dim}, {_subscript(ends)}")


def _conv_call(name: str, node: Node, values: Values) -> Label:
    weight = _shape_of(_argument(node, 1, "weight"), values)
    if weight is None or len(weight) < 3:
        return Label(name)
    groups = _argument(node, 8 if name == "convolution" else 6, "groups") or 1
    dilation = _argument(node, 5, "dilation") or 1
    stride = _argument(node, 3, "stride") or 1
    first, second = weight[:2]
    if name == "convolution" and _argument(node, 6, "transposed"):
        channels = f"{first} → {_times(second, groups)}"
    else:
        channels = f"{_times(second, groups)} → {first}"
    return Label(name, f"{channels}, {shape_text(weight[2:])}", _strides(stride, dilation, groups))


def _linear_call(name: str, node: Node, values: Values) -> Label:
    weight = _shape_of(_argument(node, 1, "weight"), values)
    return _between(name, weight and weight[::-1])


def _addmm_call(name: str, node: Node, values: Values) -> Label:
    return _between(name, _shape_of(_argument(node, 2, "mat2"), values))


def _between(name: str, weight: Sequence[int | str] | None) -> Label:
    if weight is None or len(weight) != 2:
        return Label(name)
    return Label(name, f"{weight[0]} → {weight[1]}")


def _batch_norm_call(name: str, node: Node, values: Values) -> Label:
    data = _shape_of(_argument(node, 0, "input"), values)
    return Label(name, str(data[1]) if data is not None and len(data) > 1 else "")


def _layer_norm_call(name: str, node: Node, values: Values) -> Label:
    shape = _argument(node, 1, "normalized_shape")
    return Label(name, shape_text(shape, "") if isinstance(shape, (tuple, list)) else "")


def _embedding_call(name: str, node: Node, values: Values) -> Label:
    tables = [_shape_of(each, values) for each in node.args[:2]]
    table = next((shape for shape in tables if shape is not None and len(shape) == 2), None)
    return Label(name, shape_text(table, "") if table is not None else "")


def _pool_call(name: str, node: Node, values: Values) -> Label:
    kernel = _argument(node, 1, "kernel_size")
    stride = _argument(node, 2, "stride") or kernel
    if kernel is None:
        return Label(name)
    written = shape_text(_spread(kernel, _dimensions(name)), "")
    return Label(name, options=f"{written}, stride {_one_or_all(stride)}")


_SHORT_NAMES = {
    "_native_batch_norm_legit_no_training": "batch_norm",
    "_native_batch_norm_legit": "batch_norm",
    "native_layer_norm": "layer_norm",
    "max_pool2d_with_indices": "max_pool2d",
    "_softmax": "softmax",
    "_log_softmax": "log_softmax",
    "_to_copy": "to",
}

_OPERATORS: dict[str, Callable[[str, Any, Values], Label]] = {
    "getitem": _item,
    "slice": _slice,
    "linear": _linear_call,
    "addmm": _addmm_call,
    "convolution": _conv_call,
    **{f"conv{n}d": _conv_call for n in (1, 2, 3)},
    "batch_norm": _batch_norm_call,
    "_native_batch_norm_legit_no_training": _batch_norm_call,
    "_native_batch_norm_legit": _batch_norm_call,
    "layer_norm": _layer_norm_call,
    "native_layer_norm": _layer_norm_call,
    "embedding": _embedding_call,
    "max_pool2d_with_indices": _pool_call,
    **{f"{kind}_pool{n}d": _pool_call for kind in ("max", "avg") for n in (1, 2, 3)},
    "relu": _name_only,
    "gelu": _name_only,
    "scaled_dot_product_attention": _name_only,
}

# Arguments


def _argument(node: Node, position: int, key: str) -> Any:
    if len(node.args) > position:
        return node.args[position]
    return node.kwargs.get(key)


def _shape_of(argument: Any, values: Values) -> tuple[int | str, ...] | None:
    value = values.get(getattr(argument, "name", ""))
    return None if value is None else value.shape


def _strides(stride: Any, dilation: Any, groups: Any) -> str:
    parts = [
        f"{name} {_one_or_all(value)}"
        for name, value in (("stride", stride), ("dilation", dilation), ("groups", groups))
        if _one_or_all(value) != "1"
    ]
    return ", ".join(parts)


def _one_or_all(value: Any) -> str:
    """Return ``2`` for 2, [2] and (2, 2), and ``2×1`` for (2, 1)."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return str(value)
    return str(value[0]) if len(set(value)) == 1 else shape_text(value, "")


def _spread(value: Any, dimensions: int) -> tuple[Any, ...]:
    if not isinstance(value, Sequence):
        return (value,) * dimensions
    return tuple(value) * dimensions if len(value) == 1 else tuple(value)


def _dimensions(name: str) -> int:
    """Return 2 for ``MaxPool2d`` and ``max_pool2d``."""
    return next(int(letter) for letter in name if letter.isdigit())


def _times(extent: int | str, groups: Any) -> str:
    return str(extent * groups) if isinstance(extent, int) else f"{extent}·{groups}"


_PLAIN = frozenset({"int", "float", "bool", "str", "dtype", "device", "none", "Size"})
_SHAPE_QUERIES = frozenset(
    {"size", "shape", "dim", "ndim", "numel", "nelement", "len", "dtype", "device"}
    | {"sym_size", "sym_numel", "sym_stride"}
)
_OUTPUTS = 2
"""Number of types that stand in the box of the outputs."""

_SHORT = {"running_mean": "mean", "running_var": "var"}


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
    value or computes with it, is named in the rows of the nodes that use it, and is a member of
    their boxes. Results always have a box. Nodes that depend on constants alone are of the kind
    ``constant``.
    """
    records = {record.name: record for record in nodes}
    passing = _passing(graph_module, values)
    folded = _folded(graph_module, values) | passing.keys()
    constant: set[Node] = set()
    boxes: list[Box] = []
    flows: list[Edge] = []
    paths: list[str] = []
    for node in graph_module.graph.nodes:
        inputs = tuple(dict.fromkeys(passing.get(each, each) for each in node.all_input_nodes))
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
            Box(
                id=record.id,
                title=record.title,
                rows=_rows(node, record, graph_module, values, folded, passing),
                kind=_kind(node, node in constant),
                strategy=record.strategy,
                members=tuple(records[each.name].id for each in _inside(node, folded, passing)),
                operator=record.label.partition(" · ")[0] if called else "",
                shape=record.shape,
                dtype=record.dtype,
            )
        )
        flows.extend(
            Edge(records[each.name].id, record.id, _flow_label(each, values))
            for each in inputs
            if each not in folded
        )
    modules = Modules(paths, kinds, opening)
    return graph_record(boxes, flows, metrics, check, modules=modules)


_NO_EFFECT = frozenset({"alias", "contiguous", "detach", "to", "_to_copy", "lift_fresh_copy"})
"""Operators without a box where their value has the shape and dtype of their input."""

_CHECKS = frozenset({"_assert_tensor_metadata", "_assert_scalar", "_assert_async"})
"""Operators that check a value and give none."""


def _passing(graph_module: GraphModule, values: Values) -> dict[Node, Node]:
    """Map each node that hands its input on, or only checks it, to the node of that value.

    It has no box: it is a member of that of the node. One that gives a result of the model has a
    box.
    """
    found: dict[Node, Node] = {}
    for node in graph_module.graph.nodes:
        source = node.args[0] if node.args else None
        if node.op not in ("call_function", "call_method") or not isinstance(source, Node):
            continue
        name = callee_name(node.target)
        value, given = values.get(node.name), values.get(source.name)
        same = (
            value is not None
            and given is not None
            and value.shape is not None
            and (value.shape, value.dtype) == (given.shape, given.dtype)
        )
        gives = any(user.op == "output" for user in node.users)
        if (name in _NO_EFFECT and same and not gives) or (name in _CHECKS and not node.users):
            found[node] = found.get(source, source)
    return found


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


def _is_plain(value: NodeInfo | None) -> bool:
    """Return whether a value is a number, a shape or the like, or a tuple of such."""
    if value is None or value.shape is not None:
        return False
    parts = value.text.strip("()").split(", ")
    return all(part in _PLAIN or part.startswith("shape ") for part in parts)


def _asks_for_shape(node: Node) -> bool:
    if node.target is getattr:
        return node.args[1] in _SHAPE_QUERIES
    return callee_name(node.target) in _SHAPE_QUERIES


def _inside(node: Node, folded: set[Node], passing: Mapping[Node, Node]) -> list[Node]:
    """Return the folded nodes in the box of `node`, in order of discovery.

    They are those that lead to it, and those that hand its value on or check it.
    """
    found: dict[Node, None] = dict.fromkeys(_handing_on(node, passing))
    waiting = [node]
    while waiting:
        for each in waiting.pop().all_input_nodes:
            # What hands on the value of another box is a member of that one.
            if each in folded and each not in found and passing.get(each, each) in folded:
                found |= dict.fromkeys((each, *_handing_on(each, passing)))
                waiting.append(each)
    return list(found)


def _handing_on(node: Node, passing: Mapping[Node, Node]) -> Iterator[Node]:
    for user in node.users:
        if user in passing:
            yield user
            yield from _handing_on(user, passing)


def _kind(node: Node, constant: bool) -> str:
    if node.op == "output":
        return "output"
    if node.op == "placeholder":
        return "input"
    return "constant" if constant else "call"


def _rows(
    node: Node,
    record: FxNode,
    graph_module: GraphModule,
    values: Values,
    folded: set[Node],
    passing: Mapping[Node, Node],
) -> Rows:
    """Return the weights of a node, or else their sizes, then its options and scalars."""
    if node.op == "placeholder":
        return (("input", ""),)
    if node.op == "output":
        # A box as wide as the types of a language model's cache would be cut at any zoom.
        text = short_dtypes(record.type)
        types = text.strip("()").split(", ")
        return ((listed(types, _OUTPUTS) if len(types) > _OUTPUTS else text, ""),)
    label = label_of(node, graph_module, values)
    inputs = (passing.get(each, each) for each in node.all_input_nodes)
    used = [each for each in inputs if each in folded]
    weights: Iterable[tuple[str, Iterable[object]]]
    if node.op == "call_module":
        module = graph_module.get_submodule(str(node.target))
        weights = [
            (name, tuple(parameter.shape))
            for name, parameter in module.named_parameters(recurse=False)
        ]
    else:
        weights = [
            (str(each.target).rpartition(".")[2], _shape(each, values))
            for each in used
            if each.op == "get_attr"
        ]
    names: dict[str, list[str]] = {}
    for name, shape in weights:
        names.setdefault(shape_text(shape), []).append(_SHORT.get(name, name))
    rows = [(", ".join(same), written) for written, same in names.items()]
    scalars = ", ".join(each.name for each in used if each.op != "get_attr")
    texts = ("" if rows else label.sizes, label.options, scalars)
    return (*rows, *((text, "") for text in texts if text))


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
