"""Groups of nodes around numbers that depend on data, which run in torch as one node.

A Relax function passes tensors between operators. A number that is computed of a tensor's elements,
as ``.item()`` does, stays within the group of the nodes that compute and read it.
"""

from __future__ import annotations

import heapq
import itertools
import operator
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from lowerscope.core.model.snapshot import SourceLine
from lowerscope.core.model.texts import _
from lowerscope.core.sources.onnx_models import OnnxNode
from lowerscope.core.sources.opened_model import without_logs
from lowerscope.core.tracing.example_run import NodeInfo, may_write, operator_name
from lowerscope.core.tracing.onnx_graphs import depends_on_data, run_nodes
from lowerscope.core.tracing.splitting import OF_SHAPE, TorchPart

_SIZES = ("sym_size", "sym_numel", "sym_stride", "sym_storage_offset", "dim", "numel", "is_nonzero")
_CHECKS = ("_assert_scalar", "_assert_async", "sym_constrain_range", "_assert_tensor_metadata")


class Group(fx.GraphModule):
    """Nodes that run in torch together; `reason` is why."""

    reason: str = ""

    def recompile(self) -> Any:
        """Compile it without the report on errors that torch writes to stderr: a check of values
        may raise one for inputs that a model is tried on."""
        code = super().recompile()
        type(self).__call__ = torch.nn.Module.__call__  # type: ignore[method-assign]
        return code


def group_numbers(
    graph_module: fx.GraphModule,
    values: Mapping[str, NodeInfo],
    lines: dict[str, SourceLine],
) -> bool:
    """Group nodes that pass numbers of data to one another; return whether there were any.

    `lines`: the source lines of nodes by name, to which those of groups are added.
    """
    nodes = list(graph_module.graph.nodes)
    numbers = dict.fromkeys(_numbers(nodes, values))
    if not numbers:
        return False
    for_checks: set[fx.Node] = set()
    for node in reversed(nodes):
        of_number = any(each in numbers for each in node.all_input_nodes)
        unread = node in numbers or (of_number and _is_check(node))
        if not node.users and (unread or (node in for_checks and not node.is_impure())):
            for_checks.update(node.all_input_nodes)
            graph_module.graph.erase_node(node)
    _index_by_tensors(graph_module.graph, values)
    read = [each for each in numbers if not each._erased]
    if not read:
        graph_module.recompile()
        return False
    for node in read:
        if values[node.name].text in ("int", "float", "bool"):
            _return_as_tensor(graph_module.graph, node)
    # The model returns the others, which is an error of its own.
    read = [each for each in read if any(user.op != "output" for user in each.users)]
    nodes = list(graph_module.graph.nodes)
    for members in _closed(nodes, _connected(read)):
        infos = [values[node.name] for node in members if node.name in values]
        foreign = next(filter(None, map(_foreign, infos)), "")
        reason = (
            _("TVM has no {dtype}", dtype=foreign)
            if foreign
            else _("it computes a number from the values of a tensor")
        )
        _replace(graph_module, members, lines, reason)
    _sort(graph_module.graph)
    graph_module.graph.eliminate_dead_code(lambda node: node.op not in ("get_attr", "call_module"))
    graph_module.recompile()
    return True


def with_sequences_grouped(
    graph_module: fx.GraphModule, inputs: Sequence[torch.Tensor]
) -> fx.GraphModule:
    """Return the graph of an ONNX model, with nodes that pass sequences to one another grouped if
    one of them is empty, and so has no tensors to be passed.
    """
    kinds = {each.kind for each in graph_module.modules() if isinstance(each, OnnxNode)}
    if "SequenceEmpty" not in kinds:
        return graph_module
    values = run_nodes(graph_module, inputs)
    sequences = [
        node
        for node, value in values.items()
        if node.op.startswith("call")
        and any(
            isinstance(each, list) for each in (value, *(value if type(value) is tuple else ()))
        )
    ]
    nodes = list(graph_module.graph.nodes)
    for members in _closed(nodes, _connected(sequences)):
        _replace(graph_module, members, {}, _("it computes with a sequence of tensors"))
    _sort(graph_module.graph)
    graph_module.recompile()
    return graph_module


def _index_by_tensors(graph: fx.Graph, values: Mapping[str, NodeInfo]) -> None:
    """Let elements at a place of data be read by its tensor, which torch.export made a number.

    What is read so is no view, so nothing may be written in place.
    """
    aten = torch.ops.aten
    if any(map(may_write, graph.nodes)):
        return
    for node in graph.find_nodes(op="call_function", target=aten.select.int):
        value, axis, number = node.args
        shape = values[value.name].shape
        if isinstance(number, fx.Node) and number.target is aten.item.default and shape:
            (place,) = number.all_input_nodes
            source = values[place.name]
            # Of another rank, it gives other axes; of another dtype, it is a mask or refused.
            if source.shape != () or source.dtype not in ("int32", "int64"):
                continue
            places = [*[None] * (axis % len(shape)), place]
            node.target, node.args = aten.index.Tensor, (value, places)
            if not number.users:
                graph.erase_node(number)


