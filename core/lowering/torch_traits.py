"""Traits of torch's operators that a graph does not show: data-dependent shapes, member names."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import fx, nn

from lowerscope.core.lowering.operator_names import bare_name

_SHAPE_FROM_DATA = frozenset(
    {
        "nonzero",
        "nonzero_numpy",
        "argwhere",
        "masked_select",
        "unique",
        "unique_consecutive",
        "unique_dim",
        "_unique2",
        "bincount",
    }
)


def has_shape_from_data(
    node: fx.Node,
    modules: Mapping[str, nn.Module],
    args: tuple[Any, ...],
    is_mask: Callable[[Any], bool],
    is_tensor: Callable[[Any], bool],
) -> bool:
    """Return whether the shape of a node's value depends on the values of its inputs.

    Parameters
    ----------
    args
        The node's arguments, with values in place of nodes.
    is_mask, is_tensor
        Whether a value is a tensor of booleans, or any tensor.
    """
    name = bare_name(node, modules)
    if name in _SHAPE_FROM_DATA or has_unknown_extents(node.meta.get("val")):
        return True
    if name == "where":
        return len(args) == 1 and not node.kwargs
    if name == "repeat_interleave":
        repeats = args[1] if len(args) > 1 else node.kwargs.get("repeats", args[0])
        return "output_size" not in node.kwargs and (
            isinstance(repeats, fx.Node) or is_tensor(repeats)
        )
    if node.target in (operator.getitem, "__getitem__", torch.ops.aten.index.Tensor):
        index = args[1]
        entries = index if isinstance(index, (tuple, list)) else [index]
        return any(is_mask(entry) for entry in entries)
    return False


def has_unknown_extents(value: Any) -> bool:
    """Return whether a value, or one in a tuple, has an extent unknown to ``torch.export``."""
    if isinstance(value, torch.Tensor):
        if not any(isinstance(size, torch.SymInt) for size in value.shape):
            return False
        # Imported here since it loads SymPy, which most models do not need.
        from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

        return bool(free_unbacked_symbols(value))
    return isinstance(value, (tuple, list)) and any(has_unknown_extents(each) for each in value)


def member_index(node: fx.Node, modules: Mapping[str, nn.Module]) -> int | None:
    """Return the position of the named member that a ``getattr`` reads from a result.

    ``None`` if torch does not name it.
    """
    producer, field = node.args[0], node.args[1]
    assert isinstance(producer, fx.Node)
    name = bare_name(producer, modules) if producer.op.startswith("call") else ""
    for each in (name, f"linalg_{name}"):
        fields: Any = getattr(getattr(torch.return_types, each, None), "__match_args__", ())
        if field in fields:
            return int(fields.index(field))
    return None
