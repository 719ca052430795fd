"""The step that fills vector registers in convolutions whose sizes leave lanes empty.

Filters are the lanes of the registers of a convolution, and several values of a row use each vector
of weights that is read. Where the number of filters is no multiple of the lanes, filters of zeros
are added to the weights; where the length of a row has no divisor for a tile, the row gets longer.
What these compute is left out of the result.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tvm
from tvm import ir, relax, te, tirx

from lowerscope.core.model.texts import _
from lowerscope.core.passes.convolutions import extents, is_one_of, numbers, replaced, unusual

PAD_CONVOLUTION = "PadConvolution"

_LAYOUTS = {
    "relax.nn.conv1d": ("NCW", "OIW"),
    "relax.nn.conv2d": ("NCHW", "OIHW"),
    "relax.nn.conv3d": ("NCDHW", "OIDHW"),
}

_FUSED_WITH_ELEMENTS = 4
"""``kOutEWiseFusable`` of TVM: bias, activation and residual are fused into the function."""

_LANES = 16
"""Divisor of the number of filters that leaves no lane of a vector register empty."""

_WASTE = 1 / 8
"""Largest share of added filters for which whole registers are used, and not half ones."""

_FEW = 6
"""Number of filters below which most lanes would compute zeros."""

_FILLED = 0.75
"""Share of the lanes that a row has to fill for vectors of its own."""

_TILES = range(4, 14)
"""Numbers of values of a row that are computed together."""


def pad_convolutions(module: tvm.IRModule) -> tvm.IRModule:
    """Return a module whose convolutions have whole vectors of filters, and whole tiles of rows.

    That is done where `unpadded` gives no reason against it.
    """
    return replaced(module, _LAYOUTS, unpadded, _call)


def is_convolution(value: Any) -> bool:
    """Return whether a value is a convolution."""
    return is_one_of(value, _LAYOUTS)


def unpadded(call: Any) -> str:
    """Return why a convolution keeps its sizes; empty if it is padded."""
    reason = unusual(call, _LAYOUTS)
    if reason:
        return reason
    groups, row = int(call.attrs.groups), numbers(call.ty.shape)[-1]
    filters = numbers(call.ty.shape)[1] // groups
    few = filters < _FEW
    if few and (filters & (filters - 1) == 0 or _fills_lanes(row, call)):
        return _("it has few filters")
    if groups == 1 and filters % (_LANES // 2) == 0:
        return _("its filters are a multiple of {count}", count=_LANES // 2)
    return ""


def _whole(filters: int) -> int:
    """Return the number of filters that are computed, in whole or half vectors."""
    half, whole = (-(-filters // lanes) * lanes for lanes in (_LANES // 2, _LANES))
    return whole if whole - half <= _WASTE * half else half


def _fills_lanes(row: int, call: Any) -> bool:
    """Return whether windows along rows of this length are vectors by themselves."""
    is_window = numbers(call.args[1].ty.shape)[-1] > 1 and int(call.attrs.strides[-1]) == 1
    return is_window and row >= _FILLED * -(-row // _LANES) * _LANES


def _length(extent: int) -> int:
    """Return the least number of values of a row, from its own, that are whole tiles."""
    if extent < _TILES.stop:
        return extent
    return next(
        each for each in range(extent, 2 * extent) if any(each % tile == 0 for tile in _TILES)
    )


def _call(call: Any, builder: relax.BlockBuilder, functions: dict[Any, ir.GlobalVar]) -> relax.Call:
    """Return the call of a function with padding in place of a convolution.

    `functions`: Those of the module, by their sizes; one that is missing is added.
    """
    data, weight = call.args
    attrs, array = call.attrs, weight.value.numpy()
    if int(attrs.groups) > 1:
        array = array.reshape(int(attrs.groups), -1, *array.shape[1:])
    filters = array.ndim - len(attrs.strides) - 2
    missing = [(0, 0)] * array.ndim
    missing[filters] = 0, _whole(array.shape[filters]) - array.shape[filters]
    weights = relax.const(np.pad(array, missing), str(weight.value.dtype))
    shapes = tuple(numbers(each.ty.shape) for each in (data, weights, call))
    places = tuple(
        tuple(int(each) for each in field)
        for field in (attrs.padding, attrs.strides, attrs.dilation)
    )
    if (shapes, places) not in functions:
        name = "padded_" + str(call.op.name).rpartition(".")[2]
        functions[shapes, places] = builder.add_func(_function(*shapes, *places), name)
    return relax.call_tir(functions[shapes, places], [data, weights], call.ty)


def _function(
    shape: tuple[int, ...],
    kernel: tuple[int, ...],
    result: tuple[int, ...],
    padding: tuple[int, ...],
    strides: tuple[int, ...],
    dilation: tuple[int, ...],
) -> tirx.PrimFunc:
    """Return the function of a convolution: its input, padded weights, and output.

    `kernel`: shape of the padded weights, whose first axis is that of groups, if there are several.
    """
    count = len(strides)
    *groups, filters, channels = kernel[:-count]
    outputs = (*result[2:-1], _length(result[-1]))
    data = te.placeholder(extents(shape), name="data")
    weights = te.placeholder(extents(kernel), name="weights")
    first = padding[:count]
    around = tuple(
        max(size + before, (output - 1) * stride + (taps - 1) * apart + 1)
        for size, before, output, stride, taps, apart in zip(
            shape[2:], first, outputs, strides, kernel[-count:], dilation, strict=True
        )
    )
    read = data if around == shape[2:] else _padded(data, first, around)
    axes = [te.reduce_axis((0, each), name="tap") for each in extents(kernel[-count:])]
    # A kernel of one value is no axis: what is read is the place of the output.
    taps = [axis if size > 1 else 0 for axis, size in zip(axes, kernel[-count:], strict=True)]
    channel = te.reduce_axis((0, extents((channels,))[0]), name="channel")

    def product(n: Any, *at: Any) -> Any:
        *group, o = at[:-count]
        places = zip(at[-count:], strides, taps, dilation, strict=True)
        place = [each * stride + tap * apart for each, stride, tap, apart in places]
        own = group[0] * channels + channel if group else channel
        return te.sum(
            read[n, own, *place] * weights[*group, o, channel, *taps],
            axis=[channel, *(axis for axis in axes if int(axis.dom.extent) > 1)],
        )

    sums = te.compute(extents((shape[0], *groups, filters, *outputs)), product, name="products")

    def output(n: Any, o: Any, *at: Any) -> Any:
        each = result[1] // groups[0] if groups else 0
        return sums[n, *((o // each, o % each) if groups else (o,)), *at]

    convolution = te.compute(extents(result), output, name="convolution")
    made = te.create_prim_func([data, weights, convolution])
    # The function is private: Relax calls it by its name in the module.
    return made.without_attr("global_symbol").with_attr("op_pattern", _FUSED_WITH_ELEMENTS)


def _padded(data: Any, before: tuple[int, ...], around: tuple[int, ...]) -> Any:
    """Return the input with zeros around it.

    `before`: number of zeros before it, in each direction. `around`: extents of the result.
    """
    batch, channels, *sizes = data.shape

    def padded(n: Any, c: Any, *place: Any) -> Any:
        own = [each - first for each, first in zip(place, before, strict=True)]
        inside = [
            condition
            for each, size in zip(own, sizes, strict=True)
            for condition in (each >= 0, each < size)
        ]
        return tirx.if_then_else(tirx.all(*inside), data[n, c, *own], tirx.const(0.0, data.dtype))

    return te.compute((batch, channels, *extents(around)), padded, name="padded")
