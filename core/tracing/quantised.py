"""Quantised tensors of torch.ao as integers with scales, in operators that TVM has.

A tensor of dtype ``quint8`` stands for ``(integer - zero_point) * scale``. Torch computes with such
tensors by functions of its own. Here their arithmetic is written out in the graph: a convolution
multiplies integers, and its sums are scaled, rounded and clamped to the integers of its result.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import fx, nn
from torch.ao.nn import quantized
from torch.ao.nn.intrinsic import quantized as fused
from torch.ao.nn.quantized import dynamic

from lowerscope.core.model.snapshot import SourceLine
from lowerscope.core.tracing.example_run import may_write, operator_name
from lowerscope.core.tracing.quantised_operator import Given, QuantisedOperator

_RANGES = {torch.quint8: (0, 255, torch.uint8), torch.qint8: (-128, 127, torch.int8)}
"""Smallest and largest integer of each dtype, and the dtype of the integers."""


@dataclass(frozen=True)
class QuantisedNode:
    """A node whose tensor, or tuple of tensors, has a scale.

    `integers`: the node in the new graph; its value stands for
        ``(integers - zero_point) * scale``.
    """

    integers: fx.Node
    scale: float
    zero_point: int
    dtype: torch.dtype = torch.quint8


class _Unknown(Exception):
    """A node of quantised tensors that is not known here."""


def with_integers(
    graph_module: fx.GraphModule,
    inputs: Sequence[torch.Tensor],
    lines: dict[str, SourceLine],
    *,
    averages: bool,
    sums: torch.dtype,
) -> fx.GraphModule | None:
    """Return a graph that computes with the integers of quantised tensors.

    An operator on them that is not known here runs in torch, and is given them with their scales.
    ``None`` if the scales of its result are of another kind.

    `inputs`: on which such an operator shows the scale of its result.
    `lines`: the source lines of nodes by name, to which those of new nodes are added.
    `averages`: whether averages are written out too. One that is as near to an integer as to the
        next is rounded by the order in which torch adds, which depends on the memory layout.
    `sums`: dtype of sums of products. Those of float32 are exact up to 2^24.
    """
    modules = dict(graph_module.named_modules(remove_duplicate=False))
    try:
        return _Rewriting(graph_module, modules, inputs, lines, averages, sums).graph_module()
    except _Unknown:
        return None


class _Rewriting:
    """Makes the graph, node by node.

    Each node of the old graph becomes one, or some whose last one has its name.
    """

    def __init__(
        self,
        graph_module: fx.GraphModule,
        modules: Mapping[str, nn.Module],
        inputs: Sequence[torch.Tensor],
        lines: dict[str, SourceLine],
        averages: bool,
        sums: torch.dtype,
    ) -> None:
        self.sums = sums
        self._old = graph_module
        self._averages = averages
        self._inputs = inputs
        self._modules = modules
        self._lines = lines
        self._made = fx.GraphModule(graph_module, graph_module.graph, type(graph_module).__name__)
        graph_module.graph.owning_module = graph_module
        self._graph = fx.Graph()
        self._values: dict[fx.Node, Any] = {}
        self._own: set[str] = set()
        self.node = next(iter(graph_module.graph.nodes))

    def graph_module(self) -> fx.GraphModule:
        for node in self._old.graph.nodes:
            self.node = node
            last = next(reversed(self._graph.nodes), None)
            try:
                self._values[node] = self._value(node)
            except (_Unknown, TypeError):  # the latter for the arguments of another overload
                self._values[node] = self._in_torch(node)
            if node.all_input_nodes and self._is_in_place(node):
                self._values[node.all_input_nodes[0]] = self._values[node]
            for new in reversed(self._graph.nodes):
                if new is last:
                    break
                new.meta = {**node.meta}
                if node.op == "call_module":
                    # They are shown as those of the module.
                    path = str(node.target)
                    stack = {**node.meta.get("nn_module_stack", {})}
                    new.meta["nn_module_stack"] = stack | {path: (path, type(self._modules[path]))}
                if node.name in self._lines:
                    self._lines[new.name] = self._lines[node.name]
        self._graph.eliminate_dead_code(lambda node: node.op not in ("get_attr", "call_module"))
        self._made.graph = self._graph
        self._made.delete_all_unused_submodules()
        read = {str(each.target) for each in self._graph.find_nodes(op="get_attr")}
        for name in [each for each in self._made._buffers if each in self._own - read]:
            del self._made._buffers[name]
        self._made.recompile()
        return self._made

    def _is_in_place(self, node: fx.Node) -> bool:
        if not isinstance(self._values[node], QuantisedNode):
            return False
        module = self._modules.get(str(node.target)) if node.op == "call_module" else None
        if isinstance(module, quantized.LeakyReLU):  # of which torch ignores it
            return False
        return may_write(node) or bool(getattr(module, "inplace", node.kwargs.get("inplace")))

    def _value(self, node: fx.Node) -> Any:
        module = self._modules.get(str(node.target)) if node.op == "call_module" else None
        reads = self._reads(node)
        if type(module) in _OF_NUMBERS or (reads and type(module) in _MODULES):
            known = {**_MODULES, **_OF_NUMBERS}[type(module)]
            return known(self, module, *self.args(), **self.kwargs())
        name = operator_name(node) if module is None else type(module).__name__
        if node.op == "call_function" and name == "quantize_per_tensor":
            return _quantize(self, *self.args(), **self.kwargs())
        if not reads:
            return self._copied(node)
        if node.op == "call_function" and name in _NEW and _namespace(node) == "quantized":
            return _NEW[name](self, *self.args(), **self.kwargs())
        if name not in _KEPT or (name in _AVERAGES and not self._averages):
            raise _Unknown(name)
        return _KEPT[name](self)

    def _reads(self, node: fx.Node) -> bool:
        return any(isinstance(self._values[each], QuantisedNode) for each in node.all_input_nodes)

    def _copied(self, node: fx.Node) -> fx.Node:
        return self._graph.node_copy(node, self._values.__getitem__)

    @cached_property
    def _examples(self) -> Mapping[fx.Node, Any]:
        """The values of the old graph's nodes on the example inputs."""
        run = fx.Interpreter(self._old, garbage_collect_values=False)
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            run.run(*self._inputs, enable_io_processing=False)
        return run.env

    def example(self, node: fx.Node) -> Any:
        """Return the value of a node of the old graph on the example inputs."""
        return self._examples[node]

    def _in_torch(self, node: fx.Node) -> Any:
        """Return the value of a node that runs in torch."""
        if not self._reads(node):
            # The scale of what it makes of numbers may be another one for others.
            return self._copied(node)
        example = self.example(node)
        if not isinstance(example, torch.Tensor):
            raise _Unknown(node.name)
        if any(map(self._has_other_scale, node.all_input_nodes)):
            raise _Unknown(node.name)
        given = [self._values[each] for each in node.all_input_nodes]
        places = {each: Given(index) for index, each in enumerate(node.all_input_nodes)}
        called = self._modules[str(node.target)] if node.op == "call_module" else node.target
        scales = [
            (each.scale, each.zero_point) if isinstance(each, QuantisedNode) else None
            for each in given
        ]
        arguments = fx.map_arg((node.args, node.kwargs), places.__getitem__)  # type: ignore[arg-type]
        name = f"{node.name}_in_torch"
        layouts = [_layout(self.example(each)) for each in node.all_input_nodes]
        self._made.add_module(name, QuantisedOperator(called, arguments, scales, layouts))
        nodes = tuple(each.integers if isinstance(each, QuantisedNode) else each for each in given)
        result = self._graph.create_node("call_module", name, nodes, {}, node.name)
        if not example.is_quantized:
            return result
        if example.qscheme() != torch.per_tensor_affine or example.dtype not in _RANGES:
            raise _Unknown(node.name)
        return QuantisedNode(result, example.q_scale(), example.q_zero_point(), example.dtype)

    def _has_other_scale(self, node: fx.Node) -> bool:
        """Return whether the value of a node is a quantised tensor without a known scale."""
        if isinstance(self._values[node], QuantisedNode):
            return False
        return bool(getattr(self.example(node), "is_quantized", False))

    def args(self) -> tuple[Any, ...]:
        return fx.map_arg(self.node.args, self._values.__getitem__)

    def kwargs(self) -> dict[str, Any]:
        return fx.map_arg(self.node.kwargs, self._values.__getitem__)

    def source(self) -> QuantisedNode:
        """Return the one quantised tensor that the node reads."""
        found = [self._values[each] for each in self.node.all_input_nodes]
        sources = [each for each in found if isinstance(each, QuantisedNode)]
        if len(sources) != 1:
            raise _Unknown(self.node.name)
        return sources[0]

    def again(self, given: fx.Node, name: str | None = None) -> fx.Node:
        """Copy the node, with another in place of its quantised tensor."""

        def taken(each: fx.Node) -> Any:
            value = self._values[each]
            return given if isinstance(value, QuantisedNode) else value

        node = self.node
        args, kwargs = fx.map_arg((node.args, node.kwargs), taken)
        return self._graph.create_node(node.op, node.target, args, kwargs, name or node.name)

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> fx.Node:
        name = f"{self.node.name}_{function.__name__}"
        return self._graph.create_node("call_function", function, args, kwargs, name)

    def last(self, function: Callable[..., Any], *args: Any) -> fx.Node:
        """Call a function for the value of the node itself."""
        return self._graph.create_node("call_function", function, args, {}, self.node.name)

    def to(self, value: fx.Node, dtype: torch.dtype, name: str | None = None) -> fx.Node:
        name = name or f"{self.node.name}_{str(dtype)[6:]}"
        return self._graph.create_node("call_method", "to", (value, dtype), {}, name)

    def constant(self, name: str, value: torch.Tensor) -> fx.Node:
        name = f"{self.node.name}_{name}"
        self._made.register_buffer(name, value)
        self._own.add(name)
        return self._graph.get_attr(name)

    def held(self, value: fx.Node) -> Any:
        """Return an attribute of the model."""
        if value.op != "get_attr":
            raise _Unknown(value.name)
        return operator.attrgetter(str(value.target))(self._made)

    def number(self, value: Any) -> float:
        """Return a scale or a zero point that is a number, or a tensor of the model."""
        value = self.held(value) if isinstance(value, fx.Node) else value
        return value.item() if isinstance(value, torch.Tensor) else value

    def shifted(self, value: QuantisedNode, dtype: torch.dtype = torch.float32) -> fx.Node:
        """Return the integers less the zero point, as floating-point numbers."""
        floats = self.to(value.integers, dtype)
        return self.call(torch.sub, floats, value.zero_point) if value.zero_point else floats

    def summed(self, function: Callable[..., Any], *args: Any, **options: Any) -> fx.Node:
        """Return the sums of a product, as float32."""
        sums = self.call(function, *args, **options)
        return sums if self.sums == torch.float32 else self.to(sums, torch.float32)

    def fused(self, value: fx.Node, factor: Any, addend: Any) -> fx.Node:
        """Return ``value * factor + addend`` in float32, rounded once, as torch's kernels do."""
        product = self.call(torch.mul, self.to(value, torch.float64), _f32(factor))
        return self.to(self.call(torch.add, product, _f32(addend)), torch.float32)

    def floats(self, value: QuantisedNode) -> fx.Node:
        """Return the numbers that a quantised tensor stands for, as operators compute them."""
        less = -np.float32(value.zero_point) * np.float32(value.scale)
        return self.fused(value.integers, value.scale, less)

    def quantised(
        self, value: fx.Node, scale: Any, zero_point: Any, dtype: torch.dtype = torch.quint8
    ) -> QuantisedNode:
        """Return the quantised tensor that is nearest to numbers."""
        scale, zero_point = float(self.number(scale)), int(self.number(zero_point))
        given = self.call(torch.mul, value, float(_over(scale)))
        return self.rounded(given, scale, zero_point, dtype)

    def rounded(
        self,
        value: fx.Node,
        scale: float,
        zero_point: int,
        dtype: torch.dtype = torch.quint8,
        *,
        is_relu: bool = False,
    ) -> QuantisedNode:
        """Return the quantised tensor that is nearest to multiples of its scale."""
        found = self.call(torch.round, value)
        found = self.call(torch.add, found, zero_point) if zero_point else found
        return self.clamped(found, scale, zero_point, dtype, is_relu=is_relu)

    def clamped(
        self,
        found: fx.Node,
        scale: float,
        zero_point: int,
        dtype: torch.dtype,
        *,
        is_relu: bool = False,
    ) -> QuantisedNode:
        """Return the quantised tensor of integers that are out of range, or below 0 for a ReLU."""
        if dtype not in _RANGES:
            raise _Unknown(str(dtype))
        low, high, own = _RANGES[dtype]
        found = self.call(torch.clamp, found, max(low, zero_point) if is_relu else low, high)
        return QuantisedNode(self.to(found, own, self.node.name), scale, zero_point, dtype)


