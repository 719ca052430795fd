"""One run of a traced graph on the example inputs: values and in-place changes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx

from lowerscope.core.model.formatting import shape_text
from lowerscope.core.model.problems import LowerscopeError, is_interrupt
from lowerscope.core.model.snapshot import SourceLine
from lowerscope.core.model.texts import _
from lowerscope.core.sources.opened_model import version_of
from lowerscope.core.sources.pytree import CallSpec, other_text
from lowerscope.core.tracing.trace_errors import (
    inputs_do_not_fit,
    where_of,
)


@dataclass(frozen=True)
class NodeInfo:
    """The value of a traced node.

    `shape`: extents of a tensor; ``None`` for other values.
    `dtype`: of a tensor, as ``"float32"``; empty for other values.
    `text`: the value in words: ``1×784 float32``, ``(1×10 float32, 1×32 float32)``, ``int``.
    `items`: the members of a tuple or list, in order.
    `layout`: of a tensor that is sparse, as ``"sparse_coo"``; otherwise empty.
    """

    shape: tuple[int | str, ...] | None
    dtype: str
    text: str
    items: tuple[NodeInfo, ...] = ()
    layout: str = ""


def describe(value: Any, written: Callable[[Any], str] = str) -> NodeInfo:
    """Return the description of `value`: a tensor, a number or a nest of them."""
    if isinstance(value, torch.Tensor):
        shape = tuple(size if isinstance(size, int) else written(size) for size in value.shape)
        dtype = str(value.dtype).removeprefix("torch.")
        layout = str(value.layout).removeprefix("torch.") if value.layout in _SPARSE else ""
        return NodeInfo(shape, dtype, f"{shape_text(shape)} {dtype}", layout=layout)
    if isinstance(value, torch.Size):
        shape = tuple(size if isinstance(size, int) else written(size) for size in value)
        return NodeInfo(None, "", f"shape {shape_text(shape)}")
    if isinstance(value, (tuple, list)):
        items = tuple(describe(item, written) for item in value)
        return NodeInfo(None, "", f"({', '.join(item.text for item in items)})", items)
    if isinstance(value, dict):
        named = {str(key): describe(item, written) for key, item in value.items()}
        text = ", ".join(f"{key}: {item.text}" for key, item in named.items())
        return NodeInfo(None, "", f"{{{text}}}", tuple(named.values()))
    if isinstance(value, torch.SymInt):
        return NodeInfo(None, "", "int")
    if isinstance(value, str):
        return NodeInfo(None, "", other_text(value))
    return NodeInfo(None, "", "none" if value is None else type(value).__name__)


_SPARSE = (
    *(torch.sparse_coo, torch.sparse_csr, torch.sparse_csc),
    *(torch.sparse_bsr, torch.sparse_bsc),
)

NESTED = _("it makes a nested tensor, which has no shape")


def dtypes_of(info: NodeInfo) -> set[str]:
    """Return the dtypes of the tensors in a node's value."""
    return {info.dtype} - {""} | {each for item in info.items for each in dtypes_of(item)}


def is_static(value: Any) -> bool:
    """Return whether no extent and no number in `value` is symbolic."""
    if isinstance(value, torch.Tensor):
        return all(isinstance(size, int) for size in value.shape)
    if isinstance(value, (tuple, list)):
        return all(is_static(item) for item in value)
    return not isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))


_PLACES = (
    *("index", "gather", "embedding", "take", "scatter", "select_scatter", "masked_s", "put"),
    *("getitem", "setitem"),
)
"""Prefixes of operators that read or write where their arguments say."""

_DIVISIONS = ("floordiv", "floor_div", "div", "mod", "remainder", "fmod")
"""Prefixes of operators that fail on integers if the divisor is 0."""

_SOLVERS = ("linalg_", "inv", "cholesky", "lu_", "multinomial", "bincount", "one_hot")
"""Prefixes of operators that reject some values."""


def operator_name(node: fx.Node) -> str:
    """Return the name of what a node calls, without a namespace."""
    schema = getattr(node.target, "_schema", None)
    if schema is not None:
        return str(schema.name).rpartition("::")[2]
    return str(getattr(node.target, "__name__", node.target))


