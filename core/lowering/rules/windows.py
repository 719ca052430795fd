"""Windows of images that are gathered or added: deformable convolution, and ``fold``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from tvm import te, tirx

from lowerscope.core.lowering.builder import NodeBuilder
from lowerscope.core.lowering.rule_table import Refused, rule
from lowerscope.core.lowering.rules.arithmetic import add
from lowerscope.core.lowering.rules.linear import matmul
from lowerscope.core.lowering.rules.shape import broadcast_to, reshape_to
from lowerscope.core.lowering.values import Value, dtype_of, is_empty, rank_of, scalar, shape_of
from lowerscope.core.model.texts import _

aten = torch.ops.aten

_CORNERS = 4
"""Number of pixels between which a sample is interpolated."""


def _corner(
    offset: te.Tensor, at: Sequence[Any], geometry: Sequence[int]
) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Return a pixel's row and column, and the sample's, as floats.

    `at`: image, sample of a window, corner, and the row and the column of the result.
    """
    columns, *steps = geometry
    image, sample, corner, *place = at
    dtype = str(offset.dtype)
    corners, points = [], []
    for axis in range(2):
        stride, padding, dilation = steps[axis:-1:2]
        tap = tirx.floormod(sample, steps[-1])
        tap = tirx.floordiv(tap, columns) if axis == 0 else tirx.floormod(tap, columns)
        start = place[axis] * stride - padding + tap * dilation
        point = tirx.Cast(dtype, start) + offset[(image, sample * 2 + axis, *place)]
        step = tirx.floordiv(corner, 2) if axis == 0 else tirx.floormod(corner, 2)
        points.append(point)
        corners.append(tirx.floor(point) + tirx.Cast(dtype, step))
    return (corners[0], corners[1]), (points[0], points[1])


