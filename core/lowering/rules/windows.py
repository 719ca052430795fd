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
from lowerscope.core.lowering.rules.arithmetic import add, mul
from lowerscope.core.lowering.rules.linear import matmul
from lowerscope.core.lowering.rules.shape import reshape_to, unsqueeze
from lowerscope.core.lowering.values import Value, is_empty, rank_of, shape_of
from lowerscope.core.model.texts import _

aten = torch.ops.aten

_CORNERS = 4
"""Number of pixels between which a sample is interpolated."""


def te_deformed_points(
    offset: te.Tensor,
    taps: int,
    columns: int,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> te.Tensor:
    """Return the row and the column of each sample of a window, as floats.

    `taps`, `columns`: of the kernel.
    """
    images, twice, *place = offset.shape

    def point(image: Any, sample: Any, axis: Any, row: Any, column: Any) -> Any:
        def start(axis: int, step: Any, tap: Any) -> Any:
            return step * stride[axis] - padding[axis] + tap * dilation[axis]

        tap = tirx.floormod(sample, taps)
        starts = (
            start(0, row, tirx.floordiv(tap, columns)),
            start(1, column, tirx.floormod(tap, columns)),
        )
        own = tirx.Cast(str(offset.dtype), tirx.Select(tirx.EQ(axis, 0), *starts))
        return own + offset[image, sample * 2 + axis, row, column]

    return te.compute((images, twice // 2, 2, *place), point, name="points")


def _corner(points: te.Tensor, at: Sequence[Any], size: Sequence[int]) -> tuple[Any, list[Any]]:
    """Return whether a pixel beside a sample is in the image, and its row and column, as floats.

    `at`: image, sample of a window, corner, and the row and the column of the result.
    """
    image, sample, corner, *place = at
    dtype = str(points.dtype)
    steps = (tirx.floordiv(corner, 2), tirx.floormod(corner, 2))
    pixel = [
        tirx.floor(points[(image, sample, axis, *place)]) + tirx.Cast(dtype, step)
        for axis, step in enumerate(steps)
    ]
    inside = tirx.all(
        *(each >= tirx.const(0, dtype) for each in pixel),
        *(each <= tirx.const(int(last) - 1, dtype) for each, last in zip(pixel, size, strict=True)),
    )
    return inside, pixel


def te_places(points: te.Tensor, size: Sequence[int]) -> te.Tensor:
    """Return the places in a flat image of the pixels around each sample; -1 for none."""
    images, samples, _axes, *place = points.shape

    def place_of(*at: Any) -> Any:
        inside, (row, column) = _corner(points, at, size)
        dtype = str(points.dtype)
        whole = [
            tirx.Cast("int32", tirx.Select(inside, each, tirx.const(0, dtype)))
            for each in (row, column)
        ]
        return tirx.Select(inside, whole[0] * int(size[1]) + whole[1], tirx.const(-1, "int32"))

    return te.compute((images, samples, _CORNERS, *place), place_of, name="places")


def te_weights(points: te.Tensor) -> te.Tensor:
    """Return the weights of these pixels."""
    images, samples, _axes, *place = points.shape
    one = tirx.const(1, points.dtype)

    def weight(*at: Any) -> Any:
        image, sample, corner, *rest = at
        steps = (tirx.floordiv(corner, 2), tirx.floormod(corner, 2))
        value: Any = one
        for axis, step in enumerate(steps):
            point = points[(image, sample, axis, *rest)]
            beyond = point - tirx.floor(point)
            value = value * tirx.Select(tirx.EQ(step, 0), one - beyond, beyond)
        return value

    return te.compute((images, samples, _CORNERS, *place), weight, name="weights")


def te_samples(image: te.Tensor, places: te.Tensor, weights: te.Tensor, taps: int) -> te.Tensor:
    """Return the samples of all windows, for each channel and each tap of the kernel."""
    images, channels, _pixels = image.shape
    shared = channels * taps // places.shape[1]

    def sample(n: Any, channel: Any, tap: Any, row: Any, column: Any) -> Any:
        own = tirx.floordiv(channel, shared) * taps + tap
        nothing = tirx.const(0, image.dtype)
        value: Any = None
        for corner in range(_CORNERS):
            at = (n, own, corner, row, column)
            pixel = image[n, channel, tirx.max(places[at], 0)]
            each = weights[at] * tirx.Select(places[at] < 0, nothing, pixel)
            value = each if value is None else value + each
        return value

    shape = (images, channels, taps, *places.shape[3:])
    return te.compute(shape, sample, name="samples")


def sampled(b: NodeBuilder, input: Value, points: Value, mask: Value, taps: int) -> Value:
    """Return an image's values between its pixels, for each channel and each tap.

    `points`: image, sample, 2 for its row and column, and the rows and columns of the result.
    `mask`: factor of each sample, or ``None``.
    """
    images, channels, *size = shape_of(input)
    places = b.emit_te(te_places, points, size, primfunc_name_hint="places")
    weights = b.emit_te(te_weights, points, primfunc_name_hint="weights")
    if mask is not None:
        weights = mul(b, weights, unsqueeze(b, mask, 2))
    flat = reshape_to(b, input, [images, channels, math.prod(size)])
    return b.emit_te(te_samples, flat, places, weights, taps, primfunc_name_hint="samples")


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
    images = shape_of(input)[0]
    results, own, *kernel = shape_of(weight)
    rows, columns = shape_of(offset)[2:]
    if not all(isinstance(each, int) for each in (*shape_of(input), rows, columns)):
        raise Refused(_("a size of it has a name"))
    taps = math.prod(kernel)
    steps = ([stride_h, stride_w], [pad_h, pad_w], [dil_h, dil_w])
    points = b.emit_te(
        te_deformed_points, offset, taps, kernel[1], *steps, primfunc_name_hint="points"
    )
    found = sampled(b, input, points, mask if use_mask else None, taps)
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
    # Of a kernel without gaps, every so many taps end at an element: only these are read.
    steps = [step if apart == 1 else 1 for step, apart in zip(stride, dilation, strict=True)]
    over = [
        te.reduce_axis((0, -(-each // step)), name=f"k{axis}")
        for axis, (each, step) in enumerate(zip(kernel, steps, strict=True))
    ]
    channels = A.shape[1] // math.prod(kernel)

    def value(n: Any, channel: Any, *at: Any) -> Any:
        inside, taps, windows = [], [], []
        for axis in range(2):
            place = at[axis] + padding[axis]
            tap = over[axis] * steps[axis] + tirx.floormod(place, steps[axis])
            start = place - tap * dilation[axis]
            window = tirx.floordiv(start, stride[axis])
            inside += [tap < kernel[axis], start >= 0, window < counts[axis]]
            if steps[axis] != stride[axis]:
                inside.append(tirx.EQ(tirx.floormod(start, stride[axis]), 0))
            taps.append(tap)
            windows.append(window)
        row = (channel * kernel[0] + taps[0]) * kernel[1] + taps[1]
        read = A[n, row, windows[0] * counts[1] + windows[1]]
        return te.sum(tirx.if_then_else(tirx.all(*inside), read, tirx.const(0, A.dtype)), axis=over)

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
