"""The step that fills vector registers in convolutions whose sizes leave lanes empty.

Filters are the lanes of the registers of a convolution, and several values of a row use each vector
of weights that is read. Where the number of filters is no multiple of the lanes, filters of zeros
are added to the weights; where the length of a row has no divisor for a tile, or is named, the row
gets longer. What these compute is left out of the result.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tvm
from tvm import relax, sym, te, tirx

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

_NAMED_TILE = 4
"""That number for a row whose length is named."""


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
    reason = unusual(call, _LAYOUTS, may_be_named=True)
    if reason:
        return reason
    groups, row = int(call.attrs.groups), _size(call.ty.shape[-1])
    filters = int(call.args[1].ty.shape[0]) // groups
    few = filters < _FEW
    if not isinstance(row, int):
        return _("it has few filters") if few else ""
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


def _size(extent: Any) -> Any:
    """Return an extent as a number; itself where it is named."""
    return int(extent) if isinstance(extent, tirx.IntImm) else extent


def _length(extent: Any) -> Any:
    """Return the least number of values of a row, from its own, that are whole tiles."""
    if not isinstance(extent, int):
        return (extent + _NAMED_TILE - 1) // _NAMED_TILE * _NAMED_TILE
    if extent < _TILES.stop:
        return extent
    return next(
        each for each in range(extent, 2 * extent) if any(each % tile == 0 for tile in _TILES)
    )


def _call(call: Any, builder: relax.BlockBuilder, _functions: object) -> relax.Call:
    """Return the call of a function with padding in place of a convolution."""
    data, weight = call.args
    attrs, array = call.attrs, weight.value.numpy()
    if int(attrs.groups) > 1:
        array = array.reshape(int(attrs.groups), -1, *array.shape[1:])
    filters = array.ndim - len(attrs.strides) - 2
    missing = [(0, 0)] * array.ndim
    missing[filters] = 0, _whole(array.shape[filters]) - array.shape[filters]
    weights = relax.const(np.pad(array, missing), str(weight.value.dtype))
    return builder.call_te(
        te_convolution,
        data,
        weights,
        int(call.ty.shape[1]),
        tuple(map(int, attrs.padding)),
        tuple(map(int, attrs.strides)),
        tuple(map(int, attrs.dilation)),
        primfunc_name_hint="padded_" + str(call.op.name).rpartition(".")[2],
        primfunc_attrs={"op_pattern": _FUSED_WITH_ELEMENTS},
    )


def te_convolution(
    data: te.Tensor,
    weights: te.Tensor,
    filters: int,
    padding: tuple[int, ...],
    strides: tuple[int, ...],
    dilation: tuple[int, ...],
) -> te.Tensor:
    """Return a convolution of `filters` filters; the weights are padded to more.

    The first axis of the weights is that of groups, if there are several.
    """
    count = len(strides)
    *groups, whole, channels = map(_size, weights.shape[:-count])
    kernel = tuple(map(_size, weights.shape[-count:]))
    batch, _channels, *sizes = map(_size, data.shape)
    first = padding[:count]
    places = zip(sizes, first, padding[count:], kernel, strides, dilation, strict=True)
    result = [
        (size + before + after - (taps - 1) * apart - 1) // stride + 1
        for size, before, after, taps, stride, apart in places
    ]
    # Relax simplifies named sizes as well.
    simplify = sym.Analyzer().simplify
    result = [each if isinstance(each, int) else _size(simplify(each)) for each in result]
    outputs = *result[:-1], _length(result[-1])
    places = zip(sizes, first, outputs, strides, kernel, dilation, strict=True)
    around = tuple(
        _around(size + before, (output - 1) * stride + (taps - 1) * apart + 1)
        for size, before, output, stride, taps, apart in places
    )
    is_whole = all(isinstance(each, int) for each in around) and around == tuple(sizes)
    read = data if is_whole else _padded(data, first, around)
    axes = [te.reduce_axis((0, each), name="tap") for each in extents(kernel)]
    # A kernel of one value is no axis: what is read is the place of the output.
    taps = [axis if size > 1 else 0 for axis, size in zip(axes, kernel, strict=True)]
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

    sums = te.compute(extents((batch, *groups, whole, *outputs)), product, name="products")

    def output(n: Any, o: Any, *at: Any) -> Any:
        each = filters // groups[0] if groups else 0
        return sums[n, *((o // each, o % each) if groups else (o,)), *at]

    return te.compute(extents((batch, filters, *result)), output, name="convolution")


def _around(given: Any, read: Any) -> Any:
    """Return the extent of the padded input: all that is given, and all that is read."""
    known = isinstance(given, int) and isinstance(read, int)
    return max(given, read) if known else read


def _padded(data: Any, before: tuple[int, ...], around: tuple[Any, ...]) -> Any:
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
