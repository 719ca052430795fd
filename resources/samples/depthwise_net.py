"""A small MobileNet: inverted residuals with depthwise convolutions, on an image of 3×112×112.

The weights are random; the batch norms have statistics and scales as training leaves them.

Sandler et al., MobileNetV2: Inverted Residuals and Linear Bottlenecks,
https://arxiv.org/abs/1801.04381
"""

import torch
from torch import nn

entry = "DepthwiseNet"

STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 2, 2), (6, 64, 2, 2), (6, 128, 2, 2))
"""Of each stage: expansion, channels, number of blocks, and the stride of the first one."""


class InvertedResidual(nn.Module):
    """Expand the channels, filter each by itself, and project them; a shortcut around that."""

    def __init__(self, channels_in: int, channels: int, stride: int, expansion: int) -> None:
        super().__init__()
        width = channels_in * expansion
        self.expand = convolution(channels_in, width) if expansion > 1 else nn.Identity()
        self.depthwise = convolution(width, width, kernel=3, stride=stride, groups=width)
        self.project = nn.Conv2d(width, channels, 1, bias=False)
        self.bn = nn.BatchNorm2d(channels)
        self.has_shortcut = stride == 1 and channels_in == channels

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.bn(self.project(self.depthwise(self.expand(x))))
        return x + y if self.has_shortcut else y


class DepthwiseNet(nn.Module):
    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        channels, blocks = 32, []
        self.stem = convolution(3, channels, kernel=3, stride=2)
        for expansion, width, count, stride in STAGES:
            for place in range(count):
                first = place == 0
                blocks.append(InvertedResidual(channels, width, stride if first else 1, expansion))
                channels = width
        self.blocks = nn.Sequential(*blocks)
        self.head = convolution(channels, 512)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.linear = nn.Linear(512, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(module, nn.BatchNorm2d):
                as_trained(module)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.head(self.blocks(self.stem(x)))
        return self.linear(self.flatten(self.pool(x)))


def convolution(
    channels_in: int, channels: int, kernel: int = 1, stride: int = 1, groups: int = 1
) -> nn.Sequential:
    """Return a convolution with batch norm and ReLU6 behind it."""
    return nn.Sequential(
        nn.Conv2d(channels_in, channels, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(channels),
        nn.ReLU6(),
    )


def as_trained(norm: nn.BatchNorm2d) -> None:
    """Give a batch norm scales, shifts and running statistics that are not the defaults."""
    nn.init.uniform_(norm.weight, 0.5, 1.0)
    nn.init.normal_(norm.bias, 0.0, 0.1)
    nn.init.normal_(norm.running_mean, 0.0, 0.2)
    nn.init.uniform_(norm.running_var, 0.8, 2.0)


def example_inputs() -> tuple[torch.Tensor, ...]:
    return (torch.randn(1, 3, 112, 112),)