def _numbers(nodes: Sequence[fx.Node], values: Mapping[str, NodeInfo]) -> list[fx.Node]:
    """Return the nodes with a number, or another value that is no tensor, in their value that
    depends on the elements of tensors."""
    found: dict[fx.Node, None] = {}
    sparse: set[fx.Node] = set()
    for node in reversed(nodes):
        info = values.get(node.name)
        dense = all(operator_name(user) in _OF_DENSE and user not in sparse for user in node.users)
        if info is not None and info.layout and not dense:
            sparse.add(node)
    for node in nodes:
        info = values.get(node.name)
        sources = node.all_input_nodes
        if info is None or not node.op.startswith("call"):
            continue
        # A shape is passed by its numbers, unless one of them depends on data.
        if not _has_number(info) and (
            _has_tensor(info) or not any(map(found.__contains__, sources))
        ):
            continue
        if info.layout and node not in sparse:
            continue
        if _is_of_shape(node) and not any(each in found for each in sources):
            continue
        is_part = node.op == "call_module"
        if is_part or any(each in found or _has_tensor(values.get(each.name)) for each in sources):
            found[node] = None
    return list(found)


def _has_number(info: NodeInfo) -> bool:
    if info.items:
        return any(map(_has_number, info.items))
    if _foreign(info):
        return True
    return (
        info.shape is None and info.text not in ("none", "()", "{}") and "shape " not in info.text
    )


_QUANTISED = ("quint", "qint")
"""Prefixes of dtypes of tensors with scales and zero points, which torch alone has."""


def has_quantised(graph_module: fx.GraphModule, values: Mapping[str, NodeInfo]) -> bool:
    """Return whether a graph computes with quantised tensors, in a module of torch.ao's or not."""
    kinds = {type(each).__module__ for each in graph_module.modules()}
    return any(each.startswith("torch.ao.nn.quantized") for each in kinds) or any(
        each.dtype.startswith(_QUANTISED) for each in values.values()
    )


_OF_DENSE = frozenset(
    {
        *("matmul", "__matmul__", "mm", "bmm", "mv", "addmm", "output"),
        *("_sparse_mm", "spmm", "_sparse_addmm"),
        *("t", "transpose", "to_dense", "detach"),
    }
)
"""Operators that compute of a dense tensor what they do of a sparse one of the same elements."""


def _foreign(info: NodeInfo) -> str:
    """Return the dtype or layout of a tensor that torch alone has; empty for others."""
    return info.dtype if info.dtype.startswith(_QUANTISED) else info.layout


def _has_tensor(info: NodeInfo | None) -> bool:
    return info is not None and (info.shape is not None or any(map(_has_tensor, info.items)))


def _is_of_shape(node: fx.Node) -> bool:
    if node.op == "call_method":
        return node.target in OF_SHAPE
    if node.target is getattr:
        return node.args[1] in OF_SHAPE
    name = operator_name(node)
    return name.startswith(_SIZES) or name in OF_SHAPE or name == "len"


def _is_check(node: fx.Node) -> bool:
    return operator_name(node).startswith(_CHECKS)


def _is_checked(node: fx.Node) -> bool:
    """Return whether a number is read by checks only, directly or through other numbers."""
    return all(_is_check(user) or (_is_checked(user) and bool(user.users)) for user in node.users)


def _return_as_tensor(graph: fx.Graph, node: fx.Node) -> None:
    """Let the model return a tensor in place of a number."""
    for output in [each for each in node.users if each.op == "output"]:
        with graph.inserting_before(output):
            tensor = graph.call_function(torch.tensor, (node,))
        output.replace_input_with(node, tensor)


def _connected(numbers: Iterable[fx.Node]) -> list[set[fx.Node]]:
    """Return the numbers with the nodes that read them, as sets without a common node."""
    sets: list[set[fx.Node]] = []
    for node in numbers:
        whole = {node, *(user for user in node.users if user.op != "output")}
        apart = [each for each in sets if not each & whole]
        for each in sets:
            whole |= each if each & whole else set()
        sets = [*apart, whole]
    return sets


def _closed(nodes: Sequence[fx.Node], sets: list[set[fx.Node]]) -> list[list[fx.Node]]:
    """Return the sets, in order, with the nodes that have to run between their members."""
    order = {node: index for index, node in enumerate(nodes)}
    read = _all_read(nodes)
    done = False
    while not done:
        done = True
        for one in sets:
            added = _between(nodes, order, one)
            done = done and added <= one
            one |= added
        merged: list[set[fx.Node]] = []
        for one in sets:
            for other in [each for each in merged if each & one or _depend(read, order, each, one)]:
                merged.remove(other)
                one |= other
                done = False
            merged.append(one)
        sets = merged
    return [sorted(each, key=order.__getitem__) for each in sets]


