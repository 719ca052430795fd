"""Pooling, and resampling to another size."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from tvm import topi
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder, cast, is_nan
from lowerscope.core.lowering.rule_table import Missing, Refused, rule
from lowerscope.core.lowering.rules.arithmetic import add, fmod, mul, sub
from lowerscope.core.lowering.rules.elementwise import clamp
from lowerscope.core.lowering.rules.shape import permute_to, reshape_to
from lowerscope.core.lowering.rules.windows import sampled
from lowerscope.core.lowering.values import Value, dtype_of, is_float, rank_of, scalar, shape_of
from lowerscope.core.model.texts import _

aten = torch.ops.aten

_MAX: dict[int, Callable[..., Value]] = {
    1: op.nn.max_pool1d,
    2: op.nn.max_pool2d,
    3: op.nn.max_pool3d,
}
_AVERAGE: dict[int, Callable[..., Value]] = {
    1: op.nn.avg_pool1d,
    2: op.nn.avg_pool2d,
    3: op.nn.avg_pool3d,
}
_ADAPTIVE: dict[int, Callable[..., Value]] = {
    1: op.nn.adaptive_avg_pool1d,
    2: op.nn.adaptive_avg_pool2d,
    3: op.nn.adaptive_avg_pool3d,
}

Extents = int | Sequence[int]


def _max_pool(
    b: NodeBuilder,
    dimensions: int,
    input: Value,
    kernel_size: Extents,
    stride: Extents | None = None,
    padding: Extents = 0,
    dilation: Extents = 1,
    ceil_mode: bool = False,
) -> Value:
    kernel = _each(kernel_size, dimensions)
    strides = _each(stride, dimensions) if stride else kernel
    widths = _each(padding, dimensions)
    dilations = _each(dilation, dimensions)

    def pool(value: Value) -> Value:
        return b.emit(
            _MAX[dimensions](
                value,
                pool_size=kernel,
                strides=strides,
                padding=widths * 2,
                dilation=dilations,
                ceil_mode=ceil_mode,
            )
        )

    return _over_batch(b, dimensions, input, pool)


def _avg_pool(
    b: NodeBuilder,
    dimensions: int,
    input: Value,
    kernel_size: Extents,
    stride: Extents | None = None,
    padding: Extents = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Value:
    kernel = _each(kernel_size, dimensions)
    strides = _each(stride, dimensions) if stride else kernel
    widths = _each(padding, dimensions)
    if divisor_override is not None:
        if ceil_mode:
            raise Refused(_("it has a divisor_override and rounds up"))
        plain = (kernel_size, stride, padding, False, True)
        mean = _avg_pool(b, dimensions, input, *plain)
        return mul(b, mean, math.prod(kernel) / divisor_override)
    if ceil_mode and count_include_pad and not _divides(input, kernel, strides, widths):
        raise Refused(_("with ceil_mode TVM divides the last windows by another count than torch"))

    def pool(value: Value) -> Value:
        if b.te and dimensions == 2:
            return b.emit_te(
                topi.nn.pool2d,
                value,
                kernel,
                strides,
                [1, 1],
                widths * 2,
                "avg",
                ceil_mode,
                "NCHW",
                count_include_pad,
                primfunc_name_hint="avg_pool2d",
            )
        return b.emit(
            _AVERAGE[dimensions](
                value,
                pool_size=kernel,
                strides=strides,
                padding=widths * 2,
                ceil_mode=ceil_mode,
                count_include_pad=count_include_pad,
            )
        )

    return _over_batch(b, dimensions, input, pool)


def adaptive_avg_pool(b: NodeBuilder, dimensions: int, input: Value, output_size: Extents) -> Value:
    """Average over windows that divide each of the last `dimensions` axes as torch does."""
    sizes = [
        shape_of(input)[index - dimensions] if size is None else size
        for index, size in enumerate(_each(output_size, dimensions))
    ]
    return _over_batch(
        b, dimensions, input, lambda value: b.emit(_ADAPTIVE[dimensions](value, sizes))
    )


def _adaptive_max_pool(
    b: NodeBuilder,
    dimensions: int,
    input: Value,
    output_size: Extents,
    return_indices: bool = False,
) -> Value:
    if return_indices:
        raise Refused(_("TVM has no indices of a pooling"))
    extents = shape_of(input)[-dimensions:]
    sizes = _each(output_size, dimensions)
    sizes = [own if size is None else size for own, size in zip(extents, sizes, strict=True)]
    if any(own % size for own, size in zip(extents, sizes, strict=True)):
        raise Refused(_("its output size does not divide the input's"))
    kernel = [own // size for own, size in zip(extents, sizes, strict=True)]
    return _max_pool(b, dimensions, input, kernel)


def _over_batch(
    b: NodeBuilder, dimensions: int, input: Value, pool: Callable[[Value], Value]
) -> Value:
    """Pool a tensor with or without a batch axis."""
    if rank_of(input) == dimensions + 2:
        return pool(input)
    return b.emit(op.squeeze(pool(b.emit(op.expand_dims(input, 0))), [0]))


def _each(value: Any, dimensions: int) -> list[Any]:
    values = list(value) if isinstance(value, (tuple, list)) else [value]
    return values * dimensions if len(values) == 1 else values


def _divides(
    input: Value, kernel: Sequence[int], strides: Sequence[int], widths: Sequence[int]
) -> bool:
    """Return whether the windows end at the input's end, so that rounding up has no effect."""
    extents = shape_of(input)[-len(kernel) :]
    return all(
        (extent + 2 * width - size) % stride == 0
        for extent, width, size, stride in zip(extents, widths, kernel, strides, strict=True)
    )


