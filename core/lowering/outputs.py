"""Outputs of a model, in the order in which torch flattens them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import fx
from tvm import ir, relax

from lowerscope.core.lowering.builder import NodeBuilder
from lowerscope.core.lowering.relax_values import Held, Value, is_tensor
from lowerscope.core.lowering.rule_table import Missing, Refused


def output_value(builder: NodeBuilder, graph_module: fx.GraphModule, value: Any) -> Value:
    """Return the value that ``main`` returns: a tensor for one tensor, else a flat tuple.

    Nested tuples, lists and dicts are flattened in order; ``None`` is left out, and numbers become
    tensors of rank 0.
    """
    leaves = [_tensor(builder, leaf) for leaf in _leaves(builder, value) if leaf is not None]
    if _returns_one(graph_module, value):
        return leaves[0]
    return relax.Tuple(leaves)


def count_outputs(value: Any) -> int:
    """Return the number of outputs in a node's value."""
    if isinstance(value, (tuple, list)):
        return sum(count_outputs(each) for each in value)
    if isinstance(value, dict):
        return sum(count_outputs(each) for each in value.values())
    if isinstance(value, ir.Expr) and isinstance(value.ty, relax.TupleType):
        return len(value.ty.fields)
    return int(value is not None)


def _returns_one(graph_module: fx.GraphModule, value: Any) -> bool:
    """Return whether the model returns a value itself, not a tuple of one."""
    info = getattr(graph_module.graph._codegen, "pytree_info", None)
    spec = getattr(info, "out_spec", None)
    if spec is not None:
        return bool(spec.is_leaf())
    if isinstance(value, ir.Expr):
        return not isinstance(value.ty, relax.TupleType)
    return not isinstance(value, (tuple, list, dict))


def _leaves(builder: NodeBuilder, value: Any) -> Iterator[Any]:
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from _leaves(builder, item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _leaves(builder, item)
    elif isinstance(value, ir.Expr) and isinstance(value.ty, relax.TupleType):
        for index in range(len(value.ty.fields)):
            yield builder.emit(value[index])
    else:
        yield value


def _tensor(builder: NodeBuilder, leaf: Any) -> Value:
    if is_tensor(leaf):
        return leaf
    if isinstance(leaf, (bool, int, float)):
        return builder.constant(torch.tensor(leaf))
    if isinstance(leaf, Held):
        raise Refused(f"an output is {leaf.dtype}, which TVM does not have")
    reason = leaf.reason if isinstance(leaf, Missing) else f"an output is a {type(leaf).__name__}"
    raise Refused(reason)