def may_write(node: fx.Node) -> bool:
    """Return whether a node may change a tensor in place."""
    schema = getattr(node.target, "_schema", None)
    if schema is not None:
        return bool(schema.is_mutable)
    name = operator_name(node)
    in_place = name.endswith("_") and not name.startswith("_")
    operators = (operator.setitem, operator.iadd, operator.isub, operator.imul, operator.itruediv)
    return node.target in operators or in_place or "out" in node.kwargs


def may_fail(node: fx.Node, value_of: Callable[[fx.Node], Any]) -> bool:
    """Return whether the values of a node's arguments may be ones that it does not take."""
    if node.op not in ("call_function", "call_method"):
        return False
    target: Any = node.target
    schema = getattr(target, "_schema", None)
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    name = (schema.name.rpartition("::")[2] if schema is not None else name).lstrip("_")
    if name.startswith(_PLACES):
        places = (*node.args[1:], *node.kwargs.values())
        return any(isinstance(value_of(each), torch.Tensor) for each in _nodes_in(places))
    if name.startswith(_DIVISIONS):
        value = value_of(node)
        exact = not value.dtype.is_floating_point if isinstance(value, torch.Tensor) else True
        return exact and bool(_nodes_in(node.args[1:]))
    return name.startswith(_SOLVERS)


def _nodes_in(argument: Any) -> list[fx.Node]:
    found: list[fx.Node] = []
    fx.node.map_arg(argument, found.append)
    return found


def memory_of(tensor: torch.Tensor) -> int:
    """Return the address of a tensor's memory; of one without a single memory, its own number."""
    is_plain = tensor.layout is torch.strided
    return tensor.untyped_storage().data_ptr() if is_plain else -id(tensor)


def run_once(
    graph_module: fx.GraphModule, inputs: tuple[torch.Tensor, ...], lines: Mapping[str, SourceLine]
) -> tuple[dict[str, NodeInfo], dict[str, tuple[str, ...]], Any]:
    """Run `graph_module` on copies of `inputs`; return values, mutations and outputs.

    Raises `LowerscopeError` if a node fails, or changes a tensor of which a view is read
    afterwards.
    """
    recorder = _Recorder(graph_module, lines)
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        # The graph takes the tensors one by one, however the model nests them.
        copies = [value.clone() for value in inputs]
        outputs = recorder.run(*copies, enable_io_processing=False)
    recorder.read_what_is_returned()
    recorder.drop_writes_without_effect()
    return recorder.values, recorder.mutations, outputs


def outputs_of(graph_module: fx.GraphModule, inputs: tuple[torch.Tensor, ...]) -> Any:
    """Return the outputs of a graph, run on copies of `inputs`.

    Raises `LowerscopeError` if it fails.
    """
    interpreter = fx.Interpreter(graph_module)
    interpreter.extra_traceback = False
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            return interpreter.run(*(each.clone() for each in inputs), enable_io_processing=False)
    except BaseException as error:
        if is_interrupt(error):
            raise
        raise inputs_do_not_fit(error, None, "") from error


