"""Padding, and convolutions and transposed convolutions in one, two and three dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from tvm import relax, topi
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder, cast
from lowerscope.core.lowering.rule_table import Refused, exact, rule
from lowerscope.core.lowering.rules.arithmetic import add
from lowerscope.core.lowering.values import (
    Value,
    dtype_of,
    rank_of,
    shape_of,
    simplified,
    size_of,
)
from lowerscope.core.model.texts import _

aten = torch.ops.aten


@exact(F.pad, aten.pad.default)
def pad(
    b: NodeBuilder,
    input: Value,
    pad: Sequence[int],
    mode: str = "constant",
    value: float | None = None,
) -> Value:
    return pad_by(b, input, pad, mode, value)


def pad_by(
    b: NodeBuilder, input: Value, pad: Sequence[int], mode: str, value: float | None
) -> Value:
    """Pad by the widths `pad`, a pair for each axis from the last to the first."""
    # torch lists the axes from the last to the first, Relax from the first to the last.
    rank = rank_of(input)
    widths = [(0, 0)] * rank
    for index in range(len(pad) // 2):
        before, after = map(size_of, pad[2 * index : 2 * index + 2])
        widths[rank - 1 - index] = (int(before), int(after))
    value_of_pads = 0.0 if value is None or mode != "constant" else float(value)
    cropped = _crop(b, input, widths)
    grown = [max(width, 0) for pair in widths for width in pair]
    if not any(grown):
        return cropped
    if dtype_of(cropped) == "bool":
        # TVM does not pad bools.
        numbers = b.emit(op.nn.pad(cast(b, cropped, "int8"), grown, mode, value_of_pads))
        return b.emit(op.astype(numbers, "bool"))
    call = op.nn.pad(cropped, grown, mode, value_of_pads)
    sizes = shape_of(cropped)
    if not all(isinstance(each, int) for each in sizes):
        # TVM adds one width after the other; FuseTIR fails for sums that are not simplified.
        pairs = zip(sizes, grown[::2], grown[1::2], strict=True)
        shape = [simplified(size + before + after) for size, before, after in pairs]
        relax.expr._update_type(call, relax.TensorType(shape, dtype_of(cropped)))
    return b.emit(call)


@exact(aten.constant_pad_nd.default, name="pad")
def constant_pad(b: NodeBuilder, input: Value, pad: Sequence[int], value: float = 0) -> Value:
    return pad_by(b, input, pad, "constant", value)


def _crop(b: NodeBuilder, input: Value, widths: Sequence[tuple[int, int]]) -> Value:
    """Crop by the negative widths."""
    axes = [axis for axis, pair in enumerate(widths) if min(pair) < 0]
    if not axes:
        return input
    shape = shape_of(input)
    begin = [max(-widths[axis][0], 0) for axis in axes]
    end = [shape[axis] - max(-widths[axis][1], 0) for axis in axes]
    return b.emit(op.strided_slice(input, axes, begin, end))


_MODES: dict[str, tuple[type[nn.Module], ...]] = {
    "constant": (nn.ConstantPad1d, nn.ConstantPad2d, nn.ConstantPad3d),
    "zeros": (nn.ZeroPad1d, nn.ZeroPad2d, nn.ZeroPad3d),
    "reflect": (nn.ReflectionPad1d, nn.ReflectionPad2d, nn.ReflectionPad3d),
    "replicate": (nn.ReplicationPad1d, nn.ReplicationPad2d, nn.ReplicationPad3d),
    "circular": (nn.CircularPad1d, nn.CircularPad2d, nn.CircularPad3d),
}


def _of_module(mode: str) -> Any:
    def lower(b: NodeBuilder, module: Any, input: Value) -> Value:
        value = module.value if mode == "constant" else 0
        return pad_by(b, input, module.padding, "constant" if mode == "zeros" else mode, value)

    return lower


for _mode, _types in _MODES.items():
    exact(*_types, name="pad")(_of_module(_mode))


_FORWARD: dict[int, Callable[..., Value]] = {1: op.nn.conv1d, 2: op.nn.conv2d, 3: op.nn.conv3d}
_TRANSPOSED: dict[int, Callable[..., Value]] = {
    1: op.nn.conv1d_transpose,
    2: op.nn.conv2d_transpose,
    3: op.nn.conv3d_transpose,
}

Extents = int | Sequence[int]


@rule(
    *(F.conv1d, F.conv2d, F.conv3d, torch.conv1d, torch.conv2d, torch.conv3d, aten.conv1d.default),
    *(aten.conv2d.default, aten.conv3d.default, aten.conv2d.padding),
)
def conv(
    b: NodeBuilder,
    input: Value,
    weight: Value,
    bias: Value = None,
    stride: Extents = 1,
    padding: Extents | str = 0,
    dilation: Extents = 1,
    groups: int = 1,
) -> Value:
    dimensions = rank_of(weight) - 2
    if rank_of(input) == dimensions + 1:
        whole = conv(b, _batch(b, input), weight, bias, stride, padding, dilation, groups)
        return b.emit(op.squeeze(whole, [0]))
    strides = _each(stride, dimensions)
    dilations = _each(dilation, dimensions)
    before, after = _padding(padding, shape_of(weight)[2:], dilations)
    if b.te and dimensions == 2 and groups == 1:
        value = b.emit_te(
            topi.nn.conv2d, input, weight, strides, [*before, *after], dilations, "NCHW", "OIHW"
        )
    else:
        value = b.emit(
            _FORWARD[dimensions](
                input,
                weight,
                strides=strides,
                padding=[*before, *after],
                dilation=dilations,
                groups=groups,
            )
        )
    return _with_bias(b, value, bias)


@rule(
    F.conv_transpose1d,
    F.conv_transpose2d,
    F.conv_transpose3d,
    torch.conv_transpose1d,
    torch.conv_transpose2d,
    torch.conv_transpose3d,
)
def conv_transpose(
    b: NodeBuilder,
    input: Value,
    weight: Value,
    bias: Value = None,
    stride: Extents = 1,
    padding: Extents = 0,
    output_padding: Extents = 0,
    groups: int = 1,
    dilation: Extents = 1,
) -> Value:
    dimensions = rank_of(weight) - 2
    if rank_of(input) == dimensions + 1:
        value = _batch(b, input)
        arguments = (stride, padding, output_padding, groups, dilation)
        return b.emit(op.squeeze(conv_transpose(b, value, weight, bias, *arguments), [0]))
    if dimensions == 3 and any(each != 1 for each in _each(dilation, 3)):
        raise Refused(_("it is a dilated transposed convolution in three dimensions"))
    value = b.emit(
        _TRANSPOSED[dimensions](
            input,
            weight,
            strides=_each(stride, dimensions),
            padding=_each(padding, dimensions) * 2,
            output_padding=_each(output_padding, dimensions),
            dilation=_each(dilation, dimensions),
            groups=groups,
        )
    )
    return _with_bias(b, value, bias)


@rule(aten.convolution.default, name="conv")
def aten_convolution(
    b: NodeBuilder,
    input: Value,
    weight: Value,
    bias: Value,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Value:
    if transposed:
        return conv_transpose(
            b, input, weight, bias, stride, padding, output_padding, groups, dilation
        )
    return conv(b, input, weight, bias, stride, padding, dilation, groups)


@rule(nn.Conv1d, nn.Conv2d, nn.Conv3d, name="conv")
def conv_module(b: NodeBuilder, module: Any, input: Value) -> Value:
    padding = module.padding
    if module.padding_mode != "zeros":
        # Torch pads first, from the last axis to the first.
        widths = list(module._reversed_padding_repeated_twice)
        input, padding = pad_by(b, input, widths, module.padding_mode, 0), 0
    weight, bias = b.constant(module.weight), b.optional_constant(module.bias)
    return conv(b, input, weight, bias, module.stride, padding, module.dilation, module.groups)


@rule(nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d, name="conv_transpose")
def conv_transpose_module(
    b: NodeBuilder, module: Any, input: Value, output_size: Any = None
) -> Value:
    if output_size is not None:
        raise Refused(_("it has an output_size"))
    return conv_transpose(
        b,
        input,
        b.constant(module.weight),
        b.optional_constant(module.bias),
        module.stride,
        module.padding,
        module.output_padding,
        module.groups,
        module.dilation,
    )


def _each(value: Extents, dimensions: int) -> list[int]:
    """Return one number for each spatial dimension."""
    values = [value] if isinstance(value, int) else [int(each) for each in value]
    return values * dimensions if len(values) == 1 else values


def _padding(
    padding: Extents | str, kernel: Sequence[int], dilations: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Return the padding before and after each spatial dimension."""
    if padding == "valid":
        return [0] * len(kernel), [0] * len(kernel)
    if padding == "same":
        totals = [dilation * (size - 1) for size, dilation in zip(kernel, dilations, strict=True)]
        return [total // 2 for total in totals], [total - total // 2 for total in totals]
    assert not isinstance(padding, str)
    each = _each(padding, len(kernel))
    return each, each


def _batch(b: NodeBuilder, value: Value) -> Value:
    return b.emit(op.expand_dims(value, 0))


def _with_bias(b: NodeBuilder, value: Value, bias: Value) -> Value:
    if bias is None:
        return value
    extents = [1, -1] + [1] * (rank_of(value) - 2)
    return add(b, value, b.emit(op.reshape(bias, extents)))