def te_deformed_places(
    offset: te.Tensor, size: Sequence[int], geometry: Sequence[int]
) -> te.Tensor:
    """Return the places in a flat image of the pixels around each sample, inside of it."""
    images, twice, rows, columns = offset.shape

    def place(*at: Any) -> Any:
        pixel, _point = _corner(offset, at, geometry)
        inside = [
            # In this order NaN becomes a place too.
            tirx.Cast(
                "int32",
                tirx.max(
                    tirx.min(each, tirx.const(int(extent) - 1, offset.dtype)),
                    tirx.const(0, offset.dtype),
                ),
            )
            for each, extent in zip(pixel, size, strict=True)
        ]
        return inside[0] * int(size[1]) + inside[1]

    shape = (images, twice // 2, _CORNERS, rows, columns)
    return te.compute(shape, place, name="places")


def te_deformed_weights(
    offset: te.Tensor, mask: te.Tensor, size: Sequence[int], geometry: Sequence[int]
) -> te.Tensor:
    """Return the weights of these pixels; 0 for those outside of the image."""
    images, twice, rows, columns = offset.shape
    dtype = str(offset.dtype)

    def weight(*at: Any) -> Any:
        pixel, point = _corner(offset, at, geometry)
        value: Any = mask[(at[0], at[1], *at[3:])]
        for each, exact_place, extent in zip(pixel, point, size, strict=True):
            share = tirx.const(1, dtype) - tirx.abs(exact_place - each)
            last = tirx.const(int(extent) - 1, dtype)
            inside = tirx.all(each >= tirx.const(0, dtype), each <= last)
            value = value * tirx.Select(inside, share, tirx.const(0, dtype))
        return value

    shape = (images, twice // 2, _CORNERS, rows, columns)
    return te.compute(shape, weight, name="weights")


def te_deformed_columns(
    image: te.Tensor, places: te.Tensor, weights: te.Tensor, taps: int
) -> te.Tensor:
    """Return the samples of all windows, for each channel and each tap of the kernel."""
    images, channels, _pixels = image.shape
    shared = channels * taps // places.shape[1]

    def sample(n: Any, channel: Any, tap: Any, row: Any, column: Any) -> Any:
        own = tirx.floordiv(channel, shared) * taps + tap
        value: Any = None
        for corner in range(_CORNERS):
            at = (n, own, corner, row, column)
            each = weights[at] * image[n, channel, places[at]]
            value = each if value is None else value + each
        return value

    shape = (images, channels, taps, *places.shape[3:])
    return te.compute(shape, sample, name="columns")


@rule("torchvision::deform_conv2d", name="deform_conv2d")
def deform_conv2d(
    b: NodeBuilder,
    input: Value,
    weight: Value,
    offset: Value,
    mask: Value,
    bias: Value,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dil_h: int,
    dil_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> Value:
    images, channels, height, width = shape_of(input)
    results, own, *kernel = shape_of(weight)
    rows, columns = shape_of(offset)[2:]
    if not all(isinstance(each, int) for each in (*shape_of(input), rows, columns)):
        raise Refused(_("a size of it has a name"))
    taps = math.prod(kernel)
    geometry = [kernel[1], stride_h, stride_w, pad_h, pad_w, dil_h, dil_w, taps]
    if not use_mask:
        ones = [images, offset_groups * taps, rows, columns]
        mask = broadcast_to(b, scalar(1, dtype_of(input)), ones)
    size = [height, width]
    places = b.emit_te(te_deformed_places, offset, size, geometry, primfunc_name_hint="places")
    weights = b.emit_te(
        te_deformed_weights, offset, mask, size, geometry, primfunc_name_hint="weights"
    )
    flat = reshape_to(b, input, [images, channels, height * width])
    name = "deformed_columns"
    found = b.emit_te(te_deformed_columns, flat, places, weights, taps, primfunc_name_hint=name)
    sides = reshape_to(b, found, [images, groups, own * taps, rows * columns])
    kernels = reshape_to(b, weight, [groups, results // groups, own * taps])
    product = reshape_to(b, matmul(b, kernels, sides), [images, results, rows, columns])
    return add(b, product, reshape_to(b, bias, [1, results, 1, 1]))


def te_fold(
    A: te.Tensor,
    size: Sequence[int],
    kernel: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> te.Tensor:
    """Return images that are sums of overlapping windows, as ``fold`` does."""
    size, kernel, dilation, padding, stride = (
        [int(each) for each in given] for given in (size, kernel, dilation, padding, stride)
    )
    counts = [
        (extent + 2 * pad - apart * (taps - 1) - 1) // step + 1
        for extent, pad, apart, taps, step in zip(
            size, padding, dilation, kernel, stride, strict=True
        )
    ]
    taps = [te.reduce_axis((0, each), name=f"k{axis}") for axis, each in enumerate(kernel)]
    channels = A.shape[1] // math.prod(kernel)

    def value(n: Any, channel: Any, *at: Any) -> Any:
        inside, windows = [], []
        for axis in range(2):
            start = at[axis] + padding[axis] - taps[axis] * dilation[axis]
            window = tirx.floordiv(start, stride[axis])
            inside += [
                start >= 0,
                window < counts[axis],
                tirx.EQ(tirx.floormod(start, stride[axis]), 0),
            ]
            windows.append(window)
        row = (channel * kernel[0] + taps[0]) * kernel[1] + taps[1]
        read = A[n, row, windows[0] * counts[1] + windows[1]]
        return te.sum(tirx.if_then_else(tirx.all(*inside), read, tirx.const(0, A.dtype)), axis=taps)

    return te.compute((A.shape[0], channels, *size), value, name="fold")


def _pair(value: Any) -> list[int]:
    return [value, value] if isinstance(value, int) else [int(each) for each in value]


@rule(F.fold, nn.Fold, aten.col2im.default)
def fold(
    b: NodeBuilder,
    input: Value,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Value:
    shape = shape_of(input)
    if is_empty(shape) or not all(isinstance(each, int) for each in shape[-2:]):
        raise Refused(_("a size of it has a name"))
    value = input if rank_of(input) == 3 else reshape_to(b, input, [1, *shape])
    given = [_pair(each) for each in (output_size, kernel_size, dilation, padding, stride)]
    found = b.emit_te(te_fold, value, *given, primfunc_name_hint="fold")
    return found if rank_of(input) == 3 else reshape_to(b, found, shape_of(found)[1:])
