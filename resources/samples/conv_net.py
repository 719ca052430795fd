"""A small convolutional network for 28×28 images: convolution, pooling and two linear layers."""

import torch
from torch import nn


class ConvNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 16, kernel_size=3, padding=1)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2)
        self.flatten = nn.Flatten()
        self.linear0 = nn.Linear(16 * 14 * 14, 64)
        self.linear1 = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(self.relu(self.conv(x)))
        x = self.flatten(x)
        x = self.relu(self.linear0(x))
        return self.linear1(x)


def example_inputs() -> tuple[torch.Tensor, ...]:
    return (torch.randn(1, 1, 28, 28),)