def _layout(value: Any) -> torch.memory_format:
    layouts = {4: torch.channels_last, 5: torch.channels_last_3d}
    layout = layouts.get(value.dim()) if isinstance(value, torch.Tensor) else None
    if layout is not None and value.is_contiguous(memory_format=layout):
        return layout
    return torch.contiguous_format


def _f32(value: Any) -> float:
    return float(np.float32(value))


def _over(scale: Any) -> Any:
    return np.float32(1) / np.float32(scale)


def _namespace(node: fx.Node) -> str:
    target = node.target
    name = str(getattr(target, "_qualified_op_name", getattr(target, "_schema", "")))
    return name.partition("::")[0].rpartition(".")[2]


# Operators that make quantised tensors, by the name of torch's function.


def _quantize(
    b: _Rewriting, input: fx.Node, scale: Any, zero_point: Any, dtype: torch.dtype
) -> QuantisedNode:
    scale, zero_point = float(b.number(scale)), int(b.number(zero_point))
    if dtype not in _RANGES:
        raise _Unknown(str(dtype))
    numbers = b.fused(input, _over(scale), zero_point)
    # NaN becomes the largest integer, as in torch.
    largest = float(_RANGES[dtype][1])
    numbers = b.call(torch.where, b.call(torch.isnan, numbers), largest, numbers)
    return b.clamped(b.call(torch.round, numbers), scale, zero_point, dtype)


