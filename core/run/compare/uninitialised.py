"""The nodes of a graph whose values have elements that are not initialised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from lowerscope.core.lowering.torch_operators import bare_name
from lowerscope.core.tracing.example_run import NodeInfo

_MAKING = frozenset(
    {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}
)
"""Operators whose elements may have any value."""

_FILLING = frozenset({"fill_", "zero_", "fill", "zero"})

_MOVING = frozenset(
    {
        *("getitem", "slice", "select", "narrow", "index", "index_select", "diagonal", "take"),
        *("view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "expand", "expand_as"),
        *("t", "T", "mT", "transpose", "swapaxes", "permute", "movedim", "flip", "roll", "repeat"),
        *("unbind", "split", "chunk", "clone", "contiguous", "detach", "alias", "cat", "stack"),
        *("copy", "copy_", "setitem", "slice_scatter", "select_scatter", "index_put", "index_put_"),
    }
)
"""Operators that move elements, and do the same to marks of them."""


def uninitialised(
    graph: fx.Graph, modules: Mapping[str, torch.nn.Module], values: Mapping[str, NodeInfo]
) -> frozenset[str]:
    """Return the names of the nodes with elements that depend on uninitialised memory.

    The operators that move elements run on marks of those that have no value yet.
    """
    if not any(_bare(node, modules) in _MAKING for node in graph.nodes):
        return frozenset()
    marks: dict[fx.Node, Any] = {}
    found: set[str] = set()
    for node in graph.nodes:
        name = _bare(node, modules)
        read = [marks[each] for each in node.all_input_nodes if each in marks]
        if name in _MAKING:
            marks[node] = _full(values[node.name], torch.ones)
        elif read:
            try:
                marks[node] = _moved(node, name, marks, values)
            except (RuntimeError, TypeError, ValueError, IndexError, AttributeError):
                # It does not move elements, or not those of the dtype of marks.
                if any(map(_any, read)):
                    marks[node] = _full(values[node.name], torch.ones)
        if _any(marks.get(node)):
            found.add(node.name)
    return frozenset(found)


def _bare(node: fx.Node, modules: Mapping[str, torch.nn.Module]) -> str:
    return bare_name(node, modules) if node.op.startswith("call") else ""


def _full(info: NodeInfo, make: Any) -> Any:
    """Return marks for a value; a named dimension has one for all of its places."""
    if info.items:
        return [_full(each, make) for each in info.items]
    if info.shape is None:
        return None
    return make([each if isinstance(each, int) else 1 for each in info.shape], dtype=torch.bool)


def _any(marks: Any) -> bool:
    leaves = pytree.tree_leaves(marks)
    return any(isinstance(each, torch.Tensor) and bool(each.any()) for each in leaves)


def _moved(
    node: fx.Node, name: str, marks: Mapping[fx.Node, Any], values: Mapping[str, NodeInfo]
) -> Any:
    """Return the marks of a node that reads marked memory."""

    def marks_of(each: fx.Node) -> Any:
        return marks[each] if each in marks else _full(values[each.name], torch.zeros)

    first, *rest = node.args
    owner: Any = marks_of(first) if isinstance(first, fx.Node) else None
    if name in _FILLING:
        return owner.fill_(False) if name.endswith("_") else torch.zeros_like(owner)
    if name not in _MOVING:
        others = [marks_of(each) for each in node.all_input_nodes if each is not first]
        if name.endswith("_") and not any(map(_any, others)):
            return owner
        raise TypeError(name)
    if name in ("setitem", "__setitem__") and not isinstance(rest[1], fx.Node):
        rest[1] = False
    args = fx.node.map_arg((first, *rest), marks_of)
    kwargs = fx.node.map_arg(dict(node.kwargs), marks_of)
    if node.op == "call_method":
        return getattr(args[0], str(node.target))(*args[1:], **kwargs)
    target: Any = node.target
    return target(*args, **kwargs)
