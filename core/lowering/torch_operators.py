"""Traits of torch's operators that a graph does not show: data-dependent shapes, member names."""

from __future__ import annotations

import inspect
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import fx, nn
from torch.overrides import resolve_name

from lowerscope.core.lowering.rule_table import find_rule
from lowerscope.core.sources.onnx_models import OnnxNode

_NOT_A_NAME = ("constant", "check", "attribute", "identity", "where_method", "type_", "onnx")
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
    return str(node.args[1]) if target is getattr else callee_name(target)


def callee_name(target: Any) -> str:
    """Return the bare name of the callee of a ``call_function`` or ``call_method`` node."""
    if isinstance(target, str):
        return target
    schema = getattr(target, "_schema", None)
    if schema is not None:
        return str(schema.name).rpartition("::")[2]
    # Objects that can be called have no name of their own.
    return str(getattr(target, "__name__", type(target).__name__))


def qualified_name(node: fx.Node, modules: Mapping[str, torch.nn.Module]) -> str:
    """Return the qualified name of the operator of `node`: ``torch.fft.rfft``."""
    if node.op == "call_module":
        kind = type(modules[str(node.target)])
        if kind.__module__ == "onnx":
            return f"onnx.{kind.__qualname__}"
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
        *("nonzero", "nonzero_numpy", "argwhere", "masked_select", "unique", "unique_consecutive"),
        *("unique_dim", "_unique2", "bincount"),
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
    if name in _SHAPE_FROM_DATA:
        return True
    if has_unknown_extents(node.meta.get("val")):
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


_DROPOUTS = frozenset(
    {
        *("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout"),
        *("feature_alpha_dropout", "feature_dropout", "native_dropout"),
    }
)
"""Dropouts, which draw nothing if their probability is 0."""

_RANDOM = _DROPOUTS | {
    *("rand", "rand_like", "randn", "randn_like", "randint", "randint_like", "randperm"),
    *("bernoulli", "multinomial", "normal", "poisson", "binomial", "random", "uniform"),
    *("exponential", "geometric", "cauchy", "log_normal", "gumbel_softmax", "rrelu"),
    *("standard_gamma", "sample_dirichlet"),
    *("rrelu_with_noise", "fractional_max_pool2d", "fractional_max_pool3d"),
    *("fractional_max_pool2d_with_indices", "fractional_max_pool3d_with_indices"),
}

_IN_TRAINING = frozenset({"training", "train"})
"""Names of arguments that enable a random operator."""

_WITH_DROPOUT = {
    "scaled_dot_product_attention": ("dropout_p", 4),
    "_scaled_dot_product_attention_math": ("dropout_p", 4),
    "multi_head_attention_forward": ("dropout_p", 9),
    **dict.fromkeys(("lstm", "gru", "rnn_tanh", "rnn_relu"), ("dropout", 5)),
}
"""Operators with an internal dropout: name and position of the probability."""

_RANDOM_MODULES = (nn.modules.dropout._DropoutNd, nn.RReLU)
_ALWAYS_RANDOM_MODULES = (nn.FractionalMaxPool2d, nn.FractionalMaxPool3d)

OF_SHAPE_ALONE = frozenset(
    {
        *("zeros_like", "ones_like", "empty_like", "full_like"),
        *("new_zeros", "new_ones", "new_empty", "new_full", "zero", "fill"),
    }
)
"""Operators that read no element of their first argument."""


def is_random(node: fx.Node, modules: Mapping[str, nn.Module]) -> bool:
    """Return whether the value of `node` is random."""
    if node.op == "call_module":
        return any(_draws(module) for module in modules[str(node.target)].modules())
    if node.op not in ("call_function", "call_method"):
        return False
    name = bare_name(node, modules).strip("_").removesuffix("_functional")
    if name in _WITH_DROPOUT or f"_{name}" in _WITH_DROPOUT:
        return _drops_out(node, name if name in _WITH_DROPOUT else f"_{name}")
    if name not in _RANDOM:
        return any(_has_random_branch(each, modules) for each in node.all_input_nodes)
    if name in _DROPOUTS and _argument(node, "p", 1, 0.5) == 0:
        return False
    switch = _switch(node)
    return switch is None or bool(switch)