def _sum(is_relu: bool) -> Callable[..., QuantisedNode]:
    def add(b: _Rewriting, qa: Any, qb: Any, scale: Any, zero_point: Any) -> QuantisedNode:
        result = b.call(torch.add, *map(b.floats, _both(qa, qb)))
        result = b.call(torch.relu, result) if is_relu else result
        return b.quantised(result, scale, zero_point, qa.dtype)

    return add


def _product_of_two(is_relu: bool) -> Callable[..., QuantisedNode]:
    def mul(
        b: _Rewriting, qa: Any, qb: Any, scale: Any = None, zero_point: Any = None
    ) -> QuantisedNode:
        if isinstance(qb, int | float) and qb > 0 and not is_relu:
            (one,) = _both(qa)
            return replace(one, integers=b.last(torch.clone, one.integers), scale=one.scale * qb)
        one, other = _both(qa, qb)
        scale, zero_point = b.number(scale), int(b.number(zero_point))
        product = b.call(torch.mul, b.shifted(one), b.shifted(other))
        factor = np.float32(one.scale) * np.float32(other.scale)
        factor *= _over(scale)
        scaled = b.call(torch.mul, product, float(factor))
        return b.rounded(scaled, scale, zero_point, one.dtype, is_relu=is_relu)

    return mul


