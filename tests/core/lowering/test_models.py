"""Whole models against torch, in both strategies and by the tracers that can do them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lowerscope.core.model.recipe import Override


class TransformerBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(16)
        self.qkv = nn.Linear(16, 48)
        self.out = nn.Linear(16, 16)
        self.norm2 = nn.LayerNorm(16)
        self.mlp = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, 4, width // 4)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-2, -1) / math.sqrt(width // 4)
        if mask is not None:
            scores = scores + mask
        heads = F.softmax(scores, dim=-1) @ v
        x = x + self.out(heads.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down1 = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU())
        self.down2 = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(4, 8, 3, padding=1), nn.ReLU())
        self.bottom = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, padding=1), nn.SiLU())
        self.up2 = nn.ConvTranspose2d(8, 8, 2, stride=2)
        self.conv2 = nn.Conv2d(16, 4, 3, padding=1)
        self.conv1 = nn.Conv2d(8, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one = self.down1(x)
        two = self.down2(one)
        up = torch.relu(self.conv2(torch.cat([self.up2(self.bottom(two)), two], dim=1)))
        up = F.interpolate(up, scale_factor=2, mode="bilinear", align_corners=False)
        return self.conv1(torch.cat([up, one], dim=1))


class Recurrent(nn.Module):
    def __init__(self, kind: Callable[..., nn.Module]) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.layer = kind(8, 6, batch_first=True)
        self.head = nn.Linear(6, 3)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer(self.embedding(tokens))[0][:, -1])


class GruWithState(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.GRU(8, 6, batch_first=True)

    def forward(self, x: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.layer(x, state)


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


class DecoderBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.RMSNorm(16)
        self.qkv = nn.Linear(16, 48, bias=False)
        self.out = nn.Linear(16, 16, bias=False)
        self.norm2 = nn.RMSNorm(16)
        self.gate, self.up = nn.Linear(16, 32), nn.Linear(16, 32)
        self.down = nn.Linear(32, 16)

    def forward(
        self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        batch, length, _ = x.size()
        q, k, v = (
            each.view(batch, length, 4, 4).transpose(1, 2)
            for each in self.qkv(self.norm1(x)).split(16, dim=-1)
        )
        scores = rotated(q, cos, sin) @ rotated(k, cos, sin).transpose(-2, -1) / 2
        weights = scores.masked_fill(mask, float("-inf")).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, 16))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Decoder(nn.Module):
    """As GPT: rotary embedding, a causal mask, and a head that is tied to the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(12, 16)
        self.blocks = nn.ModuleList(DecoderBlock() for _ in range(2))
        self.norm = nn.RMSNorm(16)
        self.head = nn.Linear(16, 12, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("frequencies", 100.0 ** (-torch.arange(2) / 2), persistent=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        length = tokens.shape[1]
        angles = torch.outer(torch.arange(length), self.frequencies)
        angles = torch.cat([angles, angles], dim=-1)
        mask = torch.ones(length, length, dtype=torch.bool).triu(1)
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, angles.cos(), angles.sin(), mask)
        return self.head(self.norm(x))


class VisionTransformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 4, 4)
        self.token = nn.Parameter(torch.randn(1, 1, 16))
        self.places = nn.Parameter(torch.randn(1, 17, 16))
        self.blocks = nn.Sequential(TransformerBlock(), TransformerBlock())
        self.norm = nn.LayerNorm(16)
        self.head = nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.places
        return self.head(self.norm(self.blocks(x))[:, 0])


class TwoTowers(nn.Module):
    """Several inputs, integers among them, a tied weight, and nested outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(12, 8)
        self.head = nn.Linear(8, 12, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("scale", torch.linspace(0.5, 2.0, 8))

    def forward(self, tokens: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> dict[str, Any]:
        h = self.embedding(tokens) * self.scale
        both = torch.cat([x, y], dim=-1)
        return {"logits": self.head(h), "rest": (both, [h.mean(1), x.shape[0]])}


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 10), nn.Softmax(dim=-1))


def randomised(model: nn.Module) -> nn.Module:
    """Give every statistic and weight a value that is not its default."""
    for name, buffer in model.named_buffers():
        if "running" in name:
            buffer.data = torch.rand_like(buffer) + 0.5
    for parameter in model.parameters():
        if parameter.dim() == 1:
            parameter.data = torch.rand_like(parameter) - 0.3
    return model.eval()


torch.manual_seed(0)
BOTH = ("auto", "export")
AUTO = ("auto",)
TOKENS = torch.randint(0, 12, (2, 4))
MODELS: dict[str, tuple[nn.Module, tuple[torch.Tensor, ...], tuple[str, ...]]] = {
    "mlp": (mlp(), (torch.randn(1, 30),), BOTH),
    "unet": (UNet(), (torch.randn(1, 1, 16, 16),), BOTH),
    "two towers": (TwoTowers(), (TOKENS, torch.randn(2, 3), torch.randn(2, 5)), BOTH),
    "lstm": (Recurrent(nn.LSTM), (TOKENS,), BOTH),
    "gru with its state": (GruWithState(), (torch.randn(2, 4, 8), torch.randn(1, 2, 6)), AUTO),
    "decoder": (Decoder(), (TOKENS,), BOTH),
    "vit": (VisionTransformer(), (torch.randn(1, 3, 16, 16),), BOTH),
}
for _model, _, _ in MODELS.values():
    randomised(_model)


@pytest.mark.diagonal
@pytest.mark.parametrize("strategy", ["high-level", "te", "library"])
@pytest.mark.parametrize(
    ("name", "tracer"), [(name, each) for name, entry in MODELS.items() for each in entry[2]]
)
def test_a_model_gives_what_torch_does(bench: Any, name: str, tracer: str, strategy: str) -> None:
    model, inputs, _ = MODELS[name]
    outcome = bench.check(model, inputs, tracer, strategy)
    assert outcome.lowered.notes == ()


@pytest.mark.parametrize("name", ["unet", "decoder", "gru with its state"])
def test_strategies_mix_in_one_model(bench: Any, name: str) -> None:
    model, inputs, _ = MODELS[name]
    mix = (
        Override(pattern="matmul", strategy="high-level"),
        Override(pattern="linear", strategy="library"),
        Override(pattern="conv?d", strategy="high-level"),
        Override(pattern="relu", strategy="library"),
        Override(pattern="gru", strategy="library"),
    )
    outcome = bench.check(model, inputs, "auto", "te", mix)
    strategies = {node.strategy for node in outcome.lowered.nodes.values()}
    assert "library" in strategies
    assert len(strategies - {""}) > 1 or name == "gru with its state"
