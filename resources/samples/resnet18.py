"""ResNet-18 written out: residual blocks with batch norms, on an image of 3×224×224.

The weights are random. The batch norms have statistics and scales as training leaves them, so that
a lowering that forgets them, or that takes the statistics of the batch instead, shows at once.

He et al., Deep Residual Learning for Image Recognition, https://arxiv.org/abs/1512.03385
"""

import torch
from torch import nn

entry = "ResNet18"


class BasicBlock(nn.Module):
    """Two convolutions, and a shortcut around them."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        if stride == 1 and channels_in == channels:
            self.shortcut = nn.Identity()
        else:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels_in, channels, 1, stride, bias=False),
                nn.BatchNorm2d(channels),
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return self.relu(y + self.shortcut(x))


class ResNet18(nn.Module):
    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = nn.Sequential(BasicBlock(64, 64, 1), BasicBlock(64, 64, 1))
        self.layer2 = nn.Sequential(BasicBlock(64, 128, 2), BasicBlock(128, 128, 1))
        self.layer3 = nn.Sequential(BasicBlock(128, 256, 2), BasicBlock(256, 256, 1))
        self.layer4 = nn.Sequential(BasicBlock(256, 512, 2), BasicBlock(512, 512, 1))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.fc = nn.Linear(512, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(module, nn.BatchNorm2d):
                as_trained(module)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        x = self.flatten(self.avgpool(x))
        return self.fc(x)


def as_trained(norm: nn.BatchNorm2d) -> None:
    """Give a batch norm scales, shifts and running statistics that are not the defaults."""
    nn.init.uniform_(norm.weight, 0.5, 1.0)
    nn.init.normal_(norm.bias, 0.0, 0.1)
    nn.init.normal_(norm.running_mean, 0.0, 0.2)
    nn.init.uniform_(norm.running_var, 0.8, 2.0)


def example_inputs() -> tuple[torch.Tensor, ...]:
    return (torch.randn(1, 3, 224, 224),)