def _between(
    nodes: Sequence[fx.Node], order: Mapping[fx.Node, int], members: set[fx.Node]
) -> set[fx.Node]:
    start, end = min(map(order.__getitem__, members)), max(map(order.__getitem__, members))
    span = [each for each in nodes[start : end + 1] if each.op.startswith("call")]
    if any(map(may_write, span)):
        # What is read before and after a change in place must stay so.
        return set(span)
    after: set[fx.Node] = set()
    for node in span:
        if any(each in members or each in after for each in node.all_input_nodes):
            after.add(node)
    before: set[fx.Node] = set()
    for node in reversed(span):
        if any(each in members or each in before for each in node.users):
            before.add(node)
    return after & before


def _all_read(nodes: Sequence[fx.Node]) -> dict[fx.Node, int]:
    """Return what each node reads, directly or through others: bits by position in `nodes`."""
    read: dict[fx.Node, int] = {}
    for index, node in enumerate(nodes):
        found = 1 << index
        for each in node.all_input_nodes:
            found |= read[each]
        read[node] = found
    return read


def _depend(
    read: Mapping[fx.Node, int],
    order: Mapping[fx.Node, int],
    one: set[fx.Node],
    other: set[fx.Node],
) -> bool:
    """Return whether each of two sets without a common node reads what the other computes."""

    def reads(reader: set[fx.Node], source: set[fx.Node]) -> bool:
        places = sum(1 << order[each] for each in source)
        return any(read[each] & places for each in reader)

    return reads(one, other) and reads(other, one)


def _replace(
    graph_module: fx.GraphModule,
    members: Sequence[fx.Node],
    lines: dict[str, SourceLine],
    own: str,
) -> None:
    graph = fx.Graph()
    inside = set(members)
    inputs = dict.fromkeys(
        each for node in members for each in node.all_input_nodes if each not in inside
    )
    outputs = [node for node in members if any(user not in inside for user in node.users)]
    copies: dict[fx.Node, fx.Node] = {each: graph.placeholder(each.name) for each in inputs}
    for node in members:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output(tuple(copies[each] for each in outputs))
    module = Group(graph_module, graph)
    line = next((lines[node.name] for node in members if node.name in lines), None)
    modules = dict(graph_module.named_modules(remove_duplicate=False))
    parts = [modules[str(each.target)] for each in members if each.op == "call_module"]
    reasons = [each.reason for each in parts if isinstance(each, TorchPart | Group)]
    module.reason = next(iter(reasons), own)
    title = f"part_line{line.line}" if line is not None else f"part_{members[0].name}"
    name, count = title, 1
    while hasattr(graph_module, name):
        name, count = f"{title}_{count}", count + 1
    graph_module.add_submodule(name, module)
    with graph_module.graph.inserting_after(members[-1]):
        call = graph_module.graph.call_module(name, tuple(inputs))
    call.meta["val"] = tuple(each.meta.get("val") for each in outputs)
    if any(each is None for each in call.meta["val"]):
        del call.meta["val"]
    stack = members[0].meta.get("nn_module_stack")
    if stack:
        call.meta["nn_module_stack"] = stack
    if line is not None:
        lines[call.name] = line
    for index, each in enumerate(outputs):
        with graph_module.graph.inserting_after(call):
            result = graph_module.graph.call_function(operator.getitem, (call, index))
        result.meta = dict(each.meta)
        if line is not None:
            lines[result.name] = line
        each.replace_all_uses_with(result, lambda user: user not in inside)
    for node in reversed(members):
        graph_module.graph.erase_node(node)


def _sort(graph: fx.Graph) -> None:
    """Put each node after those that it reads, and otherwise keep the order."""
    nodes = list(graph.nodes)
    order = {node: index for index, node in enumerate(nodes)}
    waiting = {node: len(node.all_input_nodes) for node in nodes}
    readers: dict[fx.Node, list[fx.Node]] = defaultdict(list)
    for node in nodes:
        for each in node.all_input_nodes:
            readers[each].append(node)
    ready = [order[node] for node in nodes if not waiting[node]]
    output = nodes[-1]
    while ready:
        node = nodes[heapq.heappop(ready)]
        if node is not output:
            output.prepend(node)
        for each in readers[node]:
            waiting[each] -= 1
            if not waiting[each]:
                heapq.heappush(ready, order[each])