class _Recorder(fx.Interpreter):
    """Interpreter that records the value and the in-place changes of each node."""

    def __init__(self, graph_module: fx.GraphModule, lines: Mapping[str, SourceLine]) -> None:
        super().__init__(graph_module)
        self.extra_traceback = False
        self.values: dict[str, NodeInfo] = {}
        self.mutations: dict[str, tuple[str, ...]] = {}
        self._lines = lines
        self._returning: list[fx.Node] = []
        self._without_effect: list[fx.Node] = []
        self._graph_module = graph_module
        self._parameters = {memory_of(each) for each in graph_module.parameters()}
        self._order = {node: index for index, node in enumerate(graph_module.graph.nodes)}

    def run_node(self, n: fx.Node) -> Any:
        arguments = {node: list(tensors_in(self.env[node])) for node in n.all_input_nodes}
        versions = {
            node: [version_of(tensor) for tensor in tensors] for node, tensors in arguments.items()
        }
        contents = [
            (tensor, tensor.clone())
            for tensors in arguments.values()
            for tensor in tensors
            if writes_statistics(n)
        ]
        kept = self._parameter_written(n)
        try:
            value = super().run_node(n)
        except LowerscopeError:
            raise
        except BaseException as error:
            if is_interrupt(error):
                raise
            names = tuple(each.name for each in n.graph.nodes if each.op == "placeholder")
            raise inputs_do_not_fit(error, self._lines.get(n.name), n.name, names) from error
        if n.op.startswith("call"):
            changed = [
                tensor
                for node, tensors in arguments.items()
                for tensor, version in zip(tensors, versions[node], strict=True)
                if version_of(tensor) != version
            ]
            changed += [tensor for tensor, before in contents if not _same_content(tensor, before)]
            if kept is not None and kept[1].equal(self.env[kept[0]]):
                self._without_effect.append(n)
                value, changed = self.env[kept[0]], []
            if changed:
                self._refuse_overlaps(n, changed, arguments)
                if value is None and n.op == "call_function" and len(changed) == 1:
                    value = changed[0]
                    n.target = _returning(n, self.env, value)
                    self._returning.append(n)
                self._record_mutation(n, value, changed)
        if any(tensor.is_nested for tensor in tensors_in(value)):
            raise LowerscopeError(
                _("torch.fx cannot trace the model: {fx_reason}", fx_reason=NESTED),
                where=where_of(self._lines.get(n.name)),
                todo=_("try another tracer: --tracer export"),
                code="try-export",
            )
        if n.target is getattr:
            owner, name = self.env[n.all_input_nodes[0]], n.args[1]
            fields = getattr(type(owner), "__match_args__", ()) if isinstance(owner, tuple) else ()
            if name in fields:
                n.meta["member"] = fields.index(name)
        self.values[n.name] = describe(value)
        return value

    def _parameter_written(self, node: fx.Node) -> tuple[fx.Node, torch.Tensor] | None:
        """Return the argument that a node may write and its content, if it is a parameter."""
        first = node.args[0] if node.args else None
        if not may_write(node) or not isinstance(first, fx.Node) or "out" in node.kwargs:
            return None
        value = self.env[first]
        if not isinstance(value, torch.Tensor) or memory_of(value) not in self._parameters:
            return None
        return first, value.detach().clone()

    def drop_writes_without_effect(self) -> None:
        """Let nodes read a parameter itself in place of a call that has not changed it.

        Such a call masks or clamps values that were masked or clamped before.
        """
        for node in self._without_effect:
            written = node.all_input_nodes[0]
            node.replace_all_uses_with(written)
            for each in (node, written):
                if each.op.startswith("call") and not each.users:  # ``weight.data``
                    each.graph.erase_node(each)
                    self.values.pop(each.name, None)
        if self._without_effect:
            self._graph_module.recompile()

    def read_what_is_returned(self) -> None:
        """Let nodes read what a call now returns in place of the argument that it has changed."""
        named = {node.name: node for node in self._order}
        for node in reversed(self._returning):
            for earlier in self.mutations.get(node.name, ()):
                for user in list(named[earlier].users):
                    if self._order[user] > self._order[node]:
                        user.replace_input_with(named[earlier], node)

    def _refuse_overlaps(
        self,
        node: fx.Node,
        changed: list[torch.Tensor],
        arguments: Mapping[fx.Node, list[torch.Tensor]],
    ) -> None:
        """Reject a call that writes to memory it reads under another name.

        Its result depends on the order of reads and writes. Nodes that run in torch together take
        each argument as a tensor of its own.
        """
        together = node.op == "call_module" and isinstance(
            self.fetch_attr(str(node.target)), fx.GraphModule
        )
        for written in changed:
            same = [
                argument
                for argument, tensors in arguments.items()
                if any(_share_memory(each, written) for each in tensors)
            ]
            if together and len(same) > 1:
                reason = _("{name}, which it reads, shares the memory", name=same[-1].name)
                self._refuse(node, reason)
            for argument, tensors in arguments.items():
                for read in tensors:
                    if read is not written and _overlap_in_part(read, written):
                        reason = _("{name}, which it reads, shares the memory", name=argument.name)
                        self._refuse(node, reason, lost=writes_statistics(node))

    def _record_mutation(self, node: fx.Node, value: Any, changed: list[torch.Tensor]) -> None:
        """Find the earlier nodes that share memory with what `node` changed."""
        same: list[str] = []
        for earlier, held in self.env.items():
            read_later = any(self._order[user] > self._order[node] for user in earlier.users)
            for tensor in tensors_in(held):
                if not read_later or not any(_share_memory(tensor, each) for each in changed):
                    continue
                if tensor is not held or not _same_elements(tensor, value):
                    reason = _(
                        "{name}, a view of the same memory, is read later", name=earlier.name
                    )
                    view = all(tensor is not each for each in changed)
                    self._refuse(node, reason, lost=view and writes_statistics(node))
                same.append(earlier.name)
        state = [*self.module.parameters(), *self.module.buffers()]
        if any(_share_memory(each, tensor) for each in state for tensor in changed):
            self._refuse(node, _("it is a parameter or buffer of the model"))
        self.mutations[node.name] = tuple(same)

    def _refuse(self, node: fx.Node, reason: str, *, lost: bool = False) -> None:
        """Reject a change; `lost` if torch.export would drop it when it makes new values."""
        line = self._lines.get(node.name)
        raise LowerscopeError(
            _("{name} changes a tensor in place, and {reason}", name=node.name, reason=reason),
            where=where_of(line),
            todo=_("write it without the in-place change")
            if lost
            else _("write it without the in-place change; or try another tracer: --tracer export"),
            code="" if lost else "try-export",
        )


