"""Resampling to another size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder
from lowerscope.core.lowering.rule_table import Refused, rule
from lowerscope.core.lowering.rules.pooling import adaptive_avg_pool
from lowerscope.core.lowering.rules.shape import permute_to
from lowerscope.core.lowering.values import Value, rank_of, shape_of

aten = torch.ops.aten

_METHODS = {
    "nearest": "nearest_neighbor",
    "nearest-exact": "nearest_neighbor",
    "linear": "linear",
    "bilinear": "linear",
    "trilinear": "linear",
    "bicubic": "cubic",
}


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
    if antialias:
        raise Refused("TVM has no antialiased resampling")
    extents = shape_of(input)[2:]
    sizes = _sizes(extents, size, scale_factor, bool(recompute_scale_factor))
    if align_corners and (len(extents) == 1 or 1 in sizes):
        raise Refused("TVM divides by zero where corners are aligned on an axis of 1")
    if mode == "area":
        return adaptive_avg_pool(b, len(extents), input, sizes)
    if mode not in _METHODS:
        raise Refused(f"its mode is {mode}")
    if mode == "nearest":
        coordinates, rounding = "asymmetric", "floor"
    elif mode == "nearest-exact":
        coordinates, rounding = "half_pixel", "round_prefer_ceil"
    else:
        coordinates, rounding = ("align_corners" if align_corners else "half_pixel"), ""
    value = b.emit(op.expand_dims(input, 2)) if len(extents) == 1 else input
    if len(extents) == 3:
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
        raise Refused(f"it samples a volume, or its mode is {mode}")
    # TVM expects separate coordinate planes, despite its documentation.
    apart = permute_to(b, grid, [0, 3, 1, 2])
    corners = bool(align_corners)
    return b.emit(op.image.grid_sample(input, apart, mode, "NCHW", padding_mode, corners))


@rule(aten.grid_sampler.default, aten.grid_sampler_2d.default, name="grid_sample")
def aten_grid_sample(
    b: NodeBuilder, input: Value, grid: Value, mode: int, padding_mode: int, align_corners: bool
) -> Value:
    if mode >= len(_SAMPLES):
        raise Refused("its mode is bicubic")
    named = (_SAMPLES[mode], _OUTSIDE[padding_mode])
    return grid_sample(b, input, grid, *named, align_corners)


def _enter(name: str, mode: str) -> None:
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
        return interpolate(b, input, output_size, scale_factors, mode, align_corners)

    rule(getattr(aten, name).vec, name="interpolate")(
        nearest if mode.startswith("nearest") else smooth
    )


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


def _sizes(extents: Sequence[int], size: Any, scale_factor: Any, recompute: bool) -> list[int]:
    if size is not None:
        return [size] * len(extents) if isinstance(size, int) else [int(each) for each in size]
    given = isinstance(scale_factor, (tuple, list))
    factors = list(scale_factor) if given else [scale_factor] * len(extents)
    sizes = [int(extent * factor) for extent, factor in zip(extents, factors, strict=True)]
    for extent, factor, result in zip(extents, factors, sizes, strict=True):
        if extent * factor != result and not recompute:
            raise Refused("its scale factor gives no whole size, and TVM steps by the sizes")
    return sizes
