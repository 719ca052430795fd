"""Traits of torch's operators that a graph does not show: data-dependent shapes, member names."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import fx, nn
from torch.overrides import resolve_name

from lowerscope.core.lowering.rule_table import find_rule

_NOT_A_NAME = ("constant", "check", "attribute", "identity", "where_method", "type_")
"""Rules named for their result, where torch has a separate name for each operator."""
_CONVOLUTIONS = ("conv", "conv_transpose")


def operator_name(node: fx.Node, modules: Mapping[str, torch.nn.Module]) -> str:
    """Return one name for the operator of `node`, in whichever form it is called.

    ``conv2d`` stands for ``nn.Conv2d``, ``F.conv2d`` and ``aten.conv2d``, ``add`` for ``+``,
    ``torch.add`` and ``x.add_``.
    """
    target = _target(node, modules)
    rule = None if target is getattr else find_rule(target)
    name = bare_name(node, modules)
    if rule is not None and rule.name in _CONVOLUTIONS:
        return f"{rule.name}{_dimensions(node, name)}d"
    if rule is not None and rule.name not in _NOT_A_NAME:
        return rule.name
    if name.startswith("__"):
        return name.strip("_")
    return _with_underscores(name) if node.op == "call_module" else name.strip("_")


def bare_name(node: fx.Node, modules: Mapping[str, torch.nn.Module]) -> str:
    """Return the name of the operator of `node` as written: ``Conv2d``, ``relu_``, ``T``."""
    target = _target(node, modules)
    if target is getattr:
        return str(node.args[1])
    if isinstance(target, str):
        return target
    schema = getattr(target, "_schema", None)
    if schema is not None:
        return str(schema.name).rpartition("::")[2]
    return str(getattr(target, "__name__", type(target).__name__))


def qualified_name(node: fx.Node, modules: Mapping[str, torch.nn.Module]) -> str:
    """Return the qualified name of the operator of `node`: ``torch.fft.rfft``."""
    if node.op == "call_module":
        kind = type(modules[str(node.target)])
        return f"{kind.__module__.split('.')[0]}.nn.{kind.__qualname__}"
    if node.op == "call_method":
        return f"Tensor.{node.target}"
    if isinstance(node.target, torch._ops.OpOverload):
        return str(node.target)
    assert not isinstance(node.target, str)
    name = resolve_name(node.target)
    return str(name or getattr(node.target, "__qualname__", node.target))


def _with_underscores(name: str) -> str:
    """Return ``transformer_encoder_layer`` for ``TransformerEncoderLayer``."""
    return _WORD.sub("_", name.replace("ReLU", "relu")).lower()


_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def _dimensions(node: fx.Node, name: str) -> int:
    """Return the number of spatial axes of a convolution."""
    if name != "convolution":
        return int(name.rstrip("_")[-2])
    strides = node.args[3]
    assert isinstance(strides, (list, tuple))
    return len(strides)


def _target(node: fx.Node, modules: Mapping[str, torch.nn.Module]) -> Any:
    return type(modules[str(node.target)]) if node.op == "call_module" else node.target


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
    """Return whether the shape of a node's value depends on the values of its inputs."""
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