def _both(*values: Any) -> tuple[QuantisedNode, ...]:
    if not all(isinstance(each, QuantisedNode) for each in values):
        raise _Unknown("a number")
    return values


def _joined(
    b: _Rewriting, tensors: Sequence[Any], dim: int = 0, scale: Any = None, zero_point: Any = None
) -> QuantisedNode:
    parts = _both(*tensors)
    first = parts[0]
    if scale is None or zero_point is None:
        scale, zero_point = first.scale, first.zero_point
    own = float(b.number(scale)), int(b.number(zero_point))
    if all((each.scale, each.zero_point, each.dtype) == (*own, first.dtype) for each in parts):
        ints = b.call(torch.cat, [each.integers for each in parts], dim)
        return QuantisedNode(ints, *own, first.dtype)
    joined = b.call(torch.cat, [b.floats(each) for each in parts], dim)
    return b.quantised(joined, *own, first.dtype)


def _joined_anew(
    b: _Rewriting, tensors: Sequence[Any], dim: int, scale: Any, zero_point: Any
) -> QuantisedNode:
    return _joined(b, tensors, dim, scale, zero_point)


def _activation(function: Callable[..., Any]) -> Callable[..., QuantisedNode]:
    """Return what computes an activation function of the numbers."""

    def activation(b: _Rewriting, qx: Any, *args: Any, **kwargs: Any) -> QuantisedNode:
        target: Any = b.node.target
        _first, *names = (
            each.name for each in getattr(target, "default", target)._schema.arguments
        )
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        scale, zero_point = given.pop("output_scale"), given.pop("output_zero_point")
        # Some of torch's functions have an argument for a change in place.
        given.pop("inplace", None)
        found = b.call(function, b.floats(qx), **given)
        return b.quantised(found, scale, zero_point, qx.dtype)

    return activation


def _called_product(function: Callable[..., Any], is_relu: bool) -> Callable[..., QuantisedNode]:
    """Return what computes a product with weights that an object of torch's holds."""

    def product(b: _Rewriting, qx: Any, packed: Any, scale: Any, zero_point: Any) -> QuantisedNode:
        held = b.held(packed)
        weight, bias = held.unpack()
        scale, zero_point = float(b.number(scale)), int(b.number(zero_point))
        names = () if function is F.linear else ("stride", "padding", "dilation", "groups")
        options = {each: getattr(held, each)() for each in names}
        return _scaled_product(b, function, options, qx, weight, bias, scale, zero_point, is_relu)

    return product