def _returning(node: fx.Node, env: Mapping[fx.Node, Any], changed: torch.Tensor) -> Any:
    """Return the function of a node that returns nothing as one that returns what it changes."""
    own: Any = node.target

    def leaves(args: Any, kwargs: Any) -> list[Any]:
        return list(tensors_in((args, kwargs)))

    values = fx.node.map_arg((node.args, node.kwargs), env.__getitem__)
    index = next(i for i, each in enumerate(leaves(*values)) if each is changed)

    def returning(*args: Any, **kwargs: Any) -> torch.Tensor:
        own(*args, **kwargs)
        result: torch.Tensor = leaves(args, kwargs)[index]
        return result

    name = getattr(own, "_schema", None)
    returning.__name__ = str(name.name).rpartition("::")[2] if name else own.__name__
    return returning


def run_eagerly(model: torch.nn.Module, inputs: tuple[torch.Tensor, ...], calling: CallSpec) -> Any:
    """Run `model` itself and return its outputs.

    It distinguishes inputs that do not fit from a graph that cannot be traced.

    Raises `LowerscopeError` if the model fails on these inputs.
    """
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        return call_eagerly(model, inputs, calling)


def call_eagerly(
    model: torch.nn.Module, inputs: tuple[torch.Tensor, ...], calling: CallSpec
) -> Any:
    """Run `model` like `run_eagerly` in the active modes, leaving torch's generator advanced."""
    try:
        args, kwargs = calling.arguments([value.clone() for value in inputs])
        return model(*args, **kwargs)
    except BaseException as error:
        if is_interrupt(error):
            raise
        raise inputs_do_not_fit(error, None, "", calling.names) from error


def writes_statistics(node: fx.Node) -> bool:
    """Return whether `node` may write running statistics, which torch does not count as a change.

    Neither tensor versions nor the schema of ``aten.batch_norm`` show it.
    """
    target = node.target
    if target in (torch.ops.aten.batch_norm.default, torch.ops.aten.instance_norm.default):
        return bool(node.args[5]) and node.args[3] is not None
    return target in (F.batch_norm, F.instance_norm, torch.batch_norm, torch.instance_norm)


def _same_content(first: torch.Tensor, second: torch.Tensor) -> bool:
    return bool(torch.isclose(first, second, rtol=0, atol=0, equal_nan=True).all())


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors in a nest of tuples, lists and mappings."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors_in(item)


def _share_memory(first: torch.Tensor, second: torch.Tensor) -> bool:
    return memory_of(first) == memory_of(second)


def _overlap_in_part(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Return whether two tensors share some elements, but not exactly the same ones."""
    if not _share_memory(first, second) or _same_elements(first, second):
        return False
    if first.dtype != second.dtype:
        return True
    count = first.untyped_storage().nbytes() // first.element_size()
    places = torch.arange(count)
    elements = [
        places.as_strided(each.shape, each.stride(), each.storage_offset()).flatten()
        for each in (first, second)
    ]
    return bool(torch.isin(*elements).any())


def _same_elements(tensor: torch.Tensor, value: Any) -> bool:
    """Return whether `value` is a tensor over exactly the elements of `tensor`, in order."""
    return (
        isinstance(value, torch.Tensor)
        and value.data_ptr() == tensor.data_ptr()
        and value.shape == tensor.shape
        and value.stride() == tensor.stride()
    )
