"""The model's state while its ``forward`` is run: as before, afterwards."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

_DEPTH = 4
"""How deep containers inside of each other are looked through, ``__dict__`` being the first."""
_MAPPINGS = (dict, OrderedDict, defaultdict)
_SEQUENCES = (list, set, deque)
_CONTAINERS = frozenset((*_MAPPINGS, *_SEQUENCES))
_PLAIN = frozenset((bool, int, float, str, type(None)))


@contextmanager
def unchanged(model: torch.nn.Module) -> Iterator[None]:
    """Put back attributes of `model`, and the content of its containers and tensors, at the end.

    A tracer leaves what ``forward`` assigns or appends, and its own constants, on the model; a
    model that counts changes its buffers whenever it is run.
    """
    containers: dict[int, Callable[[], None]] = {}
    tensors: dict[int, torch.Tensor] = {}
    for module in model.modules():
        _look_through(module.__dict__, _DEPTH, containers, tensors)
    contents = [(tensor, tensor.clone()) for tensor in tensors.values()]
    try:
        yield
    finally:
        for put_back in containers.values():
            put_back()
        with torch.no_grad():
            for tensor, content in contents:
                if not torch.equal(tensor, content):
                    tensor.copy_(content)


def own_tensors(model: torch.nn.Module) -> list[torch.Tensor]:
    """Return buffers, and tensors in attributes of `model` that are neither they nor parameters."""
    tensors: dict[int, torch.Tensor] = {}
    for module in model.modules():
        _look_through(module.__dict__, _DEPTH, {}, tensors)
    return list(tensors.values())


def _look_through(
    value: Any,
    depth: int,
    containers: dict[int, Callable[[], None]],
    tensors: dict[int, torch.Tensor],
) -> None:
    """Write down, by id, how to put back each container in `value`, and the tensors in it."""
    kind = type(value)
    if kind in _PLAIN:
        return
    if kind in _CONTAINERS:
        if depth and id(value) not in containers:
            containers[id(value)] = _putting_back(value)
            for item in value.values() if kind in _MAPPINGS else value:
                _look_through(item, depth - 1, containers, tensors)
    elif kind is tuple:
        for item in value if depth else ():
            _look_through(item, depth - 1, containers, tensors)
    elif isinstance(value, torch.Tensor):
        # A parameter that forward changes is refused; copies of all would double the model.
        own = not isinstance(value, torch.nn.Parameter) and not value.is_inference()
        if own and value.layout is torch.strided and value.device.type == "cpu":
            tensors[id(value)] = value


def _putting_back(container: Any) -> Callable[[], None]:
    before = container.copy()

    def put_back() -> None:
        if not container and not before:
            return
        container.clear()
        if isinstance(container, (list, deque)):
            container.extend(before)
        else:
            container.update(before)

    return put_back