_NEW: dict[str, Callable[..., QuantisedNode]] = {
    "add": _sum(False),
    "add_relu": _sum(True),
    "mul": _product_of_two(False),
    "mul_scalar": _product_of_two(False),
    "mul_relu": _product_of_two(True),
    "cat": _joined_anew,
    "hardswish": _activation(F.hardswish),
    "sigmoid": _activation(torch.sigmoid),
    "leaky_relu": _activation(F.leaky_relu),
    "conv2d": _called_product(F.conv2d, False),
    "conv2d_relu": _called_product(F.conv2d, True),
    "conv3d": _called_product(F.conv3d, False),
    "conv3d_relu": _called_product(F.conv3d, True),
    "linear": _called_product(F.linear, False),
    "linear_relu": _called_product(F.linear, True),
}
"""The operators of torch's namespace ``quantized``, by name."""


# Modules.


def _scaled_product(
    b: _Rewriting,
    function: Callable[..., Any],
    options: Mapping[str, Any],
    value: QuantisedNode,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    scale: float,
    zero_point: int,
    is_relu: bool,
) -> QuantisedNode:
    """Return a product with quantised weights: sums of integers, scaled to those of the result.

    The order of the operations is that of the library that torch calls, so the results are equal.
    """
    by_row, of_weight, ones = _scales(weight)
    if function is not F.linear:
        ones = (1,) * (weight.dim() - 2)
    factors = b.shifted(value, b.sums), _integers(b, weight)
    sums = b.summed(function, *factors, None, **options)
    own = None if bias is None else bias.detach().numpy()

    def constant(name: str, value: Any) -> fx.Node:
        return b.constant(name, torch.tensor(value).reshape(-1, *ones))

    step, over = np.float32(value.scale), _over(scale)
    if _is_of_onednn(weight, function, options):
        numbers = b.call(torch.mul, sums, float(step))
        numbers = b.call(torch.mul, numbers, _factor(b, of_weight, by_row, ones))
        if own is not None:
            numbers = b.call(torch.add, numbers, constant("bias", own))
        scaled = b.call(torch.add, b.call(torch.mul, numbers, float(over)), zero_point)
        rounded = b.call(torch.round, scaled)
        return b.clamped(rounded, scale, zero_point, value.dtype, is_relu=is_relu)
    steps = step * of_weight
    if own is not None:
        own = own / steps if by_row else own * (np.float32(1) / steps)
        sums = b.call(torch.add, sums, constant("bias", own))
    scaled = b.call(torch.mul, sums, _factor(b, steps / np.float32(scale), by_row, ones))
    return b.rounded(scaled, scale, zero_point, value.dtype, is_relu=is_relu)


def _is_of_onednn(
    weight: torch.Tensor, function: Callable[..., Any], options: Mapping[str, Any]
) -> bool:
    """Return whether torch calls oneDNN, as its engine ``x86`` does for most convolutions."""
    engine = torch.backends.quantized.engine
    shifted = weight.qscheme() == torch.per_tensor_affine and weight.q_zero_point()
    other = shifted or options.get("groups", 1) > 100
    if engine == "x86" and function is not F.linear and not other:
        return bool(torch.cpu._is_vnni_supported())
    return engine == "onednn"


def _scales(weight: torch.Tensor) -> tuple[bool, Any, tuple[int, ...]]:
    """Return whether each row of quantised weights has a scale, and the scales as float32."""
    if weight.qscheme() == torch.per_tensor_affine:
        return False, np.float32(weight.q_scale()), ()
    if weight.qscheme() != torch.per_channel_affine or weight.q_per_channel_axis() != 0:
        raise _Unknown(str(weight.qscheme()))
    if weight.q_per_channel_zero_points().any():
        raise _Unknown("zero points")
    return True, weight.q_per_channel_scales().numpy().astype(np.float32), ()


def _integers(b: _Rewriting, weight: torch.Tensor) -> fx.Node:
    """Return the integers of weights, less their zero point, in the dtype of sums."""
    own = QuantisedNode(
        # torch reads the integers of other layouts in the wrong order.
        b.constant("weight", weight.contiguous().int_repr()),
        1.0,
        weight.q_zero_point() if weight.qscheme() == torch.per_tensor_affine else 0,
    )
    return b.shifted(own, b.sums)


def _factor(b: _Rewriting, factor: Any, by_row: bool, ones: tuple[int, ...]) -> Any:
    if not by_row:
        return float(factor)
    return b.constant("factor", torch.from_numpy(factor).reshape(-1, *ones))


def _linear(is_relu: bool) -> Callable[..., QuantisedNode]:
    def linear(b: _Rewriting, module: Any, input: QuantisedNode) -> QuantisedNode:
        weight, bias = module._weight_bias()
        own = module.scale, module.zero_point
        return _scaled_product(b, F.linear, {}, input, weight, bias, *own, is_relu)

    return linear


