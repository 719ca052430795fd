"""Models whose inputs and outputs are nests of tensors. A test opens this file as a user would."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

X = torch.linspace(-1, 1, 8).reshape(2, 4)
Y = torch.linspace(0, 3, 8).reshape(2, 4)


class Pair(NamedTuple):
    first: Tensor
    second: Tensor


@dataclass
class Batch:
    image: Tensor
    mask: Tensor | None = None
    scale: float = 2.0

    def __post_init__(self) -> None:
        assert self.image.dim() == 2, "made anew by its constructor"


@dataclass
class ModelOutput(OrderedDict[str, Any]):
    """In the manner of transformers: a dataclass that is a dict of what is not None."""

    logits: Any = None
    hidden: Any = None
    attentions: Any = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None:
                self[field.name] = value


class Body(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(4, 3)


class DictInDictOut(Body):
    def forward(self, batch: dict[str, Any]) -> dict[str, Any]:
        hidden = self.body(batch["image"] * batch["more"][0])
        return {"logits": hidden.relu(), "hidden": [hidden, (hidden + 1,)]}

    @staticmethod
    def example_inputs() -> Any:
        return ({"image": X, "more": [Y]},)


class DataclassInAndOut(Body):
    def forward(self, batch: Batch, pair: Pair) -> ModelOutput:
        masked = batch.image if batch.mask is None else batch.image * batch.mask
        hidden = self.body(masked * batch.scale + pair.first - pair.second)
        return ModelOutput(logits=hidden.sum(1), hidden=(hidden, hidden * 2))

    @staticmethod
    def example_inputs() -> Any:
        return (Batch(X), Pair(Y, X + 1))


class KeywordsAndOptions(Body):
    def forward(
        self, x: Tensor, mask: Tensor | None = None, *, scale: Tensor, power: int = 1
    ) -> tuple[Tensor, None, int, float, Pair]:
        hidden = self.body(x if mask is None else x * mask) * scale**power
        return hidden, None, x.shape[1], 0.5, Pair(hidden, hidden.exp())

    @staticmethod
    def example_inputs() -> Any:
        return (X,), {"scale": Y[:, :3], "power": 2}


class ByKeyword(Body):
    def forward(self, x: Tensor, mask: Tensor | None = None, bias: Tensor | None = None) -> Tensor:
        assert bias is not None
        return self.body(x) + bias

    @staticmethod
    def example_inputs() -> Any:
        return {"bias": torch.ones(3), "x": X}


class AnyKeywords(Body):
    def forward(self, **parts: Tensor) -> Tensor:
        return self.body(parts["left"] + parts["right"])

    @staticmethod
    def example_inputs() -> Any:
        return {"left": X, "right": Y}