class _Shapes(fx.Interpreter):
    """Interpreter that records the shapes of the tensors of calls."""

    def __init__(self, graph_module: fx.GraphModule) -> None:
        super().__init__(graph_module)
        self.extra_traceback = False
        self.shapes: dict[fx.Node, list[torch.Size]] = {}

    def run_on(self, inputs: Iterable[torch.Tensor]) -> None:
        """Run the graph; places out of range are an error, and not a read out of bounds."""
        checked = torch.sparse.check_sparse_tensor_invariants()  # type: ignore[no-untyped-call]
        with torch.no_grad(), torch.random.fork_rng(devices=[]), checked:
            self.run(*inputs, enable_io_processing=False)

    def run_node(self, n: fx.Node) -> Any:
        value = super().run_node(n)
        leaves = pytree.tree_leaves(value)
        if n.op.startswith("call"):
            self.shapes[n] = [each.shape for each in leaves if isinstance(each, torch.Tensor)]
        return value


def _shapes_without_data(
    graph_module: fx.GraphModule, inputs: Iterable[torch.Tensor]
) -> dict[fx.Node, list[torch.Size]]:
    """Return the shapes of calls as far as torch knows them of tensors without values.

    Empty if they depend on values, or if torch does not know them.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode  # few models need it

    mode = FakeTensorMode(allow_non_fake_inputs=True)
    run = _Shapes(graph_module)
    with without_logs("torch._subclasses.fake_tensor"), mode:
        try:
            run.run_on([mode.from_tensor(each) for each in inputs])
        except Exception:  # of a model's own code, or of any operator
            return {}
    return run.shapes


def mark_varying(
    graph_module: fx.GraphModule,
    values: Mapping[str, NodeInfo],
    variants: Iterable[tuple[torch.Tensor, ...]],
    *,
    of_data: bool = False,
) -> None:
    """Store which axes differ between inputs of the same shapes in each node's ``meta["varies"]``.

    Nothing is stored for a graph of operators whose shapes do not depend on data.

    `of_data`: whether shapes may depend on data although no operator shows it.
    """
    modules = dict(graph_module.named_modules(remove_duplicate=False))
    nodes = list(graph_module.graph.nodes)
    if not of_data and not any(
        _is_opaque(node, modules) or _is_of_data(node, values) for node in nodes
    ):
        return
    own, *others = variants
    first = _shapes_without_data(graph_module, own)
    found = {node: [(False,) * len(each) for each in shapes] for node, shapes in first.items()}
    for inputs in () if found else (own, *others):
        run = _Shapes(graph_module)
        try:
            run.run_on([each.clone() for each in inputs])
        except Exception:  # a model may reject inputs by any error
            if not first:
                return
        first = first or run.shapes
        for node, shapes in run.shapes.items():
            differs = [
                tuple(one != two for one, two in zip(*pair, strict=True))
                if len(pair[0]) == len(pair[1])
                else (True,) * len(pair[0])
                for pair in zip(first[node], shapes, strict=False)
            ]
            known = found.get(node, differs)
            found[node] = [
                tuple(map(operator.or_, *pair)) for pair in zip(known, differs, strict=False)
            ]
    for node, axes in found.items():
        given = (each.meta.get("varies", ()) for each in node.all_input_nodes)
        read = list(itertools.chain.from_iterable(given))
        # A reduction of what varies leaves known extents.
        ranks = max(map(len, read), default=0), max(map(len, axes), default=0)
        is_reduced = any(map(any, read)) and ranks[1] < ranks[0]
        if _is_opaque(node, modules) or any(map(any, axes)) or is_reduced:
            node.meta["varies"] = axes


_OF_DATA = ("nonzero", "argwhere", "masked_select", "unique", "bincount", "repeat_interleave")


def _is_of_data(node: fx.Node, values: Mapping[str, NodeInfo]) -> bool:
    """Return whether the shape of a node's value may depend on data."""
    name = operator_name(node)
    if name == "where":
        return len(node.args) == 1
    if name in ("getitem", "__getitem__", "index"):
        return any(values[each.name].dtype == "bool" for each in node.all_input_nodes[1:])
    return name.strip("_").startswith(_OF_DATA)


_KNOWN = ("aten", "prim", "prims", "quantized", "torchvision")


def _is_opaque(node: fx.Node, modules: Mapping[str, torch.nn.Module]) -> bool:
    if node.op == "call_module":
        module = modules[str(node.target)]
        if isinstance(module, OnnxNode):
            return depends_on_data(module, node)
        return isinstance(module, TorchPart | Group | torch.jit.ScriptModule)
    target = node.target
    packet = isinstance(target, torch._ops.OpOverload | torch._ops.OpOverloadPacket)
    if isinstance(target, torch._library.custom_ops.CustomOpDef):
        return True
    return packet and str(target).partition(".")[0] not in _KNOWN