def _convolution(function: Callable[..., Any], is_relu: bool) -> Callable[..., QuantisedNode]:
    def convolution(b: _Rewriting, module: Any, input: QuantisedNode) -> QuantisedNode:
        if module.padding_mode != "zeros" or not isinstance(module.padding, tuple):
            raise _Unknown(module.padding_mode)
        weight, bias = module._weight_bias()
        names = ("stride", "padding", "groups", "dilation")
        options = {each: getattr(module, each) for each in names}
        own = float(module.scale), int(module.zero_point)
        return _scaled_product(b, function, options, input, weight, bias, *own, is_relu)

    return convolution


def _linear_of_floats(b: _Rewriting, module: Any, input: fx.Node) -> fx.Node:
    """Return what a dynamically quantised linear layer computes.

    Its input is quantised by its own range, to 7 bits, so that sums of 16 bits cannot overflow.
    """
    if module._packed_params.dtype is torch.float16:
        weight, bias = module._weight_bias()
        return b.last(F.linear, input, *_plain_weights(b, weight, bias))
    if torch.backends.quantized.engine == "qnnpack" or module.version < 4:
        raise _Unknown("8 bits")
    weight, bias = module._weight_bias()
    by_row, of_weight, ones = _scales(weight)
    low = b.to(b.call(torch.clamp, b.call(torch.amin, input), max=0), torch.float64)
    high = b.to(b.call(torch.clamp, b.call(torch.amax, input), min=0), torch.float64)
    width = b.to(b.call(torch.div, b.call(torch.sub, high, low), float(_STEPS)), torch.float32)
    # As torch, for an input of zeros alone, and for a small one.
    first = b.call(torch.where, b.call(torch.eq, width, 0.0), 0.1, width)
    ratio = b.call(torch.div, low, first)
    zero = b.call(torch.clamp, b.call(torch.round, b.call(torch.neg, ratio)), 0, _STEPS)
    scale = b.call(torch.clamp, first, min=_SMALLEST_SCALE)
    steps = b.call(torch.mul, b.to(input, torch.float64), b.call(torch.reciprocal, scale))
    moved = b.to(b.call(torch.add, steps, zero), torch.float32)
    shifted = b.call(torch.clamp, b.call(torch.round, moved), 0, 255)
    integers = b.to(shifted, torch.uint8)
    zero = b.to(b.to(zero, torch.int32), b.sums)
    less = b.call(torch.sub, b.to(integers, b.sums), zero)
    sums = b.summed(F.linear, less, _integers(b, weight))
    factor = b.call(torch.mul, scale, _factor(b, of_weight, by_row, ones))
    if bias is None:
        return b.last(torch.mul, sums, factor)
    # Torch's kernel rounds the scaled sum and the bias once.
    scaled = b.call(torch.mul, b.to(sums, torch.float64), b.to(factor, torch.float64))
    own = b.constant("bias", bias.detach().double())
    return b.to(b.call(torch.add, scaled, own), torch.float32, b.node.name)


_STEPS, _SMALLEST_SCALE = 127, _f32(6.1e-5)


def _plain_weights(
    b: _Rewriting, weight: torch.Tensor, bias: torch.Tensor | None
) -> tuple[fx.Node, fx.Node | None]:
    held = b.constant("weight", weight.detach().half())
    own = None if bias is None else b.constant("bias", bias.detach())
    return b.to(held, torch.float32), own


def _normalised(is_relu: bool) -> Callable[..., QuantisedNode]:
    def batch_norm(b: _Rewriting, module: Any, input: QuantisedNode) -> QuantisedNode:
        over = (module.running_var + module.eps).rsqrt() * module.weight
        scale, zero_point = float(module.scale), int(module.zero_point)
        shift = (module.bias - module.running_mean * over) / scale
        ones = (1,) * (2 if "2d" in type(module).__name__ else 3)
        factor = (over * (input.scale / scale)).detach().reshape(-1, *ones)
        scaled = b.call(torch.mul, b.shifted(input), b.constant("factor", factor))
        shift = b.constant("bias", shift.detach().reshape(-1, *ones))
        moved = b.call(torch.add, scaled, shift)
        return b.rounded(moved, scale, zero_point, input.dtype, is_relu=is_relu)

    return batch_norm


def _module_activation(function: Callable[..., Any], *names: str) -> Callable[..., QuantisedNode]:
    def activation(b: _Rewriting, module: Any, input: QuantisedNode) -> QuantisedNode:
        given = {each: getattr(module, each) for each in names}
        scale = getattr(module, "scale", getattr(module, "output_scale", None))
        zero = getattr(module, "zero_point", getattr(module, "output_zero_point", None))
        return b.quantised(b.call(function, b.floats(input), **given), scale, zero, input.dtype)

    return activation