def _without_indices(_b: NodeBuilder, *_args: Any, **_kwargs: Any) -> Value:
    raise Refused(_("TVM has no indices of a pooling"))


def _enter_max(dimensions: int) -> None:
    name = f"max_pool{dimensions}d"

    def lower(
        b: NodeBuilder,
        input: Value,
        kernel_size: Extents,
        stride: Extents | None = None,
        padding: Extents = 0,
        dilation: Extents = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Value:
        if return_indices:
            raise Refused(_("TVM has no indices of a pooling"))
        return _max_pool(b, dimensions, input, kernel_size, stride, padding, dilation, ceil_mode)

    def lower_with_indices(b: NodeBuilder, input: Value, *args: Any) -> Value:
        return lower(b, input, *args), Missing(_("TVM has no indices of a pooling"))

    # F.max_pool2d dispatches to one of two functions, and either may be traced.
    functions = {getattr(F, name), getattr(torch, name), getattr(F, f"_{name}")}
    module = getattr(nn, f"MaxPool{dimensions}d")
    rule(*functions, getattr(aten, name).default, module, name=name)(lower)
    rule(getattr(F, f"{name}_with_indices"), name=name)(_without_indices)
    with_indices = getattr(aten, f"{name}_with_indices", None)
    if with_indices is not None:
        rule(with_indices.default, name=name)(lower_with_indices)


def _enter_average(dimensions: int) -> None:
    name = f"avg_pool{dimensions}d"

    def lower(
        b: NodeBuilder,
        input: Value,
        kernel_size: Extents,
        stride: Extents | None = None,
        padding: Extents = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Value:
        arguments = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
        return _avg_pool(b, dimensions, input, *arguments)

    module = getattr(nn, f"AvgPool{dimensions}d")
    rule(getattr(F, name), getattr(aten, name).default, module, name=name)(lower)


def _enter_adaptive(dimensions: int) -> None:
    name = f"adaptive_avg_pool{dimensions}d"

    def average(b: NodeBuilder, input: Value, output_size: Extents) -> Value:
        return adaptive_avg_pool(b, dimensions, input, output_size)

    def maximum(
        b: NodeBuilder, input: Value, output_size: Extents, return_indices: bool = False
    ) -> Value:
        return _adaptive_max_pool(b, dimensions, input, output_size, return_indices)

    keys = [getattr(F, name), getattr(aten, name).default]
    keys.append(getattr(nn, f"AdaptiveAvgPool{dimensions}d"))
    if hasattr(aten, f"_{name}"):
        keys.append(getattr(aten, f"_{name}").default)
    rule(*keys, name=name)(average)

    def maximum_with_indices(b: NodeBuilder, input: Value, output_size: Extents) -> Value:
        return maximum(b, input, output_size), Missing(_("TVM has no indices of a pooling"))

    name = f"adaptive_max_pool{dimensions}d"
    functions = {getattr(F, name), getattr(F, f"_{name}")}
    rule(*functions, getattr(nn, f"AdaptiveMaxPool{dimensions}d"), name=name)(maximum)
    rule(getattr(aten, name).default, name=name)(maximum_with_indices)
    rule(getattr(F, f"{name}_with_indices"), name=name)(_without_indices)


for _dimensions in (1, 2, 3):
    _enter_max(_dimensions)
    _enter_average(_dimensions)
    _enter_adaptive(_dimensions)


_METHODS = {
    "nearest": "nearest_neighbor",
    "nearest-exact": "nearest_neighbor",
    "linear": "linear",
    "bilinear": "linear",
    "trilinear": "linear",
    "bicubic": "cubic",
}


_LINE_BY_LINE = {
    "linear": "bilinear",
    "bilinear": "bilinear",
    "trilinear": "bilinear",
    "bicubic": "bicubic",
}
"""Modes that are linear along each axis, as torch names those of two axes."""


@rule(F.interpolate, F.upsample, nn.Upsample, nn.UpsamplingNearest2d, nn.UpsamplingBilinear2d)
def interpolate(
    b: NodeBuilder,
    input: Value,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Value:
    extents = shape_of(input)[2:]
    sizes = _sizes(extents, size, scale_factor, bool(recompute_scale_factor))
    if antialias:
        return _by_matrices(b, input, sizes, mode, align_corners, antialias=True)
    if align_corners and (len(extents) == 1 or 1 in sizes):
        raise Refused(_("TVM divides by zero where corners are aligned on an axis of 1"))
    if mode == "area":
        return adaptive_avg_pool(b, len(extents), input, sizes)
    if mode not in _METHODS:
        raise Refused(_("its mode is {mode}", mode=mode))
    if mode == "nearest":
        coordinates, rounding = "asymmetric", "floor"
    elif mode == "nearest-exact":
        coordinates, rounding = "half_pixel", "round_prefer_ceil"
    else:
        coordinates, rounding = ("align_corners" if align_corners else "half_pixel"), ""
    value = b.emit(op.expand_dims(input, 2)) if len(extents) == 1 else input
    is_static = all(isinstance(each, int) for each in extents)
    if mode in _LINE_BY_LINE and dtype_of(input) == "float64" and is_static:
        # TVM computes coordinates in float32.
        wanted = [1, *sizes] if len(extents) == 1 else sizes
        resized = _by_matrices(
            b, value, wanted, _LINE_BY_LINE[mode], align_corners, antialias=False
        )
    elif len(extents) == 3:
        resized = b.emit(
            op.image.resize3d(
                value,
                tuple(sizes),
                method=_METHODS[mode],
                coordinate_transformation_mode=coordinates,
                rounding_method=rounding,
            )
        )
    else:
        resized = b.emit(
            op.image.resize2d(
                value,
                (1, *sizes) if len(extents) == 1 else tuple(sizes),
                method=_METHODS[mode],
                coordinate_transformation_mode=coordinates,
                rounding_method=rounding,
            )
        )
    return b.emit(op.squeeze(resized, [2])) if len(extents) == 1 else resized


_SAMPLES = ("bilinear", "nearest")
_OUTSIDE = ("zeros", "border", "reflection")
"""Padding modes, indexed by ATen's numbers, as above."""


def _by_matrices(
    b: NodeBuilder,
    input: Value,
    sizes: Sequence[int],
    mode: str,
    align_corners: bool | None,
    *,
    antialias: bool,
) -> Value:
    """Multiply by a matrix for each axis: what torch makes of the identity's rows.

    By a band of the matrix along its diagonal where that is much smaller.
    """
    if not is_float(dtype_of(input)):
        raise Refused(_("its input is no float"))
    value = input
    for axis, (extent, wanted) in enumerate(zip(shape_of(input)[2:], sizes, strict=True)):
        if not isinstance(extent, int):
            raise Refused(_("a size of it has a name"))
        kind = torch.float64 if dtype_of(input) == "float64" else torch.float32
        rows = torch.eye(extent, dtype=kind)[None, None]
        matrix = F.interpolate(
            rows, (extent, wanted), mode=mode, align_corners=align_corners, antialias=antialias
        )[0, 0]
        last = rank_of(value) - 1
        band = _band(matrix) if last == 3 else None
        weights = cast(b, b.constant(matrix if band is None else band[1]), dtype_of(input))
        if band is not None:
            value = _by_parts(b, value, axis + 2, wanted, band[0], weights)
        elif axis + 2 == last:
            value = b.emit(op.matmul(value, weights))
        elif axis + 2 == last - 1:
            value = b.emit(op.matmul(b.emit(op.permute_dims(weights)), value))
        else:
            turned = b.emit(op.matmul(permute_to(b, value, [0, 1, 3, 4, 2]), weights))
            value = permute_to(b, turned, [0, 1, 4, 2, 3])
    return value


_PART = 16
"""Number of values of an axis that are computed from the same part of the input."""

_PARTS = 4
"""Number of parts of an axis, without overlap, from which on copies of them are worth it."""


def _band(matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Return, for each part of the columns, the places of the rows that it reads, and these.

    ``None`` where a part reads too many rows for copies of them to be worth it.
    """
    extent, wanted = matrix.shape
    columns = F.pad(matrix, (0, -wanted % _PART)).reshape(extent, -1, _PART).transpose(0, 1)
    is_read = columns.ne(0).any(-1).int()
    first, last = is_read.argmax(1), extent - 1 - is_read.flip(1).argmax(1)
    length = int((last - first).max()) + 1
    if length * _PARTS > extent:
        return None
    places = first.clamp(max=extent - length)[:, None] + torch.arange(length)
    return places, columns[torch.arange(len(columns))[:, None], places].contiguous()


def _by_parts(
    b: NodeBuilder, value: Value, axis: int, wanted: int, places: torch.Tensor, weights: Value
) -> Value:
    """Multiply parts of the rows, or of the columns, by the weights of each."""
    parts = b.emit(op.take(value, b.constant(places), axis, mode="clip"))
    if axis == 2:
        made = b.emit(op.matmul(b.emit(op.permute_dims(weights, [0, 2, 1])), parts))
    else:
        made = b.emit(op.matmul(permute_to(b, parts, [0, 1, 3, 2, 4]), weights))
        made = permute_to(b, made, [0, 1, 3, 2, 4])
    sizes = shape_of(value)
    made = reshape_to(b, made, [*sizes[:axis], len(places) * _PART, *sizes[axis + 1 :]])
    return b.emit(op.strided_slice(made, [axis], [0], [wanted])) if wanted % _PART else made


@rule(F.grid_sample)
def grid_sample(
    b: NodeBuilder,
    input: Value,
    grid: Value,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Value:
    if rank_of(input) != 4 or mode not in _SAMPLES:
        raise Refused(_("it samples a volume, or its mode is {mode}", mode=mode))
    corners = bool(align_corners)
    size = shape_of(input)[2:]
    if mode == "bilinear" and all(
        isinstance(each, int) for each in (*shape_of(input), *shape_of(grid))
    ):
        points = _points(b, grid, size, padding_mode, corners)
        return b.emit(op.squeeze(sampled(b, input, points, None, 1), [2]))
    # TVM expects separate coordinate planes, despite its documentation.
    apart = permute_to(b, grid, [0, 3, 1, 2])
    return b.emit(op.image.grid_sample(input, apart, mode, "NCHW", padding_mode, corners))


def _points(
    b: NodeBuilder, grid: Value, size: Sequence[int], padding_mode: str, align_corners: bool
) -> Value:
    """Return the row and the column of each sample, as `sampled` takes them."""
    found = []
    for axis, extent in zip((1, 0), size, strict=True):
        place = b.emit(op.take(grid, scalar(axis, "int64"), 3, mode="clip"))
        place = add(b, place, 1)
        if align_corners:
            place = mul(b, place, (extent - 1) / 2)
        else:
            place = mul(b, sub(b, mul(b, place, extent), 1), 0.5)
        if padding_mode == "reflection":
            place = _reflected(b, place, extent, align_corners)
        if padding_mode != "zeros":
            place = clamp(b, place, 0, extent - 1)
            # As in torch.
            place = b.emit(op.where(is_nan(b, place), scalar(0, dtype_of(place)), place))
        found.append(place)
    points = b.emit(op.stack(found, 1))
    return b.emit(op.expand_dims(points, 1))


def _reflected(b: NodeBuilder, place: Value, extent: int, align_corners: bool) -> Value:
    low, span = (0.0, extent - 1) if align_corners else (-0.5, extent)
    if not span:
        return mul(b, place, 0)
    far = b.emit(op.abs(sub(b, place, low)))
    beyond = fmod(b, far, float(span))
    turns = b.emit(op.floor(mul(b, far, 1 / span)))
    odd = b.emit(op.equal(fmod(b, turns, 2.0), scalar(1, dtype_of(turns))))
    return add(b, b.emit(op.where(odd, sub(b, span, beyond), beyond)), low)


@rule(aten.grid_sampler.default, aten.grid_sampler_2d.default, name="grid_sample")
def aten_grid_sample(
    b: NodeBuilder, input: Value, grid: Value, mode: int, padding_mode: int, align_corners: bool
) -> Value:
    if mode >= len(_SAMPLES):
        raise Refused(_("its mode is bicubic"))
    named = (_SAMPLES[mode], _OUTSIDE[padding_mode])
    return grid_sample(b, input, grid, *named, align_corners)


def _enter(name: str, mode: str, *, antialias: bool = False) -> None:
    def nearest(
        b: NodeBuilder, input: Value, output_size: Any = None, scale_factors: Any = None
    ) -> Value:
        return interpolate(b, input, output_size, scale_factors, mode)

    def smooth(
        b: NodeBuilder,
        input: Value,
        output_size: Any,
        align_corners: bool,
        scale_factors: Any = None,
    ) -> Value:
        return interpolate(
            b, input, output_size, scale_factors, mode, align_corners, antialias=antialias
        )

    packet = getattr(aten, name)
    overloads = (packet.vec, packet.default) if antialias else (packet.vec,)
    rule(*overloads, name="interpolate")(nearest if mode.startswith("nearest") else smooth)


for _name, _mode in {
    "upsample_nearest1d": "nearest",
    "upsample_nearest2d": "nearest",
    "upsample_nearest3d": "nearest",
    "upsample_linear1d": "linear",
    "upsample_bilinear2d": "bilinear",
    "upsample_trilinear3d": "trilinear",
    "upsample_bicubic2d": "bicubic",
}.items():
    _enter(_name, _mode)
for _mode in ("bilinear", "bicubic"):
    _enter(f"_upsample_{_mode}2d_aa", _mode, antialias=True)


def _sizes(extents: Sequence[int], size: Any, scale_factor: Any, recompute: bool) -> list[int]:
    if size is not None:
        return [size] * len(extents) if isinstance(size, int) else [int(each) for each in size]
    given = isinstance(scale_factor, (tuple, list))
    factors = list(scale_factor) if given else [scale_factor] * len(extents)
    sizes = [int(extent * factor) for extent, factor in zip(extents, factors, strict=True)]
    for extent, factor, result in zip(extents, factors, sizes, strict=True):
        if extent * factor != result and not recompute:
            raise Refused(_("its scale factor gives no whole size, and TVM steps by the sizes"))
    return sizes
