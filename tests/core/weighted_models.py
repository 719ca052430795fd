"""Models with weights and buffers of all kinds. A test opens this file as a user would."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

X = torch.linspace(-1, 1, 24).reshape(4, 6)


def example_inputs() -> Any:
    return (X,)


class Tied(nn.Module):
    """One tensor under two names, and in a second parameter over the same memory."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Linear(6, 6, bias=False)
        self.decode = nn.Linear(6, 6, bias=False)
        self.decode.weight = self.encode.weight
        self.again = nn.Parameter(self.encode.weight.data)

    def forward(self, x: Tensor) -> Tensor:
        return self.decode(self.encode(x).relu()) + x @ self.again


class Buffers(nn.Module):
    """Persistent or not, of floats, integers and truth values, and a plain tensor."""

    lengths: Tensor
    order: Tensor
    mask: Tensor
    step: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("lengths", torch.rand(6))
        self.register_buffer("order", torch.tensor([3, 1, 0, 2, 5, 4]), persistent=False)
        self.register_buffer("mask", torch.arange(24).reshape(4, 6) % 3 == 0)
        self.register_buffer("step", torch.tensor(7))
        self.plain = torch.rand(6, 6)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        ordered = torch.index_select(x * self.lengths, 1, self.order)
        return ordered.masked_fill(self.mask, 0.5) @ self.plain, x.argmax(1) + self.step


class Layouts(nn.Module):
    """Weights that do not lie in memory as they are read: transposed, expanded, cut out."""

    expanded: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.transposed = nn.Parameter(torch.randn(3, 6).T)
        self.cut = nn.Parameter(torch.randn(5, 8)[1:4, 1:8:2])
        self.register_buffer("expanded", torch.randn(1, 3).expand(4, 3))
        self.linear = nn.Linear(3, 3)
        self.linear.weight = nn.Parameter(torch.randn(8, 6).T[::2, :3])

    def forward(self, x: Tensor) -> Tensor:
        low = x @ self.transposed + self.expanded
        return self.linear(low) @ self.cut[:, :3].T + self.expanded


class Unused(nn.Module):
    """Parameters that nothing reads, and some that are frozen."""

    def __init__(self) -> None:
        super().__init__()
        self.used = nn.Linear(6, 2).requires_grad_(False)
        self.idle = nn.Linear(600, 2)
        self.scale = nn.Parameter(torch.tensor(2.0), requires_grad=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.used(x) * self.scale