def _layer_norm(b: _Rewriting, module: Any, input: QuantisedNode) -> QuantisedNode:
    names = ("weight", "bias")
    held = [getattr(module, each) for each in names]
    given = [
        None if each is None else b.constant(name, each.detach())
        for name, each in zip(names, held, strict=True)
    ]
    found = b.call(
        F.layer_norm, b.floats(input), tuple(module.normalized_shape), *given, module.eps
    )
    return b.quantised(found, module.scale, module.zero_point, input.dtype)


def _embedding(b: _Rewriting, module: Any, input: fx.Node) -> fx.Node:
    weight = module.weight()
    scales, zeros = weight.q_per_channel_scales(), weight.q_per_channel_zero_points()
    rows = b.to(b.call(F.embedding, input, b.constant("weight", weight.int_repr())), torch.float32)
    scale, zero = (
        b.call(F.embedding, input, b.constant(name, each.float()[:, None]))
        for name, each in (("scale", scales), ("zero", zeros))
    )
    return b.last(torch.mul, b.call(torch.sub, rows, zero), scale)


def _module_quantize(b: _Rewriting, module: Any, input: fx.Node) -> QuantisedNode:
    return _quantize(b, input, module.scale, module.zero_point, module.dtype)


def _module_dequantize(b: _Rewriting, module: Any, input: QuantisedNode) -> fx.Node:
    return b.last(torch.mul, b.shifted(input), _f32(input.scale))


def _relu6(b: _Rewriting, module: Any, input: QuantisedNode) -> QuantisedNode:
    return _clamped(b, input, 0.0, 6.0)


def _clamped(
    b: _Rewriting, value: QuantisedNode, low: float | None, high: float | None
) -> QuantisedNode:
    """Return a quantised tensor with its numbers within bounds."""
    least, most, _own = _RANGES[value.dtype]

    def place(bound: float) -> int:
        steps = np.rint(np.float32(bound) * (np.float32(1) / np.float32(value.scale)))
        return int(min(max(steps + value.zero_point, least), most))

    bounds = [None if each is None else place(each) for each in (low, high)]
    return replace(value, integers=b.last(torch.clamp, value.integers, *bounds))


_OF_NUMBERS: dict[type, Callable[..., Any]] = {
    quantized.Quantize: _module_quantize,
    dynamic.Linear: _linear_of_floats,
    quantized.Embedding: _embedding,
}
"""Modules that take tensors without scales."""

_MODULES: dict[type, Callable[..., Any]] = {
    quantized.DeQuantize: _module_dequantize,
    quantized.Linear: _linear(False),
    fused.LinearReLU: _linear(True),
    quantized.Conv1d: _convolution(F.conv1d, False),
    quantized.Conv2d: _convolution(F.conv2d, False),
    quantized.Conv3d: _convolution(F.conv3d, False),
    fused.ConvReLU1d: _convolution(F.conv1d, True),
    fused.ConvReLU2d: _convolution(F.conv2d, True),
    fused.ConvReLU3d: _convolution(F.conv3d, True),
    quantized.BatchNorm2d: _normalised(False),
    quantized.BatchNorm3d: _normalised(False),
    fused.BNReLU2d: _normalised(True),
    fused.BNReLU3d: _normalised(True),
    quantized.LayerNorm: _layer_norm,
    quantized.ReLU6: _relu6,
    quantized.Hardswish: _module_activation(F.hardswish),
    quantized.ELU: _module_activation(F.elu, "alpha"),
    quantized.LeakyReLU: _module_activation(F.leaky_relu, "negative_slope"),
    quantized.Sigmoid: _module_activation(torch.sigmoid),
    quantized.Softmax: _module_activation(F.softmax, "dim"),
}


# Operators of torch that take quantised tensors as others, by name.


def _of_integers(b: _Rewriting) -> QuantisedNode:
    """Return the value of an operator that moves elements."""
    source = b.source()
    return replace(source, integers=b.again(source.integers))


def _of_order(b: _Rewriting) -> QuantisedNode:
    """Return the value of an operator that selects elements by their order, the integers' too."""
    source = b.source()
    found = b.again(b.to(source.integers, torch.float32), f"{b.node.name}_of_floats")
    return replace(source, integers=b.to(found, _RANGES[source.dtype][2], b.node.name))


