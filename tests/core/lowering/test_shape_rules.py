"""Shapes, splits and new tensors against torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Then(nn.Module):
    """Calls a module with one of the inputs."""

    def __init__(self, index: int, module: nn.Module) -> None:
        super().__init__()
        self.index = index
        self.module = module

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.module(inputs[self.index])


INPUTS = (torch.randn(2, 3, 4), torch.randn(2, 3, 4), torch.randn(1, 4, 6, 6), torch.arange(6))


CASES: dict[str, Callable[..., Any]] = {
    "view": lambda x, y, z, n: (x.view(6, 4), x.view(-1), x.view((2, 12)), x.view(2, -1, 2)),
    "reshape": lambda x, y, z, n: (x.reshape(4, 6), torch.reshape(x, (-1, 8))),
    "reshape_as": lambda x, y, z, n: x.reshape(4, 6).view_as(y),
    "flatten": lambda x, y, z, n: (
        x.flatten(),
        torch.flatten(x, 1),
        x.flatten(0, 1),
        x.flatten(start_dim=1),
    ),
    "Flatten": Then(2, nn.Flatten()),
    "unflatten": lambda x, y, z, n: (x.unflatten(2, (2, 2)), torch.unflatten(x, -1, (-1, 2))),
    "Unflatten": Then(0, nn.Unflatten(2, (2, 2))),
    "squeeze": lambda x, y, z, n: (z.squeeze(), z.squeeze(0), z.squeeze(1), torch.squeeze(z, -4)),
    "unsqueeze": lambda x, y, z, n: (x.unsqueeze(0), x.unsqueeze(-1), torch.unsqueeze(x, 2)),
    "transpose": lambda x, y, z, n: (
        x.transpose(1, 2),
        torch.transpose(x, 0, -1),
        x.swapaxes(0, 1),
    ),
    "attributes": lambda x, y, z, n: (x.mT, x[0].T, x * x.ndim),
    "permute": lambda x, y, z, n: (
        x.permute(2, 0, 1),
        x.permute((1, 0, 2)),
        torch.permute(x, (0, -1, 1)),
    ),
    "sizes by keyword": lambda x, y, z, n: (
        x.permute(dims=(2, 1, 0)),
        torch.reshape(x, shape=(4, 6)),
        torch.zeros(size=(2, 2)) + 1,
        torch.cat(tensors=[x, y], dim=2),
    ),
    "movedim": lambda x, y, z, n: (x.movedim(0, 2), torch.movedim(x, (0, 1), (1, 2))),
    "expand": lambda x, y, z, n: (x.unsqueeze(0).expand(5, -1, -1, -1), x[0].expand(2, 3, 4)),
    "expand_as": lambda x, y, z, n: x[:1].expand_as(y),
    "broadcast_to": lambda x, y, z, n: torch.broadcast_to(x[0], (2, 3, 4)),
    "repeat": lambda x, y, z, n: (x.repeat(1, 2, 1), x.repeat(2, 1, 1, 1), x.tile((2,))),
    "repeat_interleave": lambda x, y, z, n: (x.repeat_interleave(2, dim=1), x.repeat_interleave(3)),
    "cat": lambda x, y, z, n: (
        torch.cat([x, y], 1),
        torch.cat((x, y), dim=-1),
        torch.concat([x, x, y]),
    ),
    "cat of mixed dtypes": lambda x, y, z, n: torch.cat([x.flatten(), n]),
    "stack": lambda x, y, z, n: (torch.stack([x, y]), torch.stack((x, y), dim=-1)),
    "hstack and vstack": lambda x, y, z, n: (torch.hstack([x, y]), torch.vstack([x, y])),
    "flip": lambda x, y, z, n: (x.flip(1), torch.flip(x, [0, 2])),
    "roll": lambda x, y, z, n: (torch.roll(x, 1, 1), x.roll((1, -2), (0, 2)), torch.roll(x, 5)),
    "tril and triu": lambda x, y, z, n: (torch.tril(x), x.triu(1), torch.tril(x, -1)),
    "pixel_shuffle": lambda x, y, z, n: F.pixel_shuffle(z, 2),
    "pixel_unshuffle": lambda x, y, z, n: F.pixel_unshuffle(z, 3),
    "channel_shuffle": lambda x, y, z, n: torch.channel_shuffle(z, 2),
    "split": lambda x, y, z, n: torch.split(x, 3, dim=2),
    "split in sizes": lambda x, y, z, n: x.split([1, 2, 1], dim=-1),
    "split and use one": lambda x, y, z, n: x.split(2, 2)[1],
    "chunk": lambda x, y, z, n: (torch.chunk(x, 2, -1), z.chunk(4, dim=3)),
    "chunk unevenly": lambda x, y, z, n: (n.chunk(4), z.chunk(5, 2)),
    "tensor_split": lambda x, y, z, n: torch.tensor_split(x, 3, 2),
    "unbind": lambda x, y, z, n: x.unbind(1),
    "identities": lambda x, y, z, n: (x.contiguous(), x.clone(), x.detach(), x.cpu()),
    "pad": lambda x, y, z, n: (
        F.pad(x, (1, 2)),
        F.pad(x, (0, 1, 2, 0), value=3.0),
        F.pad(x, [1, 1, 1, 1, 1, 1]),
    ),
    "pad by less than nothing": lambda x, y, z, n: (F.pad(x, (-1, 2)), F.pad(x, (-1, -1, -1, 0))),
    "pad by reflecting": lambda x, y, z, n: F.pad(z, (1, 2, 2, 1), mode="reflect"),
    "pad by repeating": lambda x, y, z, n: F.pad(z, (1, 2, 2, 1), mode="replicate"),
    "pad around": lambda x, y, z, n: F.pad(z, (1, 2, 2, 1), mode="circular"),
    "zeros": lambda x, y, z, n: (torch.zeros(2, 3) + 0, torch.zeros((2, 3), dtype=torch.int64) + 0),
    "ones and full": lambda x, y, z, n: (torch.ones(3) * 2, torch.full((2, 2), 7) + 0),
    "like": lambda x, y, z, n: (torch.zeros_like(x), torch.ones_like(n), torch.full_like(x, 2.5)),
    "new": lambda x, y, z, n: (x.new_zeros(2, 3), x.new_ones((2,)), x.new_full((2, 2), 3.0)),
    "arange": lambda x, y, z, n: (x + torch.arange(x.shape[2]), torch.arange(1, x.size(1)) + 0),
    "arange with a step": lambda x, y, z, n: torch.arange(0, x.shape[2], 3) + n[:2],
    "arange of floats": lambda x, y, z, n: torch.arange(0.0, 1.0, 1 / x.shape[2]) + x,
    "constants": lambda x, y, z, n: (
        torch.tensor([1.0, 2.0, 3.0, 4.0]) + x,
        torch.eye(x.shape[2]) @ x[0].T,
    ),
    "diagonal": lambda x, y, z, n: torch.diagonal(x[0]),
    "shape and dim": lambda x, y, z, n: x.reshape(x.shape[0], x.size()[1] * x.size(-1)) * x.dim(),
    "numel": lambda x, y, z, n: x.reshape(x.numel()),
}


@pytest.mark.parametrize(
    ("tracer", "strategy"),
    [("fx", "high-level"), ("fx", "te"), ("export", "te"), ("fx", "library")],
)
@pytest.mark.parametrize("name", CASES)
def test_shape_gives_what_torch_does(bench: Any, name: str, tracer: str, strategy: str) -> None:
    bench.check_case(CASES, name, INPUTS, tracer, strategy)
