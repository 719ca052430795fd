"""Rules that move elements between channels and the plane."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from lowerscope.core.lowering.builder import NodeBuilder
from lowerscope.core.lowering.relax_values import (
    Value,
    shape_of,
)
from lowerscope.core.lowering.rule_table import exact
from lowerscope.core.lowering.rules.shape import permute_to, reshape_to, transpose

aten = torch.ops.aten


@exact(F.pixel_shuffle, torch.pixel_shuffle, aten.pixel_shuffle.default)
def pixel_shuffle(b: NodeBuilder, input: Value, upscale_factor: int) -> Value:
    # Relax has this operator, but its legalisation calls a function missing from topi.
    r = upscale_factor
    *batch, channels, height, width = shape_of(input)
    n = len(batch)
    split = reshape_to(b, input, [*batch, channels // (r * r), r, r, height, width])
    order = [*range(n), n, n + 3, n + 1, n + 4, n + 2]
    interleaved = permute_to(b, split, order)
    return reshape_to(b, interleaved, [*batch, channels // (r * r), height * r, width * r])


@exact(F.pixel_unshuffle, torch.pixel_unshuffle, aten.pixel_unshuffle.default)
def pixel_unshuffle(b: NodeBuilder, input: Value, downscale_factor: int) -> Value:
    r = downscale_factor
    *batch, channels, height, width = shape_of(input)
    n = len(batch)
    split = reshape_to(b, input, [*batch, channels, height // r, r, width // r, r])
    gathered = permute_to(b, split, [*range(n), n, n + 2, n + 4, n + 1, n + 3])
    return reshape_to(b, gathered, [*batch, channels * r * r, height // r, width // r])


@exact(F.channel_shuffle, torch.channel_shuffle)
def channel_shuffle(b: NodeBuilder, input: Value, groups: int) -> Value:
    batch, channels, *spatial = shape_of(input)
    split = reshape_to(b, input, [batch, groups, channels // groups, *spatial])
    swapped = transpose(b, split, 1, 2)
    return reshape_to(b, swapped, shape_of(input))


@exact(nn.PixelShuffle)
def pixel_shuffle_module(b: NodeBuilder, module: nn.PixelShuffle, input: Value) -> Value:
    return pixel_shuffle(b, input, module.upscale_factor)


@exact(nn.PixelUnshuffle)
def pixel_unshuffle_module(b: NodeBuilder, module: nn.PixelUnshuffle, input: Value) -> Value:
    return pixel_unshuffle(b, input, module.downscale_factor)


@exact(nn.ChannelShuffle)
def channel_shuffle_module(b: NodeBuilder, module: nn.ChannelShuffle, input: Value) -> Value:
    return channel_shuffle(b, input, module.groups)