def random_outputs(
    graph_module: fx.GraphModule,
    output: fx.Node,
    leaves_of: Callable[[fx.Node], int],
    gives_tensors: Callable[[fx.Node], bool],
    mutations: Mapping[str, Sequence[str]],
) -> tuple[tuple[str, ...], ...]:
    """Return for each output of a graph the names of the random operators that it depends on.

    Where TVM and torch have drawn other numbers, their values cannot be compared: neither is wrong.

    `leaves_of`: returns the number of outputs in a node's value.
    `gives_tensors`: whether a node's value has tensors; a shape does not depend on random values.
    `mutations`: names of the nodes whose values each node changes, by its own name.
    """
    modules = dict(graph_module.named_modules(remove_duplicate=False))
    named = {node.name: node for node in graph_module.graph.nodes}
    sources: dict[fx.Node, dict[str, None]] = {}
    for node in graph_module.graph.nodes:
        if "drawn" in node.meta:
            # A constant that the fx tracer made of random values drawn in forward.
            sources[node] = {node.meta["drawn"]: None}
        if not node.op.startswith("call") or not (sources or is_random(node, modules)):
            continue
        if not gives_tensors(node):
            continue
        read = list(node.all_input_nodes)
        if bare_name(node, modules).strip("_") in OF_SHAPE_ALONE:
            read = read[1:]
        found = {name: None for each in read for name in sources.get(each, ())}
        if is_random(node, modules):
            found[operator_name(node, modules)] = None
        if found:
            sources[node] = found
        for changed in mutations.get(node.name, ()):
            sources[named[changed]] = found
    return tuple(
        tuple(sources.get(leaf, ())) if isinstance(leaf, fx.Node) else ()
        for leaf, count in _outputs(output.args[0], leaves_of)
        for _ in range(count)
    )


def _outputs(value: Any, leaves_of: Callable[[fx.Node], int]) -> Iterator[tuple[Any, int]]:
    """Yield the values of an output node in order, with the number of outputs of each."""
    if isinstance(value, fx.Node):
        yield value, leaves_of(value)
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from _outputs(each, leaves_of)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _outputs(each, leaves_of)
    elif isinstance(value, (bool, int, float)):
        yield value, 1


def _draws(module: nn.Module) -> bool:
    if isinstance(module, OnnxNode):
        return module.is_random
    if isinstance(module, _ALWAYS_RANDOM_MODULES):
        return True
    if not module.training:
        return False
    if isinstance(module, _RANDOM_MODULES):
        return bool(getattr(module, "p", 1))
    if isinstance(module, (nn.RNNBase, nn.MultiheadAttention)):
        return bool(module.dropout)
    return False


def _drops_out(node: fx.Node, name: str) -> bool:
    if not _argument(node, *_WITH_DROPOUT[name], 0.0):
        return False
    if name == "multi_head_attention_forward":
        return bool(_argument(node, "training", 12, True))
    if name in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
        return bool(_argument(node, "train", 6, False))
    return True


def _has_random_branch(node: fx.Node, modules: Mapping[str, nn.Module]) -> bool:
    """Return whether `node` is a subgraph, a branch of control flow, that draws random numbers."""
    branch = modules.get(str(node.target)) if node.op == "get_attr" else None
    if not isinstance(branch, fx.GraphModule):
        return False
    inner = dict(branch.named_modules(remove_duplicate=False))
    return any(is_random(each, inner) for each in branch.graph.nodes)


def _switch(node: fx.Node) -> Any:
    """Return the argument that enables a random function; ``None`` for none."""
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
            # torch's C++ functions have no Python signature.
            return None
        names = list(parameters)
        defaults = {name: parameter.default for name, parameter in parameters.items()}
    name = next((each for each in names if each in _IN_TRAINING), None)
    return None if name is None else _argument(node, name, names.index(name), defaults[name])


def _argument(node: fx.Node, name: str, position: int, default: Any) -> Any:
    if name in node.kwargs:
        return node.kwargs[name]
    return node.args[position] if len(node.args) > position else default
