"""Convolution, pooling, normalisation, attention and resampling against torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn


class Then(nn.Module):
    """Calls a module with one of the inputs."""

    def __init__(self, index: int, module: nn.Module) -> None:
        super().__init__()
        self.index = index
        self.module = module

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.module(inputs[self.index])


torch.manual_seed(0)
INPUTS = (
    torch.randn(2, 4, 9, 8),
    torch.randn(2, 4, 10),
    torch.randn(1, 4, 5, 6, 5),
    torch.randn(2, 4, 5, 8),
    torch.randn(2, 4, 5, 8),
)
"""An image, a sequence, a volume, and two stacks of heads."""


def with_statistics(module: Any) -> Any:
    """Give a batch norm statistics and weights that are not the defaults."""
    generator = torch.Generator().manual_seed(1)
    for name, tensor in [*module.named_buffers(), *module.named_parameters()]:
        if tensor.is_floating_point():
            random = torch.rand(tensor.shape, generator=generator)
            tensor.data.copy_(random + 0.5 if "var" in name else random - 0.5)
    return module


WEIGHT = torch.randn(6, 4, 3, 3)
BIAS = torch.randn(6)


CASES: dict[str, Callable[..., Any]] = {
    "conv1d": Then(1, nn.Conv1d(4, 6, 3, padding=1)),
    "conv1d with a stride": Then(1, nn.Conv1d(4, 4, 3, stride=2, dilation=2, groups=2, bias=False)),
    "conv2d": Then(0, nn.Conv2d(4, 6, 3)),
    "conv2d with everything": Then(0, nn.Conv2d(4, 6, (3, 2), (2, 1), (1, 2), (1, 2), groups=2)),
    "conv2d by depth": Then(0, nn.Conv2d(4, 4, 3, padding=1, groups=4)),
    "conv2d keeping the size": Then(0, nn.Conv2d(4, 3, (3, 4), padding="same")),
    "conv2d without padding": Then(0, nn.Conv2d(4, 3, 3, padding="valid")),
    "conv2d that reflects": Then(0, nn.Conv2d(4, 3, 3, padding=(1, 2), padding_mode="reflect")),
    "conv2d that goes around": Then(0, nn.Conv2d(4, 3, 3, padding=1, padding_mode="circular")),
    "conv2d as a function": lambda x, s, v, q, k: F.conv2d(x, WEIGHT, BIAS, stride=2, padding=1),
    "conv2d by keyword": lambda x, s, v, q, k: torch.conv2d(input=x, weight=WEIGHT, padding=(1, 0)),
    "conv2d without a batch": lambda x, s, v, q, k: F.conv2d(x[0], WEIGHT, BIAS),
    "conv3d": Then(2, nn.Conv3d(4, 3, 3, padding=1, stride=2)),
    "conv_transpose1d": Then(1, nn.ConvTranspose1d(4, 3, 4, stride=2, padding=1)),
    "conv_transpose2d": Then(0, nn.ConvTranspose2d(4, 6, 3, 2, 1, output_padding=1)),
    "conv_transpose2d in groups": Then(0, nn.ConvTranspose2d(4, 6, 2, 2, groups=2, bias=False)),
    "conv_transpose2d dilated": Then(0, nn.ConvTranspose2d(4, 6, 3, dilation=2)),
    "conv_transpose3d": Then(2, nn.ConvTranspose3d(4, 2, 2, stride=2)),
    "max_pool1d": lambda x, s, v, q, k: F.max_pool1d(s, 3, 2, 1),
    "max_pool2d": lambda x, s, v, q, k: (
        F.max_pool2d(x, 2),
        F.max_pool2d(x, (3, 2), stride=1, padding=1),
    ),
    "max_pool2d of the torch module": lambda x, s, v, q, k: torch.max_pool2d(x, 2),
    "max_pool2d rounding up": lambda x, s, v, q, k: F.max_pool2d(x, 2, ceil_mode=True),
    "max_pool2d dilated": Then(0, nn.MaxPool2d(2, dilation=2)),
    "MaxPool2d": Then(0, nn.MaxPool2d(3, 2, 1)),
    "MaxPool2d rounding up": Then(0, nn.MaxPool2d(3, stride=3, padding=1, ceil_mode=True)),
    "MaxPool1d": Then(1, nn.MaxPool1d(2)),
    "MaxPool3d": Then(2, nn.MaxPool3d(2)),
    "avg_pool1d": lambda x, s, v, q, k: F.avg_pool1d(s, 3, 2, 1),
    "avg_pool2d": lambda x, s, v, q, k: (F.avg_pool2d(x, 2), F.avg_pool2d(x, 3, 2, 1)),
    "AvgPool2d": Then(0, nn.AvgPool2d(3, 2, 1, count_include_pad=False)),
    "AvgPool2d rounding up": Then(0, nn.AvgPool2d(2, ceil_mode=True, count_include_pad=False)),
    "AvgPool3d": Then(2, nn.AvgPool3d(2)),
    "adaptive_avg_pool2d": lambda x, s, v, q, k: (
        F.adaptive_avg_pool2d(x, 1),
        F.adaptive_avg_pool2d(x, (4, 3)),
    ),
    "AdaptiveAvgPool2d": Then(0, nn.AdaptiveAvgPool2d((None, 5))),
    "AdaptiveAvgPool1d": Then(1, nn.AdaptiveAvgPool1d(3)),
    "AdaptiveAvgPool3d": Then(2, nn.AdaptiveAvgPool3d(2)),
    "AdaptiveMaxPool2d": Then(0, nn.AdaptiveMaxPool2d((3, 4))),
    "BatchNorm1d": Then(1, with_statistics(nn.BatchNorm1d(4))),
    "BatchNorm1d of a matrix": Then(
        1, nn.Sequential(nn.Flatten(), with_statistics(nn.BatchNorm1d(40)))
    ),
    "BatchNorm2d": Then(0, with_statistics(nn.BatchNorm2d(4, eps=1e-3))),
    "BatchNorm2d plain": Then(0, with_statistics(nn.BatchNorm2d(4, affine=False))),
    "BatchNorm2d of the batch": Then(
        0, with_statistics(nn.BatchNorm2d(4, track_running_stats=False))
    ),
    "BatchNorm3d": Then(2, with_statistics(nn.BatchNorm3d(4))),
    "batch_norm": lambda x, s, v, q, k: F.batch_norm(x, BIAS[:4], BIAS[:4] ** 2 + 1, eps=0.1),
    "batch_norm of the torch module": lambda x, s, v, q, k: torch.batch_norm(
        x, BIAS[:4], BIAS[1:5], BIAS[2:6], BIAS[:4] ** 2 + 1, False, 0.1, 0.1, False
    ),
    "instance_norm of the torch module": lambda x, s, v, q, k: torch.instance_norm(
        x, BIAS[:4], BIAS[1:5], None, None, True, 0.1, 1e-5, False
    ),
    "LayerNorm": Then(3, with_statistics(nn.LayerNorm(8))),
    "LayerNorm over two axes": Then(3, with_statistics(nn.LayerNorm((5, 8), eps=1e-2))),
    "LayerNorm plain": Then(3, nn.LayerNorm(8, elementwise_affine=False)),
    "LayerNorm without bias": Then(3, with_statistics(nn.LayerNorm(8, bias=False))),
    "layer_norm": lambda x, s, v, q, k: F.layer_norm(q, (8,)),
    "RMSNorm": Then(3, with_statistics(nn.RMSNorm(8))),
    "GroupNorm": Then(0, with_statistics(nn.GroupNorm(2, 4))),
    "GroupNorm plain": Then(0, nn.GroupNorm(4, 4, affine=False)),
    "group_norm": lambda x, s, v, q, k: F.group_norm(s, 2, BIAS[:4], BIAS[1:5]),
    "InstanceNorm1d": Then(1, with_statistics(nn.InstanceNorm1d(4, affine=True))),
    "InstanceNorm2d": Then(0, nn.InstanceNorm2d(4)),
    "InstanceNorm2d with statistics": Then(
        0, with_statistics(nn.InstanceNorm2d(4, track_running_stats=True))
    ),
    "normalize": lambda x, s, v, q, k: (F.normalize(x), F.normalize(q, dim=-1)),
    "attention": lambda x, s, v, q, k: F.scaled_dot_product_attention(q, k, k),
    "attention looking back": lambda x, s, v, q, k: F.scaled_dot_product_attention(
        q, k, k, is_causal=True
    ),
    "attention with a bias": lambda x, s, v, q, k: F.scaled_dot_product_attention(
        q, k, k, q[..., :5], scale=0.3
    ),
    "attention with a mask": lambda x, s, v, q, k: F.scaled_dot_product_attention(
        q, k, k, attn_mask=q[..., :5] > 1
    ),
    "attention of three axes": lambda x, s, v, q, k: F.scaled_dot_product_attention(
        q[0], k[0], k[0]
    ),
    "interpolate": lambda x, s, v, q, k: (
        F.interpolate(x, scale_factor=2),
        F.interpolate(x, size=(5, 20)),
    ),
    "interpolate exactly": lambda x, s, v, q, k: F.interpolate(
        x, size=(5, 20), mode="nearest-exact"
    ),
    "interpolate bilinearly": lambda x, s, v, q, k: F.interpolate(
        x, scale_factor=2, mode="bilinear"
    ),
    "interpolate down": lambda x, s, v, q, k: F.interpolate(
        x, size=(4, 5), mode="bilinear", align_corners=False
    ),
    "interpolate by corners": lambda x, s, v, q, k: F.interpolate(
        x, (12, 13), mode="bilinear", align_corners=True
    ),
    "interpolate by cubes": lambda x, s, v, q, k: F.interpolate(x, scale_factor=2, mode="bicubic"),
    "interpolate a sequence": lambda x, s, v, q, k: (
        F.interpolate(s, 15),
        F.interpolate(s, 15, mode="linear"),
    ),
    "interpolate a volume": lambda x, s, v, q, k: (
        F.interpolate(v, scale_factor=2),
        F.interpolate(v, (3, 9, 9), mode="trilinear"),
    ),
    "interpolate by area": lambda x, s, v, q, k: F.interpolate(x, (3, 4), mode="area"),
    "Upsample": Then(0, nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)),
    "ZeroPad2d": Then(0, nn.ZeroPad2d((1, 2, 0, 1))),
    "ConstantPad1d": Then(1, nn.ConstantPad1d(2, 3.5)),
    "ReflectionPad2d": Then(0, nn.ReflectionPad2d(2)),
    "ReplicationPad1d": Then(1, nn.ReplicationPad1d((1, 3))),
    "CircularPad2d": Then(0, nn.CircularPad2d(1)),
    "PixelShuffle": Then(0, nn.PixelShuffle(2)),
}


@pytest.mark.parametrize(
    ("tracer", "strategy"),
    [("fx", "high-level"), ("fx", "te"), ("export", "te"), ("fx", "library")],
)
@pytest.mark.parametrize("name", CASES)
def test_network_gives_what_torch_does(bench: Any, name: str, tracer: str, strategy: str) -> None:
    bench.check_case(CASES, name, INPUTS, tracer, strategy)