def _of_average(b: _Rewriting, *, shifted: bool = False) -> QuantisedNode:
    """Return the value of an operator that averages elements: a mean is rounded to an integer.

    `shifted`: whether torch subtracts the zero point first, which decides between two integers
        that are equally near.
    """
    source = b.source()
    name = f"{b.node.name}_of_floats"
    if shifted:
        found = b.again(b.shifted(source), name)
        return b.rounded(found, source.scale, source.zero_point, source.dtype)
    rounded = b.call(torch.round, b.again(b.to(source.integers, torch.float32), name))
    return b.clamped(rounded, source.scale, source.zero_point, source.dtype)


def _of_windows(b: _Rewriting) -> QuantisedNode:
    """Return averages of windows, for which torch has another function if the channels are last."""
    value = b.example(b.node.all_input_nodes[0])
    return _of_average(b, shifted=_layout(value) != torch.contiguous_format or value.dim() == 5)


def _mean(b: _Rewriting) -> QuantisedNode:
    source = b.source()
    numbers = b.call(torch.mul, b.shifted(source), _f32(source.scale))
    found = b.again(numbers, f"{b.node.name}_of_floats")
    return _quantize(b, found, source.scale, source.zero_point, source.dtype)


def _of_fixed_range(scale: float, zero_point: int) -> Callable[[_Rewriting], QuantisedNode]:
    """Return what computes an activation function whose results have a range of their own.

    `zero_point`: from the smallest integer of the dtype.
    """

    def activation(b: _Rewriting) -> QuantisedNode:
        source = b.source()
        found = b.again(b.floats(source), f"{b.node.name}_of_floats")
        return b.quantised(found, scale, zero_point + _RANGES[source.dtype][0], source.dtype)

    return activation


def _of_bounds(low: float, high: float | None) -> Callable[[_Rewriting], QuantisedNode]:
    return lambda b: _clamped(b, b.source(), low, high)


def _clamp(b: _Rewriting) -> QuantisedNode:
    (_source, *args), kwargs = b.args(), b.kwargs()
    low, high = (*args, None, None)[:2]
    return _clamped(b, b.source(), kwargs.get("min", low), kwargs.get("max", high))


def _dequantize(b: _Rewriting) -> fx.Node:
    source = b.source()
    return b.last(torch.mul, b.shifted(source), _f32(source.scale))


def _attribute(b: _Rewriting) -> Any:
    moves = b.node.args[1] in ("T", "mT", "data")
    return _of_integers(b) if moves else _plain(b)


def _plain(b: _Rewriting) -> fx.Node:
    """Return the value of an operator that reads the shape."""
    return b.again(b.source().integers)


def _cat(b: _Rewriting) -> QuantisedNode:
    return _joined(b, *b.args(), **b.kwargs())


_AVERAGES: dict[str, Callable[[_Rewriting], QuantisedNode]] = {
    **dict.fromkeys(("avg_pool2d", "avg_pool3d", "AvgPool2d", "AvgPool3d"), _of_windows),
    "mean": _mean,
}

_KEPT: dict[str, Callable[[_Rewriting], Any]] = {
    **dict.fromkeys(
        (
            *("flatten", "reshape", "view", "permute", "transpose", "t", "contiguous", "squeeze"),
            *("unsqueeze", "getitem", "chunk", "split", "narrow", "select", "expand", "clone"),
            *("dropout", "detach", "pixel_shuffle", "channel_shuffle", "Identity", "Flatten"),
            *("Dropout", "Dropout2d", "PixelShuffle", "ChannelShuffle", "Unflatten", "swapaxes"),
        ),
        _of_integers,
    ),
    **dict.fromkeys(
        (
            *("max_pool1d", "max_pool2d", "_max_pool2d", "boolean_dispatch", "adaptive_max_pool2d"),
            *("MaxPool1d", "MaxPool2d", "AdaptiveMaxPool2d"),
        ),
        _of_order,
    ),
    **dict.fromkeys(
        (
            *("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "interpolate"),
            *("AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "Upsample"),
        ),
        _of_average,
    ),
    **_AVERAGES,
    **dict.fromkeys(("relu", "relu_", "ReLU"), _of_bounds(0.0, None)),
    **dict.fromkeys(("relu6", "ReLU6"), _of_bounds(0.0, 6.0)),
    **dict.fromkeys(
        ("sigmoid", "Sigmoid", "hardsigmoid", "Hardsigmoid"), _of_fixed_range(1 / 256, 0)
    ),
    **dict.fromkeys(("tanh", "Tanh"), _of_fixed_range(2 / 256, 128)),
    **dict.fromkeys(("clamp", "clip"), _clamp),
    "dequantize": _dequantize,
    "getattr": _attribute,
    **dict.fromkeys(("size", "dim", "numel"), _plain),
    **dict.fromkeys(("cat", "concat"), _cat),
}
