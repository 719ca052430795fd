"""What torch's operators do that a graph does not show: draw numbers, or make a shape of data."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import fx, nn

from lowerscope.core.lowering.operator_names import bare_name

_RANDOM = frozenset(
    {
        "rand",
        "rand_like",
        "randn",
        "randn_like",
        "randint",
        "randint_like",
        "randperm",
        "bernoulli",
        "multinomial",
        "normal",
        "poisson",
        "random",
        "uniform",
        "exponential",
        "geometric",
        "cauchy",
        "log_normal",
        "gumbel_softmax",
        "dropout",
        "dropout1d",
        "dropout2d",
        "dropout3d",
        "alpha_dropout",
        "feature_alpha_dropout",
        "feature_dropout",
        "native_dropout",
        "rrelu",
        "rrelu_with_noise",
        "fractional_max_pool2d",
        "fractional_max_pool3d",
        "fractional_max_pool2d_with_indices",
        "fractional_max_pool3d_with_indices",
    }
)
_IN_TRAINING = frozenset({"training", "train"})
"""Names of arguments that switch a random operator on."""

_RANDOM_MODULES = (
    nn.modules.dropout._DropoutNd,
    nn.RReLU,
)

_SHAPE_FROM_DATA = frozenset(
    {
        "nonzero",
        "argwhere",
        "masked_select",
        "unique",
        "unique_consecutive",
        "unique_dim",
        "_unique2",
        "bincount",
    }
)


def is_random(node: fx.Node, modules: Mapping[str, nn.Module]) -> bool:
    """Return whether what `node` gives is drawn anew each time."""
    if node.op == "call_module":
        return any(_draws(module) for module in modules[str(node.target)].modules())
    name = bare_name(node, modules).strip("_")
    if name == "scaled_dot_product_attention":
        return bool(_argument(node, "dropout_p", 4, 0.0))
    if name not in _RANDOM:
        return False
    switch = _switch(node)
    return switch is None or bool(switch)


def has_shape_from_data(
    node: fx.Node,
    modules: Mapping[str, nn.Module],
    args: tuple[Any, ...],
    is_mask: Callable[[Any], bool],
    is_tensor: Callable[[Any], bool],
) -> bool:
    """Return whether the shape that `node` gives depends on the values of its inputs.

    Parameters
    ----------
    args
        The node's arguments, with values in place of nodes.
    is_mask, is_tensor
        Whether a value is a tensor of booleans, or any tensor.
    """
    name = bare_name(node, modules)
    if name in _SHAPE_FROM_DATA:
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


def member_index(node: fx.Node, modules: Mapping[str, nn.Module]) -> int | None:
    """Return the position of the member that a ``getattr`` reads of a result with named members.

    ``None`` where torch does not name it.
    """
    producer, field = node.args[0], node.args[1]
    assert isinstance(producer, fx.Node)
    name = bare_name(producer, modules) if producer.op.startswith("call") else ""
    for each in (name, f"linalg_{name}"):
        fields: Any = getattr(getattr(torch.return_types, each, None), "__match_args__", ())
        if field in fields:
            return int(fields.index(field))
    return None


def _draws(module: nn.Module) -> bool:
    if not module.training:
        return False
    if isinstance(module, _RANDOM_MODULES):
        return bool(getattr(module, "p", 1))
    if isinstance(module, (nn.RNNBase, nn.MultiheadAttention)):
        return bool(module.dropout)
    return False


def _switch(node: fx.Node) -> Any:
    """Return the value of the argument that switches a random function on; ``None`` for none."""
    target: Any = node.target
    schema = getattr(target, "_schema", None)
    if schema is not None:
        names = [argument.name for argument in schema.arguments]
        defaults = {argument.name: argument.default_value for argument in schema.arguments}
    else:
        if target is torch.dropout:
            return _argument(node, "train", 2, True)
        try:
            parameters = inspect.signature(target).parameters
        except (TypeError, ValueError):
            # Functions of torch's C++ side have no signature that Python knows.
            return None
        names = list(parameters)
        defaults = {name: parameter.default for name, parameter in parameters.items()}
    name = next((each for each in names if each in _IN_TRAINING), None)
    return None if name is None else _argument(node, name, names.index(name), defaults[name])


def _argument(node: fx.Node, name: str, position: int, default: Any) -> Any:
    if name in node.kwargs:
        return node.kwargs[name]
    return node.args[position] if len(node.args) > position else default
