"""The step that computes 3×3 convolutions by Winograd's algorithm F(2×2, 3×3).

The input is cut into tiles of 4×4 values that overlap by two. Each is transformed by sums and
differences, multiplied with transformed weights, and transformed back to 2×2 outputs: 16 products
for each pair of channels, where the sums of products take 36. Sums are over the input channels
alone, a ninth of the terms, and so no less exact. In three dimensions, tiles have 4×4×4 values and
64 products in place of 216 where the output is large; where it is small, the places along the first
dimension are summed as well. Filters of zeros fill the last vector of them where few are missing,
as in the heads of detectors; what they compute is left out of the result.

Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, https://arxiv.org/abs/1509.09308
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tvm
from tvm import ir, relax, te, tirx

from lowerscope.core.model.texts import _
from lowerscope.core.passes.convolutions import extents, is_one_of, numbers, replaced, unusual

WINOGRAD = "WinogradConvolution"

_LAYOUTS = {"relax.nn.conv2d": ("NCHW", "OIHW"), "relax.nn.conv3d": ("NCDHW", "OIDHW")}

_FUSED_WITH_ELEMENTS = 4
"""``kOutEWiseFusable`` of TVM: bias, activation and residual are fused into the function."""

_CHANNELS = 16
"""Divisor of the numbers of channels: a vector register has no lanes left over."""

_ADDED = 1 / 3
"""Largest share of filters of zeros that are added, and left out of the result, to fill lanes."""

_TILES = 16
"""Number of tiles from which on reading 16/9 as many weights is worth it."""

_DEEP_TILES = 48
"""Number of tiles of 4×4×4 values from which on reading 4/3 as many weights is worth it."""

_WEIGHTS = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [-0.5, 0.5, -0.5], [0, 0, 1]])
"""Transformation of the three weights of a row or column into four."""


def winograd(module: tvm.IRModule) -> tvm.IRModule:
    """Return a module whose 3×3 convolutions are functions of Winograd's algorithm.

    That is done where `unfit` gives no reason against it.
    """
    return replaced(module, _LAYOUTS, unfit, _call)


def is_convolution(value: Any) -> bool:
    """Return whether a value is a convolution in two or three dimensions."""
    return is_one_of(value, _LAYOUTS)


def unfit(call: Any) -> str:
    """Return why a convolution is computed directly; empty if Winograd's algorithm fits it."""
    reason = unusual(call, _LAYOUTS)
    if reason:
        return reason
    attrs, (_data, weight) = call.attrs, call.args
    kernel = numbers(weight.ty.shape)
    if kernel[-2:] != (3, 3):
        return _("its kernel is not 3×3")
    if any(int(each) != 1 for each in (*attrs.strides, *attrs.dilation, attrs.groups)):
        return _("it has a stride, a dilation or groups")
    if kernel[1] % _CHANNELS or _missing(kernel[0]) > kernel[0] * _ADDED:
        return _("its channels are not multiples of {count}", count=_CHANNELS)
    batch, _channels, *depth, height, width = numbers(call.ty.shape)
    if math.prod((batch, *depth, -(-height // 2), -(-width // 2))) < _TILES:
        return _("its output is small: reading more weights would take longer")
    return ""


def _missing(filters: int) -> int:
    """Return how many filters the last vector of them lacks."""
    return -filters % _CHANNELS


def _tiled(kernel: tuple[int, ...], result: tuple[int, ...]) -> int:
    """Return how many of the last dimensions tiles have.

    `kernel`, `result`: shapes of the weights and of the output.
    """
    batch, _filters, *sizes = result
    tiles = batch * math.prod(-(-each // 2) for each in sizes)
    return 3 if kernel[2:] == (3, 3, 3) and sizes[0] > 1 and tiles >= _DEEP_TILES else 2


def _call(call: Any, builder: relax.BlockBuilder, functions: dict[Any, ir.GlobalVar]) -> relax.Call:
    """Return the call of a function of Winograd's algorithm in place of a convolution.

    With filters of zeros in the last vector, the call that leaves these out of its result.

    `functions`: Those of the module, by the shapes and padding; one that is missing is added.
    """
    data, weight = call.args
    array = weight.value.numpy().astype("float64")
    batch, filters, *sizes = numbers(call.ty.shape)
    missing = _missing(filters)
    array = np.pad(array, [(0, missing), *[(0, 0)] * (array.ndim - 1)])
    result = (batch, filters + missing, *sizes)
    tiled = _tiled(numbers(weight.ty.shape), result)
    for _axis in range(tiled):
        array = np.tensordot(_WEIGHTS, array, (1, -1))
    array = np.moveaxis(array, (tiled, tiled + 1), (-1, -2))
    weights = relax.const(np.ascontiguousarray(array, "float32"), "float32")
    shapes = (numbers(data.ty.shape), numbers(weights.ty.shape), result)
    padding = tuple(int(each) for each in call.attrs.padding)
    if (shapes, padding) not in functions:
        shape, kernel, whole = (extents(each) for each in shapes)
        function = _function(shape, kernel, whole, padding, tiled)
        name = "winograd_" + str(call.op.name).rpartition(".")[2]
        functions[shapes, padding] = builder.add_func(function, name)
    function = functions[shapes, padding]
    made = relax.call_tir(function, [data, weights], relax.TensorType(result, "float32"))
    return relax.op.strided_slice(made, [1], [0], [filters]) if missing else made


def _function(
    shape: list[Any], kernel: list[Any], result: list[Any], padding: tuple[int, ...], tiled: int
) -> tirx.PrimFunc:
    """Return the function of a convolution: its input, transformed weights, and output.

    `kernel`: shape of the transformed weights. `tiled`: how many of the last dimensions tiles have.
    """
    batch, channels, *sizes = shape
    _batch, filters, *outputs = result
    fours, taps = kernel[:tiled], kernel[tiled:-2]
    tiles = extents(tuple(-(-int(each) // 2) for each in outputs[-tiled:]))
    before = padding[: len(sizes)]
    data, weights = te.placeholder(shape, name="data"), te.placeholder(kernel, name="weights")

    def padded(n: Any, *at: Any) -> Any:
        *place, c = at
        inside = [
            condition
            for each, first, size in zip(place, before, sizes, strict=True)
            for condition in (each >= first, each < size + first)
        ]
        value = data[n, c, *(each - first for each, first in zip(place, before, strict=True))]
        return tirx.if_then_else(tirx.all(*inside), value, tirx.const(0.0, "float32"))

    depth = outputs[: len(taps)]
    planes = extents(tuple(int(a) + int(b) - 1 for a, b in zip(depth, taps, strict=True)))
    around = (*planes, *(2 * each + 2 for each in tiles))
    tiled_input = te.compute((batch, *around, channels), padded, name="padded")

    def transformed(*at: Any) -> Any:
        inner, outer, c = at[:tiled], at[tiled:-1], at[-1]
        plane, tile = outer[: -len(tiles)], outer[-len(tiles) :]

        def value(*offset: Any) -> Any:
            place = (2 * each + one for each, one in zip(tile, offset, strict=True))
            return tiled_input[*plane, *place, c]

        return _nested(_difference, inner, value)

    inputs = te.compute((*fours, batch, *planes, *tiles, channels), transformed, name="transformed")
    summed = [te.reduce_axis((0, each), name="tap") for each in taps]
    summed.append(te.reduce_axis((0, channels), name="c"))

    def product(*at: Any) -> Any:
        inner, n, outer, o = at[:tiled], at[tiled], at[tiled + 1 : -1], at[-1]
        plane, tile = outer[: -len(tiles)], outer[-len(tiles) :]
        *tap, c = summed
        at_tap = (each + offset for each, offset in zip(plane, tap, strict=True))
        return te.sum(
            inputs[*inner, n, *at_tap, *tile, c] * weights[*inner, *summed, o], axis=summed
        )

    products = te.compute((*fours, batch, *depth, *tiles, filters), product, name="products")

    def output(n: Any, o: Any, *at: Any) -> Any:
        plane, place = at[: -len(tiles)], at[-len(tiles) :]
        tile = [each // 2 for each in place]
        inner = [each % 2 for each in place]
        return _nested(_sum, inner, lambda *fours: products[*fours, n, *plane, *tile, o])

    made = te.create_prim_func([data, weights, te.compute(result, output, name="convolution")])
    # The function is private: Relax calls it by its name in the module.
    return made.without_attr("global_symbol").with_attr("op_pattern", _FUSED_WITH_ELEMENTS)


def _nested(combine: Any, places: Any, value: Any) -> Any:
    """Return what a combination, once for each of the places, makes of values."""
    if not places:
        return value()
    first, *others = places
    return combine(first, lambda i: _nested(combine, others, lambda *inner: value(i, *inner)))


def _difference(e: Any, value: Any) -> Any:
    """Return one of the transformed values 0-2, 1+2, 1-2 and 1-3 of a row or column."""
    return value(tirx.min(e, 1)) + _sign(e == 1) * value(tirx.max(e, 2))


def _sum(a: Any, value: Any) -> Any:
    """Return one of the outputs 1+2+0 and 1-2-3 of a row or column of products."""
    return value(1) + _sign(a == 0) * (value(2) + value(3 * a))


def _sign(positive: Any) -> Any:
    return tirx.Select(positive, tirx.const(1.0, "float32"), tirx.const(-1.0, "float32"))
