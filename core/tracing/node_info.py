"""Value descriptions of traced nodes: shape and dtype, or a nest of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from lowerscope.core.model.formatting import shape_text


@dataclass(frozen=True)
class NodeInfo:
    """The value of a traced node.

    Attributes
    ----------
    shape
        Extents of a tensor; ``None`` for other values.
    dtype
        Of a tensor, as ``"float32"``; empty for other values.
    text
        The value in words: ``1×784 float32``, ``(1×10 float32, 1×32 float32)``, ``int``.
    items
        The members of a tuple or list, in order.
    """

    shape: tuple[int | str, ...] | None
    dtype: str
    text: str
    items: tuple[NodeInfo, ...] = ()


def describe(value: Any, written: Callable[[Any], str] = str) -> NodeInfo:
    """Return the description of `value`: a tensor, a number or a nest of them.

    Parameters
    ----------
    written
        Formats a symbolic extent.
    """
    if isinstance(value, torch.Tensor):
        shape = tuple(size if isinstance(size, int) else written(size) for size in value.shape)
        dtype = str(value.dtype).removeprefix("torch.")
        return NodeInfo(shape, dtype, f"{shape_text(shape)} {dtype}")
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
    return NodeInfo(None, "", "none" if value is None else type(value).__name__)


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
