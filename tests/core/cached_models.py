"""Small language models with caches of their own. A test opens this file as a user would."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

VOCABULARY, WIDTH, WINDOW, SPAN = 23, 8, 96, 9


class Layer:
    """Keys and values of one layer, which grow with each call."""

    def __init__(self) -> None:
        self.keys: Tensor | None = None
        self.values: Tensor | None = None
        self.length = 0  # a number of Python's that changes with each call

    def update(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        if self.keys is not None and self.values is not None:
            keys = torch.cat([self.keys, keys], 1)
            values = torch.cat([self.values, values], 1)
        self.length += keys.shape[1] - (0 if self.keys is None else self.keys.shape[1])
        self.keys, self.values = keys, values
        return keys, values


class Cache:
    """Layers, and a flag that the model changes."""

    def __init__(self, count: int) -> None:
        self.layers = [Layer() for _layer in range(count)]
        self.used = {"yet": False}
        self.owner = self  # a reference back, as some caches have


class Fixed:
    """A cache of a fixed size, which is written in place."""

    __slots__ = ("keys", "place")

    def __init__(self) -> None:
        self.keys = torch.zeros(1, WINDOW, WIDTH)
        self.place = torch.zeros((), dtype=torch.int64)


class Grows(nn.Module):
    """Attention over all tokens so far, with their keys in a cache that grows."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(256, WIDTH)
        self.blocks = nn.ModuleList([nn.Linear(WIDTH, 3 * WIDTH) for _block in range(2)])
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: Tensor, cache: Cache | None = None) -> dict[str, Any]:
        if cache is None:
            cache = Cache(len(self.blocks))
        before, count = cache.layers[0].length, tokens.shape[1]
        cache.used["yet"] = True
        places = torch.arange(count) + before
        x = self.embedding(tokens) + self.positions(places)
        for block, layer in zip(self.blocks, cache.layers, strict=True):
            query, key, value = block(x).chunk(3, -1)
            keys, values = layer.update(key, value)
            seen = torch.arange(keys.shape[1])[None] <= places[:, None]
            scores = (query @ keys.transpose(1, 2)).masked_fill(~seen, -torch.inf)
            x = x + scores.softmax(-1) @ values
        return {"logits": self.head(x), "cache": cache, "kind": "grows", "of": Cache, "none": None}

    @staticmethod
    def example_inputs() -> Any:
        return torch.tensor([[3, 1, 4, 1, 5]])

    @staticmethod
    def next_inputs(outputs: dict[str, Any], token: Tensor) -> Any:
        return {"tokens": token, "cache": outputs["cache"]}


class Masks(Grows):
    """The same, with a mask for the tokens in the cache and those of the call."""

    def forward(  # type: ignore[override]
        self, tokens: Tensor, mask: Tensor, cache: Cache | None = None
    ) -> dict[str, Any]:
        outputs = super().forward(tokens, cache)
        seen = mask[..., None] * outputs["cache"].layers[0].keys
        outputs["logits"] = outputs["logits"] + self.head(seen.sum(1, keepdim=True))
        return outputs

    @staticmethod
    def example_inputs() -> Any:
        return torch.tensor([[3, 1, 4, 1, 5]]), torch.tensor([[0.0, 1, 1, 1, 1]])

    @staticmethod
    def next_inputs(outputs: dict[str, Any], token: Tensor) -> Any:
        cache = outputs["cache"]
        mask = torch.ones(1, cache.layers[0].keys.shape[1] + 1)
        mask[:, 0] = 0
        return {"tokens": token, "mask": mask, "cache": cache}


class Sliding(Layer):
    """A layer that keeps the last tokens alone."""

    def update(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        keys, values = super().update(keys, values)
        if keys.shape[1] > SPAN:
            self.keys, self.values = keys[:, -SPAN:], values[:, -SPAN:]
        return keys, values


class Slides(Grows):
    """The same, with a first layer whose window gets full: a hybrid cache."""

    def forward(self, tokens: Tensor, cache: Cache | None = None) -> dict[str, Any]:
        if cache is None:
            cache = Cache(len(self.blocks))
            cache.layers[0] = Sliding()
        return super().forward(tokens, cache)


class Mixes(Grows):
    """The same, beside a recurrent state that is written in place."""

    def forward(self, tokens: Tensor, cache: Cache | None = None) -> dict[str, Any]:
        outputs = super().forward(tokens, cache)
        cache = outputs["cache"]
        if not hasattr(cache, "state"):
            cache.state = torch.zeros(1, WIDTH)
        with torch.autocast("cpu", enabled=False):
            new = self.embedding(tokens).mean(1)
        cache.state.mul_(0.5).add_(new)
        outputs["logits"] = outputs["logits"] + self.head(cache.state)[:, None]
        return outputs


class Steps(Grows):
    """The same, called with a cache that has some tokens in it."""

    @staticmethod
    def example_inputs() -> Any:
        cache = Cache(2)
        for index, layer in enumerate(cache.layers):
            layer.update(torch.ones(1, 4, WIDTH) * index, torch.linspace(0, 1, 32).view(1, 4, 8))
        return {"tokens": torch.tensor([[2]]), "cache": cache}


class InPlace(nn.Module):
    """A recurrent model that writes into a cache of a fixed size, with a step of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Fixed]:
        cache = Fixed()
        x = self.embedding(tokens)
        cache.keys[:, : tokens.shape[1]] = x
        cache.place = cache.place + tokens.shape[1]
        return self.head(x.sum(1)), cache

    def decode(self, token: Tensor, cache: Fixed) -> tuple[Tensor, Fixed]:
        cache.keys.index_copy_(1, cache.place[None], self.embedding(token))
        cache.place.add_(1)
        return self.head(cache.keys.sum(1)), cache

    @staticmethod
    def example_inputs() -> Any:
        return torch.tensor([[3, 1, 4]])

    @staticmethod
    def next_inputs(outputs: tuple[Tensor, Fixed], token: Tensor) -> Any:
        return (token, outputs[1])


class Keeps(nn.Module):
    """Attention whose keys are a buffer of the model, written at the places of the tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(WINDOW, WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY)
        self.keys = nn.Buffer(torch.zeros(1, WINDOW, WIDTH))
        self.seen = torch.zeros(WINDOW, dtype=torch.bool)
        self.scale = nn.Buffer(torch.full((), 2.0))

    def forward(self, tokens: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
        x = self.embedding(tokens) + self.positions(places)
        self.keys[:, places] = x
        self.seen = self.seen.index_fill(0, places, True)
        scores = (x @ self.keys.transpose(1, 2) * self.scale).masked_fill(~self.seen, -torch.inf)
        return self.head(scores.softmax(-1) @ self.keys), places[-1:] + 1

    @staticmethod
    def example_inputs() -> Any:
        return torch.tensor([[3, 1, 4]]), torch.arange(3)

    @staticmethod
    def next_inputs(outputs: tuple[Tensor, Tensor], token: Tensor) -> Any:
        return (token, outputs[1])


class State:
    """A holder of tensors, and of other things."""


class Holds(nn.Module):
    """Return an object with tensors in its attributes, and a length."""

    def forward(self, x: Tensor) -> State:
        outer: Any = State()
        outer.state = State()
        outer.keys, outer.length = x.relu(), x.shape[1]
        outer.state.a, outer.state.b = x + 1, [x * 2]
        return outer

    @staticmethod
    def example_inputs() -> Any:
        return torch.linspace(-1, 1, 6).view(2, 3)
